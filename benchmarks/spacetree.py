"""The spacetree beside bins: how the search for pairs grows with the bodies when sizes are 1 to 1000, and when they are alike.

    python benchmarks/spacetree.py             # up to a million bodies, a few minutes on two cores
    python benchmarks/spacetree.py --quick     # up to 100,000; nothing written

Spheres at random places, in no order in memory. Radii follow a power law, so that every size is there; the cube grows with the
bodies, which always fill the same share of it. All roads get the same arrays, run in turn, and must find the same
pairs. What is reported is core time, summed over all threads, the least of three: it minds other programs on the machine less
than the clock does; for large searches the clock shows core time over cores. `one level` is the search by bins of one
width, that of the largest body. It and the regular spacetree are left out where a search would take longer than LONGEST.

Prints the numbers, keeps every number in results/spacetree-<machine>.json and draws docs/images/spacetree-growth.png.
"""

import argparse
import json
import time

import numpy as np
from common import RESULTS, ROOT, Others, machine

from clast.broad import bins as bins_module
from clast.broad.bins import bins
from clast.broad.spacetree import VARIANTS, Spacetree
from clast.tables import SPHERE, Box, Shapes

FILL = 0.3
LONGEST, LONG = 60.0, 2.0  # [s]; what may take longer than the second is timed once
FREE = Box(np.zeros(3), np.zeros(3), np.zeros(3), False)
# Exponent of the power law, and the largest radius over the smallest.
LAWS = {
    "1 : 1000, every decade ten times the next": (1.0, 1000.0),
    "1 : 1000, every decade 300 times the next": (2.5, 1000.0),
    "1 : 1.5": (1.0, 1.5),
}


def spheres(count, power, ratio, seed=1):
    """Random spheres with radii of 1 to ratio; about count times r to the minus power are of radius r or more."""
    random = np.random.default_rng(seed)
    radius = (1.0 - random.random(count) * (1.0 - ratio**-power)) ** (-1.0 / power)
    side = (4.0 / 3.0 * np.pi * (radius**3).sum() / FILL) ** (1.0 / 3.0)
    rows = np.arange(count, dtype=np.int32)
    kind = np.full(count, SPHERE, np.int8)
    return Shapes(rows.astype(np.int64), rows, rows * 0, kind, random.random((count, 3)) * side, radius)


def one_level(*arguments):
    """Bins that are all as wide as the largest body."""
    kept = bins_module.SHARE, bins_module.CROWD
    bins_module.SHARE = bins_module.CROWD = np.inf
    try:
        return bins(*arguments)
    finally:
        bins_module.SHARE, bins_module.CROWD = kept


def ordered(pairs):
    """Pairs as sorted numbers, for comparing two sets."""
    return np.sort(pairs[:, 0].astype(np.int64) << 32 | pairs[:, 1])


def growth(counts, repeats):
    """Core-nanoseconds a body of every road, and comparisons a body."""
    rows = []
    for law, numbers in LAWS.items():
        roads = {"bins": bins, **{name: Spacetree(name) for name in ("adaptive", "reluctant", "regular")}}
        roads["one level"] = one_level
        last = {}
        for count in counts:
            shapes = spheres(count, *numbers)
            arguments = shapes, shapes.body, FREE, 0.0
            row = {"sizes": law, "bodies": count}
            times: dict = {name: [] for name in roads}
            expected = None
            with Others() as others:
                for turn in range(repeats + 1):
                    for name, road in roads.items():
                        # Ten times the bodies take up to a hundred times as long where everybody is tested.
                        most = 100.0 * last.get(name, 0.0)
                        if most > LONGEST or (most > LONG and turn > 1):
                            continue
                        began = time.process_time()
                        pairs = road(*arguments)
                        seconds = time.process_time() - began
                        if turn:
                            times[name].append(seconds)
                        elif expected is None:
                            expected = ordered(pairs)
                        elif not np.array_equal(ordered(pairs), expected):
                            raise SystemExit(
                                f"{name} finds {len(pairs)} pairs among {count} bodies, bins {len(expected)}"
                            )
            row["pairs a body"] = len(expected) / count
            for name, seconds in times.items():
                last[name] = min(seconds, default=np.inf)
                row[name] = round(1e9 * last[name] / count) if seconds else None
            for name in VARIANTS:
                row[f"{name} comparisons"] = roads[name].comparisons / count if times[name] else None
            row["other cores"] = others.cores
            rows.append(row)
            print(row, flush=True)
    return rows


def draw(rows, path):
    """Core time a body against bodies."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False})
    figure, axes = plt.subplots(1, 3, figsize=(14, 4.2), sharey=True, layout="constrained")
    looks = {
        "adaptive": ("spacetree, adaptive", "#c4501b", "o-"),
        "reluctant": ("spacetree, reluctant", "#d9935f", "v-"),
        "regular": ("spacetree, regular", "#8a8f94", "^--"),
        "bins": ("bins, several levels", "#4a6a8a", "s-"),
        "one level": ("bins, one level", "#9db3c9", "D--"),
    }
    for axis, law in zip(axes, LAWS, strict=True):
        for name, (label, colour, style) in looks.items():
            points = [(row["bodies"], 1e-3 * row[name]) for row in rows if row["sizes"] == law and row[name]]
            axis.plot(*zip(*points, strict=True), style, color=colour, label=label, lw=2, ms=6)
        axis.set(xscale="log", yscale="log", xlabel="bodies")
        axis.set_title(f"Sizes {law}", loc="left", fontsize=11)
        axis.grid(color="#e6e6e6")
        axis.set_axisbelow(True)
    axes[0].set_ylabel("all pairs: core-microseconds a body")
    axes[2].legend(frameon=False, fontsize=9, loc="upper right")
    figure.savefig(path, dpi=130)
    plt.close(figure)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="up to 100,000 bodies; nothing is written")
    parser.add_argument("--draw", action="store_true", help="only draw the stored results")
    options = parser.parse_args()
    path = RESULTS / f"spacetree-{machine()}.json"
    if not options.draw:
        counts = [1_000, 10_000, 100_000] if options.quick else [1_000, 10_000, 100_000, 1_000_000]
        results = {"growth": growth(counts, 3)}
        if options.quick:
            return
        path.write_text(json.dumps(results, indent=1) + "\n")
    draw(json.loads(path.read_text())["growth"], ROOT / "docs" / "images" / "spacetree-growth.png")


if __name__ == "__main__":
    main()
