"""Contact laws, one contact with a prescribed motion, beside their closed forms; a table and a picture for docs/validation.md.

    python validation/laws.py             # seconds; writes the table and docs/images/laws.png
    python validation/laws.py --quick     # writes nothing

The functions that simulations compile are called as plain Python, a contact at a time.
"""

import argparse
import math
import threading
from pathlib import Path

import numpy as np

import clast
from clast.dem import laws
from clast.kernels import backend

DOCS = Path(__file__).resolve().parents[1] / "docs"
RADIUS, MASS, YOUNG, SHEAR = 0.01, 0.004, 1e7, 4e6


class One:
    """One contact under a law."""

    def __init__(self, numbers, **options):
        self.law = clast.DEM(**options).recipe
        given = {"young": YOUNG, "shear": SHEAR, "ratio": math.sqrt(SHEAR / YOUNG), "friction": 0.5, "rolling": 0.0}
        given |= {"damping": 0.0, "stiffness": 0.0, "restitution": 0.5} | numbers
        self.mix = self.law.mix(*(given[name] for name in self.law.needs))
        self.slip, self.kept = (0.0, 0.0, 0.0), (0.0,) * len(self.law.keeps)

    def force(self, overlap, rate=0.0, dt=0.0):
        """Normal force [N]."""
        kept = self.law.kept(*self.kept) if self.law.keeps else ()
        touch = laws.Touch(overlap, rate, (0.0, 0.0, 1.0), (0.0, 0.0, 0.0), self.slip, MASS, RADIUS, kept)
        normal, _, self.slip, self.kept = self.law.answer(touch, self.mix, dt)
        return normal

    def rebound(self, speed, dt):
        """Speed [m/s] after an impact."""
        x, v, force = 0.0, speed, 0.0
        while True:
            v -= 0.5 * dt * force / MASS
            x += dt * v
            if x <= 0.0:
                return -v
            spring = self.force(x, v, dt)
            force = self.force(x, v - 0.5 * dt * spring / MASS, dt)
            v -= 0.5 * dt * force / MASS


def jkr():
    """Places, forces, and the largest difference from Johnson, Kendall and Roberts (1971) over the strongest pull; the strongest pull."""
    w = 0.2
    one = One({"adhesion": w}, law="hertz", cohesion="jkr")
    opens = (math.pi * w * RADIUS**2 / (8.0 * YOUNG)) ** (1.0 / 3.0)
    a = np.linspace(6.0, 1.001, 2000) * opens
    d = a**2 / RADIUS - np.sqrt(2.0 * math.pi * w * a / YOUNG)
    exact = 4.0 * YOUNG * a**3 / (3.0 * RADIUS) - np.sqrt(8.0 * math.pi * w * YOUNG * a**3)
    ours = np.array([one.force(x) for x in d])
    pull = 1.5 * math.pi * w * RADIUS
    return d, ours, abs(ours - exact).max() / pull, -ours.min() / pull - 1.0


def luding():
    """Places and forces of a cycle with a smaller one inside, and the largest difference on the first from Luding (2008)."""
    k1, kp, kc, depth = 1e4, 5e4, 2e4, 0.05
    numbers = {"stiffness": k1, "plastic_stiffness": kp, "cohesive_stiffness": kc, "plasticity_depth": depth}
    one, most = One(numbers, law="luding"), kp / (kp - k1) * depth * 2.0 * RADIUS
    peak = 0.4 * most
    k2 = k1 + (kp - k1) * peak / most
    least = (k2 - k1) / (k2 + kc) * peak
    way = np.concatenate([np.linspace(0.0, peak, 200), np.linspace(peak, 0.0, 400)])
    exact = np.concatenate(
        [k1 * way[:200], np.where(way[200:] > least, k2 * (way[200:] - (1 - k1 / k2) * peak), -kc * way[200:])]
    )
    ours = np.array([one.force(x) for x in way])
    one = One(numbers, law="luding")
    more = np.concatenate(
        [np.linspace(a, b, 200) for a, b in ((0, peak), (peak, 0.5 * least), (0.5 * least, peak), (peak, 0))]
    )
    return more, np.array([one.force(x) for x in more]), abs(ours - exact).max() / ours.max()


