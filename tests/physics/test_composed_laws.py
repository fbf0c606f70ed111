"""Laws that are made of parts, one contact at a time against closed forms, and in simulations where they act beyond touch."""

import math
import threading

import numpy as np
import pytest
from one_contact import MASS, NONE, RADIUS, UP, One, impact

import clast
from clast.dem import adhesion, composed, forces, history, laws, whole_steps
from clast.kernels import backend


@pytest.fixture(autouse=True)
def plain_functions(request, monkeypatch):
    """Functions of one contact run as plain Python, so that nothing is compiled for them."""
    if not request.node.name.startswith("test_simulated"):
        monkeypatch.setattr(backend, "PLAIN", [threading.get_ident()])


def test_parts_of_the_hertz_law_are_the_hertz_law():
    numbers = {"damping": 0.7}
    parts = One(numbers, law="hertz", damping="thornton", rolling="none")
    assert parts.law.composed
    whole = laws.Mix(1e7, 4e6, 0.0, 0.7, 0.5, 0.0, math.sqrt(0.4))
    slip = NONE
    rng = np.random.default_rng(3)
    for _ in range(200):
        d, rate, slide = rng.uniform(1e-6, 1e-4), rng.normal(), (*rng.normal(size=2), 0.0)
        touch = laws.Touch(d, rate, UP, slide, slip, MASS, RADIUS, ())
        normal, shear, slip = laws.hertz(touch, whole, 1e-5)
        assert parts.at(d, rate, slide, dt=1e-5) == (normal, shear)


def test_linear_by_numbers_has_the_factor_of_the_slides():
    numbers = {"k_n": 2e4, "k_t": 1e4, "gamma_n": 30.0, "gamma_t": 20.0, "friction": 1e9}
    d, rate, slide = 1e-4, 0.3, (0.1, 0.0, 0.0)
    for law, f in (("granular", 1.0), ("granular-hertz", math.sqrt(d / (4.0 * RADIUS)))):
        force, shear = One(numbers, law=law).at(d, rate, slide, dt=1e-5)
        assert force == pytest.approx(f * (2e4 * d + 30.0 * MASS * rate), rel=1e-12)
        assert shear[0] == pytest.approx(-f * (1e4 * 0.1e-5 + 20.0 * MASS * 0.1), rel=1e-12)


@pytest.mark.parametrize("law", ["hertz", "linear"])
def test_means_over_the_step_are_the_law_where_it_lasts(law):
    """A contact at rest, or one that is there all through the step, has the force of the law; one that begins has the mean over its part of it."""
    plain, mean = (
        One({"stiffness": 1e4, "damping": 0.0}, law=law, damping="thornton", in_step=x) for x in (False, True)
    )
    for d, rate in ((1e-4, 0.0), (1e-4, 0.5), (1e-4, -0.5), (3e-5, 1.0)):
        assert mean.at(d, rate, dt=2e-5)[0] == plain.at(d, rate, dt=2e-5)[0]
    way = 2e-5
    for d in (1e-6, 1e-5, 1.9e-5):
        # Sums of samples in the middle of the steps behind are to be the integral of the force from touch on.
        sampled = way * sum(plain.at(d + k * way)[0] for k in range(1, 40))
        x = np.linspace(0.0, d + 39.5 * way, 200001)
        force = (np.trapezoid([plain.at(float(y))[0] for y in x], x) - sampled) / way
        # With which those samples go on where the force is a part of a step later.
        steps = 39.5 + d / way
        slope = (plain.at((steps + 0.01) * way)[0] - plain.at((steps - 0.01) * way)[0]) / 0.02
        assert mean.at(d, 1.0, dt=way)[0] == pytest.approx(force - slope / 24.0, rel=2e-3 if law == "linear" else 0.06)


def test_a_dashpot_without_lag_damps_as_it_should():
    """In steps x'' = -k x - c x' is x_(n+1) - (2 - K - C) x_n + (1 - C) x_(n-1) = 0 with K = k dt^2 / m and C = c dt / m: its roots tell how much is lost in a swing."""
    step, mass = 2e-5, MASS
    k = 0.025 * mass / step**2  # 20 steps a contact

    def lost(c):
        z = np.roots([1.0, -(2.0 - k * step**2 / mass - c * step / mass), 1.0 - c * step / mass])[0]
        return -math.log(abs(z)) / abs(np.angle(z))

    for part in (0.05, 0.2, 0.5, 0.8):
        c, asked = 2.0 * part * math.sqrt(k * mass), part / math.sqrt(1.0 - part * part)
        assert lost(whole_steps.without_lag(c, k, mass, step, 1.0, 0.0)) == pytest.approx(
            asked, rel=1e-3 * (1 + 10 * part**3)
        )
        assert abs(lost(c) / asked - 1.0) > 0.05 * part


