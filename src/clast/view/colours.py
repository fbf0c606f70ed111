"""Colours of particles and the bar that explains them."""

import numpy as np

from .. import errors

RAMP = ("#3a5d9c", "#3f9bbf", "#8fd0bb", "#f6e3a6", "#f3a158", "#d5432f")  # slow or small to fast or large
PALETTE = ("#d9b382", "#4f86a6", "#c8553d", "#6a994e", "#8d6a9f", "#e0a93b", "#5b6770", "#b5838d")
PLAIN = "#d9b382"  # dry sand
WALL, EDGE, FLOOR, INK = "#ccd4db", "#77838d", "#dde2e7", "#3a444d"
BACKGROUND = ("#e6ebf0", "#ffffff")  # bottom, top


NAMED = ("speed", "force", "size", "material", "number", "coordination")
UNITS = {"mass": "kg", "velocity": "m/s", "spin": "rad/s", "position": "m", "force": "N", "temperature": "K"}


def values(stage, colour):
    """One number per particle (s,), and what it is."""
    if not isinstance(colour, str):
        return np.asarray(colour, dtype=float)[stage.body], ""
    return of_bodies(stage, colour)[stage.body] if colour != "size" else 1000.0 * stage.size, title(colour)


def title(colour):
    """What a colour shows, with its unit."""
    if colour == "size":
        return "radius [mm]"
    if colour == "coordination":
        return "coordination number"
    unit = "m/s" if colour == "speed" else UNITS.get(colour.rpartition("_")[0] or colour, "")
    return f"{colour.replace('_', ' ')} [{unit}]" if unit else colour.replace("_", " ")


def of_bodies(stage, colour):
    """One number per body (n,): speed [m/s], force [N] (sum of the sizes of its contact forces), coordination, or any column, of a
    vector its length or, `velocity_x` say, a component."""
    columns = stage.columns
    if colour == "speed":
        return np.linalg.norm(np.asarray(columns["velocity"], dtype=float), axis=1)
    if colour in ("force", "coordination"):
        if not stage.contacts:
            raise ValueError(
                f"colour {colour!r}: the contacts of this moment are not known; a run keeps them in its frames"
            )
        number, pair = np.asarray(columns["number"]), np.asarray(stage.contacts["pair"])
        if colour == "coordination":
            rows = np.searchsorted(number, np.unique(pair, axis=0) if len(pair) else pair)
            return np.bincount(rows.ravel().astype(int), minlength=len(number)).astype(float)
        size = np.linalg.norm(np.asarray(stage.contacts["force"], dtype=float), axis=1)
        return np.bincount(np.searchsorted(number, pair).ravel().astype(int), np.repeat(size, 2), len(number))
    stem, _, axis = colour.rpartition("_")
    if stem in columns and axis in "xyz" and np.ndim(columns[stem]) == 2:
        return np.asarray(columns[stem], dtype=float)[:, "xyz".index(axis)]
    column = np.asarray(
        columns[errors.pick("colour", colour, {**dict.fromkeys(NAMED), **dict.fromkeys(columns, colour)})], dtype=float
    )
    return column if column.ndim == 1 else np.linalg.norm(column, axis=1)


def limits(stages, colour):
    """Lowest and highest value of the colour scale for several stages."""
    radius = np.concatenate([stage.radius for stage in stages])
    return span(np.concatenate([values(stage, colour)[0] for stage in stages]), colour, radius)


def span(numbers, colour, radius):
    """Lowest and highest of the colour scale for these numbers (s,) of particles of these radii (s,) [m]."""
    if not len(numbers):
        return 0.0, 1.0
    numbers = numbers[np.isfinite(numbers)] if np.isfinite(numbers).any() else np.zeros(1)
    low, high = np.min(numbers), np.max(numbers)
    if isinstance(colour, str) and colour == "force":
        return 0.0, max(float(np.percentile(numbers, 99.0)), 1e-300)
    if isinstance(colour, str) and colour == "speed":
        # What moves by less than its own diameter in a second looks at rest, and is painted so.
        low, high = 0.0, max(np.percentile(numbers, 99.5), 2.0 * np.median(radius))
    return (float(low), float(high)) if high > low else (float(low), float(low) + (abs(float(low)) or 1.0))


def paint(stage, colour, given=None):
    """Colours (s,3) uint8 of the particles, and (low, high, title) for the colour bar or None; given: (low, high)."""
    if colour is None or not len(stage.body):
        return np.tile(rgb(PLAIN), (len(stage.body), 1)), None
    if isinstance(colour, str) and colour == "material":
        palette = np.array([rgb(name) for name in PALETTE])
        return palette[np.asarray(stage.columns["material"])[stage.body] % len(PALETTE)], None
    numbers, title = values(stage, colour)
    low, high = given or span(numbers, colour, stage.radius)
    return ramp((numbers - low) / (high - low)), (low, high, title)


def ramp(fraction):
    """Colours (..., 3) uint8 for fractions from 0 to 1."""
    knots = np.array([rgb(name) for name in RAMP], dtype=float)
    place = np.clip(np.nan_to_num(fraction), 0.0, 1.0) * (len(knots) - 1)
    channels = [np.interp(place, np.arange(len(knots)), knots[:, k]) for k in range(3)]
    return np.stack(channels, axis=-1).round().astype(np.uint8)


def rgb(name):
    """A colour "#rrggbb" as (3,) uint8."""
    return np.array([int(name[k : k + 2], 16) for k in (1, 3, 5)], dtype=np.uint8)


def write_legend(shot, legend, label):
    """A slim colour bar at the right and a line of text at the lower left."""
    from PIL import Image, ImageDraw, ImageFont

    width, height = shot.size
    font = ImageFont.load_default(size=max(11, height // 48))
    draw = ImageDraw.Draw(shot)
    if label:
        draw.text((0.03 * width, 0.965 * height), label, fill=INK, font=font, anchor="ls")
    if not legend:
        return
    low, high, title = legend
    bar, left, top, tall = max(6, width // 110), round(0.925 * width), round(0.33 * height), round(0.34 * height)
    strip = ramp(np.linspace(1.0, 0.0, tall))[:, None, :].repeat(bar, axis=1)
    mask = Image.new("L", (4 * bar, 4 * tall))
    ImageDraw.Draw(mask).rounded_rectangle((0, 0, 4 * bar - 1, 4 * tall - 1), radius=2 * bar, fill=255)
    shot.paste(Image.fromarray(strip), (left, top), mask.resize((bar, tall)))
    middle = min(left + bar / 2, 0.985 * width - draw.textlength(title, font=font) / 2)
    draw.text((middle, top - 0.022 * height), title, fill=INK, font=font, anchor="ms")
    marks = ticks(low, high)
    digits = max(0, -int(np.floor(np.log10(marks[1] - marks[0]) + 1e-9))) if len(marks) > 1 else 2
    for tick in marks:
        y = top + tall * (1.0 - (tick - low) / (high - low))
        draw.text((left + 1.7 * bar, y), f"{tick + 0.0:.{digits}f}", fill=INK, font=font, anchor="lm")


def ticks(low, high):
    """Three to six round numbers between low and high."""
    power = 10.0 ** np.floor(np.log10((high - low) / 3.0))
    step = next(power * k for k in (10, 5, 2, 1) if (high - low) / (power * k) >= 2.0)
    return np.arange(round(np.ceil(low / step - 1e-9)), round(np.floor(high / step + 1e-9)) + 1) * step
