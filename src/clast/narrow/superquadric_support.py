"""A superquadric by its support function: the direction along which it is farthest from a point, a line or another smooth body.

All is in the axes of the first superquadric, about its centre. The separation of two convex bodies along unit n from the first to the second is
f(n) = n . d - h1(n) - h2(-n). Every f(n) is a bound of their signed distance from below, and the greatest is the distance. h is a norm,
the dual of the one whose ball the superquadric is: its gradient is the point of the surface with normal n, and its second derivatives across n
are the radii of curvature there.
"""

import math

from ..kernels.backend import func
from ..kernels.vec import add, cross, dot, normalize, scale, sub
from ..shapes.superquadric import norm_slopes, power
from ..shapes.superquadric import reach_of as reach

STEPS = 100
ARC = 12  # parts of the arc of normals at an edge, of which the best is looked at closer
STALLS = 1e-15  # of the size: a step that promises less is the last
NEXT_BEST = 0.95  # cosine between two directions that lead uphill to the same top, most likely
AROUND = 8.0  # of Newton's steps: so far around it is asked whether anything may be better than what is known
NUDGE = 0.1  # [rad], from a flat side to where a superquadric bends
FLOOR = 1e-9  # ratios below this have the curvature of this one: at its flat places a superquadric has none


NO_TURN = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))


@func
def least_bend(size, e):
    """A radius [m] not above any radius of curvature: zero where an exponent is above 1, for then tips are sharp.

    Half the square of a mixed norm with the exponents e, up to 2, is strongly convex by 1 / (1 / (e0 - 1) + 1 / (e1 - 1)) (Kakade,
    Shalev-Shwartz and Tewari 2012), hence h times its second derivatives across n are at least that times the shortest half-axis squared.
    """
    if max(e[0], e[1]) > 2.0:
        return 0.0
    low, high = min(size[0], size[1], size[2]), max(size[0], size[1], size[2])
    if min(e[0], e[1]) == 2.0:
        return low * low / max(high, 1e-300)  # of an ellipsoid it is this
    return low * low / (math.sqrt(dot(size, size)) * (1.0 / (e[0] - 1.0) + 1.0 / (e[1] - 1.0)))


@func
def second_norm(x, y, h, one, two, p):
    """Second derivatives xx, xy, yy of norm2 where it is h and has the slopes one and two."""
    i = 1.0 / (h if h > 0.0 else 1.0)
    u, v = x * i, y * i
    a = one / u if u > FLOOR else power(FLOOR, p - 2.0)
    b = two / v if v > FLOOR else power(FLOOR, p - 2.0)
    u, v = max(u, FLOOR), max(v, FLOOR)
    k = (p - 1.0) * i
    return k * (a - a * a * u * u), -k * a * u * b * v, k * (b - b * b * v * v)


@func
def slopes(n, size, e):
    """Both norms of a superquadric along n in its own axes, and their slopes: what the point there and the radii of curvature are made of."""
    w, p, q = norm_slopes(size[0] * abs(n[0]), size[1] * abs(n[1]), e[1])
    h, along, up = norm_slopes(w, size[2] * abs(n[2]), e[0])
    return w, p, q, h, along, up


@func
def point_of(n, size, there):
    """From the centre of a superquadric to the point of its surface with normal n, of whose `slopes` there are."""
    _, p, q, _, along, up = there
    return (
        math.copysign(size[0] * along * p, n[0]),
        math.copysign(size[1] * along * q, n[1]),
        math.copysign(size[2] * up, n[2]),
    )


@func
def radii(n, t, u, size, e):
    """Matrix of radii of curvature (tt, tu, uu) [m] across unit n, along unit t and u at right angles to it, all in its own axes."""
    return bends(n, t, u, size, e, slopes(n, size, e))


