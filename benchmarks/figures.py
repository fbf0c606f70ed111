"""The picture of a set of results: particle-steps per second against size, and seconds for a contact search."""

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

OURS, THEIRS, QUIET = "#c4501b", "#4a6a8a", "#8a8f94"

# Number of spheres and million particle-steps/s on one GPU, as listed in table 3 of Govender, Wilke and Kok,
# "Collision detection of convex polyhedra on the NVIDIA GPU architecture for the discrete element method" (2015).
PUBLISHED = (
    ("Radeke et al., GPU", 20e6, 20.0),
    ("Govender et al., GPU", 50e6, 55.0),
)


def draw(results, path):
    """Draw `results` (the dict that run.py writes) into a PNG file."""
    plt.rcParams.update({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False})
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), width_ratios=(1.25, 1.0), layout="constrained")
    rates(left, results.get("dem", []))
    searches(right, results.get("contacts", []))
    threads = results["machine"]["cores"]
    figure.suptitle(f"{results['machine']['model']}, {threads} cores, double precision", fontsize=10, color=QUIET)
    figure.savefig(path, dpi=160)
    plt.close(figure)


def rates(axes, rows):
    """Particle-steps per second against the number of spheres."""
    settled = [row for row in rows if not row["stir"]]
    for name, label, colour, marker in (("clast", "clast", OURS, "o"), ("lammps", "LAMMPS, 2 ranks", THEIRS, "s")):
        points = [(row["count"], row[name]) for row in settled if name in row]
        if points:
            axes.plot(*zip(*points, strict=True), color=colour, marker=marker, lw=2, ms=7, label=label)
    for row in settled:
        if "ratio" in row:
            axes.annotate(
                f"{row['ratio']:.1f}x",
                (row["count"], max(row["clast"], row["lammps"])),
                textcoords="offset points",
                xytext=(0, 9),
                ha="center",
                color=OURS if row["ratio"] >= 1.0 else THEIRS,
            )
    for label, count, rate in PUBLISHED:
        axes.plot(count, rate, color=QUIET, marker="^", ms=7, mfc="none", ls="none")
        axes.annotate(
            label, (count, rate), textcoords="offset points", xytext=(-8, 0), ha="right", va="center", color=QUIET
        )
    axes.plot([], [], color=QUIET, marker="^", ms=7, mfc="none", ls="none", label="published")
    axes.set(xscale="log", xlim=(5e3, 1e8), xlabel="spheres")
    axes.set(yscale="log", ylim=(2, 100), ylabel="million particle-steps per second")
    axes.minorticks_off()
    axes.set_yticks([2, 5, 10, 20, 50, 100], ["2", "5", "10", "20", "50", "100"])
    axes.set_title("DEM step: settled packing, Hertz with friction history", loc="left", fontsize=11)
    axes.grid(axis="y", color="#e6e6e6")
    axes.set_axisbelow(True)
    axes.legend(frameon=False, loc="upper left")


def searches(axes, rows):
    """Seconds for all contacts, a pair of bars a case."""
    bars, ticks, names, height = [], [], [], 0.0
    for row in (row for row in rows if "peer_seconds" in row):
        start = height
        for label, key, colour in (("clast", "seconds", OURS), (row["peer"].split(",")[0], "peer_seconds", THEIRS)):
            if key in row:
                bars.append((height, row[key], colour, f"{label}  {row[key]:.2f} s"))
                height += 1.0
        ticks.append(0.5 * (start + height - 1.0))
        names.append(f"{row['count']:,} random spheres\n{row['contacts'] / 1e6:.1f} million contacts")
        height += 0.8
    if not bars:
        axes.set_axis_off()
        return
    longest = max(seconds for _, seconds, _, _ in bars)
    for place, seconds, colour, label in bars:
        axes.barh(place, seconds, color=colour, height=0.86)
        inside = seconds > 0.55 * longest
        axes.text(
            seconds + (-0.02 if inside else 0.02) * longest,
            place,
            label,
            va="center",
            ha="right" if inside else "left",
            color="white" if inside else "black",
        )
    axes.set_yticks(ticks, names)
    axes.tick_params(axis="y", length=0)
    axes.invert_yaxis()
    axes.set_xlabel("seconds")
    axes.set_title("All contacts: pair, point, normal, gap", loc="left", fontsize=11)