def kuwabara_kono(speeds):
    """Coefficients of restitution, and the series of Schwager and Poeschel (1998) up to the second order."""
    a, k = 2e-6, 4.0 / 3.0 * YOUNG * math.sqrt(RADIUS)
    one = One({"dissipation": a}, law="hertz", damping="kuwabara-kono")
    ours = np.array([one.rebound(v, 2e-6) / v for v in speeds])
    x = 1.5 * a * (k / MASS) ** 0.4 * speeds**0.2
    return ours, 1.0 - 1.15344 * x + 0.6 * (1.15344 * x) ** 2


def capillary():
    """Gaps, pulls, and the largest difference from Willett et al. (2000), eq. 12."""
    tension, angle, volume, radius = 0.072, 0.3, 1e-9, 2.0 * RADIUS
    one = One(
        {"surface_tension": tension, "contact_angle": angle, "bridge_volume": volume}, law="hertz", cohesion="capillary"
    )
    one.force(1e-9)
    breaks = (1.0 + 0.5 * angle) * (volume ** (1 / 3) + 0.1 * volume ** (2 / 3) / radius)
    gap = np.linspace(0.0, 1.2 * breaks, 400)
    s = gap / math.sqrt(volume / radius)
    strongest = 2.0 * math.pi * radius * tension * math.cos(angle)
    exact = np.where(gap < breaks, strongest / (1.0 + 1.05 * s + 2.5 * s * s), 0.0)
    ours = -np.array([one.force(-x) for x in gap])
    return gap, ours, abs(ours - exact).max() / strongest


def draw(curves, speeds, restitution, series):
    """The picture."""
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(2, 2, figsize=(9, 7), layout="constrained")
    for axis, (title, x, y, word) in zip(axes.flat, curves):
        axis.plot(1e6 * x, y)
        axis.axhline(0.0, color="0.7", lw=0.8)
        axis.set(title=title, xlabel=f"{word} [um]", ylabel="force [N]")
    axes[1, 1].semilogx(speeds, restitution, "o", label="clast")
    axes[1, 1].semilogx(speeds, series, label="Schwager and Poeschel 1998, two terms")
    axes[1, 1].set(title="Kuwabara and Kono", xlabel="speed [m/s]", ylabel="restitution")
    axes[1, 1].legend()
    figure.savefig(DOCS / "images" / "laws.png", dpi=80)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="write nothing")
    quick = parser.parse_args().quick
    backend.PLAIN[0] = threading.get_ident()
    speeds = np.array([0.003, 0.01, 0.03, 0.1, 0.3, 1.0])
    pulled, stuck, off_jkr, off_pull = jkr()
    way, cycle, off_luding = luding()
    restitution, series = kuwabara_kono(speeds)
    gap, bridge, off_bridge = capillary()
    slow = float(abs(restitution - series)[0])
    rows = [
        ("JKR, force against overlap, over the strongest pull", f"{off_jkr:.0e}", "Johnson et al. 1971"),
        ("JKR, strongest pull over 1.5 pi w R, less 1", f"{off_pull:.0e}", "Johnson et al. 1971"),
        ("Luding, a loading cycle, over the largest force", f"{off_luding:.0e}", "Luding 2008"),
        ("capillary bridge, force against gap, over the strongest", f"{off_bridge:.0e}", "Willett et al. 2000, eq. 12"),
        (
            f"Kuwabara and Kono, restitution {restitution[0]:.4f} at 3 mm/s",
            f"{slow:.0e}",
            "Schwager and Poeschel 1998, two terms",
        ),
    ]
    lines = ["| what | largest difference | from |", "|---|---:|---|", *(f"| {a} | {b} | {c} |" for a, b, c in rows)]
    print("\n".join(lines))
    if quick:
        return
    curves = [
        ("JKR, pulled apart", pulled, stuck, "overlap"),
        ("Luding, a cycle within a cycle", way, cycle, "overlap"),
    ]
    draw([*curves, ("liquid bridge", gap, -bridge, "gap")], speeds, restitution, series)
    page = DOCS / "validation.md"
    text = page.read_text()
    start, end = text.index("<!-- laws -->"), text.index("<!-- /laws -->")
    page.write_text(text[:start] + "<!-- laws -->\n" + "\n".join(lines) + "\n" + text[end:])


if __name__ == "__main__":
    main()