@pytest.mark.parametrize("restitution", [0.2, 0.5, 0.9])
def test_tsuji_and_the_linear_dashpot_give_the_restitution_they_are_asked_for(restitution):
    for law in ("hertz", "linear"):
        method = clast.DEM(law=law, damping="tsuji")
        one = One({"damping": method.recipe.damping(restitution)}, law=law, damping="tsuji")
        # The contact ends when the bodies part, and pulls before: closed forms of both.
        assert impact(one, 0.5, 2e-7) / 0.5 == pytest.approx(restitution, abs=4e-4)


def test_kuwabara_kono_restitution_falls_with_speed_as_its_series():
    """Schwager and Poeschel (1998): e = 1 - C1 x + 3/5 C1^2 x^2, x = 3/2 A (K/m)^(2/5) v^(1/5), C1 = 1.15344, with tension not cut."""
    a = 2e-6
    one = One({"dissipation": a}, law="hertz", damping="kuwabara-kono")
    k = 4.0 / 3.0 * 1e7 * math.sqrt(RADIUS)
    for speed in (0.01, 0.1, 1.0):
        x = 1.5 * a * (k / MASS) ** 0.4 * speed**0.2
        series = 1.0 - 1.15344 * x + 0.6 * 1.15344**2 * x**2
        # What is left of the series is of the third order, 0.5 x^3.
        assert impact(one, speed, 2e-6) == pytest.approx(speed * series, rel=0.5 * x**3 + 5e-5)
        assert 1.0 - series > 3e-3


def test_govenders_damping_is_the_root_of_the_overlap_times_the_rate():
    one = One({"blaze_damping": 50.0}, law="hertz", damping="govender")
    force, _ = one.at(1e-4, 0.2)
    assert force == pytest.approx(4.0 / 3.0 * 1e7 * math.sqrt(RADIUS * 1e-4) * 1e-4 + 50.0 * 0.01 * 0.2, rel=1e-12)


def test_walton_braun_unloads_along_the_steeper_line_and_rebounds_by_the_root_of_the_ratio():
    one = One({"stiffness": 1e4, "restitution": 0.6}, law="walton-braun")
    k1, k2, peak = 1e4, 1e4 / 0.36, 2e-4
    for d in np.linspace(0.0, peak, 50):
        assert one.at(d)[0] == pytest.approx(k1 * d, rel=1e-12, abs=1e-15)
    rest = (1.0 - k1 / k2) * peak
    for d in np.linspace(peak, 0.0, 50):
        assert one.at(d)[0] == pytest.approx(max(0.0, k2 * (d - rest)), rel=1e-10, abs=1e-12)
    assert one.at(1.5e-4)[0] == pytest.approx(k2 * (1.5e-4 - rest), rel=1e-12), "reloads along the same line"
    one = One({"stiffness": 1e4, "restitution": 0.6}, law="walton-braun")
    assert impact(one, 0.3, 1e-6) == pytest.approx(0.6 * 0.3, rel=1e-4)


LUDING = {"stiffness": 1e4, "plastic_stiffness": 5e4, "cohesive_stiffness": 2e4, "plasticity_depth": 0.05}


def test_luding_goes_round_its_cycle():
    """Luding (2008), fig. 2: loading, unloading with the k2 of the peak, the cohesive branch, and reloading from there."""
    k1, kp, kc = 1e4, 5e4, 2e4
    most = kp / (kp - k1) * 0.05 * 2.0 * RADIUS
    one, peak = One(LUDING, law="luding"), 0.4 * most
    for d in np.linspace(0.0, peak, 100):
        assert one.at(d)[0] == pytest.approx(k1 * d, rel=1e-12, abs=1e-15)
    k2 = k1 + (kp - k1) * peak / most
    least = (k2 - k1) / (k2 + kc) * peak  # where the cohesive branch begins
    way = np.linspace(peak, 0.0, 1001)
    force = np.array([one.at(d)[0] for d in way])
    expected = np.where(way > least, k2 * (way - (1.0 - k1 / k2) * peak), -kc * way)
    assert force == pytest.approx(expected, rel=1e-10, abs=1e-12)
    assert force.min() == pytest.approx(-kc * least, rel=5e-3)
    # Reloaded from the cohesive branch: continuous, up to the virgin line, along a line that is stiffer than it.
    one = One(LUDING, law="luding")
    for d in (*np.linspace(0.0, peak, 50), *np.linspace(peak, 0.5 * least, 400)):
        one.at(d)
    turned = one.named("peak")
    soft = k1 + (kp - k1) * turned / most
    assert soft * 0.5 * least - (soft - k1) * turned == pytest.approx(-kc * 0.5 * least, rel=1e-9)
    for d in np.linspace(0.5 * least, turned, 50)[1:]:
        assert one.at(d)[0] == pytest.approx(soft * d - (soft - k1) * turned, rel=1e-9, abs=1e-9)
    # Beyond the limit the contact is elastic with k_p.
    for d in (1.5 * most, most, 1.2 * most):
        assert one.at(d)[0] == pytest.approx(kp * (d - 0.05 * 2.0 * RADIUS), rel=1e-12)


