"""`make reliability`: the attacks of attacks.py many times, in pieces; goes on where it was stopped; writes docs/reliability.md.

    python tests/campaign/run.py                 # all that is left
    python tests/campaign/run.py --only kills    # of these
    python tests/campaign/run.py --minutes 10    # for so long
    python tests/campaign/run.py --table         # the page alone, from what was measured
    python tests/campaign/run.py --golden        # store hashes, after a change that is meant to change results

Results of each piece are kept in out/reliability/done.json: remove it to begin again.
"""

import argparse
import itertools
import json
import os
import subprocess
import tempfile
import time
from collections import Counter
from pathlib import Path

import attacks
import exchanged

ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / "out" / "reliability" / "done.json"
PAGE = ROOT / "docs" / "reliability.md"
MARKS = "<!-- measured -->", "<!-- /measured -->"
FIRST = 1000  # seed of the first piece of each part
SHARES = 4  # pieces into which the lengths of a file are divided


def damaging(name, how):
    return lambda folder, seed, tries: attacks.damage(folder, seed, tries, name, how)


def posing(one, two):
    return lambda folder, seed, tries: attacks.poses(seed, tries, one, two)


def plain(function):
    return lambda folder, seed, tries: function(seed, tries)


def fields(text, steps):
    return lambda folder, seed, tries: attacks.every_field(folder, text, steps)


def shooting(method):
    return lambda folder, seed, tries: attacks.shots(seed, tries, method)


def cutting(name):
    return lambda folder, seed, tries: attacks.every_cut(folder, name, seed - FIRST, SHARES)


def soaking(count, steps, rate):
    """Kept beside the results: a million steps take longer than anybody waits at once."""
    folder = KEPT.parent / f"soak_{count}_{steps}"
    return lambda _, seed, tries: attacks.soak(folder, seed, tries, count, steps, rate)


SOAKED = "the end of one not killed, memory"
# What, words for the page, function(folder, seed, tries), tries in all, tries of a piece. 0 tries of a piece: it has as many as there are.
PARTS = {
    "flips of a checkpoint": ("refused or the same numbers", damaging("checkpoint.h5", "flip"), 10_000, 1000),
    "cuts of a checkpoint": ("every length, refused", cutting("checkpoint.h5"), SHARES, 0),
    "flips of a trajectory": ("refused or the same numbers", damaging("trajectory.h5", "flip"), 10_000, 1000),
    "cuts of a trajectory": ("every length, refused", cutting("trajectory.h5"), SHARES, 0),
    "kills": ("a checkpoint loads, every frame once", attacks.kills, 200, 20),
    "scene files": ("one line or a scene, 10 s, 6 GB", attacks.scene_files, 100_000, 5000),
    "mesh files": ("one line or a mesh, 10 s, 6 GB", attacks.mesh_files, 100_000, 5000),
    "numbers of a scene file, spheres": ("one line or a step", fields(exchanged.SCENE, 1), 1, 0),
    "numbers of a scene file, every shape": ("one line or a step", fields(exchanged.KINDS, 1), 1, 0),
    "numbers of a scene file, hard contacts": ("one line or a step", fields(exchanged.HARD, 1), 1, 0),
    "numbers of a scene file, joints": ("one line or a step", fields(exchanged.JOINED, 1), 1, 0),
    "cone problems": ("finite, in the cones, the flag is right", plain(attacks.cones), 10_000, 1000),
    "not a number": ("named by the next step", plain(attacks.not_numbers), 200, 50),
    "restarts": ("the bits of a run never stopped, 1, 2 or 4 threads", attacks.bits, 300, 60),
    "shots, hard contacts": ("inside plus reported is all", shooting("hard"), 384, 48),
    "shots, smooth contacts": ("inside plus reported is all", shooting("dem"), 384, 48),
    "a long run, killed: 60 bodies, 1,000,000 steps": (SOAKED, soaking(60, 1_000_000, 2.0), 20, 20),
    "a long run, killed: 2,000 bodies, 20,000 steps": (SOAKED, soaking(2000, 20_000, 50.0), 20, 20),
    "a long run, killed: 2,000 bodies, 1,000,000 steps": (SOAKED, soaking(2000, 1_000_000, 50.0), 20, 20),
}
KINDS = "sphere", "clump", "ellipsoid", "polyhedron", "superquadric", "mesh"
for _one, _two in itertools.combinations_with_replacement(KINDS, 2):
    PARTS[f"poses, {_one} and {_two}"] = (
        "finite, unit normals, the same when swapped, the room that there is",
        posing(_one, _two),
        1_000_000,
        50_000,
    )


