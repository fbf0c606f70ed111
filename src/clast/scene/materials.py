"""What bodies are made of, and how two materials act together in a contact."""

import functools
import math
from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np

from ..errors import nearest, pick


def knowing_numbers(cls):
    """Let a class of materials tell what stands in `numbers`, where it is asked for by a name that is none of its own."""
    made, own = cls.__init__, [field.name for field in fields(cls)]

    @functools.wraps(made)
    def init(self, *given, **named):
        for name, value in named.items():
            if name not in own:
                refuse_number("Material", name, value, own)
        made(self, *given, **named)

    cls.__init__ = init
    return cls


def refuse_number(place, name, value, own):
    """Raise a TypeError that says where a number with this name belongs which is none of its own properties."""
    guess = nearest(name, (*own, *NUMBERS))
    hint = f"; did you mean {guess!r}?" if guess and name not in NUMBERS else ""
    what = "is a number of a law" if name in NUMBERS else "is no property"
    raise TypeError(f"{place}: {name} {what}; numbers of laws are given as numbers={{{name!r}: {value!r}}}{hint}")


@knowing_numbers
@dataclass(frozen=True)
class Material:
    """One material.

    density [kg/m^3]; young: Young's modulus [Pa]; poisson: Poisson's ratio, above -1 and at most 0.5;
    friction, rolling_friction: coefficients, not negative; restitution: rebound speed over approach speed, 0 to 1;
    stiffness: normal spring of the linear law [N/m], or None to let the law derive it.
    spinning_friction: coefficient of the couple about the normal, times a reduced radius, as rolling_friction is: for Complementarity and for
    DEM(twisting="spring"). For Complementarity alone: cohesion: the largest pull that one contact bears [N]; compliance: overlap over normal force
    of a contact [m/N], 0 for rigid ones.
    For the law "blaze" alone: blaze_stiffness K_r [N/m^1.5] of the normal force K_r d^1.5; blaze_damping K_D [N s/m^1.5] of
    K_D d^0.5 times the rate; blaze_shear K_T [N s/m], shear force over sliding velocity. In units of cm, g and s
    K_r is 100 times, K_D 100 times and K_T 1000 times as much.
    conductivity [W/(m K)], heat_capacity [J/(kg K)]: asked for where bodies have temperatures.
    For the law "halo" alone: halo_stiffness k_repulsive [N/m] and halo_damping k_damp [N s/m].
    numbers: {name: value} that other laws need, see docs/laws.md, also one of your own, see `clast.law`; those of two materials are combined like
    springs in series unless RULES says otherwise. name: for messages and files.
    """

    density: float = 2500.0
    young: float = 1e7
    poisson: float = 0.25
    friction: float = 0.5
    restitution: float = 0.5
    rolling_friction: float = 0.0
    spinning_friction: float = 0.0
    cohesion: float = 0.0
    compliance: float = 0.0
    stiffness: float | None = None
    blaze_stiffness: float | None = None
    blaze_damping: float | None = None
    blaze_shear: float | None = None
    halo_stiffness: float | None = None
    halo_damping: float | None = None
    conductivity: float | None = None
    heat_capacity: float | None = None
    numbers: tuple = ()
    name: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "numbers", check_numbers(f"Material {self.name}".rstrip(), self.numbers))
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name in LIMITS and not (field.default is None and value is None):
                object.__setattr__(self, field.name, check(f"Material {self.name}".rstrip(), field.name, value))
        if not isinstance(self.name, str):
            raise TypeError(f"Material: name must be text, got {self.name!r}")

    @property
    def shear(self) -> float:
        """Shear modulus [Pa]."""
        return self.young / (2.0 * (1.0 + self.poisson))


