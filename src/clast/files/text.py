"""Places and radii of particles as plain text, one line each, for programs that read nothing else."""

import numpy as np


def write(path, columns, time=None):
    """Write x, y, z and radius [m] of each row of columns, as `files.particle_columns` has them, behind a line with the time [s]."""
    head = "x y z radius [m]" + ("" if time is None else f" at t = {time!r} s")
    np.savetxt(path, np.column_stack([columns["position"], columns["radius"]]), fmt="%.17g", header=head)
