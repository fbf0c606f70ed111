"""A small version of each attack of `make reliability`."""

import re
import sys
import tomllib
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "campaign"))

import attacks
import exchanged

import clast
from clast.scenefile import keys


@pytest.fixture
def here(monkeypatch):
    """Attacks go on in this process: another one takes longer to begin than these few tries. A fault fails the test, a crash the process."""

    def tries_here(maker, tries, **given):
        attempt = attacks.MAKERS[maker](**given)
        return Counter(attempt(k) for k in range(tries))

    monkeypatch.setattr(attacks, "apart", tries_here)


def fine(counted):
    bad = {what: count for what, count in counted.items() if what.startswith(attacks.BAD)}
    assert not bad and sum(counted.values()) > 0
    return counted


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("name", ["checkpoint.h5", "trajectory.h5"])
@pytest.mark.parametrize("how", ["flip", "cut"])
def test_damaged_files(tmp_path, name, how):
    counted = fine(attacks.damage(tmp_path, 1, 60, name, how))
    assert counted["refused"] > 30


@pytest.mark.usefixtures("here")
def test_every_length_of_a_file_is_tried_in_shares(tmp_path):
    counted = [attacks.every_cut(tmp_path / str(share), "checkpoint.h5", share, 3000) for share in (0, 2999)]
    size = (tmp_path / "0" / "checkpoint.h5").stat().st_size
    assert counted == [{"refused": len(range(share, size, 3000))} for share in (0, 2999)]


def test_killed_runs(tmp_path):
    assert fine(attacks.kills(tmp_path, 1, 2))


@pytest.mark.usefixtures("here")
def test_scene_files(tmp_path):
    counted = fine(attacks.scene_files(tmp_path, 1, 300))
    assert counted["refused"] > 100 and counted["taken"] > 0


@pytest.mark.usefixtures("here")
def test_mesh_files(tmp_path):
    counted = fine(attacks.mesh_files(tmp_path, 1, 300))
    assert counted["refused"] > 100 and counted["taken"] > 3


@pytest.mark.usefixtures("here")
def test_every_number_of_a_scene_file(tmp_path):
    counted = fine(attacks.every_field(tmp_path, stride=9))
    assert counted["refused"] > 80 and counted["taken"] > 5


@pytest.mark.usefixtures("here")
def test_every_number_of_a_scene_file_with_hard_contacts(tmp_path):
    counted = fine(attacks.every_field(tmp_path, exchanged.HARD, steps=0, stride=9))
    assert counted["refused"] > 50 and counted["taken"] > 3


@pytest.mark.parametrize("one", attacks.shapes())
def test_poses_with_every_other_particle(one):
    for two in attacks.shapes():
        assert fine(attacks.poses(1, 100, one, two)) == {"fine": 100}


@pytest.mark.parametrize("two", ["ellipsoid", "superquadric", "polyhedron", "mesh"])
@pytest.mark.parametrize(
    ("what", "told"),
    [
        ("deeper", "another gap than there is"),
        ("less deep", "another gap than there is"),
        ("turned", "normal differs when swapped"),
        ("longer", "normal is no unit"),
        ("missing", "not finite"),
    ],
)
def test_a_pose_that_is_told_wrong_is_noticed(monkeypatch, two, what, told):
    right, calls = clast.distance, []

    def wrong(*given):
        found, calls[:] = right(*given), [*calls, given]
        k = int(np.argmax(found.gap))
        found.gap[k] += {"deeper": -1e-6, "less deep": 1e-6, "missing": np.nan}.get(what, 0.0)
        found.normal[k] *= 1.0 + 1e-9 * (what == "longer")
        if what == "turned" and len(calls) == 1:
            found.normal[k] = found.normal[k, [1, 2, 0]]
        return found

    monkeypatch.setattr(clast, "distance", wrong)
    counted = attacks.poses(1, 100, "superquadric", two)
    assert any(name.startswith(f"{attacks.BAD}{told}") for name in counted)


