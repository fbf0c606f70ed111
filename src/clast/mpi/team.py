"""The processes that share a run: which of them this is, what they tell each other, and how one that fails ends all.

Started by `mpirun -n 4`, all run the same program. mpi4py is imported only then, or if the program has done so itself.
"""

import atexit
import json
import os
import pickle
import platform
import sys
import time
import zlib
from contextlib import contextmanager
from fractions import Fraction
from importlib.metadata import version
from typing import Any

import numpy as np

from ..errors import ClastError, Unavailable

# What launchers tell a process of how many there are: MPICH and Intel MPI, Open MPI, Slurm. By PMIx it hears which it is, not of how many.
SIZES = ("PMI_SIZE", "MPI_LOCALNRANKS", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS")
RANK = "PMIX_RANK"
RANKS = ("PMI_RANK", "OMPI_COMM_WORLD_RANK", RANK, "SLURM_PROCID")  # and which of them it is
PATIENCE = 1.0  # [s], for others to leave too, before they are ended

LONG = 10.0  # [s], after which who waits for others to call a function says so
REST, SHORT = 0.01, 0.001  # [s], between two looks whether others are there

_team: list = []  # the Team once it is known, or None where there is one process
_alone = [0]


def launched():
    """How many processes the launcher says there are; 1 without one, 0 if one does not say how many."""
    told = [int(text) for text in (os.environ.get(name, "") for name in SIZES) if text.isdigit()]
    return max(told, default=0 if RANK in os.environ else 1)


def first_launched():
    """Whether this process is the first of those that the launcher started, or alone; asked without starting MPI. None where that is not known."""
    if launched() == 1:
        return True
    told = [int(text) for text in (os.environ.get(name, "") for name in RANKS) if text.isdigit()]
    return told[0] == 0 if told else None


def find():
    """The Team of this process, or None if it is the only one."""
    if _alone[0]:
        return None
    if not _team:
        if launched() == 1 and "mpi4py.MPI" not in sys.modules:
            return None
        try:
            from mpi4py import MPI
        except (ImportError, RuntimeError) as fault:  # the package is missing, or the library that it loads
            raise Unavailable(
                f"{launched() or 'many'} processes were started, and mpi4py, which lets them share a run, is missing here or finds no "
                f"MPI library ({' '.join(str(fault).split())}); pip install 'clast[mpi]', or start one process"
            ) from fault
        _team.append(Team(MPI.COMM_WORLD) if MPI.COMM_WORLD.size > 1 else None)
    return _team[-1]


def leads():
    """Whether this process writes files and says things: the first of all, or the only one."""
    team = find()
    return team is None or team.rank == 0


def first_does(function):
    """Let the first process alone call it, to write a file say; what goes wrong there, or an interrupt, is raised everywhere."""
    team = find()
    if team is None:
        function()
    else:
        team.first_does(function)


def first_says(value):
    """What the first process has."""
    team = find()
    return value if team is None else team.first_says(value)


def leave(code):
    """End all processes because this one leaves with an exit code other than 0; returns where there is one process."""
    if _team and _team[0] is not None:
        _team[0].leave(code)


@contextmanager
def using(comm):
    """Within the block the processes of this communicator of mpi4py share what is simulated, in a program that has more."""
    _team.append(Team(comm) if comm.size > 1 else None)
    try:
        yield _team[-1]
    finally:
        _team.pop()


@contextmanager
def alone():
    """Within the block this process is by itself: a simulation made there is not shared."""
    _alone[0] += 1
    try:
        yield
    finally:
        _alone[0] -= 1


def threads_for(cores, everyone):
    """Threads for a process that may run on these cores, a set; everyone: those of all processes of the machine. A core that several may run
    on is divided among them."""
    return max(1, int(sum(Fraction(1, sum(core in others for others in everyone)) for core in cores)))


class Team:
    """All processes of a run. What its methods do, all processes do at the same time.

    rank: the number of this one, from 0; size: how many there are; sent, messages: what this one has given to others, bytes and how often, where what
    goes to all counts once; waited: wall time [s] until others had answered; idle: processor time [s] of that, and of files that this one wrote
    for all, which no other tile would make less.
    """

    def __init__(self, comm):
        from mpi4py import MPI

        self.MPI, self.comm = MPI, comm.Dup()
        # Those who leave or were interrupted must not be taken for ones who meet elsewhere, so each meets in its own place.
        self._exit, self._halt, self._end, self._door = (comm.Dup() for _ in range(4))
        self.rank, self.size = self.comm.rank, self.comm.size
        self.sent, self.messages, self.waited, self.idle = 0, 0, 0.0, 0.0
        self._leaving: Any = None
        self._code = 0  # with which this process was asked to leave by sys.exit
        # How often this process has waited for others. Who comes to its end reads it of others, and so sees whether they wait for it.
        self._window: Any = None
        self._waits = np.zeros(1, np.int64)
        if not _team:
            self._window = self.MPI.Win.Allocate(8, comm=self.comm)
            self._waits = np.frombuffer(self._window.tomemory(), np.int64)
            self._waits[0] = 0
        self._share_cores()
        self.compare(
            "versions differ",
            {name: version(name) for name in ("clast", "numba", "numpy")} | {"python": platform.python_version()},
            "install the same everywhere",
        )
        if not _team:
            sys.excepthook = self._leave
            # Python does not tell anybody with which code it leaves.
            self._exits, sys.exit = sys.exit, self._note_code
            atexit.register(self._end_all)  # before MPI ends, which waits for all

    def _leave(self, category, fault, trace):
        """In place of `sys.excepthook`: others may wait for this process, so all end."""
        if self.rank == 0 or not self.all_leave():
            sys.__excepthook__(category, fault, trace)
        self.leave(130 if category is KeyboardInterrupt else 1)

    def _note_code(self, code=None, /):
        """In place of `sys.exit`: what it was told is known when this process leaves."""
        self._code = 0 if code is None else code if isinstance(code, int) else 1
        self._exits(code)

    def _end_all(self):
        """When Python ends: others may wait for this process. With a code other than 0 all end; else this one waits for them, as MPI would, and looks
        now and then whether one of them waits for what will not come."""
        if self.MPI.Is_finalized():
            return
        if self._code:
            self.leave(self._code)
            return
        if self._leaving is not None:  # an error was told of
            return
        request, theirs, rank = self._end.Ibarrier(), np.empty(1, np.int64), self.rank
        while not self._all_come(request):
            rank = (rank + 1) % self.size
            self._window.Lock(rank, self.MPI.LOCK_SHARED)
            self._window.Get([theirs, self.MPI.INT64_T], rank)
            self._window.Unlock(rank)
            if theirs[0] > self._waits[0]:
                told = f"rank {self.rank} has come to its end, and rank {rank} waits for it; let all do the same"
                sys.stderr.write(f"clast: {told}\n")
                self.leave(1)
                return
        self._close()

    def _close(self):
        """When all leave: free what they read of each other, or some libraries complain of it."""
        if self._window is not None:
            self._waits = self._waits.copy()
            self._window.Free()
            self._window = None

    def _share_cores(self):
        """Divide the cores of a machine among its processes, unless the user has said how many threads to take."""
        from ..kernels import backend

        here = self.comm.Split_type(self.MPI.COMM_TYPE_SHARED)
        cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(os.cpu_count() or 1))
        backend.suggest_threads(threads_for(cores, here.allgather(cores)))
        here.Free()

    def compare(self, what, mine, remedy):
        """Refuse to go on if `mine`, a dict, is not the same everywhere, in a line that names the first difference."""
        everywhere = self.everywhere(mine)
        for rank, other in enumerate(everywhere):
            for name in everywhere[0] | other:
                one, two = (told.get(name, "none") for told in (everywhere[0], other))
                if one != two:
                    raise ClastError(f"{what}: rank 0 has {name} {one}, rank {rank} has {two}; {remedy}")

    def compare_scenes(self, about, tables, attributes=None):
        """Refuse to go on if what is told of the scene is not the same everywhere; tables are compared by a sum.

        about: {name: value} in words; tables, attributes: of the scene, see `Scene.describe`.
        """
        every = zlib.crc32(json.dumps(attributes, sort_keys=True).encode())
        for table in tables.values():
            for column in table.values():
                every = zlib.crc32(np.ascontiguousarray(column).view(np.uint8), every)
        told = {**about, "the checksum": f"{every:08x}"}
        self.compare("the processes describe different scenes", told, "take the same seeds and files everywhere")

    def all_leave(self):
        """Whether all processes are about to leave, as this one is; waits a little for them. Then rank 0 has said what is wrong."""
        if self._leaving is None:
            self._leaving = self._exit.Ibarrier()
        return self._all_come(self._leaving)

    def all_stop(self):
        """Whether all processes were interrupted, as this one was; waits a little for them. If not, nothing can be done together: others wait
        for this one elsewhere."""
        return self._all_come(self._halt.Ibarrier())

    @staticmethod
    def _all_come(request):
        """Whether all come to where this request was made, before patience ends."""
        until = time.monotonic() + PATIENCE
        while not request.Test():
            if time.monotonic() > until:
                return False
            time.sleep(REST)
        return True

    def leave(self, code):
        """Before this process leaves with an exit code other than 0: end those that do not leave, whatever they do."""
        sys.stdout.flush()
        sys.stderr.flush()
        if not self.all_leave():
            self.comm.Abort(code)
        self._close()

    def begin(self):
        """To be called by all before they wait for each other; returns `clocks`, for `wait`."""
        self._waits[0] += 1
        return self.clocks()

    @staticmethod
    def clocks():
        """Wall time and processor time [s]."""
        return time.perf_counter(), time.process_time()

    def wait(self, began):
        """Count the time since `clocks` as spent with others."""
        self._code = 0  # who goes on has not left
        wall, processor = self.clocks()
        self.waited += wall - began[0]
        self.idle += processor - began[1]

    def _give(self, size):
        """As `begin`; so many bytes are sent."""
        self.sent += size
        self.messages += 1
        return self.begin()

    def first_does(self, function, meet=lambda: None):
        """Let rank 0 call it; what goes wrong there, or an interrupt, is raised everywhere. meet: called by all when it is done."""
        fault = None
        if self.rank == 0:
            idle, (_, began) = self.idle, self.clocks()
            try:
                function()
            except (Exception, KeyboardInterrupt) as wrong:
                fault = wrong
            self.idle = idle + self.clocks()[1] - began  # with what it waited meanwhile
        meet()
        fault = self.first_says(fault)
        if fault is not None:
            raise fault

    def first_writes(self, function, tables):
        """As `first_does`, for a function that asks for the pieces of these tables, {name: Gathered}; others answer meanwhile."""
        for name, table in tables.items():
            table.name = name

        def write():
            try:
                function()
            finally:
                self.first_says(None)

        def answer():
            while self.rank and (asked := self.first_says(None)) is not None:
                tables[asked[0]].piece(asked[1])

        self.first_does(write, answer)

    def first_while_others_rest(self, function):
        """As `first_does`; who waits takes no processor time."""
        self.first_does(function, self.rest)

    def rest(self):
        """Wait until all are here."""
        began, request = self.begin(), self.comm.Ibarrier()
        while not request.Test():
            time.sleep(REST)
        self.wait(began)

    def meet(self, name):
        """Wait until all call the function of this name; one that others leave alone there says so once."""
        began, request = self.begin(), self._door.Ibarrier()
        said = False
        while not request.Test():
            if not said and time.perf_counter() - began[0] > LONG:
                said = True
                sys.stderr.write(f"clast: rank {self.rank} waits in {name} for others; let all processes call it\n")
            time.sleep(SHORT)
        self.wait(began)

    def largest(self, *numbers):
        """The largest of each number over all processes."""
        mine, most = np.array(numbers, np.float64), np.empty(len(numbers))
        began = self._give(mine.nbytes)
        self.comm.Allreduce(mine, most, op=self.MPI.MAX)
        self.wait(began)
        return most.tolist()

    def sum(self, array):
        """The sum of the arrays of all processes, of whole numbers, or such that their order does not matter."""
        array = np.ascontiguousarray(array)
        began, made = self._give(array.nbytes), np.empty_like(array)
        self.comm.Allreduce(array, made, op=self.MPI.SUM)
        self.wait(began)
        return made

    def everywhere(self, value):
        """What each process has, a list in the order of ranks."""
        packed = pickle.dumps(value, protocol=5)
        began = self._give(len(packed))
        told = self.comm.allgather(packed)
        self.wait(began)
        return [pickle.loads(data) for data in told]

    def gather(self, value):
        """The same on rank 0, None on others."""
        packed = pickle.dumps(value, protocol=5)
        began = self._give(len(packed) if self.rank else 0)
        told = self.comm.gather(packed)
        self.wait(began)
        return None if told is None else [pickle.loads(data) for data in told]

    def join(self, array):
        """The rows of all processes, those of rank 0 first, as one array everywhere."""
        array = np.ascontiguousarray(array)
        size = array.dtype.itemsize * int(np.prod(array.shape[1:]))
        began = self._give(array.nbytes)
        counts = np.array(self.comm.allgather(len(array)))
        whole = np.empty((int(counts.sum()), *array.shape[1:]), array.dtype)
        parts = counts * size
        where = np.concatenate([[0], np.cumsum(parts)[:-1]])
        byte = self.MPI.BYTE
        if size:  # records without columns have none
            self.comm.Allgatherv([array, len(array) * size, byte], [whole, parts, where, byte])
        self.wait(began)
        return whole

    def hand_round(self, parcels):
        """Give each process what `parcels`, a dict of picklable things by rank, has for it; returns the same of what came."""
        packed = {rank: pickle.dumps(parcel, protocol=5) for rank, parcel in parcels.items()}
        began = self._give(8 * self.size)
        size, coming = np.zeros(self.size, np.int64), np.empty(self.size, np.int64)
        for rank, data in packed.items():
            size[rank] = len(data)
        self.comm.Alltoall(size, coming)
        arrived = {int(rank): np.empty(coming[rank], np.uint8) for rank in np.nonzero(coming)[0]}
        byte = self.MPI.BYTE
        requests = [self.comm.Irecv([data, byte], rank, tag=1) for rank, data in arrived.items()]
        requests += [self.comm.Isend([data, byte], rank, tag=1) for rank, data in packed.items()]
        self.MPI.Request.Waitall(requests)
        self.sent += int(size.sum())
        self.messages += len(packed)
        self.wait(began)
        return {rank: pickle.loads(data) for rank, data in arrived.items()}

    def first_says(self, value):
        """What rank 0 has."""
        packed = pickle.dumps(value, protocol=5) if self.rank == 0 else b""
        began = self._give(len(packed))
        packed = self.comm.bcast(packed)
        self.wait(began)
        return pickle.loads(packed)
