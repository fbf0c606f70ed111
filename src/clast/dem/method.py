"""The method DEM: what a user chooses, the combined materials that laws read, and the time step that they allow."""

import functools
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from ..broad.search import BROAD
from ..errors import is_number, nearest, pick
from ..motion import integrate
from ..narrow.triangle_lanes import METHODS
from ..scene.materials import BLAZE, HALO, HARD, NUMBERS, combine, combine_numbers
from ..scene.scene import Scene
from ..signatures import Floats
from ..tables import FREE, is_particle
from . import composed, laws, own_law

CROWD = 8.0  # points of contact, each with a spring of its own, that the time step of the law "halo" allows for
CONSERVING = ("hertz", "linear", "blaze")  # laws that know the option
STRONG = 0.2  # bond_strength over bond_young at the most
FLAT = 4.0  # how many times as large as the ball of a body the radius of curvature of its surface is taken to be at the most
PARTS = (
    "damping",
    "shear",
    "shear_damping",
    "cohesion",
    "rolling",
    "twisting",
    "bonds",
    "in_step",
)  # what a law is made of, see `composed.choose`
NAMES = {**laws.LAWS, **{name: part for name, part in composed.SPRINGS.items() if name != "jkr"}}
# Numbers that laws need and that follow from those of the materials: (Mix of all pairs of materials, Law) -> (m,m).
DERIVED = {
    "stiffness": lambda mix, law: np.nan_to_num(mix.stiffness, nan=0.0),
    "damping": lambda mix, law: np.vectorize(law.damping, otypes=[float])(mix.restitution),
    "rolling": lambda mix, law: mix.rolling_friction,
    "ratio": lambda mix, law: np.sqrt(mix.shear / mix.young),
}


