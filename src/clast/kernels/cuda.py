"""Row functions as CUDA kernels, one thread a row: the device that `backend.CPU` is on a processor.

The row functions are the same that run on the CPU, and what they call is compiled for the grid from the same source.
Prefix sum and grouping are row functions too: a thread works off a run of entries in order and writes to places of its
own, so no atomic operation decides an order, and the results are those of the CPU.
With NUMBA_ENABLE_CUDASIM=1 in the environment all of this runs in numba's simulator, without a GPU and slowly.
"""

import functools
import importlib.util
import inspect

import numpy as np

from ..errors import Unavailable
from .backend import SIMULATED, bind, kernel
from .reached import Reached

THREADS = 128  # a block; the contact kernel needs too many registers for more
RUN = 64  # entries that one thread sums
DIGIT = 8  # bits of the key that one pass of the grouping looks at
DIGITS = 1 << DIGIT
SORT_RUN = 256  # entries that one thread sorts; as many as digits, so that the tally is as long as the keys


def clear_row(i, target):
    """Zero."""
    target[i] = 0


def copy_row(i, source, target):
    """Copy one row of an (n,k) array."""
    for j in range(source.shape[1]):
        target[i, j] = source[i, j]


def join_row(i, first, second, target):
    """Row i of two (n,k) arrays, one after the other."""
    n = len(first)
    for j in range(target.shape[1]):
        target[i, j] = first[i, j] if i < n else second[i - n, j]


def column_row(i, source, k, target):
    """Entry i of column k."""
    target[i] = source[i, k]


def renumber_row(i, pairs, rows):
    """Replace the second of a pair, a place in `rows`, by what stands there."""
    pairs[i, 1] = rows[pairs[i, 1]]


def put_row(i, rows, values, target):
    """Write row i of values (n,k) to a row of the target."""
    for j in range(values.shape[1]):
        target[rows[i], j] = values[i, j]


def peak_row(c, run, values, peaks):
    """The largest of one run of values, and 0."""
    most = 0.0
    for i in range(c * run, min(len(values), (c + 1) * run)):
        if values[i] > most:
            most = float(values[i])
    peaks[c] = most


def sum_row(c, run, count, total):
    """Sum of one run of counts."""
    s = 0
    for i in range(c * run, min(len(count), (c + 1) * run)):
        s += count[i]
    total[c] = s


def start_row(c, run, count, before, start):
    """Starts of one run of counts; before (runs+1,): starts of the runs."""
    s = before[c]
    for i in range(c * run, min(len(count), (c + 1) * run)):
        start[i] = s
        s += count[i]
    if c == len(before) - 2:
        start[len(count)] = s


def small_scan_row(i, count, start):
    """All starts by one thread."""
    s = 0
    for k in range(len(count)):
        start[k] = s
        s += count[k]
    start[len(count)] = s


def tally_row(c, runs, shift, key, tally):
    """How often each digit occurs in one run of keys; tally (digits * runs,), the runs of one digit side by side."""
    for d in range(DIGITS):
        tally[d * runs + c] = 0
    for i in range(c * SORT_RUN, min(len(key), (c + 1) * SORT_RUN)):
        tally[((key[i] >> shift) & (DIGITS - 1)) * runs + c] += 1


def spread_row(c, runs, shift, key, order, place, new_key, new_order):
    """Put one run of keys where its digits belong, the first first; an empty `order` stands for 0, 1, 2, ..."""
    for i in range(c * SORT_RUN, min(len(key), (c + 1) * SORT_RUN)):
        at = ((key[i] >> shift) & (DIGITS - 1)) * runs + c
        new_key[place[at]] = key[i]
        new_order[place[at]] = order[i] if len(order) > 0 else i
        place[at] += 1


def group_row(k, key, start):
    """Where group k starts among the sorted keys."""
    low, high = 0, len(key)
    while low < high:
        middle = (low + high) // 2
        if key[middle] < k:
            low = middle + 1
        else:
            high = middle
    start[k] = low


