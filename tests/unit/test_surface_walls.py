"""Triangulated particles against spheres, planes, cylinders and wall triangles: dense sampling and closed forms."""

import numpy as np
import pytest

import clast
from clast.kernels.vec import rotation_matrices
from clast.narrow.mesh_cylinder import point_nearest, rim_distance, solid_distance


def unit(rng, size=3):
    """A random unit vector."""
    x = rng.normal(size=size)
    return x / np.linalg.norm(x)


def sampled(corners, steps=40):
    """Points (k,3) on a triangle (3,3)."""
    i, j = np.meshgrid(np.arange(steps + 1), np.arange(steps + 1))
    keep = i + j <= steps
    u, v = (i[keep] / steps)[:, None], (j[keep] / steps)[:, None]
    return corners[0] + u * (corners[1] - corners[0]) + v * (corners[2] - corners[0])


def surface_points(shape, steps=12):
    """Points on all triangles of a shape."""
    return np.concatenate([sampled(shape.vertices[t], steps) for t in shape.triangles])


def away(x, axis, radius, half_length, hollow):
    """Distances of points (k,3) from a cylinder about the origin."""
    along = x @ axis
    across = np.linalg.norm(x - along[:, None] * axis, axis=1) - radius
    return np.hypot(across if hollow else np.maximum(across, 0.0), np.maximum(abs(along) - half_length, 0.0))


def test_triangle_and_solid_cylinder():
    """No sampled point is nearer, and the plane across the shortest way parts the triangle from the cylinder: a proof."""
    rng = np.random.default_rng(0)
    crossing = 0
    for k in range(400):
        axis = np.array([0.0, 0.0, 1.0]) if k % 3 == 0 else unit(rng)
        radius, half = rng.uniform(0.2, 1.0), rng.choice([0.3, 1.0, np.inf])
        corners = rng.normal(size=3) * rng.uniform(0.5, 2.0) + rng.normal(size=(3, 3)) * rng.uniform(0.1, 2.0)
        if k % 5 == 0:
            corners[:, k % 3] = corners[0, k % 3]  # along an end, or along the axis
        n = np.cross(corners[1] - corners[0], corners[2] - corners[0])
        n /= np.linalg.norm(n)
        d, x, y = solid_distance(*map(tuple, corners), tuple(n), tuple(axis), radius, half)
        points = sampled(corners)
        size = np.linalg.norm(corners - corners.mean(0), axis=1).max()
        least = away(points, axis, radius, half, False).min()
        assert least - size / 20 <= d <= least + 1e-12
        crossing += d == 0.0
        if d > 0.0:
            x, y = np.array(x), np.array(y)
            assert np.linalg.norm(y - x) == pytest.approx(d, abs=1e-12)
            assert away(y[None], axis, radius, half, False)[0] < 1e-12
            assert ((corners - x) @ (y - x) / d).max() < 1e-7
    assert 20 < crossing < 200


def test_triangle_and_rim():
    """No point of the circle is nearer to the triangle."""
    rng = np.random.default_rng(1)
    theta = np.linspace(0.0, 2.0 * np.pi, 200)
    for _ in range(60):
        axis = unit(rng)
        corners = [tuple(c) for c in rng.normal(size=3) + rng.normal(size=(3, 3)) * rng.uniform(0.1, 1.0)]
        d, x, y = rim_distance(*corners, tuple(axis), 1.0, 0.7)
        one = np.cross(axis, [1.0, 0.0, 0.0])
        one /= np.linalg.norm(one)
        two = np.cross(axis, one)
        circle = 0.7 * axis + np.outer(np.cos(theta), one) + np.outer(np.sin(theta), two)
        least = min(np.linalg.norm(np.array(point_nearest(tuple(q), *corners)) - q) for q in circle)
        assert least - 0.02 < d <= least + 1e-6


def one_contact(*bodies, margin=np.inf):
    """The nearest contact of the first body with the second: point, normal from the first to the second, gap."""
    scene = clast.Scene()
    for shape, place in bodies:
        scene.add(shape, **place)
    c = clast.find_contacts(scene, pairs=[(0, 1)], margin=margin)
    k = np.argmin(c.gap)
    return c.point[k], c.normal[k], c.gap[k]


LUMP = clast.Mesh.random(30, seed=3, epsilon=0.05)


@pytest.mark.parametrize("seed", range(3))
def test_sphere(seed):
    """The distance of a sphere is that of its centre from the surface less its radius, in both orders."""
    rng = np.random.default_rng(seed)
    x, q = 1.6 * unit(rng), unit(rng, 4)
    scene = clast.Scene()
    scene.add(LUMP, orientation=q)
    scene.add(clast.Sphere(0.3), position=x)
    turn = rotation_matrices([q])[0]
    least = min(
        np.linalg.norm(np.array(point_nearest(tuple(turn.T @ x), *map(tuple, LUMP.vertices[t]))) - turn.T @ x)
        for t in LUMP.triangles
    )
    point, n, gap = one_contact((LUMP, {"orientation": q}), (clast.Sphere(0.3), {"position": x}))
    assert gap == pytest.approx(least - 0.3 - 0.05, abs=1e-12)
    # The point is in the middle between the surface and the sphere.
    assert np.linalg.norm(x - point) == pytest.approx(0.3 + 0.5 * (least - 0.3), abs=1e-12)
    assert n == pytest.approx((x - point) / np.linalg.norm(x - point), abs=1e-9)
    point2, n2, gap2 = one_contact((clast.Sphere(0.3), {"position": x}), (LUMP, {"orientation": q}))
    assert (gap2, *point2, *n2) == pytest.approx((gap, *point, *-n), abs=1e-12)


