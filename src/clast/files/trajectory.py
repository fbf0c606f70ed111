"""A run as a row of frames in one HDF5 file: `header/` once, then one group `frames/<number>` per frame.

Floats are kept in single precision (the checkpoint has full precision), integers as they are. A frame is there whole or not
at all, whenever the run is killed (see `disk.Journaled`), and has a SHA-256 sum over all it holds. HDF5 itself keeps sums of its own
tables in files of version 1.8 and later, which these are.
"""

import hashlib
import json
import time as clock
from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple, overload

import h5py
import numpy as np

from .. import errors
from ..signatures import Columns, File, Floats, Series, Whole
from ..tables import Bodies, Contacts
from . import checkpoint, disk

FORMAT = "clast trajectory"
VERSION = 4
LIBRARY = ("v108", "v108")
PATIENCE, PAUSE = 40, 0.05  # how often, and after how long [s], a file is read again that a run is writing
ROWS = 100_000  # of a column that are read again at a time, for its sum
CONTACT = "contact_"  # in the file the columns of contacts have this before their names
# What is kept of `tables.Bodies` and `tables.Contacts`: enough for pictures and measures, not for going on.
CONTACT_COLUMNS = ("pair", "point", "normal", "force")
LOSS = "dissipation"  # [W], of each contact where a ledger is kept
WARMTH = ("temperature",)  # where bodies have one
COLUMNS = ("number", "position", "orientation", "velocity", "spin", "scale", "mass", "mold", "material", "motion")


class Frame(NamedTuple):
    """One moment of a run."""

    time: float  # [s]
    step: int
    columns: dict  # name -> (n,...) array, one row per body; names and units as in tables.Bodies
    scalars: dict  # name -> float
    contacts: dict = {}  # name -> (c,...) array, one row per contact point, as in tables.Contacts; empty if not kept