@dataclass(frozen=True)
class DEM:
    """Smooth contact forces with explicit time steps.

    law: "hertz", "linear", "granular", "granular-hertz", "walton-braun", "luding", "eepa", "soft", "lennard-jones", "blaze", "halo", or a function
    (touch, mix, dt) -> (normal force, shear force on b, slip), marked with `clast.func` or `clast.law`; docs/laws.md has the equations.
    Its parts, all but for "blaze", "halo" and functions: damping: "auto", "thornton", "tsuji" (as published, and less exact), "kuwabara-kono", "govender",
    "granular", "none";
    shear: "auto", "mindlin", "mindlin-deresiewicz", "fading", "rescaled", "secant", "incremental", "thornton", "none"; shear_damping: whether shear has a dashpot; cohesion: "none", "jkr", "dmt", "area",
    "capillary"; rolling: "spring", "constant", "viscous", "none"; twisting: "none", "spring"; bonds: whether bodies that touch at the start are
    bonded, with bond_strength above 0. in_step: whether normal forces are means over the step, for restitution as it is asked for at dt="auto", see docs/laws.md; None: where a restitution is asked for. integrator: "verlet", "symplectic" or "explicit". margin [m]: how far apart
    shapes may be to stand in the list of pairs; None lets the simulation choose. broad: a name in `clast.broad.search.BROAD`:
    "bins", "boxes", "spacetree", "all-pairs".
    Neither margin nor broad changes the results by a single bit, except with narrow="hybrid-batches".
    penetration: "raise" stops with `Penetrated` where the surfaces of two triangulated bodies cross, because nothing is known beyond the
    halo, and where a body is so deep in a thin wall that it would come out behind it; "push" lets the full halo push such surfaces
    apart along the normals of their faces, and counts the contacts, and lets bodies go through thin walls.
    For triangulated particles alone: narrow: how the distance of two triangles is found, "brute", "penalty",
    "hybrid-pairs" or "hybrid-batches", and tolerance: to which fraction of their size; see `clast.triangle_distance`.
    conserving: with "hertz" and "linear", True makes contacts of any shapes give back what they took in, at a price, see
    `clast.dem.conserving`; None, the default, does not. With "blaze" True, or None, is the form of the force that keeps the energy of a collision
    at any step, False the force as it is written.
    ledger: whether contacts tell what they lose by what, for `Simulation.ledger`; steps take longer, see docs/measuring.md. None, the default: what they lose is told as
    one number, which costs nothing, with integrator="verlet" on the CPU. False: no account of energy is kept.
    For the law "blaze" alone: attraction: whether a contact may pull where damping outweighs the spring.
    """

    law: str | Callable = "hertz"
    integrator: str = "verlet"
    margin: float | None = None
    broad: str = "bins"
    attraction: bool = False
    conserving: bool | None = None
    narrow: str = "brute"
    tolerance: float = 1e-6
    penetration: str = "raise"
    damping: str = "auto"
    shear: str = "auto"
    shear_damping: bool = True
    cohesion: str = "none"
    rolling: str = "spring"
    twisting: str = "none"
    bonds: bool = False
    in_step: bool | None = None
    ledger: bool | None = None

    def __post_init__(self) -> None:
        if callable(self.law):
            own_law.check(self.law)
        else:
            pick("contact law", self.law, NAMES)
        for what, name, known in (
            ("damping", self.damping, {"auto": None, **composed.DASHPOTS}),
            ("shear", self.shear, {"auto": None, **composed.SHEARS}),
            ("cohesion", self.cohesion, composed.COHESIONS),
            ("rolling resistance", self.rolling, composed.ROLLINGS),
            ("twisting resistance", self.twisting, composed.TWISTINGS),
        ):
            pick(what, name, known)
        for name in ("shear_damping", "bonds", "in_step", "ledger", "attraction"):
            value = getattr(self, name)
            if not isinstance(value, bool | np.bool_) and not (name in ("in_step", "ledger") and value is None):
                raise TypeError(f"DEM: {name} must be True or False, got {getattr(self, name)!r}")
        if not self._plain:
            if callable(self.law) or self.law not in composed.SPRINGS:
                raise ValueError(
                    f"DEM: damping, shear, cohesion, rolling, twisting and bonds are parts of built-in laws, not of {self.name}; leave them out"
                )
            if self.cohesion == "jkr" and self.law != "hertz":
                raise ValueError(f"DEM: cohesion='jkr' is of Hertz contacts, not of law={self.law!r}; take law='hertz'")
            if self.bonds and self.twisting != "none":
                raise ValueError("DEM: bonds twist by themselves; leave twisting out")
            self.recipe  # noqa: B018  asked for what does not go together
        pick("integrator", self.integrator, integrate.INTEGRATORS)
        pick("broad phase", self.broad, BROAD)
        pick("way to measure triangles", self.narrow, METHODS)
        pick("answer to penetration", self.penetration, {"raise": None, "push": None})
        if not (is_number(self.tolerance) and 0.0 < self.tolerance < 1.0):
            raise ValueError(f"DEM: tolerance = {self.tolerance!r} must be a number above 0 and below 1, a fraction")
        if self.margin is not None and not 0.0 <= float(self.margin) < math.inf:
            raise ValueError(f"DEM: margin = {self.margin} must be 0 m or more, or None")
        if self.ledger and self.integrator != "verlet":
            raise ValueError(
                f"DEM: ledger=True follows the work of integrator='verlet', not of {self.integrator!r}; leave one of them out"
            )
        if self.law != "blaze" and self.attraction:
            raise ValueError(f"DEM: attraction is an option of law='blaze', not of {self.name}; leave it out")
        if self.conserving and not self._plain:
            raise ValueError(
                "DEM: conserving=True is of laws as they are; leave it out, or damping, shear, cohesion and the like"
            )
        if self.conserving and self.law not in CONSERVING:
            names = ", ".join(CONSERVING)
            raise ValueError(
                f"DEM: conserving=True needs a law whose energy is known ({names}), not {self.name}; leave it out"
            )

    @property
    def _plain(self):
        """Whether no part of the law is chosen by the user."""
        return all(getattr(self, field.name) == field.default for field in fields(self) if field.name in PARTS)

    @functools.cached_property
    def recipe(self) -> Any:
        """The Law that belongs to `law` and its parts; a user's own function gets the damping of the Hertz law, and no energy unless it tells one."""
        if callable(self.law):
            return own_law.recipe(self.law)
        if not self._plain or self.law not in laws.LAWS:
            return composed.choose(self.law, *(getattr(self, name) for name in PARTS))
        recipe = laws.LAWS[self.law]
        if self.law == "blaze":
            return recipe._replace(function=laws.blaze_plain) if self.conserving is False else recipe
        if not self.conserving:
            return recipe
        # Accounts are of the forces at places.
        whole = composed.choose(self.law, *(False if name == "in_step" else getattr(self, name) for name in PARTS))
        return whole._replace(account=2.5 if recipe.hertzian else 2.0)

    def mixes(self, scene: Scene) -> Floats:
        """Numbers that the law needs of every pair of materials, (m*m, k): columns as in `Law.needs`."""
        mix = combine(scene.materials, scene.pairs)
        for name in HARD:
            if getattr(mix, name).any() and name not in self.recipe.needs:
                here = " clast.DEM(twisting='spring')," if name == "spinning_friction" else ""
                raise ValueError(
                    f"DEM: {name} is a property of hard contacts; take{here} clast.Complementarity() or leave it out"
                )
        if self.law == "blaze":
            check_constants(scene, mix, "blaze", BLAZE)
            own = [np.nan_to_num(getattr(mix, name)) for name in BLAZE]
            least = np.full(mix.young.shape, composed.PULL if self.attraction else 0.0)
            columns = [own[0], mix.shear, own[2], own[1], mix.friction, mix.rolling_friction, least]
        elif self.law == "halo":
            check_constants(scene, mix, "halo", HALO)
            own = [np.nan_to_num(getattr(mix, name)) for name in HALO]
            none = np.zeros(mix.young.shape)
            columns = [mix.young, mix.shear, own[0], own[1], none, none, none]
        else:
            law = self.recipe
            columns = [
                DERIVED[name](mix, law) if name in DERIVED else self._number(scene, mix, name) for name in law.needs
            ]
        if self.law == "luding":
            self._check_plastic(scene, mix)
        if self.bonds:
            strength, young = self._number(scene, mix, "bond_strength"), self._number(scene, mix, "bond_young")
            if (strength > STRONG * young).any():
                raise ValueError(
                    f"DEM: bond_strength = {strength.max():g} Pa would let a bond stretch by more than a fifth of its length; take {STRONG} "
                    "of bond_young at the most"
                )
        many = len(scene.materials) ** 2
        # A law of the user's own may need none.
        return np.ascontiguousarray(np.array([column.ravel() for column in columns]).reshape(len(columns), many).T)

    def _check_plastic(self, scene, mix):
        """Raise unless contacts unload more steeply than they load."""
        loading, unloading = self._number(scene, mix, "stiffness"), self._number(scene, mix, "plastic_stiffness")
        wrong = np.argwhere((loading >= unloading) & may_touch(scene))
        if len(wrong):
            a, b = wrong[0]
            raise ValueError(
                f"DEM: the law 'luding' needs plastic_stiffness above stiffness, got {unloading[a, b]:g} and {loading[a, b]:g} N/m"
            )

    def _number(self, scene, mix, name):
        """A number of every pair of materials, (m, m), by its name."""
        known = name in mix._fields
        column = getattr(mix, name) if known else combine_numbers(scene.materials, scene.pairs, name)
        lacking = np.argwhere(np.isnan(column) & may_touch(scene))
        if len(lacking):
            a, b = (scene.materials[row].name or f"number {row}" for row in lacking[0])
            how = f"{name}=..." if known else f"numbers={{{name!r}: ...}}"
            given = {written for row in lacking[0] for written, _ in scene.materials[row].numbers}
            guess = nearest(name, sorted(given - {*NUMBERS, *self.recipe.needs}))
            hint = f"; they have {guess!r}, did you mean {name!r}?" if guess else f"; give Material({how})"
            if not known and callable(self.law) and not guess and (meant := nearest(name, (*mix._fields, *NUMBERS))):
                hint += f", or did you mean {meant!r}?"
            raise ValueError(f"DEM: the law {self.name} needs {name} for materials {a} and {b}{hint}")
        return np.nan_to_num(column)

    @property
    def name(self) -> str:
        """The name of the law, for messages."""
        return repr(self.law if isinstance(self.law, str) else self.law.__name__)

    def rolls(self, mixes: Floats) -> bool:
        """Whether some pair of materials, see `mixes`, has rolling friction."""
        needs = self.recipe.needs
        return self.recipe.turns or "rolling" in needs and bool((mixes[:, needs.index("rolling")] > 0.0).any())

    def idle(self, mixes: Floats) -> list[str]:
        """What was asked for against rolling and twisting and does nothing, for want of a coefficient, a line each; mixes: see `mixes`."""
        # Rolling springs are there unless something else is asked for.
        asked = (
            ("rolling", self.rolling, self.rolling in ("constant", "viscous"), "rolling", "rolling_friction"),
            ("twisting", self.twisting, self.twisting == "spring", "spinning_friction", "spinning_friction"),
        )
        return [
            f"DEM: {part}={name!r} does nothing, for no two materials have {number}; give Material({number}=...), or leave {part} out"
            for part, name, acts, column, number in asked
            if acts and not mixes[:, self.recipe.needs.index(column)].any()
        ]

    def reach(self, scene: Scene, mixes: Floats) -> float:
        """The largest gap [m] at which contacts of a scene act; mixes: see `mixes`."""
        law = self.recipe
        own = scene.parts.ball[is_particle(scene.parts.kind)]
        sizes = [scene.bodies.scale, *(np.array([inlet.sizes.smallest, inlet.sizes.largest]) for inlet in scene.inlets)]
        scale = np.concatenate(sizes)
        if not law.reaches or len(own) == 0 or len(scale) == 0:
            return law.reach
        # Reduced radii: half of the smallest body's, and those of surfaces that are flatter than a ball.
        radii = np.array([0.5 * own.min() * scale.min(), FLAT * own.max() * scale.max()])
        # Pairs that never meet, as of two walls, need have none of the numbers.
        meeting = mixes[may_touch(scene).ravel()]
        mix = law.mix(*(column[:, None] for column in meeting.T))
        found = [reach(mix, radii[None]) for reach in law.reaches]
        if not all(np.isfinite(gaps).all() for gaps in found):
            raise ValueError(
                f"DEM: the law {self.name} acts up to a gap that is not a number, with {', '.join(law.needs)} of the materials as they are; "
                "look at Material(numbers={...})"
            )
        return max([law.reach, *(float(np.max(gaps, initial=0.0)) for gaps in found)])

    def critical_step(self, scene: Scene) -> tuple[float, int | None]:
        """Time step [s] at which the stiffest contact can no longer be followed, and the body that sets it.

        Hertz: the Rayleigh time of the smallest sphere, half-axis or ball inside a polyhedron, by the stiffest of its pairs of materials. Others: a third of the
        contact time of the lightest body against its like; a user's own law is asked how steep it is, see `own_law.steepest`, and where materials have rolling
        friction the Rayleigh time of its spring, which goes with Young's modulus, counts too; that of "blaze" falls with the depth, and the depth taken is
        5 % of the radius. What inlets will pour counts too; the body is None if it is one of those.
        """
        own = scene.parts.small if self.recipe.hertzian else scene.parts.large
        radius, mass, material, number = movers(scene, own)
        longest = self._limits(scene, radius, mass, material)
        if callable(self.law) and self.recipe.stiffness is None:
            asked, silent = self._asked_limits(scene, movers(scene, scene.parts.large)[0], mass, material)
            longest = np.where(silent, np.minimum(asked, longest), asked)
        if callable(self.law) and self.rolls(self.mixes(scene)):
            longest = np.minimum(longest, _rayleigh(scene, movers(scene, scene.parts.small)[0], material))
        return shortest(longest, number)

    def _asked_limits(self, scene, radius, mass, material):
        """The same as `_limits` by what a user's own law answers in a few places, and of which bodies that tells too little, (n,) bool, with a warning."""
        mixes, many = self.mixes(scene), len(scene.materials)
        k, silent = np.zeros(len(radius)), np.zeros(len(radius), bool)
        for row in np.unique(material):
            mine = np.flatnonzero(material == row)
            smallest, largest = radius[mine].min(), radius[mine].max()
            # A law is a power of the radius or nearly so; five radii are enough for any number of bodies.
            nodes = np.geomspace(smallest, largest, 5) if largest > smallest else np.array([smallest])
            weights = [0.5 * float(mass[mine[np.argmin(np.abs(radius[mine] - node))]]) for node in nodes]
            pairs = dict.fromkeys(map(tuple, mixes[row * many : (row + 1) * many].tolist()))
            found = np.array(
                [[own_law.steepest(self.law, mix, float(r), m) for mix in pairs] for r, m in zip(nodes, weights)]
            )
            told = np.maximum(np.nan_to_num(found).max(axis=1), 1e-200)  # not 0, of which there is no logarithm
            silent[mine] = np.isnan(found).any() or (told <= 1e-200).any()
            k[mine] = np.exp(np.interp(np.log(radius[mine]), np.log(nodes), np.log(told)))
        if silent.any():
            warnings.warn(
                f"DEM: the law {self.name} does not tell how stiff it is: at small overlaps its force does not change, or is no number by plain Python; steps are judged "
                "by the Rayleigh time; give clast.law(stiffness=...)",
                stacklevel=2,
            )
        return math.pi / 3.0 * np.sqrt(0.5 * mass / k), silent

    def _limits(self, scene, radius, mass, material):
        """Longest steps [s] for particles with these radii (n,) [m], masses (n,) [kg] and rows of materials (n,)."""
        if self.recipe.hertzian:
            longest = _rayleigh(scene, radius, material)
            return (
                longest
                if self.recipe.stiffness is None
                else np.minimum(longest, self._spring_limits(scene, radius, mass, material))
            )
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
        return self._spring_limits(scene, radius, mass, material)

    def _spring_limits(self, scene, radius, mass, material):
        """The same by the stiffness that the law tells."""
        law, mixes, many = self.recipe, self.mixes(scene), len(scene.materials)
        own = callable(self.law)
        # Against a wall the reduced radius is the radius itself, which is the stiffest case.
        k = np.zeros(len(radius))
        for other in range(many):
            row = law.mix(*mixes[material * many + other].T)
            told = own_law.stiffness_of(law, self.name, row, radius) if own else law.stiffness(row, radius)
            k = np.maximum(k, told)
        # A part without a stiffness sets no limit; not so small that heavy bodies overflow.
        return math.pi / 3.0 * np.sqrt(0.5 * mass / np.maximum(k, 1e-200))


