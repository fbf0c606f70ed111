"""Points inside triangulated particles, and bodies wholly inside others."""

import numpy as np
import pytest

import clast
from clast.kernels.vec import rotation_matrices
from clast.narrow.mesh_cylinder import point_nearest
from clast.narrow.mesh_inside import inside
from clast.narrow.mesh_tree import STACK


def torus(rings=12, sides=8, wide=1.0, thin=0.4):
    """A torus about z: vertices and triangles."""
    a, b = np.meshgrid(np.arange(rings), np.arange(sides), indexing="ij")
    u, v = 2 * np.pi * a / rings, 2 * np.pi * b / sides
    off = wide + thin * np.cos(v)
    vertices = np.stack([off * np.cos(u), off * np.sin(u), thin * np.sin(v)], -1).reshape(-1, 3)
    row = lambda i, j: (i % rings * sides + j % sides).ravel()  # noqa: E731
    p, q, r, s = row(a, b), row(a + 1, b), row(a + 1, b + 1), row(a, b + 1)
    return vertices, np.concatenate([np.column_stack([p, q, r]), np.column_stack([p, r, s])])


def is_inside(shape, x):
    """Whether points (k,3), about the centre of mass, are inside."""
    stack = np.empty(STACK, np.int32)
    return np.array([inside(shape.triangulation, 0, tuple(map(float, p)), stack) for p in x])


def by_solid_angle(shape, x):
    """The same from the sum of the solid angles of all triangles (Van Oosterom and Strackee 1983)."""
    a, b, c = (shape.vertices[shape.triangles[:, k]][None] - x[:, None] for k in range(3))
    la, lb, lc = (np.linalg.norm(v, axis=2) for v in (a, b, c))
    triple = np.einsum("kti,kti->kt", a, np.cross(b, c))
    dots = [np.einsum("kti,kti->kt", *pair) for pair in ((a, b), (b, c), (c, a))]
    below = la * lb * lc + dots[0] * lc + dots[1] * la + dots[2] * lb
    return abs(2.0 * np.arctan2(triple, below).sum(1)) > 2.0 * np.pi


def test_inside_a_torus():
    """Random points, and points whose rays go exactly through corners and along edges of the mesh."""
    shape = clast.Mesh(*torus())
    rng = np.random.default_rng(0)
    middle = shape.vertices[rng.integers(len(shape.vertices), size=(200, 2))].mean(1)
    level = np.column_stack(
        [
            rng.uniform(-1.6, 1.6, 300),
            shape.vertices[rng.integers(len(shape.vertices), size=300), 1:].T[0],
            shape.vertices[rng.integers(len(shape.vertices), size=300), 2],
        ]
    )
    exact = shape.vertices[rng.integers(len(shape.vertices), size=300)].copy()
    exact[:, 0] = rng.uniform(-1.6, 1.6, 300)
    x = np.concatenate([rng.uniform(-1.5, 1.5, (600, 3)) * (1, 1, 0.4), middle, level, exact])
    corners = shape.vertices[shape.triangles]
    centre = corners.mean(1)
    reach = np.linalg.norm(corners - centre[:, None], axis=2).max(1)
    # Points on the surface itself are neither; only triangles in whose ball a point lies can be that near.
    near = [
        min(
            (np.linalg.norm(np.array(point_nearest(tuple(p), *map(tuple, t))) - p) for t in corners[beside]),
            default=1.0,
        )
        for p, beside in zip(x, np.linalg.norm(x[:, None] - centre, axis=2) < reach + 1e-6, strict=True)
    ]
    x = x[np.array(near) > 1e-6]
    expected = by_solid_angle(shape, x)
    assert 100 < expected.sum() < len(x) - 100
    assert (is_inside(shape, x) == expected).all()


def pair_gap(first, second, **place):
    """Contacts of two bodies, the second at a place."""
    scene = clast.Scene()
    scene.add(first)
    scene.add(second, **place)
    return clast.find_contacts(scene)


def test_one_inside_another():
    """It is found whichever comes first, with the way out; in the hole of a torus or in a hollow there is no contact."""
    ball = clast.Mesh.random(40, seed=1)
    for place in ({"scale": 0.2}, {"scale": 0.2, "position": (0.1, 0.2, 0.0)}):
        c = pair_gap(ball, ball, **place)
        assert len(c.gap) == 1 and c.gap[0] < -1.2 * ball.epsilon - 0.1
        scene = clast.Scene()
        scene.add(ball, **place)
        scene.add(ball)
        d = clast.find_contacts(scene)
        # The nearest triangles may be several, and either way round another one is the first of them.
        assert abs(d.gap[0] - c.gap[0]) < 1e-12
        assert np.allclose(d.normal, -c.normal)
        assert np.dot(c.normal[0], c.point[0] - place.get("position", (0.0, 0.0, 0.0))) > 0.0
    ring = clast.Mesh(*torus(rings=24, sides=12))
    assert len(pair_gap(ring, ball, scale=0.2).gap) == 0
    vertices, triangles = clast.Polyhedron.box(1.0, 1.0, 1.0).surface()
    hollow = clast.Mesh(
        np.concatenate([vertices, 0.8 * vertices]), np.concatenate([triangles, triangles[:, ::-1] + len(vertices)])
    )
    assert len(pair_gap(hollow, ball, scale=0.1).gap) == 0


@pytest.mark.parametrize("shape", [clast.Ellipsoid(0.5, 0.3, 0.2), clast.Superquadric(0.5, 0.3, 0.2, 0.7, 1.2)])
@pytest.mark.parametrize("size", [0.1, 1.0, 3.0])
def test_with_its_centre_inside_an_oval_is_as_deep_as_it_must_go_to_be_out(shape, size):
    """Of a box: past the nearest of six planes by what it reaches that way; inside, across the surface or all around the box."""
    halo, half = 0.01, np.array([0.4, 0.5, 0.6])
    box = clast.Mesh(*clast.Polyhedron.box(*2.0 * half).surface(), epsilon=halo)
    rng = np.random.default_rng(3)
    x = rng.uniform(-0.99, 0.99, (50, 3)) * half
    q = rng.normal(size=(50, 4))
    q /= np.linalg.norm(q, axis=1)[:, None]
    scene = clast.Scene()
    places = x + 20.0 * np.arange(50)[:, None] * (1.0, 0.0, 0.0)
    inner = scene.add(shape, position=places, orientation=q, scale=size)
    outer = scene.add(box, position=places - x)
    found = clast.find_contacts(scene, pairs=np.stack([inner, outer], axis=1), margin=np.inf)
    out = np.concatenate([np.eye(3), -np.eye(3)])
    turns = rotation_matrices(q)
    for k in range(50):
        own = size * out @ turns[k]
        reach = shape.support(own) if hasattr(shape, "support") else np.linalg.norm(own * shape.axes, axis=1)
        depth = np.concatenate([half - x[k], half + x[k]]) + reach
        assert abs(found.gap[k] + depth.min() + halo) < 1e-12
        # From the oval to the box, which is in its way.
        assert np.dot(found.normal[k], out[depth.argmin()]) < -1.0 + 1e-12