def test_luding_impact_loses_what_the_cycle_encloses():
    one, speed = One(LUDING, law="luding"), 0.5
    k1, kp, kc = 1e4, 5e4, 2e4
    peak = speed * math.sqrt(MASS / k1)
    k2 = k1 + (kp - k1) * peak / (kp / (kp - k1) * 0.05 * 2.0 * RADIUS)
    rest, least = (1.0 - k1 / k2) * peak, (k2 - k1) / (k2 + kc) * peak
    lost = 0.5 * k1 * peak**2 - 0.5 * k2 * (peak - rest) ** 2 + 0.5 * k2 * (rest - least) ** 2 + 0.5 * kc * least**2
    rebound = math.sqrt(speed**2 - 2.0 * lost / MASS)
    assert rebound < 0.9 * speed
    assert impact(one, speed, 1e-7) == pytest.approx(rebound, rel=1e-4)


def jkr_curve(radius, young, w, a):
    """Overlap and force of a contact area with these radii (n,) (Johnson et al. 1971)."""
    return a**2 / radius - np.sqrt(2.0 * np.pi * w * a / young), (
        4.0 * young * a**3 / (3.0 * radius) - np.sqrt(8.0 * np.pi * w * young * a**3)
    )


def test_jkr_follows_its_curve_pulls_by_3_2_pi_w_r_and_opens_beyond_touch():
    w, young = 0.2, 1e7
    one = One({"adhesion": w}, law="hertz", cohesion="jkr")
    a_open = (np.pi * w * RADIUS**2 / (8.0 * young)) ** (1.0 / 3.0)
    a = np.linspace(6.0 * a_open, 1.001 * a_open, 4000)
    overlap, force = jkr_curve(RADIUS, young, w, a)
    assert one.at(overlap[-1])[0] == 0.0, "has not touched yet"
    told = np.array([one.at(d)[0] for d in overlap])
    assert told == pytest.approx(force, rel=1e-10, abs=1e-10 * abs(force).max())
    assert told.min() == pytest.approx(-1.5 * math.pi * w * RADIUS, rel=1e-6)
    opens = -3.0 * a_open**2 / RADIUS
    assert overlap[-1] < 0.0 and one.at(0.999 * opens)[0] < 0.0
    assert one.at(1.001 * opens)[0] == 0.0 and one.at(0.9 * opens)[0] == 0.0, "open, and it stays so"
    assert one.at(1e-7)[0] < 0.0, "until it touches again"
    assert float(composed._jkr_reach(one.mix, RADIUS)) == pytest.approx(-opens, rel=1e-12)
    assert adhesion.jkr_gap(RADIUS, young, w) == pytest.approx(-opens, rel=1e-12)


def test_dmt_and_cohesion_by_area():
    hertz = 4.0 / 3.0 * 1e7 * math.sqrt(RADIUS * 1e-5) * 1e-5
    one = One({"adhesion": 0.2}, law="hertz", cohesion="dmt")
    assert one.at(1e-5)[0] == pytest.approx(hertz - 2.0 * math.pi * 0.2 * RADIUS, rel=1e-12)
    _, shear = one.at(1e-5, slide=(1.0, 0.0, 0.0), dt=1.0)
    assert shear[0] == pytest.approx(-0.5 * hertz, rel=1e-9), "friction under the pressure, not under the load"
    one = One({"cohesion_density": 1e5}, law="hertz", cohesion="area")
    assert one.at(1e-5)[0] == pytest.approx(hertz - 1e5 * math.pi * RADIUS * 1e-5, rel=1e-12)


