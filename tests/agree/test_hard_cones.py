"""Two roads to the cone problem of a step: passes over contacts and bodies, and the assembled matrix."""

import numpy as np
import pytest
from scipy import sparse

import clast
from clast.dvi import solvers
from clast.dvi.problem import BodyCones
from clast.kernels.vec import rotation_matrices

STEP = 5e-3


def heap(shape, **material):
    """A few bodies that fell into a corner, and the cone problem of their next step."""
    material = clast.Material(density=2000, friction=0.6, restitution=0.0, **material)
    scene = clast.Scene(gravity=(-2.0, -3.0, -9.0))
    for normal in np.eye(3):
        scene.add(clast.Plane(normal), material=material)
    box = ((0.0, 0.0, 0.0), (0.7, 0.7, 0.7))
    scene.fill(shape, count=25, scale=(0.7, 1.3), box=box, material=material, seed=4)
    sim = clast.Simulation(scene, clast.Complementarity(tolerance=1e-6, iterations=2000), dt=STEP)
    sim.step(100)
    return sim


def problem(sim):
    """The cones as the next step would see them, with the velocities bodies would have without contacts."""
    mover, state = sim.stepper, sim.state
    mover._touch()
    free = np.hstack([state.bodies.velocity, state.bodies.spin])
    free[np.isfinite(state.bodies.mass), :3] += STEP * np.array(sim.scene.gravity)
    return BodyCones(mover.constraints, state.pairs, state.rows, mover.inverse, free, mover._inner, mover.width)


def assembled(sim, cones):
    """W and q of the same problem by matrices: D^T M^-1 D and D^T v + b, (c*width, c*width) and (c*width,)."""
    constraints, bodies, width = cones.constraints, sim.state.bodies, cones.width
    n, count = len(bodies.number), cones.count
    turn = rotation_matrices(bodies.orientation)
    inverse = np.zeros((6 * n, 6 * n))
    for i in np.nonzero(np.isfinite(bodies.mass))[0]:
        inertia = bodies.mass[i] * bodies.scale[i] ** 2 * sim.scene.molds.inertia[bodies.mold[i]]
        inverse[6 * i : 6 * i + 3, 6 * i : 6 * i + 3] = np.eye(3) / bodies.mass[i]
        inverse[6 * i + 3 : 6 * i + 6, 6 * i + 3 : 6 * i + 6] = turn[i] @ np.linalg.inv(inertia) @ turn[i].T
    jacobian = np.zeros((width * count, 6 * n))
    for c in range(count):
        for side, sign in ((0, -1.0), (1, 1.0)):
            i = constraints.body[c, side]
            x, y, z = constraints.arm[c, 3 * side : 3 * side + 3]
            rows = slice(width * c, width * c + 3)
            jacobian[rows, 6 * i : 6 * i + 3] = sign * np.eye(3)
            jacobian[rows, 6 * i + 3 : 6 * i + 6] = sign * np.array([[0, z, -y], [-z, 0, x], [y, -x, 0]])
            if width == 6:
                rows = slice(width * c + 3, width * c + 6)
                jacobian[rows, 6 * i + 3 : 6 * i + 6] = sign * constraints.length[c] * np.eye(3)
    bias = np.zeros((count, width))
    bias[:, :3] = constraints.bias[:, None] * constraints.normal
    return jacobian @ inverse @ jacobian.T, jacobian @ cones.free.ravel() + bias.ravel()


CLUMP = clast.Clump(centres=[[-0.03, 0, 0], [0.04, 0, 0]], radii=[0.05, 0.04])
CASES = {
    "balls": (clast.Sphere(0.06), {}),
    "clumps that resist rolling": (CLUMP, {"rolling_friction": 0.2, "spinning_friction": 0.1}),
}


@pytest.fixture(scope="module", params=CASES)
def heaped(request):
    shape, material = CASES[request.param]
    sim = heap(shape, **material)
    return sim, problem(sim)


def test_passes_are_the_product_with_the_assembled_matrix(heaped):
    sim, cones = heaped
    matrix, q = assembled(sim, cones)
    impulse = np.random.default_rng(1).normal(size=(cones.count, cones.width))
    out = np.empty_like(impulse)
    cones.velocity(impulse, out)
    expected = (matrix @ impulse.ravel() + q).reshape(out.shape)
    assert np.abs(out - expected).max() < 1e-12 * np.abs(expected).max()


def test_sizes_are_the_diagonal_of_the_blocks(heaped):
    sim, cones = heaped
    matrix, _ = assembled(sim, cones)
    width = cones.width
    for c in range(cones.count):
        block = matrix[width * c : width * (c + 1), width * c : width * (c + 1)]
        along = cones.normal[c] @ block[:3, :3] @ cones.normal[c]
        assert cones.size[c] == pytest.approx([along, (np.trace(block) - along) / (width - 1)], rel=1e-12)


@pytest.mark.parametrize("solver", solvers.SOLVERS)
def test_every_solver_finds_the_same_velocities(heaped, solver):
    _, cones = heaped
    answers = []
    for name in ("apgd", solver):
        impulse = np.zeros((cones.count, cones.width))
        found = solvers.solve(cones, impulse, solver=name, tolerance=1e-5, iterations=20_000)
        assert found.converged, (name, found.residual)
        answers.append(found.velocity.copy())
    assert np.abs(answers[0] - answers[1]).max() < 1e-3


@pytest.mark.parametrize("heaped", ["balls"], indirect=True)  # matrices have cones of three numbers
def test_the_public_solver_agrees_on_the_same_problem(heaped):
    sim, cones = heaped
    matrix, q = assembled(sim, cones)
    # Into the axes of each contact: normal, tangent, tangent.
    axes = np.zeros((3 * cones.count, 3 * cones.count))
    for c, n in enumerate(cones.normal):
        side = np.cross(n, np.eye(3)[np.argmin(np.abs(n))])
        side /= np.linalg.norm(side)
        axes[3 * c : 3 * c + 3, 3 * c : 3 * c + 3] = [n, side, np.cross(n, side)]
    local = axes @ matrix @ axes.T
    friction = np.ascontiguousarray(cones.limit[:, 0])
    found = clast.solve_cone(sparse.csr_array(0.5 * (local + local.T)), axes @ q, friction, tolerance=1e-6)
    assert found.converged
    impulse = np.zeros((cones.count, 3))
    own = solvers.solve(cones, impulse, tolerance=1e-6, iterations=20_000)
    assert np.abs(axes.T @ found.velocity - own.velocity.ravel()).max() < 1e-4


@pytest.mark.parametrize("solver", solvers.SOLVERS)
def test_many_contacts_on_one_body_come_to_rest(solver):
    """Nine contacts of one rod with a floor: the fixed point must shorten its steps, or the rod takes off."""
    scene = clast.Scene()
    scene.add(clast.Plane())
    rod = clast.Clump(centres=[[0.03 * k, 0, 0] for k in range(9)], radii=[0.02] * 9)
    scene.add(rod, position=(0, 0, 0.02))
    sim = clast.Simulation(scene, clast.Complementarity(solver=solver, tolerance=1e-6), dt=STEP)
    sim.step(100)
    assert sim.bodies.position[1] == pytest.approx([0.0, 0.0, 0.02], abs=1e-6)
    assert sim.report().solver["missed"] == 0
