"""Changes that pages need on the site: programs of ready scenes come in, links to files outside docs/ become their names."""

import ast
import re
from pathlib import Path

SCENES = Path(__file__).parents[2] / "src" / "clast" / "scenes"
PROGRAM = re.compile(r"^<!-- program (\w+) of (\w+\.py) -->$", re.M)
OUTSIDE = re.compile(r"(?<!!)\[([^\]]+)\]\(\.\./[^)\s]+\)")
PICTURE = re.compile(r"!\[([^\]]*)\]\(\.\./[^)\s]+\)\n?")
FENCE = re.compile(r"^```python (no-run|needs \w+)$", re.M)
FOREIGN = re.compile(r'<script src="https://unpkg\.com/[^"]*"></script>')
WORKER = (Path(__file__).parent / "worker.js").read_text(encoding="utf-8")
NOTE = re.compile(r"^<!-- in tests: .*? -->\n", re.M)


def program(name, file):
    """The source of a function of a ready scene."""
    text = (SCENES / file).read_text(encoding="utf-8")
    (node,) = (node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef) and node.name == name)
    return ast.get_source_segment(text, node)


def on_page_markdown(markdown, **_):
    """The text of a page as the site shows it."""
    markdown = PROGRAM.sub(lambda match: f"```python\n{program(match[1], match[2])}\n```", markdown)
    markdown = PICTURE.sub("", markdown)
    markdown = OUTSIDE.sub(lambda match: match[1] if "`" in match[1] else f"`{match[1]}`", markdown)
    return FENCE.sub("```python", NOTE.sub("", markdown))


def on_post_page(output, **_):
    """The page with our own script in place of the one that the theme would load from elsewhere for searching in files."""
    return FOREIGN.sub(lambda _: f"<script>{WORKER}</script>", output)


def on_post_template(output_content, **_):
    """The same for pages that are no text of ours."""
    return on_post_page(output_content)