class Trajectory:
    """The frames of a run: `len(t)`, `t[i]`, `for frame in t`; closes at the end of a `with` block.

    mode: "r" to read, also while a run is writing it: the frames that were there when it was opened; "w" to start anew, "a" to go on.
    """

    def __init__(self, path: File, mode: Literal["r", "w", "a"] = "r") -> None:
        self.path = errors.path_of(path, "Trajectory: the first argument must be the path of a trajectory.h5")
        if self.path.is_dir():
            raise IsADirectoryError(f"{str(self.path)!r} is a folder; give the path of its trajectory.h5")
        if mode not in ("r", "w", "a"):
            raise ValueError(f"trajectory mode must be 'r', 'w' or 'a', got {mode!r}")
        self._mode = mode
        self._sink: Any = None  # what h5py writes to, or
        self._source: Any = None  # reads from
        self._file: Any = None
        self._patiently(self._begin, fresh=False)

    def _begin(self):
        """Open the file and count its frames."""
        mode = self._mode
        fresh = mode == "w" or (mode == "a" and not self.path.exists())
        try:
            if not fresh:
                self._look()
            with self._reading():
                if mode == "r":  # No lock: looking at a run must not stop it.
                    self._source = disk.as_committed(self.path)
                    self._file = h5py.File(self._source, "r")
                else:
                    self._file = self._open(fresh)
                found = self._file.attrs["format"], self._file.attrs["version"]
            self._check(*found)
            with self._reading():
                self._count = self._complete(drop=mode == "a")
            self._commit()
        except BaseException:
            self.close()
            raise

    def _patiently(self, read, *arguments, fresh=True):
        """What `read` gives. While a run changes the file what was read may not fit together: then it is read again, a little later,
        from a file that is opened anew (fresh)."""
        ended = False  # the run may come to its end between a look at the file and one at its lock
        for attempt in range(PATIENCE):
            try:
                if attempt and fresh:
                    self.close()
                    self._begin()
                return read(*arguments)
            except (errors.Damaged, IndexError):
                if self._mode != "r" or ended:
                    raise
                ended = not disk.is_locked(self.path)
            clock.sleep(0.0 if ended else PAUSE)
        raise errors.ClastError(
            f"trajectory {str(self.path)!r} is being written and changes faster than it can be read; read it again later"
        )

    def _open(self, fresh):
        """The file for writing."""
        try:
            with disk.writing(self.path):
                self._sink = disk.Journaled(self.path, fresh=fresh)
        except errors.NotWritten as fault:
            if not isinstance(fault.__cause__, BlockingIOError):
                raise
            raise errors.NotWritten(
                f"trajectory {str(self.path)!r} is being written by another run; stop that one or choose another folder"
            ) from fault
        file = h5py.File(self._sink, "w" if fresh else "r+", libver=LIBRARY)
        if fresh:
            file.attrs["format"], file.attrs["version"] = np.bytes_(FORMAT), VERSION
            file.create_group("frames")
        return file

    def _commit(self):
        """All that was written stands."""
        if self._sink is not None:
            with disk.writing(self.path):
                try:
                    self._file.flush()
                except (OSError, RuntimeError):  # of HDF5, which reads back what could not be written
                    self._sink.check()
                    raise
                self._sink.commit()

    def _reading(self):
        return disk.reading(f"trajectory {str(self.path)!r}", "move it away: the checkpoint beside it does not need it")

    def header(self, groups: Mapping, attributes: Mapping | None = None) -> None:
        """Store the tables that hold for all frames ("molds", "parts", "meshes", "hulls", "surfaces"); replaces an earlier header."""
        groups, text = checkpoint.as_groups(groups), checkpoint.as_json(attributes or {})
        if "header" in self._file:
            del self._file["header"]
        header = self._file.create_group("header")
        header.create_dataset("attributes", data=np.frombuffer(text, np.uint8))
        checkpoint.write_groups(header.create_group("groups"), groups)
        header.attrs["sha256"] = _sum("header", text, groups)
        self._commit()

    def _header(self):
        """(groups, attributes) of the header, checked."""
        if "header" not in self._file:
            return {}, {}
        with self._reading():
            header = disk.inside(self._file, "header", h5py.Group)
            text = disk.column(header, "attributes").tobytes()
            groups = checkpoint.read_groups(disk.inside(header, "groups", h5py.Group))
            if disk.text(header, "sha256") != _sum("header", text, groups):
                raise ValueError("the header does not match its checksum")
            return groups, json.loads(text)

    @property
    def groups(self) -> dict[str, Series]:
        """The tables of the header: dict[str, dict[str, array]]; empty if there is no header."""
        return self._header()[0]

    @property
    def attributes(self) -> dict[str, Any]:
        """The attributes of the header: dict; empty if there is no header."""
        return self._header()[1]

    def append(
        self,
        time: float,
        step: Whole,
        columns: Bodies | Columns,
        scalars: Mapping[str, float] | None = None,
        contacts: Contacts | Columns | None = None,
    ) -> None:
        """Add a frame and flush it.

        time: [s]. columns: dict[str, (n,...) array], or a tables.Bodies of which COLUMNS are kept; n may differ from
        frame to frame. scalars: dict[str, float], numbers of the whole frame, such as energies [J]. contacts: a
        tables.Contacts, see `contact_columns`, or a dict as that gives it, or None. In place of a dict there may be a table that comes in pieces, see
        `checkpoint.write`.
        """
        if hasattr(columns, "_asdict"):
            columns = {name: getattr(columns, name) for name in (*COLUMNS, *WARMTH) if hasattr(columns, name)}
        if hasattr(contacts, "_asdict"):
            contacts = contact_columns(contacts)
        scalars = {str(name): float(value) for name, value in (scalars or {}).items()}
        name = _name(self._count)
        if name in self._file["frames"]:  # what an append left that raised half way
            del self._file["frames"][name]
        frame = self._file["frames"].create_group(name)
        stored: dict[str, Any] = {}
        for before, table in (("", columns), (CONTACT, contacts or {})):
            if hasattr(table, "pieces"):
                stored |= checkpoint.write_pieces(frame, table, before, _kept)
                continue
            for key, column in checkpoint.as_groups({"columns": table})["columns"].items():
                stored[before + key] = column = column.astype(_kept(column.dtype), copy=False)
                frame.create_dataset(before + key, data=column)
        text = checkpoint.as_json({"time": float(time), "step": int(step), "scalars": scalars})
        frame.attrs["about"] = np.bytes_(text)
        frame.attrs["sha256"] = _sum(name, text, {"columns": stored})
        self._commit()
        self._count += 1

    def truncate_after(self, step: int) -> int:
        """Drop all frames later than `step`, for a run that goes on from an earlier checkpoint; return how many.

        The file does not become smaller; the space is used again by frames appended before it is closed.
        """
        before = self._count
        with self._reading():
            while self._count and self._about(self._count - 1)["step"] > step:
                self._count -= 1
                del self._file["frames"][_name(self._count)]
        self._commit()
        return before - self._count

    @property
    def last_step(self) -> int:
        """Step of the last frame; -1 if there is none."""
        with self._reading():
            return int(self._about(self._count - 1)["step"]) if self._count else -1

    def _told(self):
        """Time, step and scalars of all frames."""

        def read():
            with self._reading():
                return [self._about(i) for i in range(self._count)]

        return self._patiently(read)

    def times(self) -> Floats:
        """Times of all frames, (frames,) [s]."""
        return np.array([one["time"] for one in self._told()], dtype=float)

    def series(self) -> Series:
        """Numbers over time: dict of arrays (frames,), `time` [s], `step`, and every scalar; NaN where a frame lacks it."""
        told = self._told()
        names = dict.fromkeys(name for one in told for name in one["scalars"])
        series = {
            "time": np.array([one["time"] for one in told], float),
            "step": np.array([one["step"] for one in told], int),
        }
        return series | {name: np.array([one["scalars"].get(name, np.nan) for one in told], float) for name in names}

    def close(self) -> None:
        """Close the file; the object is of no further use."""
        if self._sink is None:
            if self._file is not None:
                self._file.close()
            if self._source is not None:
                self._source.close()
            return
        try:
            if self._file is not None:
                self._file.close()
            if not self._sink.closed and self._sink.fault is None:
                self._sink.commit()
        except (OSError, RuntimeError):
            # Behind a fault of the disk, which was told when it came, HDF5 complains once more.
            if self._sink.fault is None:
                raise
        finally:
            self._sink.close()  # behind a fault the file is put back to the last whole frame

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: Whole) -> Frame: ...

    @overload
    def __getitem__(self, index: slice) -> list[Frame]: ...

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(self._count))]
        place = index + self._count if index < 0 else index
        if not 0 <= place < self._count:
            raise IndexError(f"frame {index} of {str(self.path)!r}, which has {self._count} frames")
        return self._patiently(self._frame, place)

    def _frame(self, place):
        """Frame number `place`, checked."""
        name = _name(place)
        with self._reading():
            frame = disk.inside(self._frames(), name, h5py.Group)
            text = disk.text(frame, "about")
            columns = {key: disk.column(frame, key) for key in frame}
            if disk.text(frame, "sha256") != _sum(name, text, {"columns": columns}):
                raise ValueError(f"frame {place} does not match its checksum")
            about = json.loads(text)
            touching = {key.removeprefix(CONTACT): columns.pop(key) for key in list(columns) if key.startswith(CONTACT)}
            return Frame(float(about["time"]), int(about["step"]), columns, about["scalars"], touching)

    def __iter__(self) -> Iterator[Frame]:
        return (self[i] for i in range(self._count))

    def __enter__(self) -> "Trajectory":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _frames(self):
        return disk.inside(self._file, "frames", h5py.Group)

    def _about(self, index):
        """Time, step and scalars of a frame, without its columns and so without its checksum; HDF5 has one for these."""
        return json.loads(disk.text(disk.inside(self._frames(), _name(index), h5py.Group), "about"))

    def _look(self):
        """Refuse what this clast did not write before HDF5 looks at it: without sums of its tables it may search for ever."""
        with open(self.path, "rb") as file:
            start = file.read(8192)
        if start[:8] == b"\x89HDF\r\n\x1a\n" and start[8:9] in (b"\0", b"\1"):
            if FORMAT.encode() in start:
                self._check(FORMAT.encode(), "3 or earlier")
            self._check(b"another HDF5 file", None)

    def _check(self, found, version):
        if found != FORMAT.encode():
            found = found.decode(errors="replace") if isinstance(found, bytes) else found
            raise ValueError(f"{str(self.path)!r} is not a clast trajectory (its format is {found!r})")
        if version != VERSION:
            raise errors.ClastError(
                f"trajectory {str(self.path)!r} has format version {version}, "
                f"this clast reads {VERSION}; use the version of clast that wrote it"
            )

    def _complete(self, drop):
        """Number of finished frames; with `drop` an unfinished last one is deleted."""
        frames = self._frames()
        count = len(frames)
        while count:
            name = _name(count - 1)
            if name in frames and "sha256" in disk.inside(frames, name, h5py.Group).attrs:
                break
            count -= 1
            if drop and name in frames:
                del frames[name]
        return count