@func
def bends(n, t, u, size, e, there):
    """`radii` where the `slopes` along n are known already."""
    x, y, z = size[0] * abs(n[0]), size[1] * abs(n[1]), size[2] * abs(n[2])
    w, p, q, h, along, up = there
    ww, wz, zz = second_norm(w, z, h, along, up, e[0])
    xx, xy, yy = second_norm(x, y, w, p, q, e[1])
    along = along if w > FLOOR * h else power(FLOOR, e[0] - 1.0)
    xx, xy, yy = ww * p * p + along * xx, ww * p * q + along * xy, ww * q * q + along * yy
    xz, yz = wz * p, wz * q
    s = (math.copysign(size[0], n[0]), math.copysign(size[1], n[1]), math.copysign(size[2], n[2]))
    t, u = (s[0] * t[0], s[1] * t[1], s[2] * t[2]), (s[0] * u[0], s[1] * u[1], s[2] * u[2])
    ht = (xx * t[0] + xy * t[1] + xz * t[2], xy * t[0] + yy * t[1] + yz * t[2], xz * t[0] + yz * t[1] + zz * t[2])
    hu = (xx * u[0] + xy * u[1] + xz * u[2], xy * u[0] + yy * u[1] + yz * u[2], xz * u[0] + yz * u[1] + zz * u[2])
    return dot(t, ht), dot(t, hu), dot(u, hu)


@func
def inward(m, v):
    """v in the own axes of a body whose turn is the matrix m."""
    return (
        m[0][0] * v[0] + m[1][0] * v[1] + m[2][0] * v[2],
        m[0][1] * v[0] + m[1][1] * v[1] + m[2][1] * v[2],
        m[0][2] * v[0] + m[1][2] * v[1] + m[2][2] * v[2],
    )


@func
def outward(m, v):
    """v from the own axes of a body whose turn is the matrix m."""
    return (dot(m[0], v), dot(m[1], v), dot(m[2], v))


# The other body, `other`: a superquadric of size `other[0]`, duals `other[1]` and turn `other[2]`, which zeros make a point, plus a disc
# and a segment about its centre with axis other[3], radius other[4][0] and half length other[4][1], a cylinder.


@func
def value(n, d, size, e, other):
    """f(n), and from the point of the first that is farthest along n to that of the other that is farthest back."""
    f, way, _ = looked(n, d, size, e, other)
    return f, way