def test_capillary_bridge_follows_willett_and_breaks_at_its_distance():
    numbers = {"surface_tension": 0.072, "contact_angle": 0.3, "bridge_volume": 1e-9}
    one = One(numbers, law="hertz", cohesion="capillary")
    radius = 2.0 * RADIUS
    assert one.at(-1e-6)[0] == 0.0, "no bridge before they touch"
    one.at(1e-9)
    breaks = (1.0 + 0.15) * (1e-9 ** (1.0 / 3.0) + 0.1 * 1e-9 ** (2.0 / 3.0) / radius)
    for gap in np.linspace(0.0, 0.999 * breaks, 20):
        s = gap / math.sqrt(1e-9 / radius)
        pull = 2.0 * math.pi * radius * 0.072 * math.cos(0.3) / (1.0 + 1.05 * s + 2.5 * s * s)
        assert one.at(-gap)[0] == pytest.approx(-pull, rel=1e-12)
    assert one.at(-1.001 * breaks)[0] == 0.0 and one.at(-0.5 * breaks)[0] == 0.0


def test_potentials_push_as_their_energy_falls():
    numbers = {"well_depth": 1e-6, "well_width": 1e-3}
    for law in ("soft", "lennard-jones"):
        one = One(numbers, law=law)
        for d in (-1.2e-3, -9e-4, -1e-4, 0.0, 1e-4, 3e-4, 8e-4):
            step = 1e-8
            low, high = one.energy(d - step, d + step)
            assert one.at(d)[0] == pytest.approx((high - low) / (2.0 * step), rel=1e-6, abs=1e-10)
    assert One(numbers, law="lennard-jones").at(-1.6e-3)[0] == 0.0
    assert One(numbers, law="lennard-jones").at(-0.3e-3)[0] < 0.0, "attracts before touch"
    low = One(numbers, law="lennard-jones").at(-(2.0 ** (1.0 / 6.0) - 1.0) * 1e-3)[0]
    assert abs(low) < 1e-12, "no force at the bottom of the well"


@pytest.mark.parametrize("name", ["jkr", "dmt", "area", "capillary", "bonds"])
def test_cohesion_is_the_slope_of_its_energy(name):
    numbers = {
        "adhesion": 0.2,
        "cohesion_density": 1e5,
        "surface_tension": 0.07,
        "contact_angle": 0.2,
        "bridge_volume": 1e-9,
        **BOND,
        **dict.fromkeys(("bond_strength", "bond_shear_strength"), 1e6),
    }
    chosen = {"bonds": True} if name == "bonds" else {"cohesion": name}
    one = One(numbers, law="hertz", damping="none", **chosen)
    one.at(1e-6)
    for d in (3e-5, 1e-5, *((-1e-6, -2e-6) if name in ("jkr", "capillary", "bonds") else ())):
        low, high = one.energy(d - 1e-9, d + 1e-9)
        assert one.at(d)[0] == pytest.approx((high - low) / 2e-9, rel=1e-5)


def test_a_gap_holds_no_energy_of_springs_that_push():
    stiff = {"k_n": 2e4, "k_t": 1e4, "gamma_n": 0.0, "gamma_t": 0.0} | LUDING
    for law in ("hertz", "linear", "granular", "granular-hertz", "walton-braun", "luding"):
        gap, touch = One(stiff, law=law).energy(-1e-5, 1e-5)
        assert gap == 0.0 < touch


def test_jkr_without_adhesion_has_the_energy_of_hertz():
    one = One({"adhesion": 0.0}, law="hertz", cohesion="jkr", damping="none")
    one.at(1e-5)
    expected = 8.0 / 15.0 * 1e7 * math.sqrt(RADIUS * 1e-5) * 1e-5**2
    assert one.energy(-1e-5, 1e-5) == pytest.approx((0.0, expected), rel=1e-9, abs=1e-20)


def test_shear_of_a_contact_that_turns_with_its_pair_stays():
    """A rigid rotation of the pair: the shear spring turns along and neither grows nor shrinks."""
    for options in ({"shear": "rescaled"}, {"shear": "mindlin"}):
        one = One({"friction": 1e9}, law="hertz", shear_damping=False, **options)
        one.at(1e-5, slide=(0.1, 0.0, 0.0), dt=1e-5)
        _, first = one.at(1e-5)
        for k in range(1, 1001):
            angle = 0.5 * math.pi * k / 1000
            _, shear = one.at(1e-5, normal=(math.sin(angle), 0.0, math.cos(angle)))
        assert np.linalg.norm(shear) == pytest.approx(np.linalg.norm(first), rel=1e-10)
        assert shear[2] == pytest.approx(-first[0], rel=1e-10), "turned by a right angle"


def test_rescaled_and_mindlin_shear_differ_under_load_as_they_should():
    k = 8.0 * 4e6 * math.sqrt(RADIUS * 4e-5)
    forces = {}
    for shear in ("rescaled", "mindlin"):
        one = One({"friction": 1e9}, law="hertz", shear=shear, shear_damping=False)
        one.at(1e-5, slide=(0.1, 0.0, 0.0), dt=1e-5)
        forces[shear] = -one.at(4e-5, rate=3.0, dt=1e-5)[1][0]
    assert forces["rescaled"] == pytest.approx(k * 1e-6, rel=1e-12), "present stiffness times slip"
    assert forces["mindlin"] == pytest.approx(0.5 * k * 1e-6, rel=1e-12), "the force stays under growing load"


