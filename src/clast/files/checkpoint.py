"""Full state in one HDF5 file, replaced as a whole and checked by a SHA-256 sum when it is read.

On disk: the tables under `groups/<group>/<column>` (contiguous, uncompressed), the attributes as JSON text in
`attributes`, and `format`, `version` and `sha256` at the root. A crash at any moment leaves either the old file or the
new one under the final name; the one before it stays beside it as `<stem>.previous<suffix>`.
"""

import hashlib
import json
import os
from pathlib import Path

import h5py
import numpy as np

from .. import errors

FORMAT = "clast checkpoint"
VERSION = 8


def previous(path):
    """Where the checkpoint before `path` is kept: `out/checkpoint.h5` -> `out/checkpoint.previous.h5`."""
    path = Path(path)
    return path.with_name(f"{path.stem}.previous{path.suffix}")


def write(path, groups, attributes):
    """Write all tables and attributes to `path`, keeping the file that was there as the previous one.

    groups: dict[str, dict[str, array]] or dict[str, named tuple of arrays], plain numbers only.
    attributes: a dict that JSON can hold (numbers, text, lists, dicts); tuples come back as lists.
    """
    path = Path(path)
    groups = as_groups(groups)
    text = as_json(attributes)
    writing = path.with_name(f"{path.stem}.writing{path.suffix}")
    try:
        with h5py.File(writing, "w") as file:
            file.attrs["format"] = FORMAT
            file.attrs["version"] = VERSION
            file.attrs["sha256"] = checksum(groups, text)
            file.create_dataset("attributes", data=np.frombuffer(text, np.uint8))
            write_groups(file.create_group("groups"), groups)
            file.flush()
        sync(writing)
        if path.exists():
            _keep(path, previous(path))
        os.replace(writing, path)
    except BaseException:
        writing.unlink(missing_ok=True)
        raise
    sync(path.parent)


def read(path):
    """Return (groups, attributes) as `write` got them; raise errors.Damaged if a single bit differs."""
    path = Path(path)
    if not path.exists():
        hint = f"; an earlier one is there: clast.resume({str(previous(path))!r})" if previous(path).exists() else ""
        raise FileNotFoundError(f"no checkpoint {str(path)!r}{hint}")
    try:
        with h5py.File(path, "r", locking=False) as file:
            found, version = file.attrs.get("format"), file.attrs.get("version")
            if found == FORMAT and version == VERSION:
                text = file["attributes"][()].tobytes()
                groups = read_groups(file["groups"])
                stored = file.attrs["sha256"]
    except PermissionError:
        raise
    # A flipped bit can surface as nearly anything inside the HDF5 library.
    except (OSError, KeyError, ValueError, TypeError, RuntimeError, AttributeError, MemoryError) as cause:
        raise errors.Damaged(_damaged(path, f"cannot be read ({cause})")) from cause
    if found != FORMAT:
        raise ValueError(f"{str(path)!r} is not a clast checkpoint (its format is {found!r}); give a checkpoint.h5")
    if version != VERSION:
        raise errors.ClastError(
            f"checkpoint {str(path)!r} has format version {version}, this clast reads {VERSION}; "
            "continue with the version of clast that wrote it, or run again"
        )
    if checksum(groups, text) != stored:
        raise errors.Damaged(_damaged(path, "does not match its checksum"))
    return groups, json.loads(text)


def checksum(groups, text):
    """SHA-256 of all names, dtypes, shapes and bytes in sorted order, and of the JSON bytes `text`."""
    digest = hashlib.sha256(f"{FORMAT} {VERSION}\n".encode())
    for group in sorted(groups):
        digest.update(f"group {group}\n".encode())
        for name in sorted(groups[group]):
            column = groups[group][name]
            digest.update(f"column {name} {column.dtype.str} {column.shape}\n".encode())
            digest.update(column.reshape(-1).view(np.uint8))
    digest.update(b"attributes\n" + text)
    return digest.hexdigest()


def as_groups(groups):
    """The groups as dicts of C-ordered arrays, or a TypeError or ValueError naming the column that cannot be stored."""
    result = {}
    for group, columns in groups.items():
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
        for name, column in columns.items():
            child.create_dataset(name, data=column)


def read_groups(parent):
    """All columns of all groups below the HDF5 group `parent`, as arrays."""
    return {
        group: {name: np.asarray(column[()]) for name, column in columns.items()} for group, columns in parent.items()
    }


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


def _damaged(path, what):
    earlier = previous(path)
    if earlier.exists():
        return f"checkpoint {str(path)!r} {what}; go on from the one before it: clast.resume({str(earlier)!r})"
    return f"checkpoint {str(path)!r} {what}, and there is no earlier one ({str(earlier)!r}); run again from the start"
