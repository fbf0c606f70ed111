"""Smooth contact forces: from pairs to the force of every contact.

Contacts of spheres with spheres are worked off in lanes: 64 pairs are gathered into local arrays and the law runs over
them in one loop that the compiler turns into vector instructions. The width is fixed, so a pair gets the same bits
wherever it stands in the list. The CUDA grid takes the same scalar functions one pair at a time.
"""

import math
from dataclasses import dataclass
from numbers import Real

import numpy as np

from ..backend import func, fused
from ..contact.near import image
from ..contact.pairs import BROAD
from ..contact.solids import load_form, surface_point
from ..contact.touch import ball_any
from ..contact.triangle_lanes import METHODS
from ..errors import pick
from ..material import BLAZE, HALO, HARD, combine
from ..tables import ELLIPSOID, FREE, MESH, POLYHEDRON, TRIANGLE, is_particle
from ..vec import add, cross, dot, load, scale, sub
from . import integrate, laws
from .curvature import wall_radius
from .laws import Mix, Touch

WIDTH = 64
CROWD = 8.0  # points of contact, each with a spring of its own, that the time step of the law "halo" allows for
PULL = -1e300  # [N], the least normal force of a law that may pull
BLOCK = 8 * WIDTH  # pairs a task: making the lanes once for 512 pairs costs nothing

# Bound to each kernel by `clast.simulation`: the law, and what the scene has.
law = laws.hertz
ROLLING = False  # some pair of materials has rolling friction
PERIODIC = False
UNIFORM = False  # one material
TRIANGLES = False  # walls of triangles
ELLIPSOIDS = False
SOLIDS = False  # actions of walls hold points
wall_touch = ball_any


@fused
def touch_balls(d, v, roll_speed, slip, reach, product, lightness, mix, dt, law):
    """Answer of one pair of spheres.

    d (3,): from centre a to centre b; v (3,): velocity of centre b against a; roll_speed (3,): spin of a times its radius
    plus the same of b; reach, product: sum and product of the radii; lightness: sum of 1/mass. The contact point
    divides the line between the centres as the radii do, so the arms are the radii times one factor.
    Returns overlap, normal, normal force, force on b, slip, and normal x force times that factor: the torque on either
    sphere is this times minus its radius.
    """
    distance = math.sqrt(d[0] * d[0] + d[1] * d[1] + d[2] * d[2])
    inverse = 1.0 / max(distance, 1e-300)
    n = (d[0] * inverse, d[1] * inverse, d[2] * inverse)
    overlap = reach - distance
    per_reach = 1.0 / reach
    arm = distance * per_reach
    w = (arm * roll_speed[0], arm * roll_speed[1], arm * roll_speed[2])
    x = v[0] - (w[1] * n[2] - w[2] * n[1])
    y = v[1] - (w[2] * n[0] - w[0] * n[2])
    z = v[2] - (w[0] * n[1] - w[1] * n[0])
    opening = x * n[0] + y * n[1] + z * n[2]
    slide = (x - opening * n[0], y - opening * n[1], z - opening * n[2])
    touch = Touch(max(overlap, 0.0), -opening, n, slide, slip, 1.0 / lightness, product * per_reach)
    normal, shear, slip = law(touch, mix, dt)
    # Selected, not multiplied by zero: a law may have no answer where nothing touches.
    touching = overlap > 0.0
    normal = normal if touching else 0.0
    x, y, z = shear[0] if touching else 0.0, shear[1] if touching else 0.0, shear[2] if touching else 0.0
    force = (normal * n[0] + x, normal * n[1] + y, normal * n[2] + z)
    slip = (slip[0] if touching else 0.0, slip[1] if touching else 0.0, slip[2] if touching else 0.0)
    # Only the shear force has a torque; the normal force points at both centres.
    torque = (arm * (n[1] * z - n[2] * y), arm * (n[2] * x - n[0] * z), arm * (n[0] * y - n[1] * x))
    return overlap, n, normal, force, slip, torque


@func
def mix_of(table, row):
    """The combined material in one row of the table."""
    return Mix(table[row, 0], table[row, 1], table[row, 2], table[row, 3], table[row, 4], table[row, 5], table[row, 6])