def test_shear_damping_can_be_left_out():
    quiet = One({"damping": 0.7, "friction": 1e9}, law="hertz", shear_damping=False)
    loud = One({"damping": 0.7, "friction": 1e9}, law="hertz", damping="thornton", rolling="none")
    a = math.sqrt(RADIUS * 1e-5)
    c = 0.7 * math.sqrt(MASS * 4.0 / 3.0 * 1e7 * a)
    slide = (0.2, 0.0, 0.0)
    difference = loud.at(1e-5, slide=slide)[1][0] - quiet.at(1e-5, slide=slide)[1][0]
    assert difference == pytest.approx(-2.0 * math.sqrt(0.4) * c * 0.2, rel=1e-10)


def test_rolling_resistances():
    spin, pressure = (0.3, 0.4, 2.0), 5.0
    most = 0.1 * RADIUS * pressure
    constant = One({"rolling": 0.1}, law="linear", rolling="constant").turn(spin, pressure, 1e-5, 1e-5)
    assert constant == pytest.approx((-0.6 * most, -0.8 * most, 0.0), rel=1e-12)
    viscous = One({"rolling": 0.1}, law="linear", rolling="viscous").turn(spin, pressure, 1e-5, 1e-5)
    assert viscous == pytest.approx((-0.3 * most, -0.4 * most, 0.0), rel=1e-12)
    k = 8.0 * 4e6 * math.sqrt(RADIUS * 1e-5) * RADIUS**2
    one = One({"rolling": 0.1}, law="hertz", rolling="spring", shear="rescaled")
    small = one.turn(spin, pressure, 1e-5, 1e-9)
    assert small == pytest.approx((-0.3e-9 * k, -0.4e-9 * k, 0.0), rel=1e-10)
    assert np.linalg.norm(one.turn(spin, pressure, 1e-5, 1.0)) == pytest.approx(most, rel=1e-10)


@pytest.mark.parametrize(
    ("law", "overlap", "stiffness"),
    [
        ("hertz", 1e-5, 8.0 * 4e6 * math.sqrt(RADIUS * 1e-5)),
        ("eepa", 1e-5, 8.0 * 4e6 * math.sqrt(RADIUS * 1e-5)),
        ("linear", 1e-5, 1.6 * 3e3),
        ("walton-braun", 1e-5, 1.6 * 3e3),
        ("luding", 1e-5, 1.6 * 3e3),
        ("granular", 1e-5, 2e3),
        ("granular-hertz", 1e-5, 2e3 * math.sqrt(1e-5 / (4.0 * RADIUS))),
        ("soft", -1e-5, 2.0 * 1e-6 / 1e-4**2),  # at a gap, where its contacts bear
        ("lennard-jones", -1e-5, 72.0 / 2.0 ** (1.0 / 3.0) * 1e-6 / 1e-4**2),
    ],
)
def test_a_spring_against_rolling_is_as_stiff_as_the_law_is_in_shear(law, overlap, stiffness):
    """So steps that follow the law follow it, and numbers that the law has no use for change nothing."""
    numbers = {"rolling": 1e9, "stiffness": 3e3, "k_n": 4e3, "k_t": 2e3, "well_depth": 1e-6, "well_width": 1e-4}
    numbers |= {"plastic_stiffness": 6e3, "cohesive_stiffness": 0.0, "plasticity_depth": 0.1}
    numbers |= {"plasticity_ratio": 0.5, "adhesion": 0.0, "adhesion_exponent": 1.5, "pull_off": 0.0}
    numbers |= {"gamma_n": 0.0, "gamma_t": 0.0}
    couple = One(numbers, law=law, rolling="spring").turn((0.0, 0.3, 0.0), 5.0, overlap, 1e-5)
    assert couple == pytest.approx((0.0, -stiffness * RADIUS**2 * 0.3e-5, 0.0), rel=1e-12)


@pytest.mark.parametrize("rolling", ["spring", "constant", "viscous"])
def test_what_pulls_or_is_apart_does_not_resist_rolling(rolling):
    numbers = {"rolling": 0.1, "spinning_friction": 0.1}
    one = One(numbers, law="linear", rolling=rolling, twisting="spring", shear="rescaled")
    one.at(1e-5)
    assert np.abs(one.turn((0.3, 0.4, 2.0), -5.0, 1e-5, 1.0)).max() == 0.0, "pulls"
    assert np.abs(one.turn((0.3, 0.4, 2.0), -5.0, -1e-5, 1.0)).max() == 0.0, "pulls from afar"
    if rolling == "spring":
        assert np.abs(one.turn((0.3, 0.4, 2.0), 5.0, -1e-5, 1.0)).max() == 0.0, "without an area there is no spring"


