"""Vectors, quaternions and 3x3 matrices as tuples, for kernels.

A vector is (x, y, z), a quaternion (w, x, y, z), a matrix three rows of three. All functions are pure and also run
as plain Python. Where a value needs a special case, both sides are computed and one is selected, so that loops over
these functions can be turned into vector instructions.
"""

import math

import numpy as np

from .backend import func


@func
def lane_vector(lane, row, k):
    """Three rows of lane k: a vector of one of the many that stand side by side in an array."""
    return (lane[row, k], lane[row + 1, k], lane[row + 2, k])


@func
def put_lane_vector(lane, row, k, v):
    """Write a vector into three rows of lane k."""
    lane[row, k], lane[row + 1, k], lane[row + 2, k] = v


@func
def lane_quaternion(lane, row, k):
    """Four rows of lane k."""
    return (lane[row, k], lane[row + 1, k], lane[row + 2, k], lane[row + 3, k])


@func
def put_lane_quaternion(lane, row, k, q):
    """Write a quaternion into four rows of lane k."""
    lane[row, k], lane[row + 1, k], lane[row + 2, k], lane[row + 3, k] = q


@func
def load(array, i):
    """Row i of an (n,3) array as a vector."""
    return (array[i, 0], array[i, 1], array[i, 2])


@func
def load4(array, i):
    """Row i of an (n,4) array as a quaternion."""
    return (array[i, 0], array[i, 1], array[i, 2], array[i, 3])


@func
def load_matrix(array, i):
    """Row i of an (n,3,3) array as a matrix, three rows of three."""
    return (
        (array[i, 0, 0], array[i, 0, 1], array[i, 0, 2]),
        (array[i, 1, 0], array[i, 1, 1], array[i, 1, 2]),
        (array[i, 2, 0], array[i, 2, 1], array[i, 2, 2]),
    )


@func
def add(a, b):
    """a + b."""
    return (a[0] + b[0], a[1] + b[1], a[2] + b[2])


@func
def sub(a, b):
    """a - b."""
    return (a[0] - b[0], a[1] - b[1], a[2] - b[2])


@func
def scale(s, a):
    """The number s times the vector a."""
    return (s * a[0], s * a[1], s * a[2])


@func
def dot(a, b):
    """Scalar product, summed from x to z."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@func
def cross(a, b):
    """Vector product a x b."""
    return (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


@func
def norm(a):
    """Length of a."""
    return math.sqrt(a[0] * a[0] + a[1] * a[1] + a[2] * a[2])


@func
def normalize(a):
    """a divided by its length; zero stays zero."""
    length = math.sqrt(a[0] * a[0] + a[1] * a[1] + a[2] * a[2])
    inverse = 1.0 / (length if length > 0.0 else 1.0)
    return (inverse * a[0], inverse * a[1], inverse * a[2])


@func
def matrix_vector(m, v):
    """Matrix times vector; m is three rows of three."""
    return (
        m[0][0] * v[0] + m[0][1] * v[1] + m[0][2] * v[2],
        m[1][0] * v[0] + m[1][1] * v[1] + m[1][2] * v[2],
        m[2][0] * v[0] + m[2][1] * v[1] + m[2][2] * v[2],
    )


@func
def symmetric_vector(m, v):
    """The product of a symmetric matrix, (xx, yy, zz, xy, xz, yz), and a vector."""
    return (
        m[0] * v[0] + m[3] * v[1] + m[4] * v[2],
        m[3] * v[0] + m[1] * v[1] + m[5] * v[2],
        m[4] * v[0] + m[5] * v[1] + m[2] * v[2],
    )


@func
def rotate(q, v):
    """v turned by the unit quaternion q: from body axes to world axes."""
    x = 2.0 * (q[2] * v[2] - q[3] * v[1])
    y = 2.0 * (q[3] * v[0] - q[1] * v[2])
    z = 2.0 * (q[1] * v[1] - q[2] * v[0])
    return (
        v[0] + q[0] * x + (q[2] * z - q[3] * y),
        v[1] + q[0] * y + (q[3] * x - q[1] * z),
        v[2] + q[0] * z + (q[1] * y - q[2] * x),
    )


@func
def unrotate(q, v):
    """v turned back by the unit quaternion q: from world axes to body axes."""
    return rotate((q[0], -q[1], -q[2], -q[3]), v)


@func
def quat_matrix(q):
    """The turn q as a matrix, three rows of three."""
    w, x, y, z = q
    return (
        (1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)),
        (2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x)),
        (2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)),
    )


@func
def transposed(m):
    """The transpose of a matrix."""
    return ((m[0][0], m[1][0], m[2][0]), (m[0][1], m[1][1], m[2][1]), (m[0][2], m[1][2], m[2][2]))


@func
def quat_multiply(p, q):
    """The turn q followed by the turn p."""
    return (
        p[0] * q[0] - p[1] * q[1] - p[2] * q[2] - p[3] * q[3],
        p[0] * q[1] + p[1] * q[0] + p[2] * q[3] - p[3] * q[2],
        p[0] * q[2] + p[2] * q[0] + p[3] * q[1] - p[1] * q[3],
        p[0] * q[3] + p[3] * q[0] + p[1] * q[2] - p[2] * q[1],
    )


@func
def quat_normalize(q):
    """q divided by its length; zero stays zero."""
    length = math.sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3])
    inverse = 1.0 / (length if length > 0.0 else 1.0)
    return (inverse * q[0], inverse * q[1], inverse * q[2], inverse * q[3])


SMALL = 1e-5  # of a quarter of the squared angle [rad^2]


@func
def quat_exponential_small(rotation_vector):
    """`quat_exponential` for angles below 0.006 rad, where these series are exact to rounding."""
    square = 0.25 * dot(rotation_vector, rotation_vector)
    ratio = 1.0 - square * (1.0 / 6.0 - square * (1.0 / 120.0))
    cosine = 1.0 - square * (0.5 - square * (1.0 / 24.0))
    s = 0.5 * ratio
    return (cosine, s * rotation_vector[0], s * rotation_vector[1], s * rotation_vector[2])


@func
def quat_exponential(rotation_vector):
    """The turn about rotation_vector by its length [rad], exact for any length."""
    square = 0.25 * dot(rotation_vector, rotation_vector)
    if square < SMALL:
        # The common case, which spares sine, cosine and root.
        return quat_exponential_small(rotation_vector)
    half = math.sqrt(square)
    s = 0.5 * (math.sin(half) / half)
    return (math.cos(half), s * rotation_vector[0], s * rotation_vector[1], s * rotation_vector[2])


def rotation_matrices(orientation):
    """Matrices (n,3,3) that turn body axes into world axes, of unit quaternions (n,4); for NumPy, not for kernels."""
    w, x, y, z = np.asarray(orientation, dtype=float).T
    rows = (
        (1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)),
        (2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)),
        (2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)),
    )
    return np.stack([np.stack(row, -1) for row in rows], -2)
