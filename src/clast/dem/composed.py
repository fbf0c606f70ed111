"""A law chosen by its parts: a spring with its dashpot, shear, cohesion, rolling and twisting resistance, bonds.

`choose` makes the Law of such a choice. The parts are functions of one contact, each with its equation and source: `clast.dem.springs`,
`clast.dem.adhesion`, `clast.dem.tangent`, `clast.dem.bonds`.
"""

import functools
import math
from typing import NamedTuple

import numpy as np

from ..kernels.backend import bind, fused, made_by
from . import adhesion, bonds, laws, springs, tangent, whole_steps
from .laws import Law, Touch

PULL = -1e300  # [N], the least normal force of a law that may pull


class Part(NamedTuple):
    """A part of a law, with what it takes to set it up."""

    function: object
    needs: tuple = ()  # names of numbers of the two materials
    keeps: tuple = ()  # names of what it keeps
    dashpot: str = "none"  # of a spring: its own dashpot
    shear: str = "rescaled"  # of a spring: its own shear
    pulls: bool = False  # of a spring: it may pull
    damping: dict | None = (
        None  # of a dashpot: coefficient of restitution -> Mix.damping, by the spring; None: it has numbers of its own
    )
    stiffness: object = (
        None  # of a spring: (mix, radius [m]) -> the largest stiffness [N/m]; None: by the Rayleigh time
    )
    reach: object = None  # (mix, radius [m]) -> the largest gap [m] at which it acts; None: none
    energy: object = None  # (overlap, slip, radius, mix, kept) -> elastic energy [J]
    flags: tuple = ()  # of what it keeps, the names of what is yes or no
    grip: object = laws.hertz_grip  # of a spring: see `laws.Law.grip`


def _linear_stiffness(mix, radius):
    return np.where(mix.stiffness > 0.0, mix.stiffness, mix.young * radius)


def _granular_energy(overlap, slip, radius, mix, kept):
    return 0.5 * (mix.k_n * np.maximum(overlap, 0.0) ** 2 + mix.k_t * slip**2)


def _granular_hertz_energy(overlap, slip, radius, mix, kept):
    overlap = np.maximum(overlap, 0.0)
    f = np.sqrt(overlap / (4.0 * radius))
    return f * (0.4 * mix.k_n * overlap**2 + 0.5 * mix.k_t * slip**2)


def _soft_energy(overlap, slip, radius, mix, kept):
    return mix.well_depth * np.maximum(0.0, 1.0 + overlap / mix.well_width) ** 2


def _lennard_jones_energy(overlap, slip, radius, mix, kept):
    # Below the least distance the force stays as it is, and the energy is a line.
    distance = mix.well_width - overlap
    r = np.maximum(distance, springs.LJ_LEAST * mix.well_width)
    x6 = (mix.well_width / r) ** 6
    below = 24.0 * mix.well_depth / r * (2.0 * x6 * x6 - x6) * (r - distance)
    inside = distance < springs.LJ_CUT * mix.well_width
    return np.where(inside, 4.0 * mix.well_depth * (x6 * x6 - x6) + below, 0.0)


def _walton_braun_energy(overlap, slip, radius, mix, kept):
    k1 = _linear_stiffness(mix, radius)
    k2 = k1 / np.maximum(mix.restitution**2, 1e-4)
    stretched = np.maximum(0.0, overlap - (1.0 - k1 / k2) * kept.peak)
    return 0.5 * k2 * stretched**2 + 0.5 * 4.0 * mix.ratio**2 * k1 * slip**2


def _luding_energy(overlap, slip, radius, mix, kept):
    k1, kp = mix.stiffness, mix.plastic_stiffness
    most = kp / (kp - k1) * mix.plasticity_depth * 2.0 * radius
    k2 = k1 + (kp - k1) * kept.peak / most
    stretched = np.maximum(overlap, 0.0) - (1.0 - k1 / k2) * kept.peak
    return 0.5 * k2 * stretched**2 + 0.5 * 4.0 * mix.ratio**2 * k1 * slip**2


def _eepa_stiffness(mix, radius):
    # Of the unloading branch at an overlap of 5 % of the radius.
    return 2.0 * mix.young * math.sqrt(0.05) * radius / (1.0 - mix.plasticity_ratio)