class CUDA:
    """Kernels on a CUDA grid, arrays in the memory of the device. See `backend.CPU` for what the methods do."""

    name = "cuda"
    chunk = 4  # rows a thread where a kernel reduces over rows

    def __init__(self, cuda):
        self.cuda = cuda
        self.built = {}

    def launch(self, kernel, count, arguments):
        if SIMULATED:
            refuse_host_arrays(kernel.name, arguments)
        if count > 0:
            blocks = (int(count) + THREADS - 1) // THREADS
            # In the simulator every thread of a block is a thread of Python: start no more than there is work for.
            threads = min(THREADS, int(count)) if SIMULATED else THREADS
            self.build(kernel, tables(arguments))[blocks, threads](int(count), *arguments)

    def build(self, kernel, given=()):
        """The CUDA kernel of a Kernel for arguments with these tables, not yet compiled."""
        if (kernel, given) not in self.built:
            function = grid_function(kernel, self.cuda, given)
            self.built[kernel, given] = self.cuda.jit(cache=not SIMULATED)(function)
        return self.built[kernel, given]

    def empty(self, shape, dtype=np.float64):
        return self.cuda.device_array(shape, dtype)

    def zeros(self, shape, dtype=np.float64):
        array = self.cuda.device_array(shape, dtype)
        if array.size:
            self.launch(kernel(clear_row), array.size, (array.ravel(),))
        return array

    def copy(self, array):
        target = self.empty(array.shape, array.dtype)
        self.launch(kernel(copy_row), len(array), (array, target))
        return target

    def view(self, array, rows, first, last):
        if SIMULATED or rows == 0:
            return array[:rows, first:last]
        # A slice of a device array makes a list of the extents of all rows first: seconds for a million bodies.
        described = dict(array.__cuda_array_interface__)
        described["shape"], described["strides"] = (rows, last - first), tuple(array.strides)
        described["data"] = (described["data"][0] + first * array.strides[1], False)
        return self.cuda.from_cuda_array_interface(described, owner=array)

    def concatenate(self, first, second):
        target = self.empty((len(first) + len(second), first.shape[1]), first.dtype)
        self.launch(kernel(join_row), len(target), (first, second, target))
        return target

    def column(self, array, k):
        target = self.empty(len(array), array.dtype)
        self.launch(kernel(column_row), len(array), (array, k, target))
        return target

    def renumber(self, pairs, rows):
        self.launch(kernel(renumber_row), len(pairs), (pairs, self.to_device(rows)))
        return pairs

    def put(self, target, rows, values):
        self.launch(kernel(put_row), len(rows), (self.to_device(rows), self.to_device(values), target))

    def peak(self, array):
        while len(array) > RUN:
            runs = (len(array) + RUN - 1) // RUN
            peaks = self.empty(runs, np.float64)
            self.launch(kernel(peak_row), runs, (RUN, array, peaks))
            array = peaks
        return float(self.to_host(array).max()) if len(array) else 0.0

    def to_device(self, array):
        return self.cuda.to_device(np.ascontiguousarray(array))

    def to_host(self, array):
        if not array.is_c_contiguous():
            array = self.copy(array)
        return array.copy_to_host()

    def table(self, table):
        return type(table)(*(self.to_host(c) if hasattr(c, "dtype") else c for c in table))

    def upload(self, table, **views):
        columns = {}
        for name, column in table._asdict().items():
            columns[name] = self.to_device(column) if isinstance(column, np.ndarray) and name not in views else column
        return type(table)(**{**columns, **views})

    def scan(self, count):
        n = len(count)
        start = self.empty(n + 1, np.int64)
        if n <= RUN:
            self.launch(kernel(small_scan_row), 1, (count, start))
            return start
        runs = (n + RUN - 1) // RUN
        total = self.empty(runs, np.int64)
        self.launch(kernel(sum_row), runs, (RUN, count, total))
        self.launch(kernel(start_row), runs, (RUN, count, self.scan(total), start))
        return start

    def group(self, key, groups):
        n = len(key)
        runs = (n + SORT_RUN - 1) // SORT_RUN
        sorted_key, order = key, self.empty(0, np.int32)
        tally = self.empty(DIGITS * runs, np.int32)
        shift = 0
        while shift == 0 or (groups - 1) >> shift:
            new_key, new_order = self.empty(n, key.dtype), self.empty(n, np.int32)
            self.launch(kernel(tally_row), runs, (runs, shift, sorted_key, tally))
            place = self.scan(tally)
            self.launch(kernel(spread_row), runs, (runs, shift, sorted_key, order, place, new_key, new_order))
            sorted_key, order, shift = new_key, new_order, shift + DIGIT
        start = self.empty(groups + 1, np.int32)
        self.launch(kernel(group_row), groups + 1, (sorted_key, start))
        return start, order


def tables(arguments):
    """The classes of named tuples among arguments and inside them."""
    found = []
    for argument in arguments:
        if isinstance(argument, tuple):
            found += [type(argument), *tables(argument)]
    return tuple(found)


def grid_function(kernel, cuda, given=()):
    """The function of one thread: its row of the kernel, if there is one. given: see `tables`; the cache on disk tells
    tables apart by the names of their classes, so the name of the function must change with their columns."""
    name = f"{kernel.name}_{Reached(given).digest}"
    row = bind(kernel.row, **kernel.bound)
    if not SIMULATED:
        row = cuda.jit(device=True)(row)
    names = ", ".join(list(inspect.signature(kernel.row).parameters)[1:])
    source = (
        f"def {name}(_count, {names}):\n    _i = signed(cuda.grid(1))\n    if _i < _count:\n        _row(_i, {names})\n"
    )
    scope = {"cuda": cuda, "signed": np.int64, "_row": row, "__name__": kernel.row.__module__}
    exec(compile(source, kernel.row.__code__.co_filename, "exec"), scope)
    return scope[name]


def refuse_host_arrays(name, arguments):
    """A NumPy array would be copied to the device and back in every launch, and the simulator would not mind."""
    for argument in arguments:
        if isinstance(argument, np.ndarray):
            raise TypeError(f"{name}: a NumPy array of shape {argument.shape} among the arguments of a CUDA kernel")
        if isinstance(argument, tuple):
            refuse_host_arrays(name, argument)


@functools.cache
def find():
    """The CUDA device; raises Unavailable with what is missing."""
    if not SIMULATED and importlib.util.find_spec("numba_cuda") is None:
        raise Unavailable("device='cuda' needs the package numba-cuda: pip install 'clast[gpu]', or take device='cpu'")
    from numba import config, cuda

    if not SIMULATED:
        # A small scene does not fill a GPU, and the user knows.
        vars(config)["CUDA_LOW_OCCUPANCY_WARNINGS"] = 0
        reason = missing(cuda)
        if reason:
            raise Unavailable(f"device='cuda' needs a CUDA device, but {reason}; take device='cpu'")
    return CUDA(cuda)


def missing(cuda):
    """Why kernels cannot run here, or None."""
    fault = cuda.cuda_error()
    if fault is not None:
        return f"the driver does not start ({' '.join(str(fault).split())})"
    try:
        count = len(cuda.gpus)
    except Exception as problem:  # whatever a driver says when asked
        return f"the driver does not list its devices ({' '.join(str(problem).split())})"
    if count == 0:
        return "the driver lists none"
    if not cuda.is_available():
        return "the compiler packages are missing (pip install 'clast[gpu]')"
    return None
