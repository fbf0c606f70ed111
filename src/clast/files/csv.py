"""Columns as comma-separated text with a header, for a spreadsheet or a quick plot."""

from __future__ import annotations

import csv

import numpy as np

AXES = {2: "xy", 3: "xyz", 4: "wxyz"}  # four components are a quaternion


def write(path, columns):
    """Write columns, dict[str, (n,) or (n,k) array]: one line per row; vectors become `velocity_x` and so on.

    Floats are written with as many digits as it takes to read back the same number.
    """
    names, series = [], []
    for name, column in columns.items():
        column = np.asarray(column)
        if column.ndim == 1:
            names.append(name)
            series.append(column.tolist())
        else:
            axes = AXES.get(column.shape[1], range(column.shape[1]))
            names.extend(f"{name}_{axis}" for axis in axes)
            series.extend(column.T.tolist())
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(names)
        writer.writerows(zip(*series, strict=True))