def _eepa_energy(overlap, slip, radius, mix, kept):
    """The work that unloading along the present branch gives back, and that of the constant pull."""
    d = np.maximum(overlap, 0.0)
    k2 = 4.0 / 3.0 * mix.young * np.sqrt(radius) / (1.0 - mix.plasticity_ratio)
    plastic = mix.plasticity_ratio * kept.peak**1.5
    rest = np.cbrt(plastic) ** 2
    pressed = k2 * (0.4 * (d**2.5 - rest**2.5) - plastic * (d - rest))
    sheared = 4.0 * mix.shear * np.sqrt(radius * d) * slip**2
    return np.where(overlap > 0.0, pressed, 0.0) + sheared - mix.pull_off * d


def _jkr_reach(mix, radius):
    return 3.0 * (np.pi * mix.adhesion * radius**2 / (8.0 * mix.young)) ** (2.0 / 3.0) / radius


def _capillary_reach(mix, radius):
    third = np.cbrt(mix.bridge_volume)
    return (1.0 + 0.5 * mix.contact_angle) * (third + 0.1 * third**2 / (2.0 * radius))


def _bond_reach(mix, radius):
    # Twice what the strength allows, and a hundredth of the length for what it swings; `DEM` refuses strengths above a fifth of the modulus.
    reach = mix.bond_gap + 4.0 * radius * (2.0 * mix.bond_strength / mix.bond_young + 0.01)
    return np.where(mix.bond_strength > 0.0, reach, 0.0)


def _bond_stiffness(mix, radius):
    stiffness = mix.bond_young * np.pi * (2.0 * mix.bond_size * radius) ** 2 / (4.0 * radius)
    return np.where(mix.bond_strength > 0.0, stiffness, 0.0)


def _sum(parts, mix, radius):
    return sum((part(mix, radius) for part in parts), np.zeros_like(radius))


def _energy(parts, overlap, slip, radius, mix, kept):
    return sum(part(overlap, slip, radius, mix, kept) for part in parts)


def _bonded_energy(parts, overlap, slip, radius, mix, kept):
    """A bond acts in place of the law, not beside it."""
    free = _energy(parts, overlap, slip, radius, mix, kept)
    return np.where(kept.bond > 0.0, _bond_energy(overlap, slip, radius, mix, kept), free)


def _jkr_energy(overlap, slip, radius, mix, kept):
    """The integral of the force from an area of no size on."""
    w = np.maximum(mix.adhesion, adhesion.LEAST)
    least = -_jkr_reach(mix._replace(adhesion=w), radius)
    found = np.vectorize(getattr(adhesion.jkr_radius, "py_func", adhesion.jkr_radius), otypes=[float])
    a = found(np.maximum(overlap, least), radius, mix.young, w) if len(overlap) else overlap
    root = np.sqrt(2.0 * np.pi * w / mix.young)
    pressed = 8.0 * a**5 / (15.0 * radius**2) - 4.0 / 3.0 * root * a**3.5 / radius + 0.5 * root**2 * a**2
    return kept.joined * (mix.young * pressed + 4.0 * mix.shear * a * slip**2)


def _dmt_energy(overlap, slip, radius, mix, kept):
    return -2.0 * np.pi * mix.adhesion * radius * np.maximum(overlap, 0.0)


def _area_energy(overlap, slip, radius, mix, kept):
    return -0.5 * np.pi * mix.cohesion_density * radius * np.maximum(overlap, 0.0) ** 2


def _capillary_energy(overlap, slip, radius, mix, kept):
    """The integral of the force over the gap, from touch on."""
    radius, gap = 2.0 * radius, np.maximum(-overlap, 0.0)
    strongest = 2.0 * np.pi * radius * mix.surface_tension * np.cos(mix.contact_angle)
    unit, root = np.sqrt(np.maximum(mix.bridge_volume, 1e-300) / radius), math.sqrt(10.0 - 1.05**2)
    stretched = 2.0 / root * (np.arctan((5.0 * gap / unit + 1.05) / root) - math.atan(1.05 / root))
    return kept.bridge * strongest * (unit * stretched - np.maximum(overlap, 0.0))


def _bond_energy(overlap, slip, radius, mix, kept):
    """Of a bond that holds, by stretch and slip; for bending and twist see `bonds.turned_energy`."""
    area = np.pi * (2.0 * mix.bond_size * radius) ** 2
    return 0.125 * area / radius * (mix.bond_young * (overlap - kept.rest) ** 2 + mix.bond_shear * slip**2)