def _rayleigh(scene, radius, material):
    """Rayleigh times [s] of balls with these radii (n,) [m] and rows of materials (n,)."""
    slow = np.array(
        [
            math.pi * math.sqrt(m.density / shear) / (0.1631 * m.poisson + 0.8766)
            for m, shear in zip(scene.materials, stiffest_moduli(scene.materials, scene.pairs), strict=True)
        ]
    )
    return slow[material] * radius


def stiffest_moduli(materials, pairs):
    """The shear modulus [Pa] of each material, or, where all or some of its pairs have moduli of their own, the largest that a material would have which makes
    such contacts with its like: E* = G / (1 - nu), G* = G / (2 (2 - nu)). pairs: as for `clast.scene.materials.combine`."""
    found = []
    for row, material in enumerate(materials):
        own, likes = material.shear, []
        for other in range(len(materials)):
            given = (pairs or {}).get((min(row, other), max(row, other)), {})
            likes.append((1.0 - material.poisson) * given["young"] if "young" in given else own)
            likes.append(2.0 * (2.0 - material.poisson) * given["shear"] if "shear" in given else own)
        found.append(max(likes))
    return found


EXAMPLES = {
    "blaze": "blaze_stiffness=K_r [N/m^1.5], blaze_damping=K_D [N s/m^1.5], blaze_shear=K_T [N s/m]), for example 1e6, 50 and 0.4",
    "halo": "halo_stiffness=k_repulsive [N/m], halo_damping=k_damp [N s/m]), for example 1e5 and 0",
}


