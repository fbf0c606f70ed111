"""The processes that share a run: which of them this is, what they tell each other, and how one that fails ends all.

Started by `mpirun -n 4`, all run the same program. mpi4py is imported only then, or if the program has done so itself.
"""

import os
import pickle
import platform
import sys
import time
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any

import numpy as np

from ..errors import ClastError, Unavailable

# What launchers tell a process of how many there are: MPICH and Intel MPI, Open MPI, Slurm.
SIZES = ("PMI_SIZE", "MPI_LOCALNRANKS", "OMPI_COMM_WORLD_SIZE")
PATIENCE = 1.0  # [s], for others to leave too, before they are ended

REST = 0.01  # [s], between two looks whether others are there

_team: list = []  # the Team once it is known, or None where there is one process
_alone = [0]


def launched():
    """How many processes the launcher says there are; 1 without one."""
    told = [os.environ.get(name, "") for name in SIZES]
    return max([1, *(int(text) for text in told if text.isdigit())])


def find():
    """The Team of this process, or None if it is the only one."""
    if _alone[0]:
        return None
    if not _team:
        if launched() == 1 and "mpi4py.MPI" not in sys.modules:
            return None
        try:
            from mpi4py import MPI
        except ImportError as fault:
            raise Unavailable(
                f"{launched()} processes were started, and mpi4py, which lets them share a run, is missing here ({fault}); "
                "pip install 'clast[mpi]', or start one process"
            ) from fault
        _team.append(Team(MPI.COMM_WORLD) if MPI.COMM_WORLD.size > 1 else None)
    return _team[-1]


def leads():
    """Whether this process writes files and says things: the first of all, or the only one."""
    team = find()
    return team is None or team.rank == 0


def first_does(function):
    """Let the first process alone call it, to write a file say; what goes wrong there is raised everywhere."""
    team = find()
    if team is None:
        function()
        return
    fault = None
    if team.rank == 0:
        try:
            function()
        except Exception as wrong:
            fault = wrong
    fault = team.first_says(fault)
    if fault is not None:
        raise fault


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


class Team:
    """All processes of a run. What its methods do, all processes do at the same time.

    rank: the number of this one, from 0; size: how many there are; sent, messages: what this one has sent in steps, bytes and their number;
    waited, idle: wall time and processor time [s] that took, until the others had answered.
    """

    def __init__(self, comm):
        from mpi4py import MPI

        self.MPI, self.comm = MPI, comm.Dup()
        self.rank, self.size = self.comm.rank, self.comm.size
        self.sent, self.messages, self.waited, self.idle = 0, 0, 0.0, 0.0
        self._leaving: Any = None
        self._share_cores()
        self.compare(
            "versions differ",
            {name: version(name) for name in ("clast", "numba", "numpy")} | {"python": platform.python_version()},
            "install the same everywhere",
        )
        if not _team:
            sys.excepthook = self._leave

    def _leave(self, category, fault, trace):
        """In place of `sys.excepthook`: others may wait for this process, so all end."""
        if self.rank == 0 or not self.all_leave():
            sys.__excepthook__(category, fault, trace)
        self.leave(130 if category is KeyboardInterrupt else 1)

    def _share_cores(self):
        """Divide the cores of a machine among its processes, unless the user has said how many threads to take."""
        here = self.comm.Split_type(self.MPI.COMM_TYPE_SHARED)
        together = here.size
        here.Free()
        if "NUMBA_NUM_THREADS" not in os.environ:
            from ..kernels import backend

            cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
            backend.set_threads(max(1, cores // together))

    def compare(self, what, mine, remedy):
        """Refuse to go on if `mine`, a dict, is not the same everywhere, in a line that names the first difference."""
        everywhere = self.comm.allgather(mine)
        for rank, other in enumerate(everywhere):
            for name, value in other.items():
                if value != everywhere[0][name]:
                    raise ClastError(
                        f"{what}: rank 0 has {name} {everywhere[0][name]}, rank {rank} has {value}; {remedy}"
                    )

    def all_leave(self):
        """Whether all processes are about to leave, as this one is; waits a little for them. Then rank 0 has said what is wrong."""
        if self._leaving is None:
            self._leaving = self.comm.Ibarrier()
        until = time.monotonic() + PATIENCE
        while not self._leaving.Test():
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

    @staticmethod
    def clocks():
        """Wall time and processor time [s]."""
        return time.perf_counter(), time.process_time()

    def wait(self, began):
        """Count the time since `clocks` as spent with others."""
        wall, processor = self.clocks()
        self.waited += wall - began[0]
        self.idle += processor - began[1]

    @contextmanager
    def first_before_others(self):
        """The block is run by rank 0, then by all others; who waits takes no processor time."""
        if self.rank:
            self.rest()
        yield
        if self.rank == 0:
            self.rest()

    def rest(self):
        """Wait until all are here."""
        request = self.comm.Ibarrier()
        while not request.Test():
            time.sleep(REST)

    def largest(self, *numbers):
        """The largest of each number over all processes."""
        began = self.clocks()
        mine, most = np.array(numbers, np.float64), np.empty(len(numbers))
        self.comm.Allreduce(mine, most, op=self.MPI.MAX)
        self.wait(began)
        return most.tolist()

    def everywhere(self, value):
        """What each process has, a list in the order of ranks."""
        return self.comm.allgather(value)

    def join(self, array):
        """The rows of all processes, those of rank 0 first, as one array everywhere."""
        array = np.ascontiguousarray(array)
        size = array.dtype.itemsize * int(np.prod(array.shape[1:]))
        counts = np.array(self.comm.allgather(len(array)))
        whole = np.empty((int(counts.sum()), *array.shape[1:]), array.dtype)
        parts = counts * size
        where = np.concatenate([[0], np.cumsum(parts)[:-1]])
        byte = self.MPI.BYTE
        if size:  # records without columns have none
            self.comm.Allgatherv([array, len(array) * size, byte], [whole, parts, where, byte])
        return whole

    def hand_round(self, parcels):
        """Give each process what `parcels`, a dict of picklable things by rank, has for it; returns the same of what came."""
        began = self.clocks()
        packed = {rank: pickle.dumps(parcel, protocol=5) for rank, parcel in parcels.items()}
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
        return self.comm.bcast(value)
