"""The documents are true: their programs run, their scene files load, their links and options exist."""

import ast
import inspect
import re
import runpy
import tomllib
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

from clast import measure, scenefile, view
from clast.scenefile import keys

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / f"{name}.md" for name in ("README", "ARCHITECTURE", "CHANGELOG", "CONTRIBUTING")]
PAGES += sorted((ROOT / "docs").glob("*.md"))
BLOCK = re.compile(
    r"(?:<!-- in tests: (?P<old>.+?) becomes (?P<new>.+?) -->\n)?```(?P<kind>[^\n]*)\n(?P<code>.*?)```\n", re.S
)
LINK = re.compile(r"\]\(([^)\s]+)\)")


def blocks(page, kind):
    """(line, text) of the code blocks of one kind, and of `kind needs PACKAGE` where that package is; a comment above a block may say what is
    smaller in tests."""
    text = page.read_text(encoding="utf-8")
    for match in BLOCK.finditer(text):
        found, _, needs = match["kind"].strip().partition(" needs ")
        if found == kind and (not needs or find_spec(needs)):
            code = match["code"]
            if match["old"]:
                assert match["old"] in code, f"{page.name}: {match['old']!r} is not in the block below it"
                code = code.replace(match["old"], match["new"])
            yield text.count("\n", 0, match.start("code")) + 1, code


def name_of(page):
    return page.name


@pytest.mark.parametrize("page", [page for page in PAGES if any(blocks(page, "python"))], ids=name_of)
def test_programs_in_the_documents_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(view.STYLE, "size", (160, 120))  # a picture of the usual size takes seconds
    scope = {"__name__": page.stem}
    for line, code in blocks(page, "python"):
        # Lines of a traceback are lines of the page.
        exec(compile("\n" * (line - 1) + code, str(page), "exec"), scope)


@pytest.mark.parametrize("page", [page for page in PAGES if any(blocks(page, "python no-run"))], ids=name_of)
def test_programs_that_are_not_run_are_at_least_programs(page):
    for _, code in blocks(page, "python no-run"):
        ast.parse(code)


def calls_in(code):
    """(module before the dot or "", function, number of arguments) of every call; methods count as functions of no module."""
    for call in ast.walk(ast.parse(code)):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name):
            yield "", call.func.id, len(call.args)
        elif isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
            owner = getattr(call.func.value, "id", "")
            yield "" if owner == "self" else owner, call.func.attr, len(call.args)


def test_the_steps_on_their_page_are_those_of_the_code():
    """Every call on the page stands in the package with as many arguments."""
    page = ROOT / "docs" / "step.md"
    there = {
        call for path in (ROOT / "src" / "clast").rglob("*.py") for call in calls_in(path.read_text(encoding="utf-8"))
    }
    told = [call for _, code in blocks(page, "python no-run") for call in calls_in(code)]
    assert len(told) > 15
    assert not [call for call in told if call not in there]


def test_scene_files_in_the_documents_load(tmp_path):
    found = [code for page in PAGES for _, code in blocks(page, "toml")]
    assert found
    for number, code in enumerate(found):
        file = tmp_path / f"{number}.toml"
        file.write_text(code, encoding="utf-8")
        assert len(scenefile.load(file).scene.bodies.number)


def test_every_key_of_scene_files_is_explained():
    text = (ROOT / "docs" / "files.md").read_text(encoding="utf-8")
    sections = [keys.SceneKeys, keys.MaterialKeys, keys.PairKeys, keys.OscillationKeys]
    sections += [*keys.WALLS.values(), *keys.PARTICLES.values(), keys.BodyKeys, keys.FillKeys]
    sections += [keys.WithinKeys, keys.InletKeys, keys.OutletKeys, keys.RunKeys]
    sections += [keys.JointKeys, keys.MotorKeys, keys.TorsionKeys, keys.SpringKeys]
    missing = {
        f"{section.__name__}.{name}"
        for section in sections
        for name, field in section.model_fields.items()
        if f"| `{name}` | {field.description} |" not in text
    }
    assert missing == set()


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    for target in LINK.findall(text):
        file, _, part = target.partition("#")
        if "://" in target or file.startswith("benchmarks/results/"):  # those are made by `make bench`
            continue
        goal = page.parent / file if file else page
        assert goal.exists(), f"{page.name}: {target}"
        if part:
            heads = re.findall(r"^#+ (.+)$", goal.read_text(encoding="utf-8"), re.M)
            assert part in {re.sub(r"[^\w -]", "", head).lower().replace(" ", "-") for head in heads}, target


