"""Distances in rational numbers: nothing is rounded before the last line."""

import itertools
from decimal import Decimal, localcontext
from fractions import Fraction


def rational(points):
    """Points of floating-point numbers as lists of fractions, exactly."""
    return [[Fraction(float(x)) for x in point] for point in points]


def dot(x, y):
    return sum(i * j for i, j in zip(x, y, strict=True))


def minus(x, y):
    return [i - j for i, j in zip(x, y, strict=True)]


def cross(x, y):
    return [x[1] * y[2] - x[2] * y[1], x[2] * y[0] - x[0] * y[2], x[0] * y[1] - x[1] * y[0]]


def root(square):
    """The square root of a fraction, rounded once."""
    with localcontext() as context:
        context.prec = 50
        return float((Decimal(square.numerator) / Decimal(square.denominator)).sqrt())


def solve(matrix, right):
    """Solution of a small linear system, or None where there is not one alone."""
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for k in range(len(rows)):
        pivot = next((i for i in range(k, len(rows)) if rows[i][k] != 0), None)
        if pivot is None:
            return None
        rows[k], rows[pivot] = rows[pivot], rows[k]
        for i in range(len(rows)):
            if i != k and rows[i][k] != 0:
                factor = rows[i][k] / rows[k][k]
                rows[i] = [x - factor * y for x, y in zip(rows[i], rows[k], strict=True)]
    return [row[-1] / row[k] for k, row in enumerate(rows)]


def square_distance(a, b):
    """Square of the distance of two points, segments or triangles (lists of 1 to 3 corners of fractions).

    The nearest points lie inside some corner, edge or face of each; of all pairs of those, the least that is inside counts.
    """
    best = None
    for of_a, of_b in itertools.product(subsets(len(a)), subsets(len(b))):
        ways = [minus(a[i], a[of_a[0]]) for i in of_a[1:]] + [minus(b[of_b[0]], b[i]) for i in of_b[1:]]
        d = minus(a[of_a[0]], b[of_b[0]])
        weight = solve([[dot(x, y) for y in ways] for x in ways], [-dot(x, d) for x in ways])
        inner = len(of_a) - 1
        if weight is None or min(weight, default=0) < 0 or max(sum(weight[:inner]), sum(weight[inner:])) > 1:
            continue
        for w, way in zip(weight, ways, strict=True):
            d = [x + w * y for x, y in zip(d, way, strict=True)]
        best = dot(d, d) if best is None else min(best, dot(d, d))
    return best


def subsets(count):
    """Corners, edges and face of a figure with so many corners, as tuples of corner numbers."""
    return [chosen for size in range(1, count + 1) for chosen in itertools.combinations(range(count), size)]