SPRINGS = {
    "hertz": Part(springs.hertz, ("young", "shear"), (), "thornton", "mindlin", energy=laws.hertz_energy),
    "linear": Part(
        springs.linear,
        ("young", "stiffness", "ratio"),
        (),
        "thornton",
        "fading",
        stiffness=_linear_stiffness,
        energy=laws.linear_energy,
        grip=laws.linear_grip,
    ),
    "granular": Part(
        springs.granular,
        ("k_n", "k_t"),
        (),
        "granular",
        stiffness=lambda mix, radius: mix.k_n,
        energy=_granular_energy,
        grip=springs.granular_grip,
    ),
    "granular-hertz": Part(
        springs.granular_hertz,
        ("k_n", "k_t"),
        (),
        "granular",
        stiffness=lambda mix, radius: mix.k_n,  # that of an overlap as large as the body
        energy=_granular_hertz_energy,
        grip=springs.granular_hertz_grip,
    ),
    "walton-braun": Part(
        springs.walton_braun,
        ("young", "stiffness", "ratio", "restitution"),
        ("peak",),
        stiffness=lambda mix, radius: _linear_stiffness(mix, radius) / np.maximum(mix.restitution**2, 1e-4),
        energy=_walton_braun_energy,
        grip=laws.linear_grip,
    ),
    "luding": Part(
        springs.luding,
        ("stiffness", "plastic_stiffness", "cohesive_stiffness", "plasticity_depth", "ratio"),
        ("peak",),
        pulls=True,
        stiffness=lambda mix, radius: mix.plastic_stiffness,
        energy=_luding_energy,
        grip=springs.luding_grip,
    ),
    "eepa": Part(
        springs.eepa,
        ("young", "shear", "plasticity_ratio", "adhesion", "adhesion_exponent", "pull_off"),
        ("peak", "adhering"),
        pulls=True,
        stiffness=_eepa_stiffness,
        energy=_eepa_energy,
    ),
    "soft": Part(
        springs.soft,
        ("well_depth", "well_width"),
        stiffness=lambda mix, radius: 2.0 * mix.well_depth / mix.well_width**2,
        reach=lambda mix, radius: mix.well_width,
        energy=_soft_energy,
        grip=springs.soft_grip,
    ),
    "lennard-jones": Part(
        springs.lennard_jones,
        ("well_depth", "well_width"),
        pulls=True,
        # At 0.9 of the width, where the energy is 6.6 times the depth.
        stiffness=lambda mix, radius: 2337.0 * mix.well_depth / mix.well_width**2,
        reach=lambda mix, radius: (springs.LJ_CUT - 1.0) * mix.well_width,
        energy=_lennard_jones_energy,
        grip=springs.lennard_jones_grip,
    ),
    "jkr": Part(
        adhesion.jkr,
        ("young", "shear", "adhesion"),
        ("joined",),
        "tsuji",
        "rescaled",
        pulls=True,
        reach=_jkr_reach,
        energy=_jkr_energy,
        flags=("joined",),
    ),
}


def _tsuji(restitution):
    """Tsuji's constant without a cut of the tension: -sqrt(5) ln e / sqrt(ln^2 e + pi^2) (Antypov and Elliott 2011)."""
    log = math.log(min(max(restitution, 1e-3), 1.0))
    return -math.sqrt(5.0) * log / math.hypot(log, math.pi)


def _critical(restitution):
    """Twice the fraction of critical damping of a linear spring without a cut of the tension: -2 ln e / sqrt(ln^2 e + pi^2)."""
    return 2.0 * _tsuji(restitution) / math.sqrt(5.0)