def test_the_citation_names_the_version_of_the_package():
    cited = re.search(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.M)
    assert cited[1] == tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]


def test_every_page_is_on_the_site():
    listed = re.findall(r"[\w-]+\.md", (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[2])
    assert sorted(listed) == sorted(page.name for page in (ROOT / "docs").glob("*.md"))


def test_the_site_shows_pages_as_readers_want_them():
    hooks = runpy.run_path(str(ROOT / "docs" / "site" / "hooks.py"))
    text = hooks["on_page_markdown"](
        "see [step](step.md), [tables.py](../src/tables.py) and [`x`](../x.py)\n```python no-run\n1\n```\n```python needs pyvista\n2\n```\n"
    )
    assert text == "see [step](step.md), `tables.py` and `x`\n```python\n1\n```\n```python\n2\n```\n"
    page = hooks["on_post_page"]('<p><script src="https://unpkg.com/a"></script></p>')
    assert page == f"<p><script>{(ROOT / 'docs' / 'site' / 'worker.js').read_text(encoding='utf-8')}</script></p>"
    assert "https:" not in page


def test_the_gallery_shows_every_ready_scene_with_its_program():
    from clast.scenes import SCENES

    hooks = runpy.run_path(str(ROOT / "docs" / "site" / "hooks.py"))
    text = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (\S+)$", text, re.M) == list(SCENES)
    shown = hooks["on_page_markdown"](text)
    for name, function in SCENES.items():
        assert inspect.getsource(function).strip() in shown, name
        assert re.search(rf"^clast run {name}$", shown, re.M)
        part = shown.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
        assert "Run time: " in part and f"images/scene-{name}.png" in part, name


def test_the_reference_names_what_there_is():
    import importlib

    import clast

    text = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    named = re.findall(r"^::: (clast[\w.]*)$", text, re.M)
    for name in named:
        try:
            importlib.import_module(name)
        except ModuleNotFoundError:
            module, _, thing = name.rpartition(".")
            assert hasattr(importlib.import_module(module), thing), name
    shown = {name.rpartition(".")[2] for name in named}
    inside = {
        "ClastError",
        "Damaged",
        "Diverged",
        "Escaped",
        "NotConverged",
        "NotWritten",
        "Penetrated",
        "SceneError",
        "Unavailable",
    }
    assert set(clast._HOMES) - shown - inside <= {"func", "save"}  # in extend.md, and among files


def test_pictures_are_small():
    for picture in (ROOT / "docs" / "images").glob("*.png"):
        assert picture.stat().st_size < 700_000, picture.name


def test_commands_in_the_documents_exist():
    import typer

    from clast import cli

    commands = typer.main.get_command(cli.app).commands
    seen = 0
    for page in PAGES:
        for _, text in blocks(page, "sh"):
            for line in text.splitlines():
                words = line.split("#")[0].split()
                if words[:1] != ["clast"]:
                    continue
                seen += 1
                known = {option for parameter in commands[words[1]].params for option in parameter.opts}
                assert [word for word in words[2:] if word.startswith("--") and word not in known] == [], line
    assert seen >= 8


def test_the_reference_shows_the_public_names_of_a_package_and_no_others():
    """Of modules that hold helpers of others too the page lists what it shows."""
    text = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    shown = set()
    for name, chosen in re.findall(r"^::: (clast\.measure\.\w+)\n(?: +options: \{members: \[(.+)\]\}\n)?", text, re.M):
        module = import_module(name)
        own = {key for key, value in vars(module).items() if getattr(value, "__module__", "") == name and key[0] != "_"}
        listed = set(chosen.split(", ")) if chosen else own
        assert listed <= own
        shown |= listed
    assert shown == set(measure.__all__)