def movers(scene, own):
    """Radii (k,) [m], masses (k,) [kg], rows of materials (k,) and numbers (k,) of the bodies of all particles that move freely, and of the smallest that each inlet will pour,
    without a number (-1). own (p,) [m]: radii of Parts at size factor 1."""
    bodies = scene.bodies
    shapes = scene.shapes(bodies)
    rows = np.nonzero(is_particle(shapes.kind) & (bodies.motion[shapes.body] == FREE))[0]
    body = shapes.body[rows]
    radius = own[shapes.part[rows]] * bodies.scale[body]
    mass, material, number = bodies.mass[body], bodies.material[body], bodies.number[body]
    for inlet in scene.inlets:
        first, size = scene.molds.first[inlet.mold], inlet.sizes.smallest
        reach = own[first : first + scene.molds.count[inlet.mold]] * size
        weight = scene.materials[inlet.material].density * scene.molds.volume[inlet.mold] * size**3
        radius, mass = np.append(radius, reach), np.append(mass, np.full(len(reach), weight))
        material, number = (
            np.append(material, np.full(len(reach), inlet.material)),
            np.append(number, np.full(len(reach), -1)),
        )
    return radius, mass, material, number


def shortest(step, number):
    """The shortest of steps (k,) [s], infinite without any, and the number of its body, None where that is -1."""
    if len(step) == 0:
        return math.inf, None
    worst = int(np.argmin(step))
    return float(step[worst]), int(number[worst]) if number[worst] >= 0 else None


def may_touch(scene):
    """Which pairs of materials may touch, (m, m) bool: one of them at least moves freely."""
    moving = np.zeros(len(scene.materials), bool)
    moving[scene.bodies.material[scene.bodies.motion == FREE]] = True
    moving[[inlet.material for inlet in scene.inlets]] = True
    return moving[:, None] | moving


def check_constants(scene, mix, law, names):
    """Raise if a law with constants of its own lacks one that a particle of the scene could need."""
    for name in names:
        lacking = np.argwhere(np.isnan(getattr(mix, name)) & may_touch(scene))
        if len(lacking):
            a, b = (scene.materials[row].name or f"number {row}" for row in lacking[0])
            raise ValueError(
                f"DEM: the law {law!r} needs {name} for materials {a} and {b}; give Material({EXAMPLES[law]}"
            )
