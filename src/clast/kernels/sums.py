"""Sums of many numbers with the same bits in any order, so on any number of threads and processes.

A number x below a limit L, a power of two, is rounded to a multiple of 2^-44 L by adding and taking away a number that is large enough, which leaves no room
for more digits. Up to 256 such multiples are added without an error, whatever their order; the sums of these parts are divided into a high and a
low half, and both are again added without an error: 1e10 numbers at the most. What is cut off depends on the number and the limit alone (Demmel & Nguyen, IEEE Trans. Comput. 2015).

Where the limit is not known there are five of them one below the other, `WINDOWS`: what the first cuts off goes to the next, from 1e27 down to 1e-39.
A sum is a row of halves, `PARTS` numbers: those of a limit that was guessed, and those of the windows. Rows may be added, also by MPI, and `total` makes a number of one.
"""

import math

import numpy as np

from .backend import func, kernel, within
from .reached import stored

CHUNK = 256  # numbers that are added before the halves are taken
WINDOWS = 5
LIMITS = tuple(2.0 ** (90 - 44 * w) for w in range(WINDOWS))
LARGEST = LIMITS[0]  # what is not below this counts as infinite
PARTS = 2 + 2 * WINDOWS
SHIFT = 1.5 * 2.0**8  # times the limit: has no digits below 2^-44 of it
HALF = 1.5 * 2.0**34  # times the limit: the same for 2^-18 of it, the digits of a high half
ROOM = 16.0  # times the last sum of its like: a limit for the next


@func
def cut(x, limit):
    """x, below the limit, without what is below 2^-44 of it."""
    return (x + SHIFT * limit) - SHIFT * limit


@func
def high_half(x, limit):
    """The high half of a sum of up to CHUNK numbers that were cut."""
    return (x + HALF * limit) - HALF * limit


@func
def add_outlier(x, row):
    """Add a number of any size to the windows of `row` (PARTS,), whose halves are still one."""
    rest = x if abs(x) < LARGEST else math.inf
    for w in range(WINDOWS):
        if rest == 0.0:
            break
        part = cut(rest, LIMITS[w])
        row[2 + 2 * w] += part
        rest -= part


@func
def halve(row, limit):
    """Divide the sums of up to CHUNK numbers in `row` into halves; limit: that was guessed."""
    row[1] = row[0] - high_half(row[0], limit)
    row[0] -= row[1]
    for w in range(WINDOWS):
        whole = row[2 + 2 * w]
        high = high_half(whole, LIMITS[w])
        row[2 + 2 * w], row[3 + 2 * w] = high, whole - high


@within
def total(row):
    """The number that a sum, `row` (PARTS,), stands for."""
    number = 0.0
    for w in range(WINDOWS - 1, -1, -1):
        number += row[2 + 2 * w] + row[3 + 2 * w]
    return number + (row[0] + row[1])


@within
def next_limit(number, limit):
    """A limit for terms much like those whose sum this was, none below 0; the one before where it tells nothing. 0: none, all are outliers."""
    if not (LIMITS[-1] * 2.0**-44 < number < LARGEST):
        return limit
    return ROOM * 2.0 ** math.frexp(number)[1]


def limit_above(most):
    """A limit of numbers that are no larger than this; 0 where there is none."""
    return 2.0 ** math.frexp(most)[1] if LIMITS[-1] * 2.0**-44 < most < LARGEST else 0.0


def chunk_row(c, limit, terms, rows):
    """The sum of one chunk of terms (n,): rows (chunks,PARTS); limit: that was guessed, 0 for none."""
    for m in range(PARTS):
        rows[c, m] = 0.0
    fine = 0.0
    for i in range(c * CHUNK, min(len(terms), (c + 1) * CHUNK)):
        x = terms[i]
        if abs(x) < limit:
            fine += cut(x, limit)
        else:
            add_outlier(x, rows[c])
    rows[c, 0] = fine
    halve(rows[c], limit)


def add_up(terms, limit=0.0):
    """The sum of terms (n,), a row (PARTS,); limit: a power of two that most are below, the same everywhere, or 0 where nothing is known."""
    chunks = (len(terms) + CHUNK - 1) // CHUNK
    rows = np.empty((chunks, PARTS))
    kernel(chunk_row, grain=4)(chunks, limit, terms, rows)
    return rows.sum(axis=0)


def columns_row(c, limits, terms, counted, rows):
    """The sums of one chunk of the first terms of columns (k,n), `counted` of each, and of their sizes: rows (chunks,2k,PARTS); limits (k,): as in `chunk_row`."""
    for s in range(len(terms)):
        signed, sizes, limit = rows[c, s], rows[c, len(terms) + s], limits[s]
        for m in range(PARTS):
            signed[m] = sizes[m] = 0.0
        fine, gross = 0.0, 0.0
        for i in range(c * CHUNK, min(counted, (c + 1) * CHUNK)):
            x = terms[s, i]
            if abs(x) < limit:
                x = cut(x, limit)
                fine += x
                gross += abs(x)
            else:
                add_outlier(x, signed)
                add_outlier(abs(x), sizes)
        signed[0], sizes[0] = fine, gross
        halve(signed, limit)
        halve(sizes, limit)


def add_columns(terms, counted, limits):
    """The sums of columns (k,n) of terms, of which `counted` count, and behind them those of the sizes of these: rows (2k,PARTS); limits (k,): see `next_limits`."""
    chunks = (counted + CHUNK - 1) // CHUNK
    rows = np.empty((chunks, 2 * len(terms), PARTS))
    kernel(columns_row, grain=4)(chunks, limits, terms, counted, rows)
    return rows.sum(axis=0)


def exact(terms):
    """The number nearest to the sum of terms (n,), which no order changes; not a number, or infinite, where they are."""
    with np.errstate(over="ignore", invalid="ignore"):
        if not math.isfinite(np.abs(terms).sum()):
            return float(np.sum(terms))
    return math.fsum(terms.tolist())


def exact_parts(terms):
    """A few numbers whose sum is that of terms (n,) without an error: what `exact` makes of those of all processes is what it makes of all terms."""
    terms, parts = np.append(terms, 0.0), []
    while (part := exact(terms)) != 0.0:
        parts.append(part)
        if not math.isfinite(part):
            break
        terms = np.append(terms, -part)
    return parts


@stored()
def totals(rows):
    """The numbers (k,) that sums (k,PARTS) stand for."""
    made = np.empty(len(rows))
    for k in range(len(rows)):
        made[k] = total(rows[k])
    return made


@stored()
def next_limits(sizes, limits):
    """Limits (k,), in place, for terms much like those the sums of whose sizes (k,) these are."""
    for k in range(len(sizes)):
        limits[k] = next_limit(sizes[k], limits[k])
