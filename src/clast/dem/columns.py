"""The columns of points that are compared with each other, brought side by side."""

from ..kernels.backend import func

# Points are brought side by side before they are compared: columns of those in use,
ARM, NORMAL, GAP, RADIUS = 0, 3, 6, 7  # of the point; arms from the centre of the first body
SLIP, ANGLE, SHARE, OVERLAP = 8, 11, 14, 15  # what it takes up, and what it shares
CENTRE = 16  # from the point to the centre of pressure of its area [m]
COLUMNS = 19
# and of those that were in use in the step before.
PAST_ARM, PAST_NORMAL, PAST_SLIP, PAST_ANGLE, PAST_SHARE = 0, 3, 6, 9, 12
PAST_COLUMNS = 13


@func
def vector(near, k, column):
    """Three columns of row k."""
    return (near[k, column], near[k, column + 1], near[k, column + 2])


@func
def put(near, k, column, v):
    """Write a vector into three columns of row k."""
    near[k, column], near[k, column + 1], near[k, column + 2] = v