# What each number may be, and how that is said.
LIMITS = {
    "density": (lambda v: v > 0.0, "above 0 kg/m^3"),
    "young": (lambda v: v > 0.0, "above 0 Pa"),
    "shear": (lambda v: v > 0.0, "above 0 Pa"),
    "poisson": (lambda v: -1.0 < v <= 0.5, "above -1 and at most 0.5"),
    "friction": (lambda v: v >= 0.0, "0 or more"),
    "restitution": (lambda v: 0.0 <= v <= 1.0, "from 0 to 1"),
    "rolling_friction": (lambda v: v >= 0.0, "0 or more"),
    "spinning_friction": (lambda v: v >= 0.0, "0 or more"),
    "cohesion": (lambda v: v >= 0.0, "0 N or more"),
    "compliance": (lambda v: v >= 0.0, "0 m/N or more"),
    "stiffness": (lambda v: v > 0.0, "above 0 N/m"),
    "blaze_stiffness": (lambda v: v > 0.0, "above 0 N/m^1.5"),
    "blaze_damping": (lambda v: v >= 0.0, "0 N s/m^1.5 or more"),
    "blaze_shear": (lambda v: v >= 0.0, "0 N s/m or more"),
    "halo_stiffness": (lambda v: v > 0.0, "above 0 N/m"),
    "halo_damping": (lambda v: v >= 0.0, "0 N s/m or more"),
    "conductivity": (lambda v: v >= 0.0, "0 W/(m K) or more"),
    "heat_capacity": (lambda v: v > 0.0, "above 0 J/(kg K)"),
}
# The same of numbers that contact laws know; those of a user's own law may be any.
NUMBERS = {
    "k_n": (lambda v: v > 0.0, "above 0 N/m"),
    "k_t": (lambda v: v >= 0.0, "0 N/m or more"),
    "gamma_n": (lambda v: v >= 0.0, "0 /s or more"),
    "gamma_t": (lambda v: v >= 0.0, "0 /s or more"),
    "plastic_stiffness": (lambda v: v > 0.0, "above 0 N/m"),
    "cohesive_stiffness": (lambda v: v >= 0.0, "0 N/m or more"),
    "plasticity_depth": (lambda v: v > 0.0, "above 0"),
    "plasticity_ratio": (lambda v: 0.0 <= v < 1.0, "from 0 to below 1"),
    "pull_off": (lambda v: v >= 0.0, "0 N or more"),
    "adhesion_exponent": (lambda v: v > 0.0, "above 0"),
    "well_depth": (lambda v: v >= 0.0, "0 J or more"),
    "well_width": (lambda v: v > 0.0, "above 0 m"),
    "dissipation": (lambda v: v >= 0.0, "0 s or more"),
    "adhesion": (lambda v: v >= 0.0, "0 J/m^2 or more"),
    "cohesion_density": (lambda v: v >= 0.0, "0 Pa or more"),
    "surface_tension": (lambda v: v >= 0.0, "0 N/m or more"),
    "contact_angle": (lambda v: 0.0 <= v <= 0.5 * math.pi, "from 0 to pi/2"),
    "bridge_volume": (lambda v: v >= 0.0, "0 m^3 or more"),
    "bond_young": (lambda v: v > 0.0, "above 0 Pa"),
    "bond_shear": (lambda v: v >= 0.0, "0 Pa or more"),
    "bond_size": (lambda v: v > 0.0, "above 0"),
    "bond_gap": (lambda v: v >= 0.0, "0 m or more"),
    "bond_viscosity": (lambda v: v >= 0.0, "0 s or more"),
    "bond_strength": (lambda v: v >= 0.0, "0 Pa or more"),
    "bond_shear_strength": (lambda v: v >= 0.0, "0 Pa or more"),
}
BLAZE = ("blaze_stiffness", "blaze_damping", "blaze_shear")
HALO = ("halo_stiffness", "halo_damping")
HARD = ("spinning_friction", "cohesion", "compliance")  # for Complementarity alone, but for laws that need them
OVERRIDES = (
    *("young", "shear", "friction", "restitution", "rolling_friction", "stiffness", "conductivity"),
    *(*HARD, *BLAZE, *HALO),
)


def check(place, name, value):
    """The value as a float if it is within the limits of the property `name`; otherwise an error that names `place`."""
    allowed, words = LIMITS[name]
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{place}: {name} must be a number {words}, got {value!r}") from None
    if not math.isfinite(number) or not allowed(number):
        raise ValueError(f"{place}: {name} must be finite and {words}, got {value!r}")
    if number != 0.0 and not 1e-30 < abs(number) < 1e30:
        raise ValueError(
            f"{place}: {name} must be from 1e-30 to 1e30, so that products of it are numbers, got {value!r}"
        )
    return number


def check_numbers(place, numbers):
    """{name: value} as pairs (name, value) in the order of names; an error that names `place` otherwise."""
    try:
        pairs = {str(name): float(value) for name, value in dict(numbers).items()}
    except (TypeError, ValueError):
        raise TypeError(f"{place}: numbers must be a dict of names with numbers, got {numbers!r}") from None
    for name, value in pairs.items():
        if name in LIMITS:
            raise ValueError(f"{place}: {name} is a property of its own; write {name}={value:g}, not in numbers")
        if not math.isfinite(value):
            raise ValueError(f"{place}: numbers[{name!r}] must be finite, got {value!r}")
        allowed, words = NUMBERS.get(name, (None, ""))
        if allowed is not None and not allowed(value):
            raise ValueError(f"{place}: numbers[{name!r}] must be {words}, got {value!r}")
    return tuple(sorted(pairs.items()))


