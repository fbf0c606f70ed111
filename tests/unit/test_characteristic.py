"""The yes/no test of two ellipsoids against the exact number of positive roots, in rational numbers."""

from fractions import Fraction

import numba
import numpy as np
import pytest

from clast.narrow.characteristic import LANES, MAYBE, NO, YES, characteristic, largest_root, separated, third

TABLE_1 = [  # semi-axes, degrees about z, place; of both bodies; apart
    ((3, 1, 2), 0, (1, 1, 1), (6, 2, 4), 0, (1, 1, 1), False),
    ((3, 1, 2), 90, (1, 1, 1), (12, 4, 8), 0, (1, 1, 1), False),
    ((3, 1, 2), 0, (0, 0, 0), (3, 1, 2), 0, (5.8, 0, 0), False),
    ((3, 1, 2), 90, (1, 1, 1), (1, 3, 2), 90, (5.2, 1, 1), True),
    ((3, 1, 2), 90, (1, 1, 1), (1, 3, 2), 90, (4.8, 1, 1), False),
]


def packed(matrix):
    """(n,3,3) symmetric matrices as forms (n,6)."""
    return np.stack([matrix[..., i, j] for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))], -1)


def unpacked(form):
    return form[..., [0, 3, 4, 3, 1, 5, 4, 5, 2]].reshape(*form.shape[:-1], 3, 3)


def turned(rng, axes):
    """Forms of ellipsoids with semi-axes (n,3), turned at random."""
    turn = np.linalg.qr(rng.normal(size=(len(axes), 3, 3)))[0]
    return packed(np.einsum("nij,nj,nkj->nik", turn, np.asarray(axes, float) ** 2, turn))


def axes_of(rng, kind, n):
    size = 10.0 ** rng.uniform(-3.0, 0.0, (n, 1))
    return {
        "mild": rng.uniform(0.4, 1.0, (n, 3)),
        "nearly spheres": 1.0 + 1e-9 * rng.normal(size=(n, 3)),
        "spheres 1:1000": size * np.ones(3),
        "sizes 1:1000": size * rng.uniform(0.3, 1.0, (n, 3)),
        "needles": np.ones((n, 1)) * (1.0, 0.01, 0.01),
        "discs": np.ones((n, 1)) * (1.0, 1.0, 0.01),
        "blades 1:1000": size * 10.0 ** rng.uniform(-2.0, 0.0, (n, 3)),
    }[kind]


KINDS = ("mild", "nearly spheres", "spheres 1:1000", "sizes 1:1000", "needles", "discs", "blades 1:1000")


def population(kind, n, seed=0):
    """Pairs whose boxes overlap: d, m1, m2."""
    rng = np.random.default_rng(seed)
    m1, m2 = turned(rng, axes_of(rng, kind, n)), turned(rng, axes_of(rng, kind, n))
    return (np.sqrt(m1[:, :3]) + np.sqrt(m2[:, :3])) * rng.uniform(-1.0, 1.0, (n, 3)), m1, m2


def contact_factor(d, m1, m2):
    """The factor by which both ellipsoids must grow to touch: Perram and Wertheim, by bisection."""
    m1, m2 = unpacked(m1), unpacked(m2)
    low, high = np.zeros(len(d)), np.ones(len(d))
    for _ in range(80):
        share = 0.5 * (low + high)
        a, b = (1.0 - share)[:, None, None] * m1, share[:, None, None] * m2
        n = np.linalg.solve(a + b, d[:, :, None])[:, :, 0]
        one = (1.0 - share) * np.einsum("ni,nij,nj->n", n, a, n)
        two = share * np.einsum("ni,nij,nj->n", n, b, n)
        low, high = np.where(one > two, share, low), np.where(one > two, high, share)
    return np.einsum("ni,ni->n", n, d) / (np.sqrt(one) / (1.0 - share) + np.sqrt(two) / share)


def determinant(m):
    """Determinant of a square list of lists of fractions."""
    if len(m) == 1:
        return m[0][0]
    minors = ([row[:j] + row[j + 1 :] for row in m[1:]] for j in range(len(m)))
    return sum((-1) ** j * m[0][j] * determinant(minor) for j, minor in enumerate(minors) if m[0][j])


