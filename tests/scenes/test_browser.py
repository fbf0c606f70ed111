"""The page and the report in headless Chromium: bodies are seen where they are, controls move them, a click picks the right one."""

import contextlib
import io
import os
import shutil
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import clast
from clast import view

pytest.importorskip("viser", reason="needs viser: pip install 'clast[view]'")
playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install 'clast[browser]'")
Image = pytest.importorskip("PIL.Image")
from clast.view import live  # noqa: E402

CHROMIUM = os.environ.get("CLAST_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
# As root there is no sandbox; without a GPU the picture is made by software; no connections but those of the page.
FLAGS = (
    *("--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist"),
    *(
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
    ),
)
WIDE, HIGH = 1300, 500
if CHROMIUM is None:
    pytest.skip("needs Chromium: apt install chromium, or say where it is by CLAST_CHROMIUM", allow_module_level=True)


@pytest.fixture(scope="module")
def chromium():
    with playwright.sync_playwright() as tool:
        browser = tool.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


def balls():
    """Three balls of different sizes and speeds, well apart, over a plane, without gravity."""
    scene = clast.Scene(gravity=(0, 0, 0))
    scene.add(clast.Plane())
    place = [(-0.06, 0.0, 0.05), (0.0, 0.0, 0.05), (0.06, 0.0, 0.05)]
    scene.add(
        clast.Sphere(0.02), position=place, scale=[0.5, 1.0, 0.75], velocity=[(0, 0, 0), (0, 0, 1.0), (0, 0, 0.5)]
    )
    return scene


@pytest.fixture(scope="module")
def shown(chromium, tmp_path_factory):
    """(the page on the server's side, the same in the browser): a run of three balls that fly upwards, in nine frames."""
    folder = tmp_path_factory.mktemp("browser")
    clast.Simulation(balls(), dt=1e-4).run(until=0.08, every=0.01, output=folder, progress=False)
    page = view.show(folder, port=0)
    tab = chromium.new_page(viewport={"width": WIDE, "height": HIGH})
    asked = []
    tab.on("request", lambda request: asked.append(request.url))
    tab.goto(page.address)
    wait(lambda: page.server.get_clients(), tab)
    tab.asked = asked
    yield page, tab
    tab.close()
    page.close()


def wait(condition, tab, seconds=180.0):
    """Wait until the condition holds, while the browser goes on."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited too long"
        tab.wait_for_timeout(100)


def seen(page, tab):
    """The picture (h,w,3), and where in it the centres of the bodies are, by number: {number: (x, y)} in pixels."""
    import viser.transforms as turns

    (client,) = page.server.get_clients().values()
    camera = client.camera
    away = (page.zoom * page.stage.centre - camera.position) @ turns.SO3(camera.wxyz).as_matrix()
    focus = 0.5 * camera.image_height / np.tan(camera.fov / 2.0)
    place = focus * away[:, :2] / away[:, 2:] + (0.5 * camera.image_width, 0.5 * camera.image_height)
    number = np.asarray(page.stage.columns["number"])[page.stage.body]
    shot = np.asarray(Image.open(io.BytesIO(tab.screenshot(timeout=120_000))).convert("RGB"), dtype=int)
    return shot, {int(k): (int(x), int(y)) for k, (x, y) in zip(number, place, strict=True)}


def hue(shot, place):
    """What is seen at a place: "red", "blue", "pink", "green" (the pale middle of the scale), or "grey" (background and walls)."""
    x, y = place
    if not (2 <= x < shot.shape[1] - 2 and 2 <= y < shot.shape[0] - 2):
        return "outside"
    r, g, b = shot[y - 2 : y + 3, x - 2 : x + 3].reshape(-1, 3).mean(0)
    if r > 1.5 * g and b > 1.5 * g:
        return "pink"
    if r > 1.4 * max(g, b):
        return "red"
    if b > 1.25 * max(r, 1.0) and b > 1.1 * g:
        return "blue"
    if g > 1.01 * r and g > 1.03 * b:
        return "green"
    return "grey" if max(r, g, b) < 1.005 * min(r, g, b) else "other"


def until_seen(page, tab, expected):
    """Wait until bodies have these hues, {number: hue}."""

    def found():
        shot, place = seen(page, tab)
        return {number: hue(shot, place[number]) for number in expected} == expected

    try:
        wait(found, tab)
    except AssertionError:
        shot, place = seen(page, tab)
        colours = {number: (place[number], hue(shot, place[number])) for number in place}
        Image.fromarray(shot.astype(np.uint8)).save("browser-failed.png")
        raise AssertionError(f"expected {expected}, saw {colours}; see browser-failed.png") from None


def test_the_page_loads_from_its_own_address_alone_and_shows_the_bodies(shown):
    page, tab = shown
    until_seen(page, tab, {1: "blue", 2: "red"})  # at rest, and the fastest
    assert [url for url in tab.asked if not url.startswith((page.address, "data:", "blob:"))] == []


def test_the_slider_moves_bodies(shown):
    page, tab = shown
    until_seen(page, tab, {1: "blue", 2: "red"})
    _, before = seen(page, tab)
    box = tab.locator("input.mantine-NumberInput-input").first  # beside the slider of frames
    box.fill("0")
    box.press("Enter")
    wait(lambda: page.index == 0, tab)
    until_seen(page, tab, {1: "blue", 2: "red"})
    shot, after = seen(page, tab)
    assert after[2][1] > before[2][1] + 20  # lower in the picture at the start
    assert hue(shot, before[2]) == "grey"  # and no longer where it was
    assert "t = 0 s" in tab.inner_text("body")


def test_colours_change(shown):
    page, tab = shown
    until_seen(page, tab, {3: "green"})  # half as fast: the pale middle of the scale
    tab.locator("input.mantine-Select-input:visible").first.click()
    tab.get_by_role("option", name="number", exact=True).click()
    wait(lambda: page.colour.value == "number", tab)
    until_seen(page, tab, {1: "blue", 3: "red"})
    page.colour.value = "speed"
    until_seen(page, tab, {1: "blue", 2: "red"})


def test_the_screenshot_is_handed_to_the_user(shown):
    page, tab = shown
    until_seen(page, tab, {1: "blue", 2: "red"})
    _, place = seen(page, tab)
    with tab.expect_download(timeout=180_000) as download:
        tab.get_by_role("button", name="screenshot", exact=True).click()
    assert download.value.suggested_filename == f"clast-{page.frame.step}.png"
    shot = np.asarray(Image.open(download.value.path()).convert("RGB"), dtype=int)
    assert shot.shape == (HIGH, WIDE, 3) and [hue(shot, place[k]) for k in (1, 2)] == ["blue", "red"]


@pytest.mark.parametrize("number", [1, 3])
def test_a_click_tells_the_numbers_of_that_body(shown, number):
    page, tab = shown
    _, place = seen(page, tab)
    tab.mouse.click(*place[number])
    wait(lambda: page.picked == number, tab)
    until_seen(page, tab, {number: "pink"})
    text = tab.inner_text("body")
    assert f"body {number}, Sphere" in text and f"{0.02 * (0.5, 1.0, 0.75)[number - 1]:.4g}" in text


def test_a_run_that_goes_on_obeys_its_buttons(chromium):
    sim = clast.Simulation(balls(), dt=1e-4)
    look = live.Live(sim, port=0)
    over = threading.Event()

    def between(sim, stopped):
        if over.is_set():
            raise KeyboardInterrupt
        look(sim, lambda: over.is_set() or stopped())

    def go():
        with contextlib.suppress(KeyboardInterrupt):
            sim.run(until=1e4, progress=False, between=between)

    run = threading.Thread(target=go)
    tab = chromium.new_page(viewport={"width": WIDE, "height": HIGH})

    def press(name):
        tab.get_by_role("button", name=name, exact=True).click()

    def still():
        """Whether the run stands, and the page says at which step."""
        steps = sim.steps
        tab.wait_for_timeout(300)
        return sim.steps == steps and f"step {steps:,}," in tab.inner_text("body")

    try:
        tab.goto(look.address)
        wait(lambda: look.server.get_clients(), tab)
        run.start()
        wait(lambda: sim.steps > 10 and look.frame.step > 10, tab)  # the page follows the run
        press("pause")
        wait(still, tab)
        stood = sim.steps
        press("single step")
        wait(lambda: sim.steps > stood, tab)
        wait(still, tab)
        assert sim.steps == stood + 1
        press("continue")
        wait(lambda: sim.steps > stood + 10, tab)
    finally:
        over.set()
        tab.close()
        look.close()
        run.join(20)
    assert not run.is_alive()


def test_a_worker_of_the_documentation_runs_from_files(chromium, tmp_path):
    """Without it the search field of the site is not there."""
    shim = (Path(__file__).parents[2] / "docs" / "site" / "worker.js").read_text()
    (tmp_path / "worker.js").write_text("addEventListener('message', event => postMessage(event.data + 1))")
    told = "worker.addEventListener('message', event => document.title = event.data)"
    script = f"const worker = new Worker('worker.js'); {told}; worker.postMessage(41)"
    (tmp_path / "page.html").write_text(f"<script>{shim}</script><body><script>{script}</script></body>")
    tab = chromium.new_page()
    tab.goto((tmp_path / "page.html").as_uri())
    wait(lambda: tab.title() == "42", tab)
    tab.close()


def test_the_report_draws_its_plots(chromium, small_run, tmp_path):
    path = view.report(small_run, tmp_path / "report.html", pictures=False)
    tab = chromium.new_page(viewport={"width": 1000, "height": 800})
    faults, asked = [], []
    tab.on("pageerror", lambda fault: faults.append(str(fault)))
    tab.on("request", lambda request: asked.append(request.url))
    tab.goto(path.as_uri())
    assert faults == [] and asked == [path.as_uri()]
    plots = tab.locator("#plots figure")
    assert plots.count() >= 5 and plots.first.locator("path.line").count() == 5
    box = plots.first.locator("svg").bounding_box()
    tab.mouse.move(box["x"] + box["width"] - 15, box["y"] + 60)
    assert float(plots.first.locator(".note").text_content().split()[2]) == pytest.approx(0.16, rel=1e-3)
    told = np.genfromtxt(small_run / "series.csv", delimiter=",", names=True, deletechars="")
    assert float(plots.first.locator("b").first.text_content()) == pytest.approx(told["kinetic"][-1], rel=1e-3)
    plots.first.locator("button").first.click()
    assert plots.first.locator("path.line").count() == 4
    tab.close()
