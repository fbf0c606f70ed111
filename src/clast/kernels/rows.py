"""The columns of `rows` (s,12), one row per shape: what contact and body kernels read of it, fetched at once; see `clast.motion.state`."""

from .backend import func

CENTRE = 0  # 3 columns [m]
REACH = 3  # radius about the centre that contains the shape [m]
VELOCITY = 4  # 3 columns [m/s], of the body
PER_MASS = 7  # [1/kg]
SPIN = 8  # 3 columns [rad/s]
PER_INERTIA = 11  # [1/(kg m^2)]
COLUMNS = 12

# The same as slices, for arrays outside kernels.
CENTRES, VELOCITIES, SPINS = slice(CENTRE, CENTRE + 3), slice(VELOCITY, VELOCITY + 3), slice(SPIN, SPIN + 3)


@func
def centre_at(rows, i):
    """Centre (3,) [m] of row i."""
    return (rows[i, CENTRE], rows[i, CENTRE + 1], rows[i, CENTRE + 2])


@func
def velocity_at(rows, i):
    """Velocity (3,) [m/s] of row i."""
    return (rows[i, VELOCITY], rows[i, VELOCITY + 1], rows[i, VELOCITY + 2])


@func
def spin_at(rows, i):
    """Spin (3,) [rad/s] of row i."""
    return (rows[i, SPIN], rows[i, SPIN + 1], rows[i, SPIN + 2])


@func
def put_vector(rows, i, column, v):
    """Write a vector into three columns of row i."""
    rows[i, column], rows[i, column + 1], rows[i, column + 2] = v