DASHPOTS = {
    # Tension is cut off, and the constants make up for it.
    "thornton": Part(
        springs.by_restitution,
        ("damping", "ratio"),
        damping={"hertz": laws.hertz_damping, "linear": lambda e: 2.0 * laws.linear_damping(e)},
    ),
    # As they were published: the contact may pull before it opens, and restitution is less exact for it, see `springs.by_restitution`.
    "tsuji": Part(
        springs.by_restitution,
        ("damping", "ratio"),
        damping={"hertz": _tsuji, "jkr": _tsuji, "eepa": _tsuji, "linear": _critical},
        pulls=True,
    ),
    "kuwabara-kono": Part(springs.kuwabara_kono, ("dissipation", "ratio")),
    "govender": Part(springs.govender, ("blaze_damping", "ratio")),
    "granular": Part(springs.granular_damping, ("gamma_n", "gamma_t", "k_n")),
    "none": Part(springs.undamped),
}
SHEARS = {
    "mindlin": Part(tangent.mindlin, ("friction",)),
    "fading": Part(tangent.fading, ("friction",)),
    "rescaled": Part(tangent.rescaled, ("friction",)),
    "secant": Part(tangent.secant, ("friction",)),
    "incremental": Part(tangent.incremental, ("friction",), ("grip",)),
    "thornton": Part(tangent.thornton, ("friction",), ("grip",)),
    "mindlin-deresiewicz": Part(
        tangent.micro_slip,
        ("friction",),
        ("turning_x", "turning_y", "turning_z", "span", "spare", "used", "load", "grip"),
    ),
    "none": Part(tangent.frictionless, ("friction",)),
}
COHESIONS = {
    "none": Part(adhesion.nothing),
    "jkr": Part(adhesion.nothing),  # is a spring
    "dmt": Part(adhesion.dmt, ("adhesion",), energy=_dmt_energy),
    "area": Part(adhesion.by_area, ("cohesion_density",), energy=_area_energy),
    "capillary": Part(
        adhesion.capillary,
        ("surface_tension", "contact_angle", "bridge_volume"),
        ("bridge",),
        reach=_capillary_reach,
        energy=_capillary_energy,
        flags=("bridge",),
    ),
}
ROLLINGS = {
    "spring": Part(tangent.rolls_on_spring, ("shear", "rolling")),
    "constant": Part(tangent.rolls_by_constant, ("rolling",)),
    "viscous": Part(tangent.rolls_viscous, ("rolling",)),
    "none": Part(tangent.rolls_freely),
}
TWISTINGS = {"none": Part(None), "spring": Part(tangent.twists, ("shear", "spinning_friction"), ("twist",))}

# Springs for which forces may be means over the step: the power of the overlap with which they go; and that of dashpots beside them.
IN_STEP = {"hertz": 1.5, "linear": 1.0, "granular": 1.0, "granular-hertz": 1.5}
BESIDE = {
    "thornton": lambda p: 0.5 * (p - 1.0),
    "tsuji": lambda p: 0.5 * (p - 1.0),
    "kuwabara-kono": lambda p: p - 1.0,
    "govender": lambda p: 0.5,
    "granular": lambda p: p - 1.0,
    "none": lambda p: 0.0,
}

# Bound to `contact` and `contact_in_step`.
spring, dashpot, shear, attract = springs.hertz, springs.by_restitution, tangent.mindlin, adhesion.nothing
LEAST = 0.0  # [N], the least force of spring and dashpot
SHEAR_DAMPING = 1.0


def contact(touch, mix, dt):
    """The answer of a law that is made of parts: spring and dashpot, shear under their pressure, and what pulls beside them."""
    answer = spring(touch, mix, dt)
    damping, shear_damping = dashpot(touch, mix, answer)
    most = laws.strongest(touch.mass, dt)
    normal = max(LEAST, answer.force + min(damping, most) * touch.rate)
    pull, kept = attract(touch, mix, dt)
    limit = mix.friction * max(0.0, normal + answer.pull)
    force, slip, held = shear(touch, mix, dt, answer, min(SHEAR_DAMPING * shear_damping, most), limit)
    return normal - pull, force, slip, answer.kept + held + kept


# Bound to `contact_in_step`: the powers of the overlap with which spring and dashpot go, whether they may pull, and what pushes.
P, Q, PULLS = 1.5, 0.25, 0.0
push = whole_steps.push_only


def contact_in_step(touch, mix, dt):
    """The same with the normal force as a mean over the step, see `clast.dem.whole_steps`; for springs that push from touch on."""
    here = spring(touch, mix, dt)
    kick = (here.force + PULLS * dashpot(touch, mix, here)[0] * touch.rate) * dt / touch.mass
    whole = whole_steps.in_step(touch.overlap, touch.rate, kick, dt, P, Q)
    deep = Touch(whole.overlap, touch.rate, touch.normal, touch.slide, touch.slip, touch.mass, touch.radius, touch.kept)
    answer = spring(deep, mix, dt)
    damping, shear_damping = dashpot(deep, mix, answer)
    normal = push(whole, answer.force, answer.stiffness, damping, touch.rate, touch.mass, dt, P, Q)
    pull, kept = attract(touch, mix, dt)
    limit = mix.friction * max(0.0, normal + answer.pull)
    drag = min(SHEAR_DAMPING * (whole.share * whole.dashpot * shear_damping), laws.strongest(touch.mass, dt))
    # In shear the spring is that of the place where the contact is.
    force, slip, held = shear(touch, mix, dt, here, drag, limit)
    return normal - pull, force, slip, answer.kept + held + kept


plain = contact  # bound to `with_twist`


def with_twist(touch, mix, dt):
    """The same, beside a resistance that keeps the angle of twist."""
    normal, force, slip, kept = plain(touch, mix, dt)
    return normal, force, slip, kept + (touch.kept.twist,)


