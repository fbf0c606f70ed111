"""The reduced radius of elliptical contacts against elliptic integrals, and the curvature of a matrix of radii."""

import math
import platform

import numba
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import ellipe, ellipkm1

from clast.narrow import curvature

RATIOS = np.geomspace(1.0 + 1e-6, 100.0, 60)


def integrals(slenderness):
    """K and E of the contact ellipse with b / a = exp(-slenderness)."""
    rest = math.exp(-2.0 * slenderness)  # 1 - e^2
    return ellipkm1(rest), ellipe(1.0 - rest), rest


def curvature_ratio(slenderness):
    """Johnson (1985), eq. 4.28: B / A of a contact ellipse."""
    k, e, rest = integrals(slenderness)
    return (e / rest - k) / (k - e)


def exact(ratio):
    """F2 of Johnson (1985), eq. 4.32, for the ratio B / A of the principal curvatures; the eccentricity by bisection."""
    slenderness = brentq(lambda x: curvature_ratio(x) - ratio, 1e-9, 30.0, xtol=1e-14)
    k, e, rest = integrals(slenderness)
    first = (4.0 / (math.pi * (1.0 - rest)) * rest**0.75 * math.sqrt((e / rest - k) * (k - e))) ** (1.0 / 3.0)
    return 2.0 / math.pi * rest**0.25 * k / first


def turned(large, small, angle):
    """k11, k12, k22 of a matrix with these eigenvalues, its axes turned by angle [rad]."""
    c, s = math.cos(angle), math.sin(angle)
    return c * c * large + s * s * small, c * s * (large - small), s * s * large + c * c * small


@pytest.mark.parametrize("ratio", [1.001, 1.5, 3.0, 10.0, 30.0, 100.0, 1e3, 1e4, 1e5, 1e6])
def test_the_force_is_that_of_an_elliptical_contact(ratio):
    small = 7.0
    expected = 1.0 / (small * math.sqrt(ratio)) / exact(ratio) ** 3
    assert curvature.reduced_radius(ratio * small, 0.0, small) == pytest.approx(expected, rel=5e-5)


@pytest.mark.parametrize("b", [1.0, 0.9, 0.5, 0.2, 0.05])
def test_pressure_over_an_ellipse_gives_the_same_force(b):
    """The other road: displacement under the pressure (1 - x^2 - y^2 / b^2)^0.5 by quadrature (Johnson, eq. 3.63)."""

    def potential(p, q):
        # A substitution u = b tan(phi) of the integral over u from 0 to infinity keeps its integrand smooth.
        def integrand(phi):
            u = b * math.tan(phi)
            return (1.0 + u * u) ** -p * (b * b + u * u) ** (-q + 1.0) / b

        return b * quad(integrand, 0.0, 0.5 * math.pi, epsabs=1e-13, epsrel=1e-12)[0]

    # With E* = 1 and the highest pressure 1.
    force, depth = 2.0 / 3.0 * math.pi * b, potential(0.5, 0.5)
    small, large = 2.0 * potential(1.5, 0.5), 2.0 * potential(0.5, 1.5)
    assert curvature.reduced_radius(small, 0.0, large) == pytest.approx((0.75 * force) ** 2 / depth**3, rel=5e-5)


@pytest.mark.parametrize(("a", "b"), [(1.0, 1.0), (0.003, 0.007), (1e-6, 1e3), (0.3, math.inf)])
def test_two_balls_have_the_reduced_radius_of_balls(a, b):
    k = 1.0 / a + 1.0 / b
    assert curvature.reduced_radius(k, 0.0, k) == pytest.approx(1.0 / k, rel=1e-14)


def test_equal_cylinders_crossed_at_right_angles_press_like_a_ball_on_a_wall():
    assert curvature.reduced_radius(1.0 / 0.02, 0.0, 1.0 / 0.02) == pytest.approx(0.02, rel=1e-14)


@pytest.mark.parametrize("angle", np.linspace(0.1, 3.0, 7))
def test_axes_of_the_tangent_plane_do_not_matter(angle):
    for large, small in ((5.0, 4.0), (90.0, 1.0), (3e4, 0.7)):
        straight = curvature.reduced_radius(large, 0.0, small)
        assert curvature.reduced_radius(small, 0.0, large) == straight
        assert curvature.reduced_radius(*turned(large, small, angle)) == pytest.approx(straight, rel=1e-9)


def test_the_radius_scales_with_length():
    k = np.array(turned(40.0, 3.0, 0.3))
    assert curvature.reduced_radius(*(k / 1000.0)) == pytest.approx(1000.0 * curvature.reduced_radius(*k), rel=1e-13)


def test_a_flatter_contact_is_stiffer_up_to_a_limit():
    ratio = np.geomspace(1.0, 1e12, 20_000)
    radius = np.array([curvature.reduced_radius(1.0, 0.0, 1.0 / r) for r in ratio])
    assert (radius > 0.0).all() and (np.diff(radius) >= 0.0).all()
    assert (np.diff(radius[ratio < 3e6]) > 0.0).all()
    # A matrix that rounding made singular or indefinite is a long contact area, not a fault.
    limit = curvature.reduced_radius(1.0, 0.0, 0.0)
    assert radius[-1] == pytest.approx(limit, rel=1e-6)
    for k in ((1.0, 0.0, -1e-9), (0.5, 0.5 + 1e-12, 0.5)):
        assert curvature.reduced_radius(*k) == pytest.approx(limit, rel=1e-6)
    for k in ((0.0, 0.0, 0.0), (-1.0, 0.0, 0.5)):
        assert 0.0 < curvature.reduced_radius(*k) < math.inf


def test_curvature_is_the_inverse_of_the_radii():
    random = np.random.default_rng(2)
    for _ in range(100):
        r = turned(*random.lognormal(-5.0, 2.0, 2), random.uniform(0.0, 3.0))
        k = curvature.curvature(*r)
        expected = np.linalg.inv([[r[0], r[1]], [r[1], r[2]]])
        np.testing.assert_allclose([k[0], k[1], k[1], k[2]], expected.ravel(), rtol=1e-9, atol=1e-9 * expected.max())
    assert curvature.curvature(0.0, 0.0, 0.0) == (0.0, 0.0, 0.0)
    assert all(math.isfinite(x) for x in curvature.curvature(0.5, 0.5, 0.5))


def test_loops_over_it_become_vector_code_with_the_same_results():
    @numba.njit(error_model="numpy", fastmath={"contract", "nsz"})
    def many(k, out):
        for i in range(out.shape[0]):
            out[i] = curvature.reduced_radius(k[0, i], k[1, i], k[2, i])

    k = np.array([turned(r, 1.0, 0.7 * r) for r in RATIOS]).T.copy()
    out, again = np.empty(len(RATIOS)), np.empty(1)
    many(k, out)
    for i in range(len(RATIOS)):
        many(k[:, i : i + 1].copy(), again)
        assert again[0] == pytest.approx(out[i], rel=1e-15)
    if platform.machine() in ("x86_64", "AMD64"):
        assert "sqrtpd" in next(iter(many.inspect_asm().values()))