def test_twisting_is_a_spring_with_a_limit_that_turns_with_the_normal():
    one = One({"spinning_friction": 0.02}, law="hertz", twisting="spring", rolling="none")
    area = RADIUS * 1e-5
    k = 0.5 * 8.0 * 4e6 * area**1.5
    one.at(1e-5)
    couple = one.turn((5.0, 0.0, 1.0), 5.0, 1e-5, 1e-3)
    assert couple == pytest.approx((0.0, 0.0, -k * 1e-3), rel=1e-10)
    one.at(1e-5)
    assert one.named("twist") == pytest.approx(1e-3, rel=1e-12)
    assert one.turn(NONE, 5.0, 1e-5, 1e-3, normal=(1.0, 0.0, 0.0)) == pytest.approx((-k * 1e-3, 0.0, 0.0), rel=1e-10)
    assert one.turn((0.0, 0.0, 1e3), 5.0, 1e-5, 1.0)[2] == pytest.approx(-0.02 * RADIUS * 5.0, rel=1e-10)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"law": "hertz", "cohesion": "jrk"}, "unknown cohesion 'jrk'; did you mean 'jkr'"),
        ({"law": "linear", "cohesion": "jkr"}, "cohesion='jkr' is of Hertz contacts"),
        ({"law": "blaze", "shear": "rescaled"}, "parts of built-in laws, not of 'blaze'"),
        ({"law": "luding", "damping": "tsuji"}, "take damping='none'"),
        ({"law": "hertz", "cohesion": "dmt", "conserving": True}, "conserving=True is of laws as they are"),
        ({"law": "hertz", "bonds": True, "twisting": "spring"}, "leave twisting out"),
        ({"law": "luding", "in_step": True}, "springs that push from touch on"),
        ({"law": "hertz", "cohesion": "capillary", "in_step": True}, "without bonds, jkr and capillary"),
    ],
)
def test_parts_that_do_not_go_together_are_refused(options, words):
    with pytest.raises(ValueError) as caught:
        clast.DEM(**options)
    assert words in str(caught.value)


def test_an_area_is_broken_that_breaks_at_one_of_its_points():
    """Of two points before, one has broken; a new one takes the mean of their numbers, but no part of a bond."""
    about = forces.About(False, False, False, False, True, True, kept=2, flags=0b10)
    past, near = np.zeros((2, history.PAST_COLUMNS + 2)), np.zeros((1, history.COLUMNS + 2))
    past[:, history.PAST_NORMAL + 2], past[:, history.PAST_SHARE] = 1.0, (0.999999, 0.000001)
    past[:, history.PAST_COLUMNS :] = (0.2, 1.0), (0.4, 0.0)
    history.inherit_area(0, UP, 0, 2, near, past, about)
    assert near[0, history.COLUMNS :].tolist() == [pytest.approx(0.2, rel=1e-5), 0.0]
    past[1, history.PAST_NORMAL :][:3] = 1.0, 0.0, 0.0
    history.inherit_area(0, UP, 0, 2, near, past, about)
    assert near[0, history.COLUMNS :].tolist() == [0.2, 1.0], "one that looks elsewhere is another area"


STICKY = clast.Material(
    density=1000.0,
    young=1e6,
    poisson=0.3,
    friction=0.0,
    restitution=0.9,
    rolling_friction=0.1,
    numbers={"adhesion": 0.5},
)