def quadric(form, place):
    """The 4x4 matrix of an ellipsoid: negative inside."""
    m = [[Fraction(float(x)) for x in row] for row in unpacked(form)]
    whole = determinant(m)
    others = ((1, 2), (0, 2), (0, 1))
    inverse = [
        [(-1) ** (i + j) * determinant([[m[p][q] for q in others[i]] for p in others[j]]) / whole for j in range(3)]
        for i in range(3)
    ]
    place = [Fraction(float(x)) for x in place]
    side = [-sum(inverse[i][j] * place[j] for j in range(3)) for i in range(3)]
    last = -sum(side[i] * place[i] for i in range(3)) - 1
    return [[*inverse[i], side[i]] for i in range(3)] + [[*side, last]]


def remainder(a, b):
    """Remainder of polynomial a divided by b, highest power first."""
    a = list(a)
    while len(a) >= len(b):
        factor = a[0] / b[0]
        a = [x - factor * y for x, y in zip(a, b + [0] * (len(a) - len(b)))][1:]
    while a and a[0] == 0:
        a = a[1:]
    return a


def really_apart(d, m1, m2):
    """Remark (ii) of the paper, exactly: det(xi Q1 + Q2) has two distinct positive roots (Sturm's theorem)."""
    one, two = quadric(m1, (0.0, 0.0, 0.0)), quadric(m2, d)
    at = [determinant([[x * p + q for p, q in zip(r, s)] for r, s in zip(one, two)]) for x in range(5)]
    g = [Fraction(0)]
    for k in range(5):  # Newton's form through five points
        difference = at[:]
        for step in range(1, k + 1):
            difference = [(b - a) / step for a, b in zip(difference, difference[1:])]
        term = [difference[0]]
        for root in range(k):
            term = [a - root * b for a, b in zip([*term, 0], [0, *term])]
        g = [a + b for a, b in zip([Fraction(0)] * (len(term) - len(g)) + g, term)]
    chain = [g, [c * (4 - k) for k, c in enumerate(g[:-1])]]
    while len(chain[-1]) > 1:
        rest = remainder(chain[-2], chain[-1])
        if not rest:
            break
        chain.append([-c for c in rest])

    def changes(values):
        signs = [v > 0 for v in values if v != 0]
        return sum(a != b for a, b in zip(signs, signs[1:]))

    return changes([p[-1] for p in chain]) - changes([p[0] for p in chain]) == 2


def check(d, m1, m2):
    """NO and YES are true in exact arithmetic. Returns the answers."""
    d = np.ascontiguousarray(d)
    answer = characteristic(d, m1, m2)
    for k in np.nonzero(answer != MAYBE)[0]:
        assert (answer[k] == NO) == really_apart(d[k], m1[k], m2[k]), k
    return answer


@pytest.mark.parametrize("kind", KINDS)
def test_answers_are_true_and_seldom_maybe(kind):
    d, m1, m2 = population(kind, 60)
    assert not (check(d, m1, m2) == MAYBE).any()
    d, m1, m2 = population(kind, 20_000, seed=1)
    answer, factor = characteristic(d, m1, m2), contact_factor(d, m1, m2)
    sure = np.abs(factor - 1.0) > 1e-9
    assert np.array_equal((answer == NO)[sure & (answer != MAYBE)], (factor > 1.0)[sure & (answer != MAYBE)])
    assert (answer == NO).sum() > 1000 and (answer == YES).sum() > 100
    assert (answer == MAYBE).mean() < 1e-3


@pytest.mark.parametrize("kind", KINDS)
def test_near_contact_nothing_wrong_is_said_and_a_millionth_is_enough(kind):
    d, m1, m2 = population(kind, 4000, seed=2)
    d /= contact_factor(d, m1, m2)[:, None]
    assert (characteristic(d, m1, m2) == MAYBE).mean() > 0.99
    assert (characteristic(d * (1.0 + 1e-6), m1, m2) == NO).all()
    assert (characteristic(d * (1.0 - 1e-6), m1, m2) == YES).all()
    for k, away in enumerate((1e-9, 1e-10, 1e-11, 1e-12, 1e-13, 1e-14, 1e-15)):
        some = slice(8 * k, 8 * k + 8)
        check(np.concatenate([d[some] * (1.0 + away), d[some] * (1.0 - away)]), *np.repeat([m1[some], m2[some]], 2, 1))


