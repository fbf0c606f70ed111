"""Tables whose rows are on all processes, brought to the first in pieces, so that it can write a file that it could not hold."""

import numpy as np

from .team import find

PIECE = 100_000  # rows, about


def order_of(sorting):
    """The order of rows sorted by columns (k,...), the most important one first."""
    return np.lexsort([key for column in sorting[::-1] for key in np.atleast_2d(column.T)[::-1]])


class Gathered:
    """A table of which each process has some rows. All make it at the same time; then the first may ask for its pieces, while others
    answer: see `Team.first_writes`.

    key (k,): of each own row the number of a body, by which the table is cut; sorting: columns (k,...) by which a piece is sorted, the
    most important one first; columns: {name: (k,...)}, what the table holds. A column that is empty everywhere stays so.
    """

    def __init__(self, team, key, sorting, columns):
        self.team, self.name = team, ""
        order = np.argsort(key, kind="stable")
        self._key, self._order = key[order], order
        self._sorting, self._columns = sorting, columns
        low, high = (int(self._key[0]), int(self._key[-1])) if len(key) else (0, -1)
        sizes = {name: len(column) for name, column in columns.items()}
        told = team.everywhere((low, high, len(key), sizes))
        self.count = sum(rows for _, _, rows, _ in told)
        filled = {name: any(others[name] for *_, others in told) for name in columns}
        # Type and shape of what each column will be.
        self.like = {
            name: (column.dtype, (self.count if filled[name] else 0, *column.shape[1:]))
            for name, column in columns.items()
        }
        spans = [(a, b) for a, b, rows, _ in told if rows]
        first, last = (min(a for a, _ in spans), max(b for _, b in spans) + 1) if spans else (0, 1)
        many = min(max(1, -(-self.count // PIECE)), last - first)
        self._edges = [first + (last - first) * k // many for k in range(many + 1)]

    def pieces(self):
        """Piece after piece, {name: rows}; asked for by the first process alone."""
        for k in range(len(self._edges) - 1):
            self.team.first_says((self.name, k))
            yield self.piece(k)

    def piece(self, k):
        """Piece k: the rows of all processes, sorted, on the first; None on others."""
        rows = self._order[slice(*np.searchsorted(self._key, self._edges[k : k + 2]))]
        mine = [column[rows] if len(column) else column for column in (*self._sorting, *self._columns.values())]
        parts = self.team.gather(mine)
        if parts is None:
            return None
        joined = [np.concatenate(columns) for columns in zip(*parts, strict=True)]
        sorting, columns = joined[: len(self._sorting)], joined[len(self._sorting) :]
        order = order_of(sorting)
        return {
            name: column[order] if len(column) else column for name, column in zip(self._columns, columns, strict=True)
        }


def first_writes(function, tables):
    """Let the first process alone call a function that writes a file with these tables, {name: table}; those that are Gathered come to it in pieces meanwhile."""
    everyone = find()
    if everyone is None:
        function()
    else:
        everyone.first_writes(function, {name: table for name, table in tables.items() if isinstance(table, Gathered)})