def ball_block(block, count, bodies, shapes, rows, pairs, mixes, edges, dt):
    """Forces of a block of pairs of spheres, 64 at a time.

    Arrays are taken out of their tables once, and rows are counted in unsigned numbers, which numba does not test for
    being negative. Two cores, packing of 10,000: 12 ns a pair. Leaving pairs that do not touch out of the lanes was
    slower: the branch costs more than the idle lanes.
    """
    pair, memory, action, pair_mix = pairs.shape, pairs.memory, pairs.action, pairs.mix
    lane = np.empty((23, WIDTH))
    mix = mix_of(mixes, 0)
    for first in range(block * BLOCK, min(count, (block + 1) * BLOCK), WIDTH):
        used = min(WIDTH, count - first)
        for j in range(used):
            k, p = np.uintp(j), np.uintp(first + j)
            a, b = np.uintp(pair[p, 0]), np.uintp(pair[p, 1])
            ra, rb = rows[a, 3], rows[b, 3]
            for i in range(3):
                d = rows[b, i] - rows[a, i]
                if PERIODIC:
                    d = image(d, edges[i], edges[3 + i])
                lane[i, k] = d
                lane[3 + i, k] = rows[b, 4 + i] - rows[a, 4 + i]
                lane[6 + i, k] = ra * rows[a, 8 + i] + rb * rows[b, 8 + i]
                lane[9 + i, k] = memory[p, i]
            lane[12, k] = ra + rb
            lane[13, k] = ra * rb
            lane[14, k] = rows[a, 7] + rows[b, 7]
            if not UNIFORM:
                m = np.uintp(pair_mix[p])
                for i in range(7):
                    lane[15 + i, k] = mixes[m, i]
        for k in range(used, WIDTH):
            for i in range(23):
                lane[i, k] = 1.0
        for k in range(WIDTH):
            if not UNIFORM:
                mix = Mix(lane[15, k], lane[16, k], lane[17, k], lane[18, k], lane[19, k], lane[20, k], lane[21, k])
            overlap, n, normal, f, slip, torque = touch_balls(
                (lane[0, k], lane[1, k], lane[2, k]),
                (lane[3, k], lane[4, k], lane[5, k]),
                (lane[6, k], lane[7, k], lane[8, k]),
                (lane[9, k], lane[10, k], lane[11, k]),
                lane[12, k],
                lane[13, k],
                lane[14, k],
                mix,
                dt,
                law,
            )
            lane[0, k], lane[1, k], lane[2, k] = f
            lane[3, k], lane[4, k], lane[5, k] = torque
            lane[9, k], lane[10, k], lane[11, k] = slip
            if ROLLING:
                lane[6, k], lane[7, k], lane[8, k] = n
                lane[12, k] = overlap
                lane[22, k] = normal
        for j in range(used):
            k, p = np.uintp(j), np.uintp(first + j)
            for i in range(6):
                action[p, i] = lane[i, k]
            for i in range(3):
                memory[p, i] = lane[9 + i, k]
            if ROLLING:
                n = (lane[6, k], lane[7, k], lane[8, k])
                a, b = np.uintp(pair[p, 0]), np.uintp(pair[p, 1])
                radius = rows[a, 3] * rows[b, 3] / (rows[a, 3] + rows[b, 3])
                turning = (rows[b, 8] - rows[a, 8], rows[b, 9] - rows[a, 9], rows[b, 10] - rows[a, 10])
                roll_pair(p, turning, lane[22, k], lane[12, k], radius, n, pairs, mixes, dt)


@func
def roll_pair(p, turning, normal, overlap, radius, n, pairs, mixes, dt):
    """Rolling resistance of contact p: its couple on b and the rolling angle it remembers."""
    mix = mix_of(mixes, pairs.mix[p])
    turned = (pairs.memory[p, 3], pairs.memory[p, 4], pairs.memory[p, 5])
    stiffness = 8.0 * mix.shear * math.sqrt(radius * max(overlap, 0.0))
    couple, turned = laws.roll(turned, turning, normal, n, stiffness, radius, mix, dt)
    keep = 1.0 if overlap > 0.0 else 0.0
    for i in range(3):
        pairs.couple[p, i] = keep * couple[i]
        pairs.memory[p, 3 + i] = keep * turned[i]


