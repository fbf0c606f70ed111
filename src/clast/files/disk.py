"""The bytes below HDF5, and what is taken from a file that anybody may have written.

HDF5 changes its tables in many small writes: a process that is killed between two of them leaves a file that no reader
opens, and a full disk leaves the library in a state in which not even closing works. So it writes through the objects here.
"""

import io
import os
import struct
from contextlib import contextmanager, suppress
from pathlib import Path

import h5py
import numpy as np

from .. import errors

try:
    import fcntl
except ImportError:  # Windows has other locks
    fcntl = None  # type: ignore[assignment]

RECORD = struct.Struct("<QQQ")  # of a journal: size of the file before, offset and length of the bytes that follow
USUAL = (FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError)  # which name the path themselves


@contextmanager
def writing(path):
    """Within the block, what the system refuses (a full disk, say) is one line with the path."""
    try:
        yield
    except USUAL:
        raise
    except OSError as fault:
        raise errors.NotWritten(f"{str(path)!r} cannot be written: {fault.strerror or fault}") from fault


class Sink(io.RawIOBase):
    """A file that HDF5 writes through: the first error of the system is kept, and what follows is dropped, because HDF5
    would not even close after an error. `check` raises it."""

    def __init__(self, path, mode):
        super().__init__()
        self.file = open(path, mode, buffering=0)  # noqa: SIM115
        self.fault = None
        self.place, self.end = 0, os.fstat(self.file.fileno()).st_size

    def readable(self):
        return True

    def seekable(self):
        return True

    def writable(self):
        return True

    def seek(self, offset, whence=os.SEEK_SET):
        self.place = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self.place, os.SEEK_END: self.end}[whence]
        return self.place

    def tell(self):
        return self.place

    def readinto(self, buffer):
        self.file.seek(self.place)
        count = self.file.readinto(buffer)
        self.place += count
        return count

    def write(self, data):
        data = memoryview(data).cast("B")
        self._try(self._put, self.place, data)
        self.place += len(data)
        self.end = max(self.end, self.place)
        return len(data)

    def truncate(self, size=None):
        size = self.place if size is None else size
        self._try(self._cut, size)
        self.end = size
        return size

    def flush(self):
        """Nothing is held back."""

    def check(self):
        """Raise what went wrong while HDF5 was writing."""
        if self.fault is not None:
            raise self.fault

    def close(self):
        self.file.close()
        super().close()

    def _try(self, function, *arguments):
        if self.fault is None:
            try:
                function(*arguments)
            except OSError as fault:
                self.fault = fault

    def _put(self, place, data):
        self.file.seek(place)
        put_all(self.file, data)

    def _cut(self, size):
        self.file.truncate(size)


class Journaled(Sink):
    """A file that HDF5 changes in place, such that it can always be put back to the last `commit`.

    What was in the file before a change goes to a journal beside it first. Whoever opens the file with a journal, because a
    run was killed, sees what was there at the last commit. One process at a time.
    """

    def __init__(self, path, *, fresh):
        # Not truncated before the lock is there: another run may be writing it.
        super().__init__(path, "r+b" if path.exists() else "x+b")
        try:
            if fcntl is not None:
                fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.journal = open(journal_of(path), "r+b" if journal_of(path).exists() else "x+b", buffering=0)  # noqa: SIM115
        except BaseException:
            self.file.close()
            raise
        if fresh:
            self.journal.truncate(0)
            self.file.truncate(0)
        else:
            self.roll_back()
        self.end = self.committed = os.fstat(self.file.fileno()).st_size

    def commit(self):
        """From now on the file is as it is."""
        self.check()
        self.journal.truncate(0)
        self.committed = self.end

    def roll_back(self):
        """Put the file back to the last commit."""
        self.journal.seek(0)
        records = list(read_journal(self.journal))
        for size, offset, data in reversed(records):
            self._restore(offset, data)
            self.file.truncate(size)
        self.journal.truncate(0)

    def close(self):
        if self.closed:
            return
        if self.fault is not None:
            with suppress(OSError):
                self.roll_back()
        left = os.fstat(self.journal.fileno()).st_size
        self.journal.close()
        if not left:
            journal_of(self.file.name).unlink(missing_ok=True)
        super().close()

    def _restore(self, offset, data):
        self.file.seek(offset)
        put_all(self.file, data)

    def _put(self, place, data):
        self._keep(place, len(data))
        super()._put(place, data)

    def _cut(self, size):
        self._keep(size, self.end - size)
        super()._cut(size)

    def _keep(self, place, count):
        """Put what is there of committed bytes into the journal."""
        count = min(place + count, self.committed) - place
        if count <= 0:
            return
        self.file.seek(place)
        old = self.file.read(count)
        self.journal.seek(0, os.SEEK_END)
        put_all(self.journal, RECORD.pack(self.committed, place, len(old)) + old)