def test_sphere_inside():
    """A sphere inside is pushed out the shortest way, and it is never missed, however small."""
    cube = cube_mesh(1.0)
    for radius in (0.01, 0.2):
        point, n, gap = one_contact((cube, {}), (clast.Sphere(radius), {"position": (0.3, 0.05, 0.0)}), margin=0.0)
        assert gap == pytest.approx(-0.2 - radius - cube.epsilon)
        assert n == pytest.approx((1.0, 0.0, 0.0))
        assert point == pytest.approx((0.4 - 0.5 * radius, 0.05, 0.0))


def cube_mesh(side, epsilon=0.05):
    """A cube of twelve triangles."""
    return clast.Mesh(*clast.Polyhedron.box(side, side, side).surface(), epsilon=epsilon)


def test_plane():
    """Corners touch a plane at any depth; each is one contact."""
    for height, many in ((0.52, 4), (0.3, 4), (-2.0, 8)):
        scene = clast.Scene()
        scene.add(clast.Plane(normal=(0.0, 0.0, 1.0)))
        scene.add(cube_mesh(1.0), position=(0.0, 0.0, height))
        c = clast.find_contacts(scene)
        assert c.normal[:4] == pytest.approx(np.tile([0.0, 0.0, 1.0], (4, 1)))
        assert c.gap[:4] == pytest.approx(height - 0.5 - 0.05)
        assert len(c.gap) == many
        assert sorted(map(tuple, np.round(c.point[:4, :2], 9))) == [(-0.5, -0.5), (-0.5, 0.5), (0.5, -0.5), (0.5, 0.5)]
        assert c.point[:4, 2] == pytest.approx(0.5 * (height - 0.5))


@pytest.mark.parametrize(("half", "hollow"), [(np.inf, True), (0.8, True), (np.inf, False), (0.8, False)])
def test_cylinder(half, hollow):
    """The gap is that of the nearest of many points on the surface."""
    rng = np.random.default_rng(int(hollow))
    points = surface_points(LUMP)
    if half == np.inf:
        wall = clast.Cylinder(3.0, inside=True) if hollow else clast.Cylinder(0.4, inside=False)
    else:
        wall = (
            clast.Cylinder(1.3, length=2 * half, inside=True)
            if hollow
            else clast.Cylinder(0.4, length=2 * half, inside=False)
        )
    radius = wall.radius
    axis = np.array([0.0, 0.0, 1.0])
    apart = 0
    for _k in range(12):
        q = unit(rng, 4)
        x = rng.normal(size=3) * (0.8 if hollow and half == np.inf else 1.5)
        at = x + points @ rotation_matrices([q])[0].T
        distance = away(at, axis, radius, half, hollow)
        if hollow:
            across = np.linalg.norm(at[:, :2], axis=1)
            inside = across < radius
            ends = abs(at[:, 2]) > half
            if not inside.all() and not ends.all() and inside.any():
                continue
        _, _, gap = one_contact((LUMP, {"position": x, "orientation": q}), (wall, {}))
        if distance.min() > 0.06:
            apart += 1
            assert gap + 0.05 == pytest.approx(distance.min(), abs=0.01)
            assert gap + 0.05 <= distance.min() + 1e-9
    assert apart > 2


def test_crossing_a_rod():
    """A rod through a particle is a crossing, never a gap."""
    for x in ((0.0, 0.0, 0.0), (0.3, 0.2, 0.1)):
        rod = clast.Cylinder(0.1, inside=False)
        _, _, gap = one_contact((LUMP, {"position": x}), (rod, {}), margin=0.0)
        assert gap <= -0.05


def square_wall(sides):
    """A square of 2 m in two or more triangles."""
    grid = np.linspace(-1.0, 1.0, sides + 1)
    x, y = np.meshgrid(grid, grid, indexing="ij")
    vertices = np.column_stack([x.ravel(), y.ravel(), np.zeros(x.size)])
    i, j = np.meshgrid(np.arange(sides), np.arange(sides), indexing="ij")
    a = (i * (sides + 1) + j).ravel()
    b, c, d = a + sides + 1, a + sides + 2, a + 1
    return vertices, np.concatenate([np.column_stack([a, b, c]), np.column_stack([a, c, d])])


@pytest.mark.parametrize("sides", [1, 4])
def test_wall_of_triangles(sides):
    """A corner above the shared edge or corner of wall triangles touches once, with either order of bodies."""
    octahedron = clast.Mesh(*clast.Polyhedron(0.5 * np.vstack([np.eye(3), -np.eye(3)])).surface(), epsilon=0.05)
    wall = clast.MeshWall(*square_wall(sides))
    for order in (0, 1):
        scene = clast.Scene()
        for k in (order, 1 - order):
            if k == 0:
                scene.add(wall)
            else:
                scene.add(octahedron, position=(0.0, 0.0, 0.53))
        c = clast.find_contacts(scene)
        assert len(c.gap) == 1
        assert c.gap[0] == pytest.approx(0.03 - 0.05)
        assert c.normal[0] == pytest.approx((0.0, 0.0, 1.0 if order == 0 else -1.0))
        assert c.point[0] == pytest.approx((0.0, 0.0, 0.015), abs=1e-12)
