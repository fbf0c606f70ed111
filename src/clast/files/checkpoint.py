"""Full state in one HDF5 file, replaced as a whole; its SHA-256 sum is checked before anything else looks at it.

On disk: the tables under `groups/<group>/<column>` (contiguous, uncompressed) and the attributes as JSON text in
`attributes`; behind the HDF5 data, where HDF5 does not look, one line with format, version and the sum of all before it. A crash
at any moment leaves either the old file or the new one under the final name; the one before it stays beside it as
`<stem>.previous<suffix>`.
"""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from .. import errors
from . import disk

FORMAT = "clast checkpoint"
VERSION = 12
SEAL = len(f"\n{FORMAT} {VERSION:4d} sha256 {'0' * 64}\n")  # bytes of the last line
EARLY = 8192  # bytes from the start within which files of version 7 and before name their format


def previous(path):
    """Where the checkpoint before `path` is kept: `out/checkpoint.h5` -> `out/checkpoint.previous.h5`."""
    path = Path(path)
    return path.with_name(f"{path.stem}.previous{path.suffix}")


def write(path, groups, attributes):
    """Write all tables and attributes to `path`, keeping the file that was there as the previous one.

    groups: dict[str, dict[str, array]] or dict[str, named tuple of arrays], plain numbers only; or tables that come in pieces: `like`,
    {name: (dtype, shape)}, and `pieces()`, an iterator of {name: rows}.
    attributes: a dict that JSON can hold (numbers, text, lists, dicts); tuples come back as lists.
    """
    path = Path(path)
    groups = as_groups(groups)
    text = as_json(attributes)
    writing = path.with_name(f"{path.stem}.writing{path.suffix}")
    try:
        with disk.writing(path):
            _write_hdf5(writing, groups, text)
            with open(writing, "ab") as file:
                file.write(_seal(_digest(writing)))
            sync(writing)
        if path.exists():
            _keep(path, previous(path))
        os.replace(writing, path)
    except BaseException:
        writing.unlink(missing_ok=True)
        raise
    sync(path.parent)


def read(path, later=()):
    """Return (groups, attributes) as `write` got them; raise errors.Damaged if a single bit differs. later: names of groups that are given as
    Stored, to be read in pieces."""
    path = Path(path)
    if not path.exists():
        hint = f"; an earlier one is there: clast.resume({str(previous(path))!r})" if previous(path).exists() else ""
        raise FileNotFoundError(f"no checkpoint {str(path)!r}{hint}")
    with open(path, "rb", buffering=0) as file:
        _check(path, file)
        with disk.reading(f"checkpoint {str(path)!r}", _remedy(path)), h5py.File(file, "r") as stored:
            text = disk.column(stored, "attributes").tobytes()
            groups = disk.inside(stored, "groups", h5py.Group)
            found = read_groups(groups, [name for name in groups if name not in later])
            kept = {name: disk.inside(groups, name, h5py.Group) for name in later if name in groups}
            return found | {name: Stored(path, name, group) for name, group in kept.items()}, json.loads(text)


class Stored:
    """A table of a checkpoint that stays on the disk: names of its columns, and count of its rows."""

    def __init__(self, path, name, group):
        self.path, self.name = path, name
        self.names = tuple(group)
        self.count = max((disk.plain(group, name).shape[0] for name in group), default=0)

    def pieces(self, rows):
        """So many rows after the other, at the most: {name: rows}."""
        with (
            open(self.path, "rb", buffering=0) as file,
            disk.reading(f"checkpoint {str(self.path)!r}", _remedy(self.path)),
        ):
            with h5py.File(file, "r") as stored:
                group = disk.inside(disk.inside(stored, "groups", h5py.Group), self.name, h5py.Group)
                for first in range(0, max(self.count, 1), rows):
                    yield {name: disk.plain(group, name)[first : first + rows] for name in self.names}


def _write_hdf5(path, groups, text):
    sink = disk.Sink(path, "w+b")
    try:
        with h5py.File(sink, "w") as file:
            file.create_dataset("attributes", data=np.frombuffer(text, np.uint8))
            write_groups(file.create_group("groups"), groups)
        sink.check()
    except RuntimeError:  # of HDF5, which reads back what could not be written
        sink.check()
        raise
    finally:
        sink.close()


