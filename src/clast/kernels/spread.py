"""Rows of a loop spread over the threads of numba's threading layer, without `parallel=True`.

That option compiles a loop a second time, as a generalised ufunc, and takes every array apart for it. Here a plain loop
over a range of rows is handed to the same C function of the threading layer, with its arguments in one block of memory. 300 spheres
on a plane compiled for 25 s in place of 32.

A launch has two halves. `pack`, compiled for each kernel, writes its arguments into a block; `run`, compiled once, has the
rows of a range worked off with such a block. A block can be run again: taking tables apart is most of what a small launch costs.

Each thread has a part of the rows, the same in every launch of as many rows, so that what it reads stays in its own cache. It works
its part off share by share, and then takes shares of the parts next to it that nobody has begun: rows of one end of a scene may be more work than those
of the other, and a thread may be kept waiting by other programs. Who works a row off has no influence on what is written.
"""

from typing import Any

import numba
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from .library import InnerCompiler

LONG = ir.IntType(64)
INT = ir.IntType(32)
BYTES = ir.IntType(8).as_pointer()
LONGS = LONG.as_pointer()
# What the threading layer calls for a part of the work, and what is called to have it done: see `parallel_for` in
# numba/np/ufunc/omppool.cpp. It counts parts, and adds their size times their number to the pointers in the first argument.
PART = ir.FunctionType(ir.VoidType(), [BYTES.as_pointer(), LONGS, LONGS, BYTES])
PARALLEL_FOR = ir.FunctionType(
    ir.VoidType(), [PART.as_pointer(), BYTES.as_pointer(), LONGS, LONGS, BYTES, LONG, LONG, INT]
)
# A block begins with the range of rows, the number of parts, and where it is counted how many shares of each are taken. The arguments follow, and
# behind them the counts, each on a cache line of its own.
HEAD = [LONG, LONG, LONG, LONG]
LINE = 64  # bytes
MOST = 256  # parts
SHARES = 16  # of a part, where there are several
NEXT = 16  # parts that a thread looks at after its own
WHOLE = types.int64
# numba's stub lets nobody call what it makes, as from Python nobody can.
called_by_kernels: Any = intrinsic


def without_owners(builder, value, kind, at=()):
    """The value of a tuple with arrays that belong to nobody: what numba keeps to count references ends with the call of `pack`."""
    for place, inner in enumerate(kind.types):
        if isinstance(inner, types.Array):
            for owner in (0, 1):  # meminfo and parent, the first two fields
                value = builder.insert_value(value, BYTES(None), [*at, place, owner])
        elif isinstance(inner, types.BaseTuple):
            value = without_owners(builder, value, inner, (*at, place))
    return value


def start_threads():
    """Start numba's threads: with them come the functions that are called here."""
    numba.get_num_threads()


@called_by_kernels
def pack(typing, row, arguments):
    """Address of a new block with these arguments, and of the function that calls row(i, *arguments) for a part of a range.

    row: a compiled function that raises nothing. The block knows where arrays lie, and does not keep them.
    """
    call = row.get_call_type(typing, (WHOLE, *arguments.types), {})

    def generate(context, builder, signature, values):
        kinds = ir.LiteralStructType([*HEAD, context.get_value_type(arguments)])
        size = context.get_abi_sizeof(kinds)
        allocate = cgutils.get_or_insert_function(builder.module, ir.FunctionType(BYTES, [LONG]), "malloc")
        block = builder.call(allocate, [LONG(size + LINE * (1 + MOST))])
        packed = without_owners(builder, values[1], arguments)
        shared = builder.bitcast(block, kinds.as_pointer())
        builder.store(packed, cgutils.gep_inbounds(builder, shared, 0, len(HEAD)))
        counts = builder.and_(builder.add(builder.ptrtoint(block, LONG), LONG(size + LINE - 1)), LONG(-LINE))
        builder.store(counts, cgutils.gep_inbounds(builder, shared, 0, len(HEAD) - 1))
        part = part_function(context, builder.module, kinds)
        addresses = [builder.ptrtoint(block, LONG), builder.ptrtoint(part, LONG)]
        return context.make_tuple(builder, signature.return_type, addresses)

    def part_function(context, module, kinds):
        """Works off the parts from the one in its first argument, as many as its second says, and what nobody has begun of those that follow."""
        compiled = row.dispatcher.overloads[tuple(call.args)]
        context.active_code_library.add_linking_library(compiled.library)
        target = context.declare_function(module, compiled.fndesc)
        function = ir.Function(module, PART, module.get_unique_name("part"))
        function.linkage = "internal"
        builder = ir.IRBuilder(function.append_basic_block())
        counter, extent, _, block = function.args
        shared = builder.bitcast(block, kinds.as_pointer())
        first, last, parts, counts = (
            builder.load(cgutils.gep_inbounds(builder, shared, 0, place)) for place in range(len(HEAD))
        )
        given = [
            builder.load(cgutils.gep_inbounds(builder, shared, 0, len(HEAD), place))
            for place in range(len(arguments.types))
        ]
        length = builder.sub(last, first)
        shares = builder.select(builder.icmp_signed("==", parts, LONG(1)), LONG(1), LONG(SHARES))
        pieces = builder.mul(parts, shares)  # in all
        begin = builder.ptrtoint(builder.load(counter), LONG)
        looked = builder.add(builder.load(extent), LONG(NEXT))
        looked = builder.select(builder.icmp_signed("<", looked, parts), looked, parts)
        with cgutils.for_range_slice(builder, begin, builder.add(begin, looked), LONG(1), LONG) as (k, _):
            own = builder.srem(k, parts)  # behind the last comes the first
            taken = builder.inttoptr(builder.add(counts, builder.mul(own, LONG(LINE))), LONGS)
            with cgutils.for_range(builder, shares, intp=LONG):  # no more can be taken
                # To look costs less than to take, and what has been taken is not given back.
                left = builder.icmp_signed("<", builder.load_atomic(taken, "monotonic", 8), shares)
                with builder.if_then(left):
                    share = builder.atomic_rmw("add", taken, LONG(1), "monotonic")
                    with builder.if_then(builder.icmp_signed("<", share, shares)):
                        place = builder.add(builder.mul(own, shares), share)
                        low, high = (
                            builder.add(first, builder.sdiv(builder.mul(length, at), pieces))
                            for at in (place, builder.add(place, LONG(1)))
                        )
                        with cgutils.for_range_slice(builder, low, high, LONG(1), LONG) as (i, _):
                            context.call_conv.call_function(builder, target, call.return_type, call.args, [i, *given])
        builder.ret_void()
        return function

    return types.UniTuple(WHOLE, 2)(row, arguments), generate