def ball_row(p, bodies, shapes, rows, pairs, mixes, edges, dt):
    """Force of one pair of spheres; the same numbers as `ball_block`, one pair at a time, for a CUDA grid."""
    a, b = pairs.shape[p, 0], pairs.shape[p, 1]
    ra, rb = rows[a, 3], rows[b, 3]
    d = sub(load(rows, b), load(rows, a))
    if PERIODIC:
        d = (image(d[0], edges[0], edges[3]), image(d[1], edges[1], edges[4]), image(d[2], edges[2], edges[5]))
    v = (rows[b, 4] - rows[a, 4], rows[b, 5] - rows[a, 5], rows[b, 6] - rows[a, 6])
    wa, wb = (rows[a, 8], rows[a, 9], rows[a, 10]), (rows[b, 8], rows[b, 9], rows[b, 10])
    slip = (pairs.memory[p, 0], pairs.memory[p, 1], pairs.memory[p, 2])
    mix = mix_of(mixes, pairs.mix[p])
    roll_speed = add(scale(ra, wa), scale(rb, wb))
    overlap, n, normal, f, slip, torque = touch_balls(
        d, v, roll_speed, slip, ra + rb, ra * rb, rows[a, 7] + rows[b, 7], mix, dt, law
    )
    for i in range(3):
        pairs.action[p, i] = f[i]
        pairs.action[p, 3 + i] = torque[i]
        pairs.memory[p, i] = slip[i]
    if ROLLING:
        roll_pair(p, sub(wb, wa), normal, overlap, ra * rb / (ra + rb), n, pairs, mixes, dt)


def wall_row(c, bodies, shapes, parts, meshes, hulls, forms, pairs, mixes, box, dt):
    """Forces of 64 particles with all walls near them.

    The gap and normal of each pair stand in its action until its force does: the touch is a large function, and written in
    one place it is compiled once.
    """
    for g in range(c * WIDTH, min(len(pairs.wall_start) - 1, (c + 1) * WIDTH)):
        first, last = pairs.wall_start[g], pairs.wall_start[g + 1]
        s = pairs.shape[first, 0]
        if SOLIDS and (shapes.kind[s] == POLYHEDRON or shapes.kind[s] == MESH):
            continue  # `clast.motion.hulls` and `clast.motion.surfaces` look after these
        for p in range(first, last):
            status, gap, n, feature = wall_touch(s, pairs.shape[p, 1], bodies, shapes, parts, meshes, box, 0.0)
            pairs.action[p, 0] = gap if status == 1 else np.inf
            for i in range(3):
                pairs.action[p, 1 + i] = n[i]
        if TRIANGLES:
            for p in range(first, last):
                kind = parts.kind[shapes.part[pairs.shape[p, 1]]]
                if kind == TRIANGLE and pairs.action[p, 0] >= 0.0 and remembers(pairs, p):
                    hand_over(p, first, last, shapes, pairs)
        for p in range(first, last):
            gap, n = pairs.action[p, 0], (pairs.action[p, 1], pairs.action[p, 2], pairs.action[p, 3])
            if gap < 0.0:
                touch_wall(p, gap, n, bodies, shapes, forms, pairs, mixes, box, dt, law, ROLLING, ELLIPSOIDS, SOLIDS)
            else:
                for i in range(6):
                    pairs.action[p, i] = 0.0
                for i in range(pairs.memory.shape[1]):
                    pairs.memory[p, i] = 0.0
                if ROLLING:
                    for i in range(3):
                        pairs.couple[p, i] = 0.0