def _digest(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _seal(digest):
    """The last line of a file whose other bytes have this sum."""
    return f"\n{FORMAT} {VERSION:4d} sha256 {digest}\n".encode()


def _check(path, file):
    """Raise unless the open file ends in a line that has the sum of everything before."""
    size = os.fstat(file.fileno()).st_size
    digest, left = hashlib.sha256(), max(size - SEAL, 0)
    while left and (piece := file.read(min(left, 1 << 20))):
        digest.update(piece)
        left -= len(piece)
    seal = file.read(SEAL)
    if seal == _seal(digest.hexdigest()):
        return
    words = seal.split()
    known = len(seal) == SEAL and seal.startswith(f"\n{FORMAT} ".encode()) and len(words) == 5
    if known and words[2].isdigit() and int(words[2]) != VERSION:
        raise _other_version(path, int(words[2]))
    if not known:
        file.seek(0)
        start = file.read(EARLY)
        if FORMAT.encode() in start and start.startswith(b"\x89HDF"):
            raise _other_version(path, "7 or earlier")
        if b"clast trajectory" in start:
            raise ValueError(f"{str(path)!r} is not a clast checkpoint but a trajectory; give a checkpoint.h5")
    raise errors.Damaged(f"checkpoint {str(path)!r} does not match its checksum; {_remedy(path)}")


def _other_version(path, version):
    return errors.ClastError(
        f"checkpoint {str(path)!r} has format version {version}, this clast reads {VERSION}; "
        "continue with the version of clast that wrote it, or run again"
    )


def as_groups(groups):
    """The groups as dicts of C-ordered arrays, or a TypeError or ValueError naming the column that cannot be stored."""
    result: dict[str, Any] = {}
    for group, columns in groups.items():
        if hasattr(columns, "pieces"):
            result[_name(group)] = columns
            continue
        columns = columns._asdict() if hasattr(columns, "_asdict") else columns
        result[_name(group)] = kept = {}
        for name, column in columns.items():
            column = np.asarray(column)
            if column.dtype.kind not in "biufc":
                raise TypeError(
                    f"column {group}/{name} has dtype {column.dtype}; only numbers can be stored, "
                    "put text into the attributes"
                )
            # ascontiguousarray would turn a single number into an array of one.
            kept[_name(name)] = column if column.flags.c_contiguous else np.ascontiguousarray(column)
    return result


def as_json(attributes):
    """The attributes as JSON bytes; NumPy numbers become plain ones."""

    def plain(value):
        if isinstance(value, np.generic):
            return value.item()
        raise TypeError(
            f"attribute value {value!r} of {type(value).__name__} cannot be stored; "
            "use numbers, text, lists or dicts, and put arrays into a group"
        )

    return json.dumps(attributes, default=plain).encode()


def write_groups(parent, groups):
    """Write `as_groups` output below the HDF5 group `parent`."""
    for group, columns in groups.items():
        child = parent.create_group(group)
        if hasattr(columns, "pieces"):
            write_pieces(child, columns)
            continue
        for name, column in columns.items():
            child.create_dataset(name, data=column)


def write_pieces(parent, table, before="", kept=lambda dtype: dtype):
    """Write a table that comes in pieces, one after the other; only one is in memory. Returns {name: data set}.

    before: put before the names of its columns; kept: function that tells in which type a column of some type is kept.
    """
    like = {name: (shape, kept(dtype)) for name, (dtype, shape) in table.like.items()}
    stored = {name: parent.create_dataset(before + name, *about) for name, about in like.items()}
    ends = dict.fromkeys(stored, 0)
    for piece in table.pieces():
        for name, rows in piece.items():
            first, ends[name] = ends[name], ends[name] + len(rows)
            stored[name][first : ends[name]] = rows.astype(stored[name].dtype, copy=False)
    return {before + name: data for name, data in stored.items()}


def read_groups(parent, names=None):
    """All columns of all groups, or of those with these names, below the HDF5 group `parent`, as arrays."""
    groups = {name: disk.inside(parent, name, h5py.Group) for name in (parent if names is None else names)}
    return {group: {name: disk.column(columns, name) for name in columns} for group, columns in groups.items()}


def sync(path):
    """Ask the system to put a file, or the names in a folder, on the disk."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except PermissionError:  # Windows does not open folders, and needs no such call.
        if os.name == "nt":
            return
        raise
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _keep(path, earlier):
    """Give the file `path` the name `earlier` too, so that `path` never disappears, not even for a moment."""
    link = earlier.with_name(f"{earlier.stem}.link{earlier.suffix}")
    link.unlink(missing_ok=True)
    try:
        os.link(path, link)
    except OSError:  # A file system without hard links: for an instant only the previous name exists.
        os.replace(path, earlier)
        return
    try:
        os.replace(link, earlier)
    finally:
        link.unlink(missing_ok=True)


def _name(name):
    if not isinstance(name, str) or not name or "/" in name or name == ".":
        raise ValueError(f"{name!r} cannot name a stored column or group; use a word without '/'")
    return name


def _remedy(path):
    earlier = previous(path)
    if earlier.exists():
        return f"go on from the one before it: clast.resume({str(earlier)!r})"
    return f"there is no earlier one ({str(earlier)!r}): run again from the start"
