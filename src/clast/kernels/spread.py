"""Rows of a loop spread over the threads of numba's threading layer, without `parallel=True`.

That option compiles a loop a second time, as a generalised ufunc, and takes every array apart for it. Here a plain loop
over a range of rows is handed to the same C function of the threading layer, with its arguments in one block of memory. 300 spheres
on a plane compiled for 25 s in place of 32.
"""

import numba
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

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


def start_threads():
    """Start numba's threads: with them come the functions that are called here."""
    numba.get_num_threads()


@intrinsic
def spread(typing, row, first, last, threads, arguments):
    """Call row(i, *arguments) for all i of the range, in one part for each thread.

    row: a compiled function that raises nothing. threads: 1, and the calling thread does it all, or 0 for as many as
    numba.get_num_threads() tells.
    """
    whole = types.int64
    call = row.get_call_type(typing, (whole, *arguments.types), {})
    start_threads()

    def generate(context, builder, signature, values):
        context.active_code_library._reload_init.add(start_threads)  # also where the code comes from the cache
        _, first, last, threads, packed = values
        first, last, threads = (
            context.cast(builder, value, kind, whole)
            for value, kind in zip((first, last, threads), signature.args[1:4], strict=True)
        )
        asked = cgutils.get_or_insert_function(builder.module, ir.FunctionType(INT, []), "get_num_threads")
        with builder.if_else(builder.icmp_signed("==", threads, LONG(1))) as (one, many):
            with one:
                block_one = builder.basic_block
            with many:
                counted = builder.sext(builder.call(asked, []), LONG)
                block_many = builder.basic_block
        parts = builder.phi(LONG)
        parts.add_incoming(LONG(1), block_one)
        parts.add_incoming(counted, block_many)

        kinds = ir.LiteralStructType([LONG, LONG, LONG, context.get_value_type(arguments)])
        shared = cgutils.alloca_once(builder, kinds)
        for place, value in enumerate((first, last, parts, packed)):
            builder.store(value, cgutils.gep_inbounds(builder, shared, 0, place))
        part = part_function(context, builder.module, kinds)

        # Parts are counted by a pointer that starts at nothing and goes on by one.
        counter = cgutils.alloca_once_value(builder, LONG(0).inttoptr(BYTES))
        extent = cgutils.alloca_once_value(builder, parts)
        step = cgutils.alloca_once_value(builder, LONG(1))
        block = builder.bitcast(shared, BYTES)
        with builder.if_else(builder.icmp_signed("==", parts, LONG(1))) as (one, many):
            with one:
                builder.call(part, [counter, extent, step, block])
            with many:
                parallel_for = cgutils.get_or_insert_function(builder.module, PARALLEL_FOR, "numba_parallel_for")
                number = builder.trunc(parts, INT)
                builder.call(parallel_for, [part, counter, extent, step, block, LONG(0), LONG(1), number])
        return context.get_dummy_value()

    def part_function(context, module, kinds):
        """Works off the parts from the one in its first argument, as many as its second says."""
        compiled = row.dispatcher.overloads[tuple(call.args)]
        context.active_code_library.add_linking_library(compiled.library)
        target = context.declare_function(module, compiled.fndesc)
        function = ir.Function(module, PART, module.get_unique_name("part"))
        function.linkage = "internal"
        builder = ir.IRBuilder(function.append_basic_block())
        counter, extent, _, block = function.args
        shared = builder.bitcast(block, kinds.as_pointer())
        first, last, parts = (builder.load(cgutils.gep_inbounds(builder, shared, 0, place)) for place in range(3))
        begin = builder.ptrtoint(builder.load(counter), LONG)
        end = builder.add(begin, builder.load(extent))
        length = builder.sub(last, first)
        low, high = (builder.add(first, builder.sdiv(builder.mul(length, k), parts)) for k in (begin, end))
        given = [
            builder.load(cgutils.gep_inbounds(builder, shared, 0, 3, place)) for place in range(len(arguments.types))
        ]
        with cgutils.for_range_slice(builder, low, high, LONG(1), LONG) as (i, _):
            context.call_conv.call_function(builder, target, call.return_type, call.args, [i, *given])
        builder.ret_void()
        return function

    return types.void(row, first, last, threads, arguments), generate
