"""A run as a row of frames in one HDF5 file: `header/` once, then one group `frames/<number>` per frame.

Floats are kept in single precision (the checkpoint has full precision), integers as they are. Every frame is flushed
and marked complete last, so a killed run leaves all frames that were finished.
"""

import json
from pathlib import Path
from typing import NamedTuple

import h5py
import numpy as np

from .. import errors
from . import checkpoint

FORMAT = "clast trajectory"
VERSION = 4
# What is kept of `tables.Bodies`: enough for pictures and measures, not for going on.
COLUMNS = ("number", "position", "orientation", "velocity", "spin", "scale", "mold", "material", "motion")
SCALAR = "scalar "  # prefix of the HDF5 attributes that hold a frame's scalars


class Frame(NamedTuple):
    """One moment of a run."""

    time: float  # [s]
    step: int
    columns: dict  # name -> (n,...) array, one row per body; names and units as in tables.Bodies
    scalars: dict  # name -> float


class Trajectory:
    """The frames of a run: `len(t)`, `t[i]`, `for frame in t`; closes at the end of a `with` block.

    mode: "r" to read (also while a run is writing it), "w" to start anew, "a" to go on.
    """

    def __init__(self, path, mode="r"):
        self.path = Path(path)
        if mode not in ("r", "w", "a"):
            raise ValueError(f"trajectory mode must be 'r', 'w' or 'a', got {mode!r}")
        fresh = mode == "w" or (mode == "a" and not self.path.exists())
        try:
            if mode == "r":  # No lock: looking at a run must not stop it.
                self._file = h5py.File(self.path, "r", locking=False)
            else:
                self._file = h5py.File(self.path, "w" if fresh else "r+")
        except (FileNotFoundError, PermissionError):
            raise
        except BlockingIOError as cause:
            raise OSError(
                f"trajectory {str(self.path)!r} is being written by another run; stop that one or choose another folder"
            ) from cause
        except OSError as cause:
            raise errors.Damaged(
                f"trajectory {str(self.path)!r} cannot be read ({cause}); move it away: "
                "the checkpoint beside it does not need it"
            ) from cause
        try:
            if fresh:
                self._file.attrs["format"] = FORMAT
                self._file.attrs["version"] = VERSION
                self._file.create_group("frames")
                self._file.flush()
            self._check()
            self._count = self._complete(drop=mode == "a")
        except BaseException:
            self._file.close()
            raise

    def header(self, groups, attributes=None):
        """Store the tables that hold for all frames ("molds", "parts", "meshes", "hulls", "surfaces"); replaces an earlier header."""
        groups, text = checkpoint.as_groups(groups), checkpoint.as_json(attributes or {})
        if "header" in self._file:
            del self._file["header"]
        header = self._file.create_group("header")
        header.create_dataset("attributes", data=np.frombuffer(text, np.uint8))
        checkpoint.write_groups(header.create_group("groups"), groups)
        self._file.flush()

    @property
    def groups(self):
        """The tables of the header: dict[str, dict[str, array]]; empty if there is no header."""
        return checkpoint.read_groups(self._file["header/groups"]) if "header" in self._file else {}

    @property
    def attributes(self):
        """The attributes of the header: dict; empty if there is no header."""
        return json.loads(self._file["header/attributes"][()].tobytes()) if "header" in self._file else {}

    def append(self, time, step, columns, scalars=None):
        """Add a frame and flush it.

        time: [s]. columns: dict[str, (n,...) array], or a tables.Bodies of which COLUMNS are kept; n may differ from
        frame to frame. scalars: dict[str, float], numbers of the whole frame, such as energies [J].
        """
        if hasattr(columns, "_asdict"):
            columns = {name: getattr(columns, name) for name in COLUMNS}
        columns = checkpoint.as_groups({"columns": columns})["columns"]
        scalars = {str(name): float(value) for name, value in (scalars or {}).items()}
        name = _name(self._count)
        if name in self._file["frames"]:  # what an append left that raised half way
            del self._file["frames"][name]
        frame = self._file["frames"].create_group(name)
        for key, column in columns.items():
            frame.create_dataset(key, data=column.astype(np.float32) if column.dtype.kind == "f" else column)
        for key, value in scalars.items():
            frame.attrs[SCALAR + key] = value
        frame.attrs["time"] = float(time)
        frame.attrs["step"] = int(step)
        self._file.flush()
        frame.attrs["complete"] = True
        self._file.flush()
        self._count += 1

    def truncate_after(self, step):
        """Drop all frames later than `step`, for a run that goes on from an earlier checkpoint; return how many.

        The file does not become smaller; the space is used again by frames appended before it is closed.
        """
        before = self._count
        while self._count and self._file["frames"][_name(self._count - 1)].attrs["step"] > step:
            self._count -= 1
            del self._file["frames"][_name(self._count)]
        self._file.flush()
        return before - self._count

    def times(self):
        """Times of all frames, (frames,) [s]."""
        return np.array([self._file["frames"][_name(i)].attrs["time"] for i in range(self._count)], dtype=float)

    def close(self):
        """Close the file; the object is of no further use."""
        self._file.close()

    def __len__(self):
        return self._count

    def __getitem__(self, index):
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(self._count))]
        place = index + self._count if index < 0 else index
        if not 0 <= place < self._count:
            raise IndexError(f"frame {index} of {str(self.path)!r}, which has {self._count} frames")
        frame = self._file["frames"][_name(place)]
        scalars = {k.removeprefix(SCALAR): float(v) for k, v in frame.attrs.items() if k.startswith(SCALAR)}
        columns = {name: column[()] for name, column in frame.items()}
        return Frame(float(frame.attrs["time"]), int(frame.attrs["step"]), columns, scalars)

    def __iter__(self):
        return (self[i] for i in range(self._count))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _check(self):
        found, version = self._file.attrs.get("format"), self._file.attrs.get("version")
        if found != FORMAT:
            raise ValueError(f"{str(self.path)!r} is not a clast trajectory (its format is {found!r})")
        if version != VERSION:
            raise errors.ClastError(
                f"trajectory {str(self.path)!r} has format version {version}, "
                f"this clast reads {VERSION}; use the version of clast that wrote it"
            )

    def _complete(self, drop):
        """Number of finished frames; with `drop` an unfinished last one is deleted."""
        frames = self._file["frames"]
        count = len(frames)
        while count:
            name = _name(count - 1)
            if name in frames and frames[name].attrs.get("complete", False):
                break
            count -= 1
            if drop and name in frames:
                del frames[name]
        return count


def _name(index):
    return f"{index:08d}"
