"""Notebooks: scenes and simulations show a picture and numbers, a run shows a bar, a page is embedded."""

import re
import subprocess
import sys
import types

import pytest

import clast
from clast import errors
from clast.run.progress import Progress
from clast.view import notebook


def pair():
    scene = clast.Scene()
    scene.add(clast.Plane())
    scene.add(clast.Sphere(0.01), position=[(0, 0, 0.011), (0.1, 0, 0.5)], material=clast.Material(density=2000.0))
    return scene


def test_scenes_and_simulations_show_numbers_and_a_picture():
    pytest.importorskip("pyvista")
    text = pair()._repr_html_()
    assert re.search(r"<img [^>]*src='data:image/jpeg;base64,/9j/", text)
    assert "3, 2 free" in text and "Plane, Sphere" in text and "0.01676 kg" in text
    sim = clast.Simulation(pair(), dt=1e-4)
    sim.step(3)
    text = sim._repr_html_()
    assert "0.0003 s, 3 steps of 0.0001 s" in text and "DEM" in text and "that carry a force" in text


def test_where_nothing_can_be_drawn_numbers_are_shown_all_the_same(monkeypatch):
    def none(*_, **__):
        raise errors.Unavailable("no OpenGL")

    monkeypatch.setattr("clast.view.render", none)
    text = pair()._repr_html_()
    assert "<img" not in text and "3, 2 free" in text
    assert "none yet" in clast.Scene()._repr_html_()


def test_the_bar_of_a_notebook(monkeypatch):
    shown = []

    class Handle:
        def update(self, thing):
            shown.append(thing)

    fake = types.ModuleType("IPython.display")
    fake.display = lambda thing, display_id: shown.append(thing) or Handle()
    monkeypatch.setitem(sys.modules, "IPython", types.ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", fake)
    said = []
    console = types.SimpleNamespace(is_terminal=False, is_jupyter=True, print=lambda text, **_: said.append(text))
    with Progress(until=2.0, title="<running>", console=console) as bar:
        bar.update(time=0.5, steps=10, contacts=3)
        bar.update(time=2.0, steps=40, contacts=3)
    assert [round(100 * one._share) for one in shown] == [0, 25, 100, 100] and said == []
    text = shown[1]._repr_html_()
    assert "width:25%" in text and "&lt;running&gt;" in text and "3 contacts" in text
    assert repr(shown[1]).startswith("25 % <running>  t = 0.5 of 2 s")


def test_a_page_is_embedded(monkeypatch):
    pytest.importorskip("viser")
    page = pair().view(port=0)
    try:
        assert f"<iframe src='{page.address}'" in page._repr_html_()
    finally:
        page.close()
    assert "&amp;" in notebook.frame_html("http://localhost:1/?a=1&b=2")


def test_simulations_can_be_shown_however_they_were_made():
    program = (
        "import sys; from clast.scenes import SCENES; sim = SCENES['box'](count=5).simulation(); import clast; clast.Scene;"
        "assert sim.view and sim._repr_html_; assert not {'viser', 'pyvista', 'matplotlib'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_simulation_is_shown_at_its_present_moment():
    pytest.importorskip("viser")
    sim = clast.Simulation(pair(), dt=1e-4)
    sim.step(160)
    found = sim.contacts()
    assert len(found.pair) == 1  # the lower ball lies on the plane
    page = sim.view(port=0, colour="force")
    try:
        assert page.frame.step == 160 and "t = 0.016 s, step 160, 2 bodies" in page.told.content
        (handle,) = page.nodes.values()
        assert handle.batched_positions / page.zoom == pytest.approx(sim.bodies.position[1:], rel=1e-5)
        assert page.frame.contacts["pair"].tolist() == found.pair.tolist()
        pressed, free = handle.batched_colors
        assert (pressed != free).any()
        sim.step(10)
        assert page.frame.step == 160  # a picture of one moment; `clast run --live` follows a run
    finally:
        page.close()
