"""Which two shapes may touch: the test that every broad phase applies before it writes a pair."""

from ..backend import func
from ..tables import CYLINDER, PLANE
from ..vec import add, dot, load, load4, norm, rotate, scale, sub, unrotate


@func
def image(d, length, inverse):
    """Distance d to the nearest periodic image; length and inverse are 0 on an axis that is not periodic."""
    return d - length * float(int(d * inverse + (0.5 if d >= 0.0 else -0.5)))


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
def wall_near(s, w, bodies, shapes, parts, meshes, box, reach):
    """Whether the surface of wall shape w comes within reach [m] of the centre of shape s; may err towards yes."""
    part = shapes.part[w]
    kind = parts.kind[part]
    c = local_centre(s, w, bodies, shapes, box)
    reach = reach / bodies.scale[shapes.body[w]]
    if kind == PLANE or kind == CYLINDER:
        d = sub(c, load(parts.offset, part))
        axis = load(parts.axis, part)
        height = dot(d, axis)
        if kind == PLANE:
            return height <= reach
        radius = parts.size[part, 0]
        half = parts.size[part, 1]
        if abs(height) > half + reach:
            return False
        across = norm(sub(d, scale(height, axis)))
        if parts.size[part, 2] > 0.0:
            return across >= radius - reach
        return across <= radius + reach
    t = parts.feature[part]
    normal = load(meshes.normal, t)
    corner = load(meshes.vertex, meshes.triangle[t, 0])
    if abs(dot(sub(c, corner), normal)) > reach:
        return False
    for k in range(3):
        corner = load(meshes.vertex, meshes.triangle[t, k])
        d = sub(c, corner)
        inward = (meshes.inward[t, k, 0], meshes.inward[t, k, 1], meshes.inward[t, k, 2])
        if dot(d, inward) < -reach:
            return False
    return True