@func
def touch_wall(p, gap, n, bodies, shapes, forms, pairs, mixes, box, dt, law, rolling, ellipsoids, solids):
    """Force of contact p of a particle with a wall in direction n."""
    s, w = pairs.shape[p, 0], pairs.shape[p, 1]
    a, b = shapes.body[s], shapes.body[w]
    overlap = -gap
    r = shapes.radius[s]
    distance = r + gap
    # The wall does not give way: the contact point is on its surface.
    q = add(load(shapes.centre, s), scale(distance, n))
    if ellipsoids and shapes.kind[s] == ELLIPSOID:
        m = load_form(forms, s)
        q = add(load(shapes.centre, s), add(surface_point(m, n), scale(gap, n)))
        r = wall_radius(m, n)
    va = add(load(bodies.velocity, a), cross(load(bodies.spin, a), sub(q, load(bodies.position, a))))
    arm = sub(q, load(bodies.position, b))
    if box.periodic:
        # The image of the wall that `wall_touch` looked at.
        away = sub(load(shapes.centre, s), load(shapes.centre, w))
        arm = (
            arm[0] + image(away[0], box.length[0], box.inverse[0]) - away[0],
            arm[1] + image(away[1], box.length[1], box.inverse[1]) - away[1],
            arm[2] + image(away[2], box.length[2], box.inverse[2]) - away[2],
        )
    vb = add(load(bodies.velocity, b), cross(load(bodies.spin, b), arm))
    v = sub(vb, va)
    opening = dot(v, n)
    slide = sub(v, scale(opening, n))
    slip = (pairs.memory[p, 0], pairs.memory[p, 1], pairs.memory[p, 2])
    touch = Touch(overlap, -opening, n, slide, slip, bodies.mass[a], r)
    normal, shear, slip = law(touch, mix_of(mixes, pairs.mix[p]), dt)
    # Torque on the sphere over minus its radius, as for two spheres; or where the force acts.
    where = q if solids else scale(distance / r, cross(n, shear))
    for i in range(3):
        pairs.action[p, i] = normal * n[i] + shear[i]
        pairs.action[p, 3 + i] = where[i]
        pairs.memory[p, i] = slip[i]
    if rolling:
        turning = sub(load(bodies.spin, b), load(bodies.spin, a))
        roll_pair(p, turning, normal, overlap, r, n, pairs, mixes, dt)


@func
def remembers(pairs, p):
    """Whether contact p has slipped."""
    return pairs.memory[p, 0] != 0.0 or pairs.memory[p, 1] != 0.0 or pairs.memory[p, 2] != 0.0


@func
def hand_over(p, first, last, shapes, pairs):
    """Give the memory of contact p, which ended, to a contact of the same two bodies that begins now.

    So a particle that rolls from one triangle of a mesh to the next takes its slip along.
    """
    wall = shapes.body[pairs.shape[p, 1]]
    for other in range(first, last):
        same = shapes.body[pairs.shape[other, 1]] == wall
        if same and pairs.action[other, 0] < 0.0 and not remembers(pairs, other):
            for i in range(pairs.memory.shape[1]):
                pairs.memory[other, i] = pairs.memory[p, i]
                pairs.memory[p, i] = 0.0
            return


