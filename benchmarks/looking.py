"""What looking takes: bringing the page to a new frame, and drawing a frame of a movie.

    python benchmarks/looking.py                # both; about four minutes on one core that draws in software
    python benchmarks/looking.py --page         # the page alone, without a browser: what the program itself does
    python benchmarks/looking.py --pictures     # movies of 10,000 spheres, boxes and ellipsoids alone

All figures are processor seconds of this process, so that they hold on a busy machine; what encodes a movie is a child, and counted. These are the
figures of docs/looking.md.
"""

import argparse
import os
import statistics
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

import common  # noqa: F401, puts the code beside these files first
import numpy as np

import clast
from clast import view
from clast.files.trajectory import Frame, Trajectory

PAGES = (1_000, 10_000, 30_000, 50_000)
DRAWN = 10  # frames whose median is told
PICTURES = 10_000
SIZE = (960, 720)
MOVIE = 6  # frames beside the first one
SHAPES = {
    "spheres": clast.Sphere(0.005),
    "boxes": clast.Polyhedron.box(0.008, 0.008, 0.008),
    "ellipsoids": clast.Ellipsoid(0.006, 0.005, 0.004),
}


def heap(shape, count):
    """A scene of `count` bodies on a lattice with random velocities and turns over a plane."""
    random = np.random.default_rng(1)
    side = round(np.ceil(count ** (1.0 / 3.0)))
    place = np.stack(np.meshgrid(*[np.arange(side)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)[:count]
    turn = random.normal(size=(count, 4))
    scene = clast.Scene()
    scene.add(clast.Plane())
    scene.add(
        shape,
        position=(place + 0.5) * 0.013,
        velocity=random.normal(size=(count, 3)),
        orientation=turn / np.linalg.norm(turn, axis=1, keepdims=True),
    )
    return scene


def moments(scene, count):
    """Columns of bodies at `count` moments, as they fly."""
    columns = scene.bodies._asdict()
    for k in range(count):
        yield columns | {"position": columns["position"] + 1e-3 * k * columns["velocity"]}


def page(count):
    """Median processor time [s] of bringing the page to a new frame of `count` spheres; nobody looks on."""
    scene = heap(SHAPES["spheres"], count)
    shown = view.show(scene, port=0)
    spent = []
    try:
        for k, columns in enumerate(moments(scene, DRAWN + 2)):
            frame = Frame(1e-3 * k, k, columns, {})
            began = time.process_time()
            shown.draw(frame)
            spent.append(time.process_time() - began)
    finally:
        shown.close()
    return statistics.median(spent[2:])


def picture(shape):
    """Processor time [s] of a frame of a movie of PICTURES bodies, and of all that a movie takes besides."""
    scene = heap(shape, PICTURES)
    groups, attributes = scene.describe()
    groups.pop("bodies")
    ending = ".mp4" if find_spec("imageio_ffmpeg") else ".gif"
    spent = []
    with tempfile.TemporaryDirectory() as folder:
        for count in (1, 1 + MOVIE):  # the first one twice: what is loaded once must not count as a frame
            path = Path(folder) / f"{count}.h5"
            with Trajectory(path, "w") as frames:
                frames.header(groups, attributes)
                for k, columns in enumerate(moments(scene, count)):
                    frames.append(0.04 * k, k, columns)
            if count == 1:
                view.movie(path, Path(folder) / f"first{ending}", size=SIZE)
            began = used()
            view.movie(path, Path(folder) / f"{count}{ending}", size=SIZE)
            spent.append(used() - began)
    each = (spent[1] - spent[0]) / MOVIE
    return each, spent[0] - each


def used():
    """Processor time [s] of this process and of children that have ended."""
    return sum(os.times()[:4])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--page", action="store_true")
    parser.add_argument("--pictures", action="store_true")
    asked = parser.parse_args()
    both = asked.page == asked.pictures
    if asked.page or both:
        for count in PAGES:
            print(f"page, {count:>6,} spheres: {1000.0 * page(count):6.1f} ms a frame", flush=True)
    if asked.pictures or both:
        for name, shape in SHAPES.items():
            each, rest = picture(shape)
            print(f"movie, {PICTURES:,} {name}: {each:.2f} s a frame, {rest:.2f} s besides", flush=True)


if __name__ == "__main__":
    main()