class Mix(NamedTuple):
    """What a contact between materials i and j uses: symmetric (m,m) arrays."""

    young: np.ndarray  # [Pa], effective modulus E*
    shear: np.ndarray  # [Pa], effective modulus G*
    friction: np.ndarray
    restitution: np.ndarray
    rolling_friction: np.ndarray
    spinning_friction: np.ndarray
    cohesion: np.ndarray  # [N]
    compliance: np.ndarray  # [m/N]
    stiffness: np.ndarray  # [N/m]; NaN where neither material nor the pair gives one
    blaze_stiffness: np.ndarray  # [N/m^1.5], likewise
    blaze_damping: np.ndarray  # [N s/m^1.5], likewise
    blaze_shear: np.ndarray  # [N s/m], likewise
    halo_stiffness: np.ndarray  # [N/m], likewise
    halo_damping: np.ndarray  # [N s/m], likewise
    conductivity: np.ndarray  # [W/(m K)], likewise


def effective_young(young_a, poisson_a, young_b, poisson_b):
    """E* of two elastic bodies [Pa] (Johnson 1985, eq. 4.20)."""
    return 1.0 / ((1.0 - poisson_a**2) / young_a + (1.0 - poisson_b**2) / young_b)


def effective_shear(shear_a, poisson_a, shear_b, poisson_b):
    """G* of two elastic bodies [Pa] (Johnson 1985, section 7.2)."""
    return 1.0 / ((2.0 - poisson_a) / shear_a + (2.0 - poisson_b) / shear_b)


def geometric_mean(a, b):
    """The rule for friction, restitution and rolling friction.

    It does not prefer one of the two, gives back the value of equal materials, and is zero if one is.
    """
    return np.sqrt(a * b)


def harmonic_mean(a, b):
    """The rule for springs and dashpots: two in series, scaled so that equal materials keep their value.

    NaN stands for "not given"; a value that only one of the two gives is used as it is.
    """
    mean = 2.0 * a * b / np.where(a + b == 0.0, 1.0, a + b)
    return np.where(np.isnan(a), b, np.where(np.isnan(b), a, mean))


def given(rule):
    """A rule that takes a value as it is which only one of the two gives; NaN stands for "not given"."""
    return lambda a, b: np.where(np.isnan(a), b, np.where(np.isnan(b), a, rule(a, b)))


arithmetic = given(lambda a, b: 0.5 * (a + b))
# Rules for numbers of contact laws that are neither springs nor dashpots.
RULES = {
    **{name: given(geometric_mean) for name in ("adhesion", "cohesion_density", "well_depth", "pull_off")},
    **dict.fromkeys(("well_width", "surface_tension", "contact_angle", "bridge_volume", "dissipation"), arithmetic),
    **dict.fromkeys(("plasticity_depth", "plasticity_ratio", "adhesion_exponent"), arithmetic),
    **dict.fromkeys(("bond_size", "bond_gap", "bond_viscosity"), arithmetic),
}


def combine(materials, pairs=None):
    """Mix of all pairs of materials.

    materials: list of m Material; pairs: {(i, j): {property: value}}, which win over the combined values
    (`young` and `shear` are then the effective moduli).
    """

    def column(name):
        values = [getattr(material, name) for material in materials]
        return np.array([math.nan if value is None else value for value in values], dtype=float)

    def table(rule, *names):
        columns = [column(name) for name in names]
        return rule(*[c[:, None] for c in columns], *[c[None, :] for c in columns])

    mix = Mix(
        young=table(effective_young, "young", "poisson"),
        shear=table(effective_shear, "shear", "poisson"),
        friction=table(geometric_mean, "friction"),
        restitution=table(geometric_mean, "restitution"),
        rolling_friction=table(geometric_mean, "rolling_friction"),
        spinning_friction=table(geometric_mean, "spinning_friction"),
        cohesion=table(geometric_mean, "cohesion"),
        compliance=table(lambda a, b: 0.5 * (a + b), "compliance"),
        **{name: table(harmonic_mean, name) for name in ("stiffness", *BLAZE, *HALO, "conductivity")},
    )
    columns = mix._asdict()
    for (i, j), values in (pairs or {}).items():
        for name, value in values.items():
            if name == "numbers":
                continue
            rows = pick("property of a material pair", name, columns)
            rows[i, j] = rows[j, i] = value
    return mix


def combine_numbers(materials, pairs, name):
    """The number of this name of all pairs of materials (m,m), NaN where nobody gives it; arguments as for `combine`."""
    own = np.array([dict(material.numbers).get(name, math.nan) for material in materials], dtype=float)
    column = RULES.get(name, harmonic_mean)(own[:, None], own[None, :])
    for (i, j), values in (pairs or {}).items():
        for known, value in values.get("numbers", ()):
            if known == name:
                column[i, j] = column[j, i] = value
    return column