def test_simulated_bodies_of_any_shape_stick_beyond_touch(tmp_path):
    scene = clast.Scene(gravity=(0.0, 0.0, 0.0))
    scene.add(clast.Plane(), material=STICKY)
    ball, box, slow = clast.Sphere(0.001), clast.Polyhedron.box(0.002, 0.002, 0.002), (0.0, 0.0, -0.1)
    scene.add(ball, position=(0.0, 0.0, 0.00101), velocity=slow, material=STICKY)
    scene.add(ball, position=[(0.1, 0.0, 0.1), (0.1, 0.0, 0.10201)], velocity=[(0, 0, 0), slow], material=STICKY)
    scene.add(box, position=(0.2, 0.0, 0.00101), velocity=slow, material=STICKY)
    scene.add(ball, position=(0.3, 0.0, 0.00101), velocity=(0.0, 0.0, -1.0), material=STICKY)
    sim = clast.Simulation(scene, clast.DEM(law="hertz", cohesion="jkr"))
    assert 2e-6 < sim.state.beyond < 1e-4
    held, longest = {}, {}
    for _ in range(400):
        sim.step(5)
        told = sim.contacts()
        for pair, gap, force, joined in zip(told.pair.tolist(), told.gap, told.force, told.kept["joined"], strict=True):
            if joined > 0.0:
                held[tuple(pair)] = sim.steps
                if gap > longest.get(tuple(pair), (0.0, 0.0))[0]:
                    longest[tuple(pair)] = gap, force[2] * (1.0 if pair[0] == 0 or pair == [2, 3] else -1.0)
    assert set(held) == {(0, 1), (2, 3), (0, 4), (0, 5)}
    assert held[0, 1] == held[2, 3] == held[0, 4] == sim.steps, "they stick"
    assert held[0, 5] < sim.steps and sim.bodies.velocity[5, 2] > 0.5, "a fast one leaves"
    mix = clast.DEM(law="hertz", cohesion="jkr").mixes(scene)
    for pair, radius in (((0, 1), 1e-3), ((2, 3), 5e-4)):
        gap, force = longest[pair]
        assert gap > 0.0 > force, "pulled while apart"
        e, w = mix[0, 0], 0.5
        a = np.linspace(1.0, 4.0, 200001) * (np.pi * w * radius**2 / (8.0 * e)) ** (1.0 / 3.0)
        overlap, curve = jkr_curve(radius, e, w, a)
        # The dashpot is slow where the gap is largest.
        assert force == pytest.approx(np.interp(-gap, overlap, curve), rel=0.05)
    # As if a larger body had been there, which the checkpoint knows nothing of.
    sim.state.reach_to(1.5 * sim.state.beyond)
    sim.save(tmp_path / "stuck.h5")
    resumed = clast.resume(tmp_path / "stuck.h5")
    assert resumed.state.beyond == sim.state.beyond < resumed.state.margin
    for one in (sim, resumed):
        one.step(5)
    assert np.array_equal(sim.bodies.position, resumed.bodies.position)


BOND = {"bond_young": 1e7, "bond_shear": 4e6, "bond_size": 0.5, "bond_gap": 1e-5, "bond_viscosity": 1e-3}
SIZE, SPAN = 0.01, 10  # radius [m], spheres


def beam(strength):
    """Spheres bonded in a row, the first held."""
    numbers = BOND | {"bond_strength": strength, "bond_shear_strength": 1e9}
    material = clast.Material(density=1000.0, young=1e7, friction=0.0, numbers=numbers)
    scene = clast.Scene(gravity=(0.0, 0.0, 0.0))
    scene.add(clast.Sphere(SIZE), motion="fixed", material=material)
    places = [(2.0 * SIZE * k, 0.0, 0.0) for k in range(1, SPAN + 1)]
    scene.add(clast.Sphere(SIZE), position=places, material=material)
    return clast.Simulation(scene, clast.DEM(law="linear", bonds=True), dt=4e-5)


def settle(sim, gravity):
    """Let the beam come to rest: whenever its motion begins to slow down, it is stopped."""
    sim.scene.gravity = (0.0, 0.0, -gravity)
    last, stops = 0.0, 0
    for _ in range(150):  # what has broken off falls on
        sim.step(100)
        now = clast.measure.energy(sim)["kinetic"]
        if now < last:
            sim.state.bodies.velocity[:], sim.state.bodies.spin[:] = 0.0, 0.0
            last, stops = 0.0, stops + 1
        else:
            last = now
        if stops == 6:
            break
    return sim


def test_simulated_beam_of_bonds_bends_as_euler_and_bernoulli_say_and_breaks_at_its_load():
    weight = 1000.0 * 4.0 / 3.0 * math.pi * SIZE**3
    inertia, place = math.pi * (0.5 * SIZE) ** 4 / 4.0, 2.0 * SIZE * np.arange(1, SPAN + 1)
    # Clamped at the centre of the held sphere, a weight at each centre; shear is 0.3 % of it.
    per_gravity = weight * (place**2 * (3.0 * place[-1] - place)).sum() / (6.0 * 1e7 * inertia)
    per_gravity += weight * 2.0 * SIZE * np.arange(SPAN, 0, -1).sum() / (4e6 * math.pi * (0.5 * SIZE) ** 2)
    sim = settle(beam(1e6), 0.1)
    assert -sim.bodies.position[-1, 2] == pytest.approx(0.1 * per_gravity, rel=1e-2)
    assert sim.contacts().kept["bond"].sum() == SPAN
    # The largest tension is at the first bond, which is felt at the contact point.
    moment = weight * (place - SIZE).sum()
    strength = 1e5
    breaks = strength * inertia / (moment * 0.5 * SIZE)
    sim = beam(strength)
    for part in (0.5, 0.9, 0.98):
        settle(sim, part * breaks)
    assert (sim.contacts().kept["bond"] > 0.0).sum() == SPAN
    settle(sim, 1.02 * breaks)
    left = sim.contacts()
    assert (left.kept["bond"] > 0.0).sum() < SPAN
    assert [0, 1] not in left.pair[left.kept["bond"] > 0.0].tolist()