@dataclass(frozen=True)
class DEM:
    """Smooth contact forces with explicit time steps.

    law: "hertz", "linear", "blaze", "halo", or a function (touch, mix, dt) -> (normal force, shear force on b, slip), marked with
    `clast.func`; see `clast.motion.laws`. integrator: "verlet", "symplectic" or "explicit". margin [m]: how far apart
    shapes may be to stand in the list of pairs; None lets the simulation choose. broad: a name in `clast.contact.pairs.BROAD`:
    "bins", "boxes", "spacetree", "all-pairs".
    Neither margin nor broad changes the results by a single bit, except with narrow="hybrid-batches".
    For triangulated particles alone: narrow: how the distance of two triangles is found, "brute", "penalty",
    "hybrid-pairs" or "hybrid-batches", and tolerance: to which fraction of their size; see `clast.triangle_distance`.
    penetration: "raise" stops with `Penetrated` where the surfaces of two bodies cross, because nothing is known beyond the
    halo; "push" lets the full halo push them apart along the normals of their faces, and counts the contacts.
    For the law "blaze" alone: attraction: whether a contact may pull where damping outweighs the spring;
    conserving: the form of the force that keeps the energy of a collision at any step, or the force as it is written.
    """

    law: object = "hertz"
    integrator: str = "verlet"
    margin: float | None = None
    broad: str = "bins"
    attraction: bool = False
    conserving: bool = True
    narrow: str = "brute"
    tolerance: float = 1e-6
    penetration: str = "raise"

    def __post_init__(self):
        if not callable(self.law):
            pick("contact law", self.law, laws.LAWS)
        pick("integrator", self.integrator, integrate.INTEGRATORS)
        pick("broad phase", self.broad, BROAD)
        pick("way to measure triangles", self.narrow, METHODS)
        pick("answer to penetration", self.penetration, {"raise": None, "push": None})
        if not (isinstance(self.tolerance, Real) and 0.0 < self.tolerance < 1.0):
            raise ValueError(f"DEM: tolerance = {self.tolerance!r} must be a number above 0 and below 1, a fraction")
        if self.margin is not None and not 0.0 <= float(self.margin) < math.inf:
            raise ValueError(f"DEM: margin = {self.margin} must be 0 m or more, or None")
        if self.law != "blaze" and (self.attraction or not self.conserving):
            name = self.law if isinstance(self.law, str) else self.law.__name__
            raise ValueError(
                f"DEM: attraction and conserving are options of law='blaze', not of {name!r}; leave them out"
            )

    @property
    def recipe(self):
        """The Law that belongs to `law`; a user's own function gets the damping of the Hertz law."""
        if callable(self.law):
            return laws.Law(self.law, laws.hertz_damping, laws.hertz_energy, True)
        recipe = laws.LAWS[self.law]
        return recipe if self.conserving else recipe._replace(function=laws.blaze_plain)

    def mixes(self, scene):
        """Rows of `Mix` for every pair of materials, (m*m, 7)."""
        mix = combine(scene.materials, scene.pairs)
        for name in HARD:
            if getattr(mix, name).any():
                raise ValueError(
                    f"DEM: {name} is a property of hard contacts; take clast.Complementarity() or leave it out"
                )
        if self.law == "blaze":
            check_constants(scene, mix, "blaze", BLAZE)
            own = [np.nan_to_num(getattr(mix, name)) for name in BLAZE]
            least = np.full(mix.young.shape, PULL if self.attraction else 0.0)
            columns = own[0], mix.shear, own[2], own[1], mix.friction, mix.rolling_friction, least
        elif self.law == "halo":
            check_constants(scene, mix, "halo", HALO)
            own = [np.nan_to_num(getattr(mix, name)) for name in HALO]
            none = np.zeros(mix.young.shape)
            columns = mix.young, mix.shear, own[0], own[1], none, none, none
        else:
            damping = np.vectorize(self.recipe.damping, otypes=[float])(mix.restitution)
            stiffness = np.nan_to_num(mix.stiffness, nan=0.0)
            ratio = np.sqrt(mix.shear / mix.young)
            columns = mix.young, mix.shear, stiffness, damping, mix.friction, mix.rolling_friction, ratio
        return np.ascontiguousarray(np.stack([column.ravel() for column in columns], axis=1))

    def critical_step(self, scene):
        """Time step [s] at which the stiffest contact can no longer be followed, and the body that sets it.

        Hertz: the Rayleigh time of the smallest sphere, half-axis or ball inside a polyhedron. Others: a third of the
        contact time of the lightest body against its like; that of "blaze" falls with the depth, and the depth taken is
        5 % of the radius. What inlets will pour counts too; the body is None if it is one of those.
        """
        bodies = scene.bodies
        shapes = scene.shapes(bodies)
        rows = np.nonzero(is_particle(shapes.kind) & (bodies.motion[shapes.body] == FREE))[0]
        body = shapes.body[rows]
        own = self._radii(scene)
        radius = own[shapes.part[rows]] * bodies.scale[body]
        mass, material = bodies.mass[body], bodies.material[body]
        for inlet in scene.inlets:
            first, size = scene.molds.first[inlet.mold], inlet.sizes.smallest
            reach = own[first : first + scene.molds.count[inlet.mold]] * size
            weight = scene.materials[inlet.material].density * scene.molds.volume[inlet.mold] * size**3
            radius, mass = np.append(radius, reach), np.append(mass, np.full(len(reach), weight))
            material = np.append(material, np.full(len(reach), inlet.material))
        if len(radius) == 0:
            return math.inf, None
        step = self._limits(scene, radius, mass, material)
        worst = int(np.argmin(step))
        return float(step[worst]), int(bodies.number[body[worst]]) if worst < len(body) else None

    def _radii(self, scene):
        """What stands for the radius of every part (p,) [m], where the time step is chosen.

        Of an ellipsoid its smallest half-axis; where the stiffness is proportional to the radius of the contact,
        the largest of those, a b / c on the flat side. Of a polyhedron the ball inside; there the ball of its volume, and of
        a triangulated particle half of that or that.
        """
        parts, hertzian = scene.parts, self.recipe.hertzian
        own = parts.reach.copy()
        egg, hull, mesh = (parts.kind == kind for kind in (ELLIPSOID, POLYHEDRON, MESH))
        size = parts.size[egg]
        own[egg] = size.min(1) if hertzian else size.prod(1) / size.min(1) ** 2
        own[hull] = (scene.hulls.inner if hertzian else scene.hulls.ball)[parts.feature[hull]]
        # The corner of a body gives way by turning too, as if it were lighter.
        own[mesh] = (0.5 if hertzian else 1.0) * scene.surfaces.ball[parts.feature[mesh]]
        return own

    def _limits(self, scene, radius, mass, material):
        """Longest steps [s] for particles with these radii (n,) [m], masses (n,) [kg] and rows of materials (n,)."""
        if self.recipe.hertzian:
            slow = np.array(
                [math.pi * math.sqrt(m.density / m.shear) / (0.1631 * m.poisson + 0.8766) for m in scene.materials]
            )
            return slow[material] * radius
        mix = combine(scene.materials, scene.pairs)
        if self.law == "blaze":
            check_constants(scene, mix, "blaze", BLAZE)
            # Contact time of the spring K d^1.5 that goes 5 % deep: 2.9433 d / v, v from m v^2 / 2 = 2/5 K d^2.5.
            k = np.nan_to_num(mix.blaze_stiffness).max(axis=1)[material] * np.sqrt(0.05 * radius)
            return 2.9433 * math.sqrt(1.25) / 3.0 * np.sqrt(0.5 * mass / k)
        if self.law == "halo":
            check_constants(scene, mix, "halo", HALO)
            # Every point of contact has a spring of its own.
            k = 0.5 * CROWD * np.nan_to_num(mix.halo_stiffness).max(axis=1)[material]
            return math.pi / 3.0 * np.sqrt(0.5 * mass / k)
        given, young = np.nanmax(np.nan_to_num(mix.stiffness), axis=1), mix.young.max(axis=1)
        k = np.where(given > 0.0, given, 0.0)[material]
        # Against a wall the reduced radius is the radius itself, which is the stiffest case.
        k = np.where(k > 0.0, k, young[material] * radius)
        return math.pi / 3.0 * np.sqrt(0.5 * mass / k)


EXAMPLES = {
    "blaze": "blaze_stiffness=K_r [N/m^1.5], blaze_damping=K_D [N s/m^1.5], blaze_shear=K_T [N s/m]), for example 1e6, 50 and 0.4",
    "halo": "halo_stiffness=k_repulsive [N/m], halo_damping=k_damp [N s/m]), for example 1e5 and 0",
}


def check_constants(scene, mix, law, names):
    """Raise if a law with constants of its own lacks one that a particle of the scene could need."""
    moving = np.zeros(len(scene.materials), bool)
    moving[scene.bodies.material[scene.bodies.motion == FREE]] = True
    moving[[inlet.material for inlet in scene.inlets]] = True
    for name in names:
        lacking = np.argwhere(np.isnan(getattr(mix, name)) & (moving[:, None] | moving))
        if len(lacking):
            a, b = (scene.materials[row].name or f"number {row}" for row in lacking[0])
            raise ValueError(
                f"DEM: the law {law!r} needs {name} for materials {a} and {b}; give Material({EXAMPLES[law]}"
            )
