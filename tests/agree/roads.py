"""The slow road: plain NumPy, and what it takes to compare two states bit for bit."""

from contextlib import contextmanager

import numba
import numpy as np

from clast.kernels import backend
from clast.narrow import mesh_slots
from clast.tables import CYLINDER, PLANE, SPHERE, TRIANGLE


@contextmanager
def on_threads(count):
    """Run what is inside on so many threads."""
    before = numba.get_num_threads()
    backend.set_threads(count)
    try:
        yield
    finally:
        backend.set_threads(before)


def nearest_image(d, scene):
    """Vectors d (..., 3) to the nearest periodic image."""
    if scene.world is None:
        return d
    length = np.where(scene.periodic, np.subtract(scene.world[1], scene.world[0]), np.inf)
    return d - np.where(np.isfinite(length), length, 0.0) * np.round(d / length)


def ball_gaps(scene, margin):
    """{(body a, body b, part a, part b): gap} of all spheres of different bodies up to margin."""
    shapes, bodies = scene.shapes(), scene.bodies
    rows = np.nonzero(shapes.kind == SPHERE)[0]
    first = np.searchsorted(shapes.body, np.arange(len(bodies.number)))
    found = {}
    for at, i in enumerate(rows):
        others = rows[at + 1 :]
        d = nearest_image(shapes.centre[others] - shapes.centre[i], scene)
        gap = np.sqrt((d * d).sum(1)) - shapes.radius[i] - shapes.radius[others]
        near = (gap <= margin) & (shapes.body[others] != shapes.body[i])
        for j, g in zip(others[near], gap[near]):
            a, b = shapes.body[i], shapes.body[j]
            found[int(bodies.number[a]), int(bodies.number[b]), int(i - first[a]), int(j - first[b])] = g
    return found


def triangle_distance(p, corners):
    """Distance of points p (n,3) from triangles (t,3,3): (n,t)."""
    a, b, c = (corners[None, :, k] for k in range(3))
    p = p[:, None]
    normal = np.cross(b - a, c - a)
    normal = normal / np.linalg.norm(normal, axis=-1, keepdims=True)
    inside = np.ones(np.broadcast_shapes(p.shape, a.shape)[:-1], bool)
    least = np.full(inside.shape, np.inf)
    for start, end in ((a, b), (b, c), (c, a)):
        edge = end - start
        inside &= (np.cross(normal, edge) * (p - start)).sum(-1) >= 0.0
        u = np.clip(((p - start) * edge).sum(-1) / (edge * edge).sum(-1), 0.0, 1.0)
        least = np.minimum(least, np.linalg.norm(p - start - u[..., None] * edge, axis=-1))
    return np.where(inside, np.abs(((p - a) * normal).sum(-1)), least)


def wall_gap(scene, sphere, wall):
    """Gap of every sphere in rows `sphere` of scene.shapes() against the body in row `wall`: (n,)."""
    shapes, bodies = scene.shapes(), scene.bodies
    rows = np.nonzero(shapes.body == wall)[0]
    part = shapes.part[rows]
    q, size = bodies.orientation[wall], bodies.scale[wall]
    w, x, y, z = q
    turn = np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )
    kind = scene.parts.kind[part[0]]
    here = bodies.position[wall]
    if kind == TRIANGLE:
        corner = scene.meshes.vertex[scene.meshes.triangle[scene.parts.feature[part]]] * size @ turn.T + here
        distance = np.empty((len(sphere), len(rows)))
        for k in range(len(rows)):
            away = shapes.centre[sphere] - shapes.centre[rows[k]]
            point = shapes.centre[rows[k]] + nearest_image(away, scene)
            distance[:, k] = triangle_distance(point, corner[k : k + 1])[:, 0]
        return distance.min(1) - shapes.radius[sphere]
    d = nearest_image(shapes.centre[sphere] - here, scene)
    axis = turn @ scene.parts.axis[part[0]]
    height = d @ axis
    if kind == PLANE:
        return height - shapes.radius[sphere]
    assert kind == CYLINDER
    radius, half, sense = scene.parts.size[part[0]] * (size, size, 1.0)
    across = np.linalg.norm(d - height[:, None] * axis, axis=1)
    beyond = np.abs(height) - half
    if sense > 0.0 and np.isinf(half):
        distance = radius - across
    elif sense > 0.0:
        distance = np.hypot(radius - across, np.maximum(beyond, 0.0))
    else:
        outside = np.hypot(np.maximum(across - radius, 0.0), np.maximum(beyond, 0.0))
        distance = np.where(outside > 0.0, outside, np.maximum(across - radius, beyond))
    return distance - shapes.radius[sphere]


def keys(contacts):
    """(c,4): bodies and parts of every contact."""
    return np.column_stack([contacts.pair, contacts.shape])


def state(sim):
    """Every column of bodies and contacts, and the counters, as bytes."""
    everything = {"steps": sim.steps, "removed": sim.removed, "poured": list(sim.poured)}
    for name, table in (("bodies", sim.bodies), ("contacts", sim.contacts())):
        for column, values in table._asdict().items():
            # A contact that carries nothing may do so with either sign of zero.
            plain = name == "contacts" and values.dtype.kind != "V"  # numbers that laws keep have names
            values = values + values.dtype.type(0) if plain else np.ascontiguousarray(values)
            everything[f"{name}.{column}"] = (values.shape, values.tobytes())
    return everything


def differences(a, b):
    """Names of what differs between two states."""
    return [name for name in a if a[name] != b[name]]


def measure_all_triangles(monkeypatch):
    """Let every look at triangulated particles measure all candidates, whatever is known of them."""
    renew = mesh_slots.renew

    def forget(state, reach):
        renew(state, reach)
        state.candidates.triangles.seen[:] = -np.inf
        state.candidates.known.least[:] = -np.inf

    monkeypatch.setattr(mesh_slots, "renew", forget)
