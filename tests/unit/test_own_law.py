"""A law of the user's own: a mistake in it is one line when it is handed over, with the line of the law."""

import math

import numpy as np
import pytest

import clast
from clast.dem import own_law
from clast.kernels import backend


@clast.func
def fine(touch, mix, dt):
    return 1e3 * touch.overlap, (0.0, 0.0, 0.0), touch.slip


@clast.func
def typo(touch, mix, dt):
    k = 2.0 * touch.overlap
    return k * touch.overlp, touch.slip, touch.slip


@clast.func
def unknown(touch, mix, dt):
    return matth.sqrt(touch.overlap), touch.slip, touch.slip  # noqa: F821


@clast.func
def two(touch, mix):
    return 1.0, touch.slip, touch.slip


@clast.func
def number(touch, mix, dt):
    return 1.0


@clast.func
def listed(touch, mix, dt):
    return 1.0, (0.0, 0.0), touch.slip


@clast.func
def text(touch, mix, dt):
    return touch.overlap + "N", touch.slip, touch.slip


def unmarked(touch, mix, dt):
    return math.sqrt(touch.overlap), touch.slip, touch.slip


@clast.func
def calls(touch, mix, dt):
    return unmarked(touch, mix, dt)


@clast.func
def deep(x):
    return x.foo


@clast.func
def nested(touch, mix, dt):
    return deep(touch.overlap), touch.slip, touch.slip


@clast.func
def short(touch, mix, dt):
    return 1.0, touch.slip


@clast.func
def array(touch, mix, dt):
    k = 2.0
    place = np.zeros(3)
    return k * place[0], touch.slip, touch.slip


@clast.func
def makes_list(touch, mix, dt):
    both = [touch.overlap, 1.0]
    return both[0], touch.slip, touch.slip


@clast.func
def raises(touch, mix, dt):
    if touch.overlap > 1.0:
        raise ValueError("too deep")
    return 1.0, touch.slip, touch.slip


@clast.func
def root(x):
    if x < 0.0:
        raise ValueError
    return math.sqrt(x)


@clast.func
def raises_below(touch, mix, dt):
    return root(touch.overlap), touch.slip, touch.slip


@clast.func
def no_such_root(touch, mix, dt):
    k = 2.0
    return k * math.sqr(touch.overlap), touch.slip, touch.slip


@clast.func
def sometimes(touch, mix, dt):
    if touch.rate > 0.0:
        return 1.0, touch.slip, touch.slip


@clast.func
def never(touch, mix, dt):
    touch.overlap  # noqa: B018


@clast.func
def changes(touch, mix, dt):
    touch.overlap = 1.0
    return 1.0, touch.slip, touch.slip


COUNT = 0


@clast.func
def counts(touch, mix, dt):
    global COUNT
    COUNT = 1
    return 1.0, touch.slip, touch.slip


@clast.func
def imports(touch, mix, dt):
    import math as m

    return m.sqrt(touch.overlap), touch.slip, touch.slip


@clast.func
def yields(touch, mix, dt):
    yield 1.0


@clast.func
def catches(touch, mix, dt):
    force = 0.0
    try:
        force = math.sqrt(touch.overlap)
    except ValueError:
        force = 1.0
    return force, touch.slip, touch.slip


@clast.func
def writes(touch, mix, dt):
    told = f"{touch.overlap}"  # noqa: F841
    return 1.0, touch.slip, touch.slip


@clast.func
def flat(touch, mix, dt):
    x, y = touch.slip
    return x, touch.slip, touch.slip


@clast.func
def either(touch, mix, dt):
    if dt > 0.0:
        return 1.0, touch.slip, touch.slip
    return 1.0, touch.slip


def line_of(function, further):
    return f"test_own_law.py, line {function.py_func.__code__.co_firstlineno + further}"