@called_by_kernels
def run(typing, block, part, first, last, threads):
    """Have the rows first to last worked off with a block and a function of `pack`.

    threads: 1, and the calling thread does it all, or 0 for as many as numba.get_num_threads() tells.
    """
    start_threads()

    def generate(context, builder, signature, values):
        context.active_code_library._reload_init.add(start_threads)  # also where the code comes from the cache
        block, part, first, last, threads = (
            context.cast(builder, value, kind, WHOLE) for value, kind in zip(values, signature.args, strict=True)
        )
        asked = cgutils.get_or_insert_function(builder.module, ir.FunctionType(INT, []), "get_num_threads")
        with builder.if_else(builder.icmp_signed("==", threads, LONG(1))) as (one, many):
            with one:
                block_one = builder.basic_block
            with many:
                counted = builder.sext(builder.call(asked, []), LONG)
                counted = builder.select(builder.icmp_signed("<", counted, LONG(MOST)), counted, LONG(MOST))
                block_many = builder.basic_block
        parts = builder.phi(LONG)
        parts.add_incoming(LONG(1), block_one)
        parts.add_incoming(counted, block_many)

        head = builder.inttoptr(block, ir.LiteralStructType(HEAD).as_pointer())
        for place, value in enumerate((first, last, parts)):
            builder.store(value, cgutils.gep_inbounds(builder, head, 0, place))
        counts = builder.load(cgutils.gep_inbounds(builder, head, 0, len(HEAD) - 1))
        with cgutils.for_range(builder, parts, intp=LONG) as loop:
            taken = builder.inttoptr(builder.add(counts, builder.mul(loop.index, LONG(LINE))), LONGS)
            builder.store(LONG(0), taken)
        function = builder.inttoptr(part, PART.as_pointer())
        # Parts are counted by a pointer that starts at nothing and goes on by one.
        counter = cgutils.alloca_once_value(builder, LONG(0).inttoptr(BYTES))
        extent = cgutils.alloca_once_value(builder, parts)
        step = cgutils.alloca_once_value(builder, LONG(1))
        shared = builder.inttoptr(block, BYTES)
        with builder.if_else(builder.icmp_signed("==", parts, LONG(1))) as (one, many):
            with one:
                builder.call(function, [counter, extent, step, shared])
            with many:
                parallel_for = cgutils.get_or_insert_function(builder.module, PARALLEL_FOR, "numba_parallel_for")
                number = builder.trunc(parts, INT)
                builder.call(parallel_for, [function, counter, extent, step, shared, LONG(0), LONG(1), number])
        return context.get_dummy_value()

    return types.void(block, part, first, last, threads), generate


@called_by_kernels
def release(typing, block):
    """Give the memory of a block back."""

    def generate(context, builder, signature, values):
        free = cgutils.get_or_insert_function(builder.module, ir.FunctionType(ir.VoidType(), [BYTES]), "free")
        builder.call(free, [builder.inttoptr(values[0], BYTES)])
        return context.get_dummy_value()

    return types.void(types.int64), generate


@called_by_kernels
def tell(typing, address, what):
    """Call a function of C at this address, one that `ctypes` made of a function of Python say, with a number."""

    def generate(context, builder, signature, values):
        address, what = (context.cast(builder, v, k, WHOLE) for v, k in zip(values, signature.args, strict=True))
        kind = ir.FunctionType(ir.VoidType(), [LONG])
        builder.call(builder.inttoptr(address, kind.as_pointer()), [what])
        return context.get_dummy_value()

    return types.void(address, what), generate


FLAGS: dict = {"error_model": "numpy", "_nrt": False, "forceinline": True, "pipeline_class": InnerCompiler}


@numba.njit(**FLAGS)
def spread(row, first, last, threads, arguments):
    """Call row(i, *arguments) for all i of the range, in one part for each thread: a launch from compiled code."""
    block, part = pack(row, arguments)
    run(block, part, first, last, threads)
    release(block)