class Before(io.RawIOBase):
    """A file that is only read, as it was at the last commit; records: of its journal, none if there is none."""

    def __init__(self, path, records):
        super().__init__()
        self.file = open(path, "rb", buffering=0)  # noqa: SIM115
        self.records, self.place = records, 0
        self.end = records[0][0] if records else os.fstat(self.file.fileno()).st_size

    def readable(self):
        return True

    def seekable(self):
        return True

    seek, tell = Sink.seek, Sink.tell

    def readinto(self, buffer):
        self.file.seek(self.place)
        count = self.file.readinto(memoryview(buffer)[: max(0, self.end - self.place)])
        for _, offset, data in reversed(self.records):
            first, last = max(offset, self.place), min(offset + len(data), self.place + count)
            if first < last:
                buffer[first - self.place : last - self.place] = data[first - offset : last - offset]
        self.place += count
        return count

    def close(self):
        self.file.close()
        super().close()


def is_locked(path):
    """Whether a run is writing the file at this moment; False where the system has no such locks."""
    with suppress(OSError), open(path, "rb") as file:
        try:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def journal_of(path):
    """Where the journal of a file is kept: `out/trajectory.h5` -> `out/trajectory.journal.h5`."""
    path = Path(path)
    return path.with_name(f"{path.stem}.journal{path.suffix}")


def read_journal(file):
    """The records (size, offset, bytes) of an open journal; one that was not finished changed nothing and is left out."""
    while len(head := file.read(RECORD.size)) == RECORD.size:
        size, offset, length = RECORD.unpack(head)
        data = file.read(length) if offset + length <= size else b""
        if len(data) != length:
            return
        yield size, offset, data


def as_committed(path):
    """The file open for h5py, which does not close it; where a journal is left, as it was before.

    Never by its path: HDF5 would take a file that is open already for the same one, and not see what was written since.
    """
    try:
        with open(journal_of(path), "rb") as journal:
            records = list(read_journal(journal))
    except FileNotFoundError:
        records = []
    return Before(path, records)


def put_all(file, data):
    """Write all of the data; a raw file may take less at a time."""
    data = memoryview(data)
    while len(data):
        data = data[file.write(data) :]


# What is taken from HDF5.


@contextmanager
def reading(what, remedy):
    """Within the block, whatever HDF5 raises becomes errors.Damaged in one line; what: of which file, remedy: what to do."""
    try:
        yield
    except (*USUAL, errors.ClastError):
        raise
    # A flipped bit can surface as nearly anything inside the HDF5 library.
    except (OSError, KeyError, ValueError, TypeError, RuntimeError, AttributeError, MemoryError) as cause:
        first = " ".join(str(cause).split())
        raise errors.Damaged(f"{what} cannot be read ({first}); {remedy}") from cause


def inside(parent, name, kind):
    """The group or dataset (`kind`) of that name if it lies in this file; a link to elsewhere is not followed."""
    if not isinstance(parent.get(name, getlink=True), h5py.HardLink):
        raise ValueError(f"{parent.name}/{name} is a link; only what is in the file itself is read")
    found = parent[name]
    if not isinstance(found, kind):
        raise ValueError(f"{parent.name}/{name} is not a {kind.__name__.lower()}")
    return found


def plain(parent, name):
    """The dataset of that name, if its numbers lie in this file as they are, all of them and no more."""
    data = inside(parent, name, h5py.Dataset)
    plan = data.id.get_create_plist()
    bare = plan.get_layout() == h5py.h5d.CONTIGUOUS and plan.get_external_count() == 0 and plan.get_nfilters() == 0
    if not bare or data.dtype.kind not in "biufc" or data.id.get_storage_size() != data.size * data.dtype.itemsize:
        raise ValueError(f"{data.name} is not stored as plain numbers")
    return data


def column(parent, name):
    """The numbers of a plain dataset."""
    return np.asarray(plain(parent, name)[()])


def text(item, name):
    """The attribute of that name of a group or file, bytes."""
    found = item.attrs[name]
    if not isinstance(found, bytes):
        raise ValueError(f"attribute {name} of {item.name} is not text")
    return bytes(found)