@func
def looked(n, d, size, e, other):
    """`value`, and the `slopes` of both."""
    mine, its = slopes(n, size, e), (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    f, way = dot(n, d) - mine[3], sub(d, point_of(n, size, mine))
    if other[0][0] > 0.0:
        back = inward(other[2], n)
        its = slopes(back, other[0], other[1])
        f, way = f - its[3], sub(way, outward(other[2], point_of(back, other[0], its)))
    if other[4][0] > 0.0 or other[4][1] > 0.0:
        axis, half = other[3], other[4][1]
        up = dot(n, axis)
        across = sub(n, scale(up, axis))
        flat = math.sqrt(dot(across, across))
        rim = add(scale(other[4][0] / max(flat, 1e-300), across), scale(math.copysign(half, up), axis))
        f, way = f - other[4][0] * flat - half * abs(up), sub(way, rim)
    return f, way, (mine, its)


@func
def second(n, t, u, size, e, other, known):
    """Sum of the radii of curvature of both across n: tt, tu, uu [m]; known: their `slopes`."""
    tt, tu, uu = bends(n, t, u, size, e, known[0])
    if other[0][0] > 0.0:
        m = other[2]
        a, b, c = bends(inward(m, n), inward(m, t), inward(m, u), other[0], other[1], known[1])
        tt, tu, uu = tt + a, tu + b, uu + c
    if other[4][0] > 0.0:
        side = cross(other[3], n)
        flat = dot(side, side)
        k = other[4][0] / max(flat * math.sqrt(flat), 1e-300)
        a, b = dot(side, t), dot(side, u)
        tt, tu, uu = tt + k * a * a, tu + k * a * b, uu + k * b * b
    return tt, tu, uu


@func
def across(n):
    """Two unit vectors at right angles to unit n and to each other."""
    x, y, z = abs(n[0]), abs(n[1]), abs(n[2])
    axis = (1.0, 0.0, 0.0) if x <= y and x <= z else ((0.0, 1.0, 0.0) if y <= z else (0.0, 0.0, 1.0))
    t = normalize(cross(n, axis))
    return t, cross(n, t)


@func
def climb(n, d, size, e, other):
    """The unit n with the greatest f uphill from n, and f [m]: Newton's method within a radius that it can be trusted in.

    n must not be zero. Only steps uphill are taken, so that the answer is never worse than the start.
    """
    return climb_above(n, d, size, e, other, -math.inf)


@func
def climb_above(n, d, size, e, other, least):
    """`climb`, given up where the top ahead is below `least` [m].

    Of vectors of any length f is concave, and n times its gradient; so f and its slope at n bound f around it from above. Where Newton's last step
    did what it promised, and nothing within several of the next comes up to `least`, the top does not either.
    """
    length = size[0] + size[1] + size[2] + math.sqrt(dot(d, d))
    f, way, known = looked(n, d, size, e, other)
    trust, trusted = 0.5, False
    for _ in range(STEPS):
        t, u = across(n)
        g, k = dot(way, t), dot(way, u)
        a, b, c = second(n, t, u, size, e, other, known)
        a, c = a + f, c + f
        # Uphill whatever the curvature: its lower eigenvalue is lifted above zero.
        low = 0.5 * (a + c) - math.sqrt(0.25 * (a - c) * (a - c) + b * b)
        lift = max(0.0, 1e-12 * length - low) if low < 1e-12 * length else 0.0
        lift += abs(low) if low < 0.0 else 0.0
        a, c = a + lift, c + lift
        det = max(a * c - b * b, 1e-300)
        p, q = (c * g - b * k) / det, (a * k - b * g) / det
        step = math.sqrt(p * p + q * q)
        around = min(AROUND * step, 1.0)
        bound = f * math.cos(around) + math.sqrt(g * g + k * k) * math.sin(around)
        if trusted and f < least and around < 1.0 and bound < least:
            break
        if step > trust:
            p, q, step = p * trust / step, q * trust / step, trust
        gain = g * p + k * q - 0.5 * (a * p * p + 2.0 * b * p * q + c * q * q)
        if not gain > STALLS * length and step < 1e-7:
            break
        m = normalize(add(n, add(scale(p, t), scale(q, u))))
        h, ahead, seen = looked(m, d, size, e, other)
        trusted = abs(h - f - gain) < 0.5 * gain
        if h > f:
            trust = min(1.0, 2.0 * step) if h - f > 0.5 * gain else (trust if h - f > 0.1 * gain else 0.5 * step)
            n, f, way, known = m, h, ahead, seen
        else:
            trust = 0.25 * step
            if trust < 1e-15:
                break
    return n, f


@func
def slope_at(t, x, p, q, size, e):
    """The derivative of n . x - h(n) by t, n = cos t p + sin t q."""
    c, s = math.cos(t), math.sin(t)
    return dot(sub(x, reach(add(scale(c, p), scale(s, q)), size, e)[1]), sub(scale(c, q), scale(s, p)))


@func
def level_at(low, high, end, x, p, q, size, e):
    """The angle t from low to high where `slope_at` comes from above zero to below: by parabolas where they can be trusted, else by halving
    (Chandrupatla 1997), 8 to 12 slopes in place of the 46 of halving alone. At the ends of the arc, 0 and `end`, it need not."""
    a, b = low, high
    f, g = slope_at(a, x, p, q, size, e), slope_at(b, x, p, q, size, e)
    if f <= 0.0 and low == 0.0:
        return low
    if g >= 0.0 and high == end:
        return high
    parabolas = f > 0.0 > g
    o, h = a, f
    t = 0.5
    for _ in range(60):
        m = a + t * (b - a)
        s = slope_at(m, x, p, q, size, e)
        if not parabolas:  # the slope has several zeros here: the sign alone leads to one of them
            low, high = (m, high) if s > 0.0 else (low, m)
            a, b = low, high
            if high - low <= 1e-15:
                return m
            continue
        if (s > 0.0) == (f > 0.0):
            o, h = a, f
        else:
            o, h = b, g
            b, g = a, f
        a, f = m, s
        least = 1e-15 / abs(b - a)
        if f == 0.0 or least > 0.5:
            break
        xi, phi = (a - b) / (o - b), (f - g) / (h - g)
        t = 0.5
        if phi * phi < xi and (1.0 - phi) * (1.0 - phi) < 1.0 - xi:
            t = f / (g - f) * h / (g - h) + (o - a) / (b - a) * f / (h - f) * g / (h - g)
        t = min(max(t, least), 1.0 - least)
    return a if abs(f) < abs(g) else b


@func
def around_edge(x, p, q, angle, size, e):
    """The unit n = cos t p + sin t q, t from 0 to angle, with the greatest n . x - h(n): around each top of a few samples.

    x (3,) [m]: a point of the edge, which is at right angles to unit p and q, from the centre of the superquadric.
    """
    top, best = p, -math.inf
    part_angle = angle / ARC
    # Of the samples before the last one: height and whether it rose to it.
    before, rising = -math.inf, True
    for k in range(ARC + 2):
        t = k * part_angle
        n = add(scale(math.cos(t), p), scale(math.sin(t), q))
        f = dot(n, x) - reach(n, size, e)[0] if k <= ARC else -math.inf
        if rising and f < before:
            t = level_at(max(t - 2.0 * part_angle, 0.0), min(t, angle), angle, x, p, q, size, e)
            n = add(scale(math.cos(t), p), scale(math.sin(t), q))
            up = dot(n, x) - reach(n, size, e)[0]
            if up > best:
                best, top = up, n
        rising, before = f >= before, f
    return normalize(top)


@func
def point_like():
    """What `value` takes for a point."""
    return (0.0, 0.0, 0.0), (2.0, 2.0), NO_TURN, (0.0, 0.0, 1.0), (0.0, 0.0)


@func
def unit_axis(k):
    """The k-th of x, -x, y, -y, z, -z."""
    sign = 1.0 if k % 2 == 0 else -1.0
    return (sign if k < 2 else 0.0, sign if 2 <= k < 4 else 0.0, sign if k >= 4 else 0.0)


@func
def side_normal(k, size):
    """The k-th of 26 unit normals where a superquadric may have a flat side: along one, two or all of its axes, either way."""
    k = k + 1 if k >= 13 else k  # the one in the middle is nothing
    return normalize(((k % 3 - 1) / size[0], (k // 3 % 3 - 1) / size[1], (k // 9 - 1) / size[2]))


@func
def highest(n, d, size, e, other, least):
    """`climb_above` from the best of n, the way to the other and the axes."""
    best, top = value(n, d, size, e, other)[0], n
    for k in range(7):
        start = unit_axis(k) if k < 6 else (normalize(d) if dot(d, d) > 0.0 else n)
        f, _ = value(start, d, size, e, other)
        if f > best:
            best, top = f, start
    return climb_above(top, d, size, e, other, least)


@func
def greatest(d, size, e, other, margin):
    """The greatest separation [m] of two smooth bodies and its n; a greater one than margin may be any above it."""
    best, n = -math.inf, (1.0, 0.0, 0.0)
    after, m = -math.inf, n
    for k in range(13):
        if k < 12:
            start = unit_axis(k % 6)
            start = start if k < 6 else outward(other[2], start)
        else:
            start = normalize(d) if dot(d, d) > 0.0 else n
        f, _ = value(start, d, size, e, other)
        if f > margin:
            return f, start
        if f > best:
            if dot(start, n) < NEXT_BEST:
                after, m = best, n
            best, n = f, start
        elif f > after and dot(start, n) < NEXT_BEST:
            after, m = f, start
    n, best = climb(n, d, size, e, other)
    # While they are apart, or would be if both were smaller by their least radius of curvature, there is one top.
    shallow = -least_bend(size, e) - least_bend(other[0], other[1])
    if best < shallow and after > -math.inf:
        m, after = climb_above(m, d, size, e, other, best)
        if after > best:
            n, best = m, after
    if best < shallow:
        # Each flat side of either may have a top of its own; those much deeper are left out.
        for k in range(52):
            if k >= 26 and other[0][0] == 0.0:
                break
            start = side_normal(k, size) if k < 26 else outward(other[2], side_normal(k - 26, other[0]))
            if dot(start, n) < NEXT_BEST and value(start, d, size, e, other)[0] > 3.0 * best:
                m, after = climb_above(start, d, size, e, other, best)
                if after > best:
                    n, best = m, after
        # On a flat side so little is gained by Newton's step that climbing may end there short of its top.
        _, way = value(n, d, size, e, other)
        aside = sub(way, scale(dot(way, n), n))
        if dot(aside, aside) > 0.0:
            m, after = climb(normalize(add(n, scale(NUDGE, normalize(aside)))), d, size, e, other)
            if after > best:
                n, best = m, after
    return best, n