def load():
    return json.loads(KEPT.read_text()) if KEPT.exists() else {}


def keep(done):
    KEPT.parent.mkdir(parents=True, exist_ok=True)
    writing = KEPT.with_suffix(".writing")
    writing.write_text(json.dumps(done, indent=1))
    writing.replace(KEPT)


def revision():
    """The commit of the sources, to be told beside what was measured on them."""
    told = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short=7", "HEAD"], capture_output=True, text=True)
    return told.stdout.strip() or "unknown"


def spent():
    """Processor time [s] of this process and of those that it waited for."""
    return sum(os.times()[:4])


def piece(name, minutes_left):
    """Do the next piece of a part; whether there was one left."""
    words, function, tries, size = PARTS[name]
    so_far = load().get(name, {"pieces": 0, "outcomes": {}, "seconds": 0.0, "code": []})
    if so_far["pieces"] * (size or 1) >= tries or minutes_left <= 0.0:
        return False
    began, code = spent(), revision()
    with tempfile.TemporaryDirectory() as folder:
        found = function(folder, FIRST + so_far["pieces"], size)
    so_far["outcomes"] = dict(Counter(so_far["outcomes"]) + Counter(found))
    so_far["pieces"] += 1
    so_far["code"] = list(dict.fromkeys([*so_far["code"], code]))
    so_far["seconds"] += spent() - began
    keep(load() | {name: so_far})  # another process may have done another part meanwhile
    bad = sum(count for what, count in so_far["outcomes"].items() if what.startswith(attacks.BAD))
    print(f"{name}: {so_far['pieces'] * (size or 1):,} of {tries:,}, {bad} bad, {so_far['seconds']:.0f} s", flush=True)
    return True


def table(done):
    """The lines of the page."""
    lines = [
        "| attack | asked for | tries | of | outcomes | what must not be | CPU s | commit |",
        "|---|---|---:|---:|---|---|---:|---|",
    ]
    for name, (words, _, tries, size) in PARTS.items():
        told = done.get(name)
        if not told or not told["pieces"]:
            lines.append(f"| {name} | {words} | not yet run | {f'{tries:,}' if size else 'all'} | | | | |")
            continue
        outcomes = told["outcomes"]
        bad = {what: count for what, count in outcomes.items() if what.startswith(attacks.BAD)}
        tried = sum(outcomes.values())
        fine = ", ".join(f"{count:,} {what}" for what, count in sorted(outcomes.items()) if what not in bad)
        worst = f"**{sum(bad.values()):,}**: {next(iter(bad)).removeprefix(attacks.BAD)}" if bad else "none"
        whole = f"{tries:,}" if size else "all" if told["pieces"] == tries else f"{told['pieces']} of {tries} shares"
        lines.append(
            f"| {name} | {words} | {tried:,} | {whole} | {fine} | {worst} | {told['seconds']:.0f} | {', '.join(told['code'])} |"
        )
    return lines


def write_page(done):
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(MARKS[0])
    _, after = rest.split(MARKS[1])
    PAGE.write_text("\n".join([before + MARKS[0], "", *table(done), "", MARKS[1] + after]), encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="parts whose name has this in it")
    parser.add_argument("--minutes", type=float, default=1e9)
    parser.add_argument("--table", action="store_true", help="write the page and leave")
    parser.add_argument("--golden", action="store_true", help="store the hashes of this processor, and leave")
    given = parser.parse_args()
    if given.golden:
        attacks.store_golden()
        return
    began = time.perf_counter()

    def left():
        return given.minutes - (time.perf_counter() - began) / 60.0

    names = [name for name in PARTS if given.only in name]
    more = not given.table
    while more:  # in turn, so that a run that is stopped early has done some of each
        more = sum(piece(name, left()) for name in names) > 0
    write_page(load())


if __name__ == "__main__":
    main()
