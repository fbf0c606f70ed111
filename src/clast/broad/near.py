"""Which two shapes may touch: the test that every broad phase applies before it writes a pair."""

from ..kernels.backend import func, part
from ..kernels.vec import add, dot, load, load4, norm, scale, sub, unrotate

# Of a margin: by so much nearer than measured two shapes may be, at places up to 1e8 of their size from the origin.
ROUNDING = 1e-6


@func
def image(d, length, inverse):
    """Distance d to the nearest periodic image; length and inverse are 0 on an axis that is not periodic."""
    return d - length * float(int(d * inverse + (0.5 if d >= 0.0 else -0.5)))


@func
def repeats(edges):
    """Whether the world is periodic along some axis; edges (6,): lengths of the periodic box [m], 0 along the others, and their inverses."""
    return edges[0] > 0.0 or edges[1] > 0.0 or edges[2] > 0.0


@func
def asleep(p, a, b, spheres, pairs, margin):
    """Whether shapes a and b of pair p of the list are farther apart than margin [m] for sure: they were when it was made, and have not moved
    enough since. spheres: pairs before the first slot."""
    return len(pairs.apart) > 0 and pairs.far[a] + pairs.far[b] < pairs.apart[p - spheres] - margin


@func
def local_centre(s, w, bodies, shapes, box):
    """Centre of shape s in the axes of wall shape w's body, at the wall's size factor 1."""
    body = shapes.body[w]
    d = sub(load(shapes.centre, s), load(bodies.position, body))
    if box.periodic:
        # The image nearest to the wall piece itself, which may lie far from its body's origin.
        away = sub(load(shapes.centre, s), load(shapes.centre, w))
        shift = (
            image(away[0], box.length[0], box.inverse[0]) - away[0],
            image(away[1], box.length[1], box.inverse[1]) - away[1],
            image(away[2], box.length[2], box.inverse[2]) - away[2],
        )
        d = add(d, shift)
    return scale(1.0 / bodies.scale[body], unrotate(load4(bodies.orientation, body), d))


@func
def smooth_near(s, w, bodies, shapes, parts, box, reach):
    """Whether the surface of plane or cylinder w comes within reach [m] of the centre of shape s; may err towards yes."""
    part_row = shapes.part[w]
    reach = reach / bodies.scale[shapes.body[w]]
    d = sub(local_centre(s, w, bodies, shapes, box), load(parts.offset, part_row))
    axis = load(parts.axis, part_row)
    height = dot(d, axis)
    if parts.size[part_row, 0] == 0.0:  # a plane has no radius
        return height <= reach
    if abs(height) > parts.size[part_row, 1] + reach:
        return False
    across = norm(sub(d, scale(height, axis)))
    if parts.size[part_row, 2] > 0.0:
        return across >= parts.size[part_row, 0] - reach
    return across <= parts.size[part_row, 0] + reach


@func
def wall_near(s, w, bodies, shapes, parts, meshes, box, reach):
    """The same for any wall shape w."""
    triangle = parts.feature[shapes.part[w]]
    if triangle < 0:
        return smooth_near(s, w, bodies, shapes, parts, box, reach)
    c = local_centre(s, w, bodies, shapes, box)
    return triangle_near(c, meshes, triangle, reach / bodies.scale[shapes.body[w]])


@part
def triangle_near(c, meshes, t, reach):
    """Whether c is within reach of the plane of triangle t and of all three sides of it."""
    if abs(dot(sub(c, load(meshes.vertex, meshes.triangle[t, 0])), load(meshes.normal, t))) > reach:
        return False
    for k in range(3):
        d = sub(c, load(meshes.vertex, meshes.triangle[t, k]))
        if dot(d, (meshes.inward[t, k, 0], meshes.inward[t, k, 1], meshes.inward[t, k, 2])) < -reach:
            return False
    return True