def pillar(floor=None, **pair):
    """Three spheres on a floor, a hair apart and bonded, the lowest as far from the floor as from its neighbour."""
    rock = clast.Material(young=1e7, numbers=BOND | {"bond_strength": 1e5, "bond_shear_strength": 1e5})
    floor = clast.Material(young=1e7, numbers=floor or {})
    scene = clast.Scene()
    scene.add(clast.Plane(), material=floor)
    scene.add(clast.Sphere(SIZE), position=[(0.0, 0.0, (2 * k + 1) * (SIZE + 4e-6)) for k in range(3)], material=rock)
    if pair:
        scene.combine(rock, floor, numbers=pair)
    return clast.Simulation(scene, clast.DEM(law="hertz", bonds=True))


def test_simulated_bodies_are_bonded_though_the_floor_has_none_of_the_numbers(recwarn):
    sim = pillar()
    assert sim.state.beyond > BOND["bond_gap"]
    sim.step()
    assert sim.contacts().kept["bond"].tolist() == [1.0] * 3
    assert not recwarn.list


def test_simulated_materials_without_a_bond_strength_make_no_bond():
    for sim in (pillar(bond_strength=0.0), pillar({"bond_strength": 0.0})):
        sim.step()
        told = sim.contacts()
        assert told.pair[told.kept["bond"] > 0.0].tolist() == [[1, 2], [2, 3]]


def test_a_reach_that_is_no_number_is_refused():
    scene = clast.Scene()
    numbers = BOND | {"bond_strength": 1e5, "bond_shear_strength": 1e5}
    scene.add(clast.Sphere(SIZE), material=clast.Material(name="rock", numbers=numbers))
    method = clast.DEM(bonds=True)
    mixes = method.mixes(scene)
    mixes[0, method.recipe.needs.index("bond_young")] = math.nan
    with pytest.raises(ValueError, match="acts up to a gap that is not a number, with young"):
        method.reach(scene, mixes)


@pytest.mark.parametrize(
    ("part", "name", "number"),
    [
        ("twisting", "spring", "spinning_friction"),
        *(("rolling", x, "rolling_friction") for x in ("constant", "viscous")),
    ],
)
def test_resistance_without_a_coefficient_is_told_in_one_line(part, name, number, recwarn):
    for value in (0.1, 0.0):
        scene = clast.Scene()
        scene.add(clast.Sphere(SIZE), material=clast.Material(**{number: value}))
        clast.Simulation(scene, clast.DEM(**{part: name}))
        assert len(recwarn.list) == (1 if value == 0.0 else 0)
    told = str(recwarn.list[0].message)
    assert told.startswith(f"DEM: {part}={name!r} does nothing, for no two materials have {number}; give Material(")


def test_simulated_boxes_whose_bond_breaks_at_one_corner_are_apart():
    """The upper box turns about a corner of the area, so that the stress is largest at the opposite one."""
    numbers = BOND | {"bond_viscosity": 1e-5, "bond_strength": 1e5, "bond_shear_strength": 1e3}
    material = clast.Material(density=1000.0, young=1e7, friction=0.3, numbers=numbers)
    scene = clast.Scene(gravity=(0.0, 0.0, 0.0))
    box, spin = clast.Polyhedron.box(0.02, 0.02, 0.02), 2.0
    scene.add(box, motion="fixed", material=material)
    turning = {"velocity": (-0.008 * spin, 0.008 * spin, 0.0), "spin": (0.0, 0.0, spin)}
    scene.add(box, position=(0.0, 0.0, 0.02 - 1e-6), material=material, **turning)
    sim = clast.Simulation(scene, clast.DEM(law="linear", bonds=True))
    sim.step()
    assert sim.contacts().kept["bond"].tolist() == [1.0] * 4
    for _ in range(100):
        sim.step()
        if not sim.contacts().kept["bond"].all():
            break
    bond = sim.contacts().kept["bond"]
    assert 0.0 < bond.mean() < 1.0, "breaks at some of its points first"
    sim.step()
    assert not sim.contacts().kept["bond"].any()
    sim.step(20)
    assert not sim.contacts().kept["bond"].any(), "for ever"