def _bound(function, **names):
    """A compiled function with parts bound to it; numba must know them, and other processes how to make it."""
    return fused(bind(function, **names))


def powers(law, damping):
    """What is bound to `contact_in_step` beside the parts."""
    p, pulls = IN_STEP[law], DASHPOTS[damping].pulls
    push = whole_steps.push if pulls else whole_steps.push_only
    return {"P": p, "Q": BESIDE[damping](p), "PULLS": 1.0 if pulls else 0.0, "push": push}


@functools.cache
def law_of(law, damping, shear_name, shear_damping, cohesion, twisting, bonded, in_step):
    """The function of a law with these parts, see `choose`."""
    jkr = cohesion == "jkr"
    chosen, dash = SPRINGS["jkr" if jkr else law], DASHPOTS[damping]
    made = _bound(
        contact_in_step if in_step else contact,
        spring=chosen.function,
        dashpot=dash.function,
        shear=SHEARS[shear_name].function,
        attract=COHESIONS[cohesion].function,
        LEAST=PULL if chosen.pulls or dash.pulls else 0.0,
        SHEAR_DAMPING=1.0 if shear_damping else 0.0,
        **(powers(law, damping) if in_step else {}),
    )
    if twisting != "none":
        made = _bound(with_twist, plain=made)
    if bonded:
        made = _bound(bonds.bonded, free=made)
    return made_by(made, law_of, law, damping, shear_name, shear_damping, cohesion, twisting, bonded, in_step)


@functools.cache
def resistance_of(law, rolling, twisting, bonded):
    """The function that answers rolling and twisting of contacts with the spring `law`, see `choose`."""
    made = tangent.rolling_spring(SPRINGS[law].grip) if rolling == "spring" else ROLLINGS[rolling].function
    if twisting != "none":
        made = _bound(tangent.twists, rolling=made)
    if bonded:
        made = _bound(bonds.bends, rolling=made)
    return made_by(made, resistance_of, law, rolling, twisting, bonded) if twisting != "none" or bonded else made


def choose(law, damping, shear_name, shear_damping, cohesion, rolling, twisting, bonded, in_step):
    """The Law of these parts by their names; damping and shear_name may be "auto", as the spring has it; in_step: whether
    normal forces are means over the step; None: where they can be and follow from a coefficient of restitution."""
    chosen = SPRINGS["jkr" if cohesion == "jkr" else law]
    damping = chosen.dashpot if damping == "auto" else damping
    shear_name = chosen.shear if shear_name == "auto" else shear_name
    dash = DASHPOTS[damping]
    able = law in IN_STEP and not bonded and cohesion in ("none", "dmt", "area")
    if in_step and not able:
        raise ValueError(
            f"DEM: in_step=True is of springs that push from touch on ({', '.join(IN_STEP)}), without bonds, jkr and capillary; leave it out"
        )
    # Where a coefficient of restitution is asked for it should come out.
    in_step = able and dash.damping is not None if in_step is None else in_step
    parts = [chosen, dash, SHEARS[shear_name], COHESIONS[cohesion], ROLLINGS[rolling], TWISTINGS[twisting]]
    springs_of = tuple(part.energy for part in parts if part.energy is not None)
    if bonded:
        parts.append(
            Part(None, bonds.NEEDS, bonds.KEEPS, stiffness=_bond_stiffness, reach=_bond_reach, flags=("bond",))
        )
    name = "jkr" if cohesion == "jkr" else law
    if dash.damping is not None and name not in dash.damping:
        raise ValueError(
            f"DEM: damping={damping!r} follows from the coefficient of restitution with {', '.join(dash.damping)}, not with {name!r}; "
            "take damping='none'"
        )
    function = law_of(law, damping, shear_name, shear_damping, cohesion, twisting, bonded, in_step)
    keeps = tuple(name for part in parts for name in part.keeps)
    return Law(
        function=function,
        damping=dash.damping[name] if dash.damping is not None else None,
        energy=functools.partial(_bonded_energy if bonded else _energy, springs_of),
        hertzian=chosen.stiffness is None,
        shares=True,
        keeps=keeps,
        flags=tuple(name for part in parts for name in part.flags),
        needs=tuple(dict.fromkeys(name for part in parts for name in part.needs)),
        composed=True,
        resist=resistance_of(name, rolling, twisting, bonded),
        turns=bonded or twisting != "none",
        stiffness=functools.partial(_sum, tuple(part.stiffness for part in parts if part.stiffness is not None)),
        reaches=tuple(part.reach for part in parts if part.reach is not None),
    )
