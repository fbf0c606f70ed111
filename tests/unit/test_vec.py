"""Vectors, quaternions and matrices of kernels against NumPy, compiled and as plain Python."""

import math

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from clast.joints import springs
from clast.kernels import vec


def plain(function):
    """The Python function behind a compiled one."""
    return getattr(function, "py_func", function)


@pytest.fixture(params=["compiled", "plain"])
def call(request):
    """Look up a function of vec, compiled or as plain Python."""
    if request.param == "compiled":
        return lambda name: getattr(vec, name)
    return lambda name: plain(getattr(vec, name))


def turn(q):
    return Rotation.from_quat(np.roll(q, -1))


def test_vector_functions_agree_with_numpy(call):
    rng = np.random.default_rng(1)
    for _ in range(20):
        a, b = rng.normal(size=(2, 3))
        x, y = tuple(a), tuple(b)
        np.testing.assert_allclose(call("add")(x, y), a + b, rtol=1e-15)
        np.testing.assert_allclose(call("sub")(x, y), a - b, rtol=1e-15)
        np.testing.assert_allclose(call("scale")(3.5, x), 3.5 * a, rtol=1e-15)
        assert call("dot")(x, y) == pytest.approx(a @ b, rel=1e-14, abs=1e-15)
        np.testing.assert_allclose(call("cross")(x, y), np.cross(a, b), rtol=1e-13, atol=1e-15)
        assert call("norm")(x) == pytest.approx(np.linalg.norm(a), rel=1e-15)
        np.testing.assert_allclose(call("normalize")(x), a / np.linalg.norm(a), rtol=1e-15)
    assert call("normalize")((0.0, 0.0, 0.0)) == (0.0, 0.0, 0.0)
    assert call("quat_normalize")((0.0, 0.0, 0.0, 0.0)) == (0.0, 0.0, 0.0, 0.0)


def test_rows_are_loaded_as_tuples(call):
    rng = np.random.default_rng(2)
    vectors, quaternions, matrices = rng.normal(size=(4, 3)), rng.normal(size=(4, 4)), rng.normal(size=(4, 3, 3))
    assert call("load")(vectors, 2) == tuple(vectors[2])
    assert call("load4")(quaternions, 3) == tuple(quaternions[3])
    m = call("load_matrix")(matrices, 1)
    assert m == tuple(tuple(row) for row in matrices[1])
    np.testing.assert_allclose(call("matrix_vector")(m, tuple(vectors[0])), matrices[1] @ vectors[0], rtol=1e-14)


def test_quaternions_turn_like_rotation_matrices(call):
    rng = np.random.default_rng(3)
    for _ in range(20):
        p, q = rng.normal(size=(2, 4))
        v = tuple(rng.normal(size=3))
        p, q = call("quat_normalize")(tuple(p)), call("quat_normalize")(tuple(q))
        assert math.hypot(*q) == pytest.approx(1.0, abs=5e-16)
        np.testing.assert_allclose(call("rotate")(q, v), turn(q).apply(v), atol=2e-15)
        np.testing.assert_allclose(call("unrotate")(q, v), turn(q).inv().apply(v), atol=2e-15)
        both = call("quat_multiply")(p, q)
        np.testing.assert_allclose(call("rotate")(both, v), turn(p).apply(turn(q).apply(v)), atol=4e-15)


def test_exponential_is_exact_for_every_angle(call):
    axis = np.array([2.0, -1.0, 2.0]) / 3.0
    for angle in [0.0, 1e-200, 1e-20, 1e-9, 1e-4, 1e-3, 1e-2, 0.06, 0.0632, 0.06325, 0.0634, 0.1, 1.0, 3.0, 3.2, 7.0]:
        q = call("quat_exponential")(tuple(angle * axis))
        expected = np.concatenate([[math.cos(angle / 2)], math.sin(angle / 2) * axis])
        np.testing.assert_allclose(q[0], expected[0], rtol=0, atol=2.5e-16)
        np.testing.assert_allclose(q[1:], expected[1:], rtol=6e-16, atol=3e-16 if angle > 3.0 else 0.0)


def test_small_turns_add_up_to_a_large_one(call):
    step = call("quat_exponential")((0.0, 0.0, 2.0 * math.pi / 1000))
    q = (1.0, 0.0, 0.0, 0.0)
    for _ in range(1000):
        q = call("quat_multiply")(step, q)
    np.testing.assert_allclose(q, (-1.0, 0.0, 0.0, 0.0), atol=1e-13)


def test_rotations_of_few_rows_are_those_of_many():
    """Springs have their own, with fewer calls of NumPy."""
    q = np.random.default_rng(4).normal(size=(20, 4))
    q /= np.linalg.norm(q, axis=1, keepdims=True)
    np.testing.assert_allclose(springs.turns_of(q), vec.rotation_matrices(q), rtol=0.0, atol=1e-15)
    a, b = np.random.default_rng(5).normal(size=(2, 6, 2, 3))
    np.testing.assert_allclose(springs.cross(a, b), np.cross(a, b), rtol=0.0, atol=1e-15)