def test_every_number_that_a_scene_file_can_have_is_exchanged():
    """Of each section the names of all keys that are numbers stand in one of the scenes; `threshold` needs a package that is not always there."""
    there = {}
    for text in (exchanged.SCENE, exchanged.HARD, exchanged.KINDS, exchanged.JOINED):
        for path in attacks.numbers_in(tomllib.loads(text)):
            there.setdefault(path[0], set()).update(name for name in path if isinstance(name, str))
    sections = {"Scene": "scene", "Material": "materials", "Pair": "pairs", "Fill": "fill", "Inlet": "inlet"}
    sections |= {"Outlet": "outlet", "Joint": "joints", "Spring": "springs", "Run": "run", "Body": "bodies"}
    sections |= dict.fromkeys(("Wall", "Plane", "Cylinder", "Cone", "Quad", "Mesh", "Oscillation"), "walls")
    sections |= {"Motor": "joints", "Torsion": "joints", "Within": "fill", "Piece": "bodies"}
    looked = 0
    for name, section in vars(keys).items():
        if name.endswith("Shape"):
            where = "bodies"
        elif name.endswith("Keys") and name not in ("ManyKeys", "ParticleKeys"):
            where = sections[name.removesuffix("Keys")]
        else:
            continue
        for key, field in section.model_fields.items():
            if re.search(r"\b(int|float)\b", str(field.annotation)) and key != "threshold":
                assert key in there[where], f"{where}: {key}"
                looked += 1
    assert looked > 100


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("text", "stride"), [(exchanged.KINDS, 301), (exchanged.JOINED, 37)], ids=["every shape", "joints"]
)
def test_every_number_of_a_scene_file_of_shapes_or_joints(tmp_path, text, stride):
    counted = fine(attacks.every_field(tmp_path, text, steps=0, stride=stride))
    assert counted["refused"] > 5 and counted["taken"] > 0


def test_cone_problems():
    counted = fine(attacks.cones(1, 60))
    assert counted["solved"] > 10


def test_cone_problems_whose_impulses_grow_without_bounds_are_not_said_to_be_solved():
    w = np.outer([3.0, -2.0, 1.0], [3.0, -2.0, 1.0])
    w[np.diag_indices(3)] *= 1.0 + 1e-15
    found = clast.solve_cone(w, [-1.0, -0.5, 0.25], 0.2, solver="jacobi", iterations=400)
    assert (
        not found.converged or attacks.residual(w, np.array([-1.0, -0.5, 0.25]), np.array([0.2]), found.impulse) < 1e-6
    )
    # Of make reliability: division by zero, and a residual of 0 that had no meaning.
    for solver, k in (("barzilai-borwein", 197), ("jacobi", 71), ("apgd", 156)):
        w, q, mu = attacks.cone_problem(1000, k)
        found = clast.solve_cone(w, q, mu, solver=solver, iterations=200, tolerance=1e-8)
        assert not found.converged or attacks.residual(w, q, mu, found.impulse) < 1e-6


def test_what_is_not_a_number_is_named():
    assert fine(attacks.not_numbers(1, 16)) == {"named": 16}


def test_a_spring_whose_function_gives_no_number_is_named():
    scene = clast.Scene()
    link = scene.add(clast.Polyhedron.box(0.1, 0.02, 0.02), position=(0.05, 0, 0))
    scene.join(None, link[0], "hinge", at=(0, 0, 0), axis=(0, 1, 0))
    scene.spring(None, link[0], from_=(0, 0, 0.2), to=(0.1, 0, 0), force=lambda length, rate, time: np.nan)
    sim = clast.Simulation(scene, clast.Complementarity(), dt=1e-3)
    with pytest.raises(ValueError, match=r"function of spring 0 gave nan at t = "):
        sim.step(3)


def test_a_run_goes_on_to_the_bit_whatever_the_step_and_the_threads(tmp_path):
    counted = fine(attacks.bits(tmp_path, 1, 4, ("sphere",), stored=False))
    assert sum(counted.values()) == 4


def test_spheres_shot_at_walls_by_forces_are_inside_or_reported():
    counted = fine(attacks.shots(1, 5, "dem", ("sphere",), steps=20))
    assert counted["inside"] > 0


def test_an_attack_notices_what_must_not_happen():
    counted = attacks.apart("pretend", 4)
    assert counted["refused"] == 2 and len(counted) == 3
    assert sum(what.startswith(attacks.BAD) for what in counted) == 2


@pytest.mark.parametrize("matrix", [None, 1.0, "x", [], [1.0, 2.0, 3.0]])
def test_what_is_no_matrix_is_told_in_one_line(matrix):
    with pytest.raises(ValueError, match=r"solve_cone: W must be a matrix \(3c,3c\), got"):
        clast.solve_cone(matrix, [1.0, 2.0, 3.0], 0.1)