@pytest.mark.parametrize("kind", ["mild", "needles", "discs"])
def test_answers_hold_for_forms_that_are_wrong_by_rounding(kind):
    rng = np.random.default_rng(9)
    d, m1, m2 = population(kind, 60, seed=9)
    away = rng.choice([-1.0, 1.0], 60) * 10.0 ** rng.uniform(-14.0, -7.0, 60)
    d *= ((1.0 + away) / contact_factor(d, m1, m2))[:, None]
    answer = characteristic(d, m1, m2)
    assert (answer == NO).sum() > 5 and (answer == YES).sum() > 5
    wrong1, wrong2 = (m + 16 * 2.0**-52 * m[:, :3].sum(1)[:, None] * rng.choice([-1.0, 1.0], m.shape) for m in (m1, m2))
    for k in np.nonzero(answer != MAYBE)[0]:
        assert (answer[k] == NO) == really_apart(d[k], wrong1[k], wrong2[k]), k


@pytest.mark.parametrize("kind", KINDS)
def test_contained_coincident_and_concentric_pairs_touch(kind):
    rng = np.random.default_rng(4)
    _, m1, m2 = population(kind, 500, seed=4)
    inside = 0.6 * np.sqrt(np.linalg.eigvalsh(unpacked(m1))[:, :1]) * np.array([1.0, 0.0, 0.0])
    for size in (0.3, 1e-3):
        assert (characteristic(inside, m1, size**2 * m1) == YES).all()
        assert (characteristic(inside, size**2 * m1, m1) == YES).all()
    for d in (np.zeros((500, 3)), 1e-30 * rng.normal(size=(500, 3))):
        assert (characteristic(d, m1, m1) == YES).all()
        assert (characteristic(d, m1, m2) == YES).all()


def place(axes, degrees):
    turn = {0: np.eye(3), 90: np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])}[degrees]
    return packed(turn @ np.diag(np.square(axes, dtype=float)) @ turn.T)[None]


@pytest.mark.parametrize("case", range(5))
def test_table_1(case):
    axes1, turn1, b1, axes2, turn2, b2, apart = TABLE_1[case]
    d = np.subtract(b2, b1, dtype=float)[None]
    assert characteristic(d, place(axes1, turn1), place(axes2, turn2)).tolist() == [NO if apart else YES]


def test_table_1_the_pair_that_only_just_touches():
    for x, answer in ((6.0, MAYBE), (6.0 + 1e-12, NO), (6.0 - 1e-12, YES), (np.nextafter(6.0, 9.0), MAYBE)):
        d, m = np.array([[x, 0.0, 0.0]]), place((3, 1, 2), 0)
        assert characteristic(d, m, m).tolist() == [answer]


@pytest.mark.parametrize("kind", KINDS)
def test_order_place_and_unit_do_not_matter(kind):
    d, m1, m2 = population(kind, 5000, seed=5)
    answer = characteristic(d, m1, m2)
    assert np.array_equal(characteristic(-d, m2, m1), answer)
    for unit in (2.0**-40, 2.0**40):
        assert np.array_equal(characteristic(unit * d, unit**2 * m1, unit**2 * m2), answer)


@pytest.mark.parametrize("count", [0, 1, LANES - 1, LANES, LANES + 1, 5000])
def test_lanes_answer_like_one_pair_alone(count):
    d, m1, m2 = population("blades 1:1000", count, seed=6)
    alone = [separated(tuple(d[k]), tuple(m1[k]), tuple(m2[k])) for k in range(count)]
    assert characteristic(d, m1, m2).tolist() == alone


def test_what_is_no_ellipsoid_is_handed_on():
    nothing = np.zeros((1, 6))
    m, d = place((3, 1, 2), 0), np.array([[50.0, 0.0, 0.0]])
    for one, two, away in ((nothing, nothing, d), (nothing, m, 0.01 * d), (m, np.nan * m, d), (m, m, np.nan * d)):
        assert characteristic(away, one, two).tolist() == [MAYBE]


def test_the_root_of_the_cubic():
    x = np.linspace(-1.0, 1.0, 4001)
    assert np.abs([third(v) - np.cos(np.arccos(v) / 3.0) for v in x]).max() < 5e-9
    rng = np.random.default_rng(7)
    for roots in rng.normal(size=(200, 3)):
        a2, a1, a0 = np.poly(roots)[1:]
        assert largest_root(a2, a1, a0) == pytest.approx(roots.max(), abs=1e-7)
    assert largest_root(0.0, 1.0, 1.0) == -1.0  # one real root


def test_any_number_of_threads():
    pairs = population("mild", 20_000, seed=8)
    before = numba.get_num_threads()
    numba.set_num_threads(1)
    one = characteristic(*pairs)
    numba.set_num_threads(numba.config.NUMBA_NUM_THREADS)
    assert np.array_equal(characteristic(*pairs), one)
    numba.set_num_threads(before)
