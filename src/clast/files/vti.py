"""ParaView's .vti files: fields on a regular grid."""

import numpy as np

from .vtk import Appended, head


def write(path, origin, spacing, columns):
    """Write columns, dict[str, (nx, ny, nz, ...) array], at the nodes origin + (i, j, k) * spacing [m]."""
    shape = next(iter(columns.values())).shape[:3]
    body = Appended()
    entries = []
    for name, column in columns.items():
        column = np.asarray(column)
        if column.shape[:3] != shape:
            raise ValueError(f"field {name!r} has shape {column.shape}, others have {shape} nodes")
        # In these files x runs fastest.
        entries.append(
            body.entry(name, column.transpose(2, 1, 0, *range(3, column.ndim)).reshape(-1, *column.shape[3:]))
        )
    extent = " ".join(f"0 {n - 1}" for n in shape)
    place, step = (" ".join(repr(float(x)) for x in vector) for vector in (origin, spacing))
    lines = [
        *head("ImageData"),
        f'<ImageData WholeExtent="{extent}" Origin="{place}" Spacing="{step}">',
        f'<Piece Extent="{extent}">',
        "<PointData>",
        *entries,
        "</PointData>",
        "</Piece>",
        "</ImageData>",
    ]
    body.write(path, lines)
