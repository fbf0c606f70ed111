"""A launch: the arguments of a kernel are brought into a block of memory, and its rows are worked off with that."""

import functools
import sys
from operator import is_

import numba

from .reached import is_table, kept
from .spread import release, run

keep = functools.partial(kept, error_model="numpy", _nrt=False, no_cfunc_wrapper=True)


@keep
def run_rows(block, part, count, threads):
    """Work off the first rows of a kernel whose arguments are in a block."""
    run(block, part, 0, count, threads)


@keep
def run_phases(block, part, start, threads):
    """Work off the rows start[p] to start[p + 1], one phase after the other."""
    for p in range(len(start) - 1):
        run(block, part, start[p], start[p + 1], threads)


@keep
def free_block(block):
    """Give the memory of a block back."""
    release(block)


class Block:
    """The arguments of a launch where compiled code finds them. It keeps them alive, and can be run again."""

    def __init__(self, arguments, address, part):
        self.arguments, self.address, self.part = arguments, address, part

    def __del__(self, ending=sys.is_finalizing):
        if not ending():
            free_block(self.address)


HELD = 16_000_000  # bytes of arguments up to which a loop keeps the blocks of its last launches, until it is launched with others
MOST = 6  # blocks that a loop keeps: of families of pairs, say, whose tables are the same


class Loop:
    """A compiled loop. Columns of tables that its code cannot name are handed over as None.

    Every array of an argument is some ten numbers in each call and each function: one small kernel took 6.5 s to compile and
    10.8 us to call with a table of 60 arrays, 0.8 s and 5.4 us with 4 of them. The table keeps its class and the places of its
    columns, so it can still be indexed or unpacked.

    The block of an earlier launch is run again if the next one has the very same arguments: 1 us in place of 5 to 25, which
    counts where bodies are few. Blocks of large tables are not kept, and those of other tables go at the next launch: what a loop holds stays in memory until then.
    """

    def __init__(self, compiled, names, run):
        self.compiled = compiled
        self.names = names
        self.run = run
        self.senders = {}  # by the classes of the arguments
        self.blocks = []
        self.last = None  # the block that was run again last, which is mostly that of the next launch
        self.used = True  # whether a block was run again since the last was kept
        self.waits = 0  # launches until one is kept again

    def __call__(self, count, arguments, threads=0):
        """arguments: a tuple; threads: 1, or 0 for as many as numba.get_num_threads() tells."""
        block = self.last
        if block is None or not all(map(is_, arguments, block.arguments)):
            block = self.find(arguments)
        self.run(block.address, block.part, count, threads)

    def find(self, arguments):
        """The block of these arguments, if it is kept, or a new one."""
        for block in self.blocks:
            if all(map(is_, arguments, block.arguments)):
                self.used, self.waits, self.last = True, 0, block
                return block
        block = Block(arguments, *self.pack(arguments))
        self.hold(block)
        return block

    def hold(self, block):
        """Keep a block for launches to come, beside those that differ from it in numbers alone."""
        self.last = None
        self.blocks = [other for other in self.blocks if all(map(alike, other.arguments, block.arguments))]
        if self.waits > 0:
            self.waits -= 1
        elif sum(map(size, block.arguments)) < HELD:
            # A loop whose arguments change each time keeps few: adding sizes up costs as much as a block saves.
            self.blocks = [*self.blocks[1 - MOST :], block]
            self.used, self.waits = False, 0 if self.used else 30

    def pack(self, arguments):
        """Address of a new block with these arguments, and of the function that reads it."""
        kinds = tuple(map(type, arguments))
        send = self.senders.get(kinds)
        if send is not None:
            return send(*arguments)
        free_block(
            0
        )  # does nothing; but Python must not come to compile it while it tidies up, where Ctrl-C is not heard
        send = self.sender(kinds)
        try:
            found = send(*arguments)
        except numba.TypingError:
            # Perhaps a column was asked for by its place. If not, the same error comes again.
            send = self.compiled
            found = send(*arguments)
        self.senders[kinds] = send
        return found

    def types(self, arguments):
        """The types that the loop is compiled for with these arguments."""
        given = []
        self.sender(tuple(map(type, arguments)), lambda *sent: given.extend(sent))(*arguments)
        return tuple(map(self.compiled.typeof_pyval, given))

    def sender(self, kinds, target=None):
        """A function that calls the loop with arguments of these classes; as text, because it runs in every launch.

        target: what it calls in place of the loop.
        """
        scope = {"compiled": target or self.compiled, "new": tuple.__new__}
        given = []
        for k, kind in enumerate(kinds):
            text = f"a{k}"
            if is_table(kind) and not self.names.issuperset(kind._fields):
                scope[f"Table{k}"] = kind
                columns = [f"a{k}[{j}]" if name in self.names else "None" for j, name in enumerate(kind._fields)]
                text = f"new(Table{k}, ({', '.join(columns)},))"
            given.append(text)
        names = ", ".join(f"a{k}" for k in range(len(kinds)))
        # As text, because it runs in every launch.
        exec(f"def send({names}):\n    return compiled({', '.join(given)})\n", scope)
        return scope["send"]


@functools.lru_cache(maxsize=4096, typed=True)
def same(*numbers):
    """These numbers as a tuple, the same object each time, which a launch that is repeated then knows again."""
    return numbers


def alike(one, two):
    """Whether two arguments of a kernel are the same, or hold no arrays."""
    return one is two or not (has_arrays(one) or has_arrays(two))


def has_arrays(argument):
    """Whether an argument of a kernel is an array, or a table of some."""
    return any(map(has_arrays, argument)) if isinstance(argument, tuple) else hasattr(argument, "nbytes")


def size(argument):
    """Bytes of the arrays in an argument of a kernel."""
    if isinstance(argument, tuple):
        return sum(map(size, argument))
    return getattr(argument, "nbytes", 0)