def _sum(name, text, groups):
    """SHA-256 of a name, JSON bytes, and all names, dtypes, shapes and bytes of tables in sorted order."""
    digest = hashlib.sha256(f"{FORMAT} {VERSION} {name}\n".encode() + text)
    for group in sorted(groups):
        for key, column in sorted(groups[group].items()):
            digest.update(f"\ncolumn {group} {key} {column.dtype.str} {column.shape}\n".encode())
            for some in _blocks(column):
                digest.update(np.ascontiguousarray(some).reshape(-1).view(np.uint8))
    return np.bytes_(digest.hexdigest())


def _blocks(column):
    """An array as it is; what lies in the file some rows after the other."""
    if isinstance(column, np.ndarray):
        yield column
    else:
        for first in range(0, len(column), ROWS):
            yield column[first : first + ROWS]


def _kept(dtype):
    """The type in which numbers of this type are kept."""
    return np.dtype(np.float32) if dtype.kind == "f" else dtype


def contact_columns(contacts: Any) -> Series:
    """What frames keep of tables.Contacts: CONTACT_COLUMNS, and the dissipation where they tell it; {name: column}."""
    columns = {name: getattr(contacts, name) for name in CONTACT_COLUMNS}
    if LOSS in (contacts.kept.dtype.names or ()):
        columns[LOSS] = contacts.kept[LOSS]
    return columns


def _name(index):
    return f"{index:08d}"