WRONG = {
    "typo": (typo, ["'typo'", line_of(typo, 3), "Unknown attribute 'overlp'; Touch has overlap, rate, normal"]),
    "unknown": (unknown, [line_of(unknown, 2), "name 'matth' is not defined"]),
    "two": (two, [line_of(two, 0), "takes ['touch', 'mix']; a law takes (touch, mix, dt)"]),
    "number": (number, [line_of(number, 0), "returns number; return normal force [N], (x, y, z) shear"]),
    "listed": (listed, [line_of(listed, 0), "return normal force [N], (x, y, z) shear"]),
    "text": (text, [line_of(text, 2), "it cannot compute add("]),
    "unmarked": (unmarked, ["'unmarked'", "write @clast.func above its definition"]),
    "calls": (calls, [line_of(calls, 2), "it uses 'unmarked', which is no number and not marked with clast.func"]),
    "nested": (nested, [line_of(deep, 2), "Unknown attribute 'foo'"]),
    "short": (short, [line_of(short, 0), "returns Tuple(number, (x, y, z)); return normal force [N]"]),
    "sometimes": (sometimes, [line_of(sometimes, 0), "returns nothing on some way through it; return normal force"]),
    "never": (never, [line_of(never, 0), "returns nothing on some way through it; return normal force"]),
    "array": (array, [line_of(array, 3), "it makes an array or a list, zeros(", "takes numbers and returns numbers"]),
    "list": (makes_list, [line_of(makes_list, 2), "it makes a list; a law takes numbers and returns numbers"]),
    "raises": (raises, [line_of(raises, 3), "it raises an error, which nobody would see"]),
    "raises below": (raises_below, ["'raises_below'", line_of(root, 3), "it raises an error"]),
    "no such root": (no_such_root, [line_of(no_such_root, 3), "module 'math' has no attribute 'sqr'"]),
    "changes": (changes, [line_of(changes, 2), "it changes what it is given"]),
    "counts": (counts, [line_of(counts, 3), "it changes a global name"]),
    "imports": (imports, [line_of(imports, 2), "it imports; write that above the law"]),
    "yields": (yields, [line_of(yields, 0), "it yields"]),
    "catches": (catches, [line_of(catches, 5), "it catches an error"]),
    "writes": (writes, [line_of(writes, 2), "it makes a text"]),
    "flat": (flat, [line_of(flat, 2), "it takes a tuple of 3 for 2 names"]),
    "either": (either, ["it returns one thing on one way through it and another on another: Tuple(number, (x, y, z)"]),
    "object": (print, ["'print'", "write @clast.func above its definition"]),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_mistake_in_a_law_is_one_line(name):
    law, words = WRONG[name]
    with pytest.raises((ValueError, TypeError)) as caught:
        clast.DEM(law=law)
    told = str(caught.value)
    assert "\n" not in told and len(told) < 350, told
    for word in words:
        assert word in told


def test_a_law_without_mistakes_is_taken():
    assert clast.DEM(law=fine).law is fine


@clast.law(keeps=("slip", "peak", "age"), needs=("friction", "grip"))
def plastic(touch, mix, dt):
    """Linear loading, unloading along a line four times as steep from the deepest overlap so far."""
    peak = max(touch.kept.peak, touch.overlap)
    normal = max(0.0, mix.grip * (peak - 4.0 * (peak - touch.overlap)))
    return normal, (0.0, 0.0, 0.0), touch.slip, (peak, touch.kept.age + dt)


@clast.law(keeps=("peak",))
def forgetful(touch, mix, dt):
    return touch.overlap, touch.slip, touch.slip


@clast.law(keeps=("peak",))
def misnamed(touch, mix, dt):
    return touch.kept.deepest, touch.slip, touch.slip, (0.0,)


@clast.law(needs=("friction",))
def needy(touch, mix, dt):
    return mix.young * touch.overlap, touch.slip, touch.slip


KEEPING = {
    "forgetful": (forgetful, "(x, y, z) slip [m], (peak,)"),
    "misnamed": (misnamed, "Unknown attribute 'deepest'; Kept has peak"),
    "needy": (needy, "Unknown attribute 'young'; Mix has friction"),
}


@pytest.mark.parametrize("name", KEEPING)
def test_a_law_that_keeps_or_needs_other_numbers_than_it_says_is_told(name):
    law, words = KEEPING[name]
    with pytest.raises(ValueError, match=r"test_own_law.py, line \d+\)") as caught:
        clast.DEM(law=law)
    assert words in str(caught.value)


@pytest.mark.parametrize("other", [3, math.sqrt, object()])
def test_what_is_no_function_is_no_law(other):
    with pytest.raises(TypeError, match=r"^law: '\w+' is no function"):
        clast.law(other)


@pytest.mark.parametrize(
    "given", [{"keeps": "peak"}, {"keeps": 1}, {"needs": (1,)}, {"keeps": ("a", "a")}, {"reach": -1.0}, {"energy": 3.0}]
)
def test_wrong_names_of_a_law_are_refused(given):
    with pytest.raises((TypeError, ValueError), match="law: "):
        clast.law(**given)(fine)


@clast.law(needs=("yung", "friction"))
def misread(touch, mix, dt):
    return mix.yung * touch.overlap, touch.slip, touch.slip


def test_a_number_of_materials_that_is_misspelt_in_a_law_is_guessed():
    with pytest.raises(ValueError, match=r"needs yung for .*; give Material\(numbers=.*, or did you mean 'young'\?$"):
        falling(misread)


@clast.law(needs=("friction", "rolling"))
def soft_and_rough(touch, mix, dt):
    return 20.0 * touch.overlap + 0.01 * touch.rate, (0.0, 0.0, 0.0), touch.slip


def test_where_a_soft_law_has_rolling_friction_steps_can_follow_its_spring():
    # The spring against rolling goes with Young's modulus, which the force of this law knows nothing of.
    smooth, rough = falling(soft_and_rough), falling(soft_and_rough, rolling_friction=0.1)
    hertz = falling("hertz").stepper.critical
    assert smooth.stepper.critical == pytest.approx(longest(20.0), rel=1e-6)
    assert rough.stepper.critical == hertz < 0.1 * smooth.stepper.critical
    rough.step(5)


SOFT = clast.Material(density=1000.0, numbers={"grip": 2e3})
STIFF = clast.Material(density=1000.0, numbers={"grip": 6e3})


STEPS = 268  # then all are in touch and on their way back


def pressed():
    """Three spheres in a row, the outer ones flying towards the middle one, and a box that falls on a floor."""
    scene = clast.Scene(gravity=(0.0, 0.0, 0.0))
    scene.add(clast.Plane(), material=STIFF)
    for x, v, material in ((-0.02, 0.3, SOFT), (0.0, 0.0, SOFT), (0.02, -0.3, STIFF)):
        scene.add(clast.Sphere(0.01), position=(x, 0.0, 0.1), velocity=(v, 0.0, 0.0), material=material)
    box = clast.Polyhedron.box(0.02, 0.02, 0.02)
    scene.add(box, position=(0.2, 0.0, 0.01), velocity=(0.0, 0.0, -0.1), material=SOFT)
    scene.combine(SOFT, SOFT, numbers={"grip": 3.2e3})
    return scene


def test_what_a_law_keeps_lives_through_new_lists_and_checkpoints_and_is_told_by_name(tmp_path):
    # A margin of a micrometre: the list of pairs is made anew in almost every step.
    often = clast.Simulation(pressed(), clast.DEM(law=plastic, margin=1e-6), dt=1e-5)
    whole = clast.Simulation(pressed(), clast.DEM(law=plastic, margin=1e-3), dt=1e-5)
    deepest, past = {}, {}
    for _ in range(STEPS):
        whole.step()
        told = whole.contacts()
        for pair, gap in zip(map(tuple, told.pair.tolist()), told.gap, strict=True):
            deepest[pair] = max(deepest.get(pair, 0.0), -gap)
            past[pair] = past.get(pair, 0) + 1
    assert told.kept.dtype.names == ("peak", "age")
    pairs = list(map(tuple, told.pair.tolist()))
    assert {(1, 2), (2, 3), (0, 4)} <= set(pairs), "all are in touch at this time"
    for pair, peak, gap in zip(pairs, told.kept["peak"], told.gap, strict=True):
        assert peak == pytest.approx(deepest[pair], rel=1e-12)
        assert peak > -1.002 * gap, "they are on their way back"
    balls = [row for row, pair in enumerate(pairs) if 0 not in pair]
    for row in balls:
        # What numbers the pair has: its own, or of two springs in series.
        k, peak, overlap = {(1, 2): 3.2e3, (2, 3): 3e3}[pairs[row]], told.kept["peak"][row], -told.gap[row]
        force = k * (peak - 4.0 * (peak - overlap))
        assert abs(told.force[row, 0]) == pytest.approx(max(force, 0.0), rel=1e-9)
        assert told.kept["age"][row] == pytest.approx(past[pairs[row]] * 1e-5, rel=1e-9)
    often.step(STEPS)
    assert often.state.rebuilds > 100 > whole.state.rebuilds
    assert np.array_equal(often.contacts().kept, told.kept)
    first = clast.Simulation(pressed(), clast.DEM(law=plastic, margin=1e-3), dt=1e-5)
    first.step(STEPS - 100)
    first.save(tmp_path / "half.h5")
    second = clast.resume(tmp_path / "half.h5", law=plastic)
    second.step(100)
    assert np.array_equal(second.contacts().kept, told.kept)
    assert np.array_equal(second.bodies.position, whole.bodies.position)


def test_a_number_that_nobody_gives_is_asked_for():
    scene = pressed()
    scene.add(clast.Sphere(0.01), position=(0.0, 0.3, 0.3), material=clast.Material(name="felt"))
    with pytest.raises(
        ValueError, match=r"the law 'plastic' needs grip for materials felt and felt; give Material\(numbers"
    ):
        clast.Simulation(scene, clast.DEM(law=plastic), dt=1e-5)


def falling(law, speed=0.2, dt="auto", radius=0.005, rolling_friction=0.0, **numbers):
    """A ball just above a plane."""
    material = clast.Material(numbers=numbers, rolling_friction=rolling_friction)
    scene = clast.Scene(gravity=(0.0, 0.0, 0.0))
    scene.add(clast.Plane(), material=material)
    scene.add(clast.Sphere(radius), position=(0, 0, 1.002 * radius), velocity=(0, 0, -speed), material=material)
    return clast.Simulation(scene, clast.DEM(law=law), dt=dt)


@clast.func
def rigid(touch, mix, dt):
    return 1e7 * touch.overlap, (0.0, 0.0, 0.0), touch.slip


def longest(k, radius=0.005):
    """A third of the contact time of a ball against its like, for a spring of k [N/m]."""
    mass = 2500.0 * 4.0 / 3.0 * math.pi * radius**3
    return math.pi / 3.0 * math.sqrt(0.5 * mass / k)


def test_the_step_follows_from_what_the_law_answers():
    sim = falling(rigid)
    assert sim.stepper.critical == pytest.approx(longest(1e7), rel=1e-6)
    sim.run(until=0.002, progress=False)
    assert sim.bodies.velocity[1, 2] == pytest.approx(0.2, rel=1e-3)


@clast.law(needs=("young",))
def square(touch, mix, dt):
    return mix.young * touch.overlap * abs(touch.overlap), (0.0, 0.0, 0.0), touch.slip


@clast.law(needs=())
def harder_in_shear(touch, mix, dt):
    slip = (touch.slip[0] + dt * touch.slide[0], touch.slip[1] + dt * touch.slide[1], touch.slip[2])
    return 1e4 * touch.overlap, (-4e4 * slip[0], -4e4 * slip[1], 0.0), slip


@clast.law(needs=())
def softer_on_loading(touch, mix, dt):
    return (1e4 if touch.rate > 0.0 else 4e4) * touch.overlap, (0.0, 0.0, 0.0), touch.slip


@clast.law(needs=(), reach=1e-3)
def far(touch, mix, dt):
    return 3e3 * touch.overlap if touch.overlap < 0.0 else 0.0, (0.0, 0.0, 0.0), touch.slip


@clast.law(keeps=("peak",), needs=())
def unloads(touch, mix, dt):
    peak = max(touch.kept.peak, touch.overlap)
    return 1e4 * (peak - 4.0 * (peak - touch.overlap)), (0.0, 0.0, 0.0), touch.slip, (peak,)


@clast.law(needs=())
def by_size(touch, mix, dt):
    return 1e6 * touch.radius * touch.overlap, (0.0, 0.0, 0.0), touch.slip


def test_a_law_is_asked_at_its_steepest():
    steepest = own_law.steepest
    assert steepest(square, (2e7,), 0.01, 1.0) == pytest.approx(2.0 * 2e7 * 0.05 * 0.01, rel=1e-3)
    for law in (harder_in_shear, softer_on_loading, unloads):
        assert steepest(law, (), 0.01, 1.0) == pytest.approx(4e4, rel=1e-6)
    assert steepest(far, (), 0.01, 1.0) == pytest.approx(3e3, rel=1e-6)
    assert steepest(by_size, (), 0.01, 1.0) == pytest.approx(1e4, rel=1e-6)
    assert backend.PLAIN == [None]


def test_bodies_of_many_sizes_are_judged_each_by_its_own_stiffness():
    scene = clast.Scene()
    for k, radius in enumerate(np.linspace(0.001, 0.01, 23)):
        scene.add(clast.Sphere(radius), position=(0.1 * k, 0, 0))
    step, body = clast.DEM(law=by_size).critical_step(scene)
    assert (step, body) == (pytest.approx(longest(1e6 * 0.001, 0.001), rel=1e-6), 0)


@clast.law(needs=())
def bare(touch, mix, dt):
    return 1.0, (0.0, 0.0, 0.0), touch.slip


@clast.law(needs=())
def nowhere(touch, mix, dt):
    return math.nan * touch.overlap, (0.0, 0.0, 0.0), touch.slip


@pytest.mark.parametrize("law", [bare, nowhere])
def test_a_law_that_does_not_tell_how_stiff_it_is_gets_the_rayleigh_time_and_says_so(law):
    with pytest.warns(UserWarning, match=f"the law '{law.__name__}' does not tell .* give clast.law.stiffness") as told:
        sim = falling(law)
    assert len(told) == 1 and "\n" not in str(told[0].message)
    assert sim.stepper.critical == falling("hertz").stepper.critical


@clast.law(needs=("grip",), stiffness=lambda mix, radius: mix.grib * radius)
def mistyped(touch, mix, dt):
    return mix.grip * touch.overlap, (0.0, 0.0, 0.0), touch.slip


@clast.law(needs=("grip",), stiffness=lambda mix, radius: -mix.grip)
def negative(touch, mix, dt):
    return mix.grip * touch.overlap, (0.0, 0.0, 0.0), touch.slip


def test_a_wrong_stiffness_of_a_law_is_told_with_its_name():
    for value in ("big", -1.0, math.nan):
        with pytest.raises(
            TypeError, match=r"law: 'fine' has stiffness = .*must be a number above 0 N/m or a function"
        ):
            clast.law(stiffness=value)(fine.py_func)
    with pytest.raises(
        ValueError, match=r"of the law 'mistyped' \(test_own_law.py, line \d+\) cannot.*'grib'.* has grip"
    ):
        falling(mistyped, grip=1e4)
    with pytest.raises(ValueError, match="of the law 'negative' must be finite and 0 N/m or more, got -10000"):
        falling(negative, grip=1e4)


def test_a_law_may_need_no_numbers_of_the_materials():
    sim = falling(softer_on_loading)
    sim.run(until=0.01, progress=False)
    assert sim.bodies.velocity[1, 2] == pytest.approx(0.4, rel=1e-2)
