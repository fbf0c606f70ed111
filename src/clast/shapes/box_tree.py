"""A tree of boxes over triangles: which order they stand in, and the box around those below each node."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

LEAF = 4  # triangles at most in a leaf


class Tree(NamedTuple):
    """Nodes from the root down, level by level. The triangles below a node are a range in the order of the leaves."""

    order: np.ndarray  # (t,) int64, the rows of the triangles in the order of the leaves
    box: np.ndarray  # (6,k) [m], low x y z, high x y z of the box around the triangles of a node
    child: np.ndarray  # (k,) int32, the first of two neighbouring children; -1 for a leaf
    first: np.ndarray  # (k,) int32, first triangle of the node
    last: np.ndarray  # (k,) int32, behind its last triangle


class Plan(NamedTuple):
    """The nodes of a tree over so many triangles. Each node parts its triangles into halves, so it is known beforehand."""

    child: np.ndarray  # (k,) int32
    first: np.ndarray  # (k,) int32
    last: np.ndarray  # (k,) int32
    levels: tuple  # of each level but the last, where the ranges start into which the triangles are parted there
    owners: tuple  # of each such level (t,), the range that each triangle is in


@lru_cache(maxsize=256)
def plan_tree(count):
    """The Plan of a tree over `count` triangles."""
    child, first, last = [-1], [0], [count]
    levels = []
    begin, end = 0, 1
    finished = np.zeros(0, dtype=np.int64)  # where leaves of earlier levels start
    while begin < end:
        starts = np.sort(np.concatenate([finished, np.array(first[begin:end], dtype=np.int64)]))
        for node in range(begin, end):
            size = last[node] - first[node]
            if size > LEAF:
                child[node] = len(first)
                middle = first[node] + size // 2
                child += [-1, -1]
                first += [first[node], middle]
                last += [middle, last[node]]
        leaves = [first[node] for node in range(begin, end) if child[node] < 0]
        finished = np.concatenate([finished, np.array(leaves, dtype=np.int64)])
        begin, end = end, len(first)
        if begin < end:
            levels.append(starts)
    owners = [np.repeat(np.arange(len(start)), np.diff(np.append(start, count))) for start in levels]
    children, begins, ends = (np.array(column, dtype=np.int32) for column in (child, first, last))
    return Plan(children, begins, ends, tuple(levels), tuple(owners))


def build_tree(corners):
    """The Tree over triangles with corners (t,3,3) [m].

    Each node is cut at the median of the centroids along the axis on which they spread most; of equal centroids the
    lower row comes first.
    """
    plan = plan_tree(len(corners))
    low, high = corners.min(axis=1), corners.max(axis=1)
    middle = corners.sum(axis=1)
    order = np.arange(len(corners))
    for start, owner in zip(plan.levels, plan.owners, strict=True):
        here = middle[order]
        spread = np.maximum.reduceat(here, start, axis=0) - np.minimum.reduceat(here, start, axis=0)
        along = here[np.arange(len(order)), spread.argmax(axis=1)[owner]]
        order = order[np.lexsort((order, along, owner))]
    # Ranges of all nodes, those between them left out.
    span = np.stack([plan.first, plan.last], axis=1).reshape(-1)
    low = np.concatenate([low[order], low[:1]])  # One row more: the end of the last range is a place too.
    high = np.concatenate([high[order], high[:1]])
    box = np.concatenate(
        [np.minimum.reduceat(low, span, axis=0)[::2].T, np.maximum.reduceat(high, span, axis=0)[::2].T]
    )
    return Tree(order, np.ascontiguousarray(box), plan.child, plan.first, plan.last)
