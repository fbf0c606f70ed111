"""The bodies of one process among those of all: its own, walls, and ghosts of what others move nearby.

Every process has an ordinary State: first the bodies in its tile and all walls, which every process has, then ghosts, whose places come from
their owners in every step. The owner of a body finds all its contacts itself; a contact of two bodies of two processes is found twice, from
the same numbers and so with the same bits, and each has its history. When the list of pairs is made anew, bodies
that have left the tile go to their new owner together with what their contacts remember.
"""

from typing import Any

import numpy as np

from ..kernels import backend
from ..kernels.backend import kernel
from ..motion.placing import place_parts, place_shapes, roomy
from ..motion.state import REORDER
from ..scene.stacking import lone_parts, mold_reach
from ..tables import FREE, some_bodies
from .balance import is_even, weights
from .cuts import Cuts, meets_row
from .survey import SAMPLE

PAUSE = 4  # lists, at the least, between two looks at whether work is even, where none is made for that
LARGE = 4.0  # times the typical radius: who is near a larger body is asked of that body, not of its tile
ROUNDING = 1e-9


class Domain:
    """What this process has of the bodies of a State, and what it exchanges with others.

    state: with the bodies in the own tile, by these Cuts, and all that are not free. memory: `remember` and `recall`
    what contacts do, as `clast.dem.results`; larger: how much larger [m] the list takes each of some Bodies, (n,), or None. groups: of bodies that are
    joined, each of which is in the tile of its first body as a whole, wherever the others are.
    """

    def __init__(self, team, state, cuts, memory, groups):
        self.team, self.state, self.memory, self.groups = team, state, memory, groups
        self.larger: Any = None
        self.reach = mold_reach(state.molds, state.parts)
        lone = bool(lone_parts(state.molds, state.parts).all())
        self.turning = state.turning or not lone  # whether it matters to others how a body is turned
        self.coming: list[tuple] = []  # ghosts: (rank, first row, behind the last)
        self.going: list[tuple] = []  # own bodies that others have: (rank, rows, room for what is sent of them)
        self.moved = self.recut = 0  # bodies that came from other processes; how often space was cut anew
        self.due = False  # whether to look at the next list, however few lists ago the last look was
        self._looked = 0  # list at which that was
        self.columns: list[Any] = [("label", np.int64)]
        self.columns += [(name, column.dtype, column.shape[1:]) for name, column in state.bodies._asdict().items()]
        self.cuts = cuts

    # Who has what.

    def balance(self, seconds):
        """Cut space anew if one process works much more than others; whether that was looked at. seconds: what this one has worked since the last
        look.

        A body weighs what its process took, divided by bodies and their points of contact, so that dense places and dear shapes get smaller tiles,
        and a tile that is half dense is cut where its work is. Clocks decide where bodies are, and no result depends on that.
        """
        state, team, own = self.state, self.team, self.state.own
        if state.rebuilds - self._looked < PAUSE and not self.due:
            return False
        self._looked = state.rebuilds
        free = np.flatnonzero(state.bodies.motion[:own] == FREE)
        work, bodies = np.array(team.everywhere((max(seconds, 0.0), float(len(free))))).T
        load = work if (bodies > 0.0).all() else bodies
        if not is_even(load) and bodies.sum() > team.size:
            points = self._points()[free]
            touching = np.array(team.everywhere(float(points.sum())))
            weight = weights(points, work, bodies, touching, team.rank)
            step = max(1, int(bodies.sum()) // SAMPLE)
            sample = team.join(np.column_stack([self._homes(free), weight])[::step])
            self.cuts = Cuts(team.size, state.box, sample[:, :3], sample[:, 3])
            self.recut += 1
        return True

    def _points(self):
        """Points of contact (n,) of each own body at the last step; one that two bodies share counts half for each."""
        state, bodies = self.state, self.state.bodies
        count = np.zeros(len(state.pairs.shape))
        if state.spheres_count:
            count[: state.spheres_count] = (state.spheres.action[:, :3] != 0.0).any(1)
        count[state.spheres_count :] = state.points.count
        rows = np.flatnonzero(count)
        shape = self._present(state.pairs.shape[rows])
        body = np.where(shape >= 0, state.shapes.body[shape], -1)
        free = (body >= 0) & (bodies.motion[body] == FREE)
        share = count[rows] / np.maximum(free.sum(1), 1)
        made = np.zeros(len(bodies.number))
        for side in (0, 1):
            some = free[:, side]
            made += np.bincount(body[some, side], share[some], len(made))
        return made[: state.own]

    def rebuild(self, grow=None):
        """Make the list of pairs anew: bodies go where they belong, ghosts come, and contacts keep what they remember. grow: see State.rebuild."""
        state = self.state
        rows, arrived, memory = self._migrate()
        number = state.bodies.number
        former = np.arange(len(number), dtype=np.int32) if state.former is None else state.former
        # What was here and may be here again under another rule: ghosts, and what leaves.
        known = np.concatenate([rows, np.arange(state.own, len(number))])
        known = known[np.argsort(number[known], kind="stable")]
        known_number, known_former = number[known], former[known]

        def before(wanted):
            if len(known_number) == 0:
                return np.full(len(wanted), -1, np.int32)
            at = np.minimum(np.searchsorted(known_number, wanted), len(known_number) - 1)
            return np.where(known_number[at] == wanted, known_former[at], -1).astype(np.int32)

        first, numbers = state.pairs is None, arrived["number"].copy()
        order = seats(state.own, rows, len(arrived))
        stayed, came, own = np.flatnonzero(order >= 0), np.flatnonzero(order < 0), len(order)
        was = np.empty(own, np.int32)
        was[stayed], was[came] = former[order[stayed]], before(numbers)[-1 - order[came]]
        former, state.ghosts = was, 0
        sort = state.rebuilds % REORDER == 0
        if len(rows) or len(arrived) or (sort and own < len(number)):
            fresh = np.flatnonzero(order != np.arange(own))
            self._exchange(fresh, order[fresh], arrived, own)
        if sort:
            order = state.sort_bodies()
            state.permute(order)
            former = former[order]
            backend.give_back(len(state.shapes.body))
        ghosts = self._choose_ghosts(own)
        self._exchange(np.arange(own, own + len(ghosts)), -1 - np.arange(len(ghosts)), ghosts, own + len(ghosts))
        former = np.concatenate([former, before(ghosts["number"])])
        state.ghosts = len(ghosts)
        state.note_ghosts()
        state.former = None if first else former
        del arrived, ghosts, known, rows, number, was, stayed, came, order  # a new list must not find them in memory
        if first:
            backend.give_back(len(state.shapes.body))  # nor the scene
        state.rebuild(sort=False, grow=grow)
        if memory is not None:
            self._recall(numbers, memory)

    def _exchange(self, rows, order, records, count):
        """Let rows (k,) of the tables have what stood in rows `order` (k,) of them, or the records -1, -2 and so on, and let there be `count` rows."""
        state = self.state
        old, came = np.flatnonzero(order >= 0), np.flatnonzero(order < 0)

        def some(column, more):
            made = np.empty((len(rows), *column.shape[1:]), column.dtype)
            made[old], made[came] = column[order[old]], more[-1 - order[came]]
            return made

        bodies = type(state.bodies)(*(some(column, records[name]) for name, column in state.bodies._asdict().items()))
        label = some(state.label, records["label"])
        if state.exchange(rows, bodies, label, count):
            return
        room, kept = count // 256 + len(rows) // 2, min(count, len(state.bodies.number))

        def whole(column, more):
            made = roomy((count, *column.shape[1:]), column.dtype, room)
            made[:kept] = column[:kept]
            made[rows] = more
            return made

        state.label = whole(state.label, label)
        state.place(type(bodies)(*(whole(column, more) for column, more in zip(state.bodies, bodies))), room)

    def _migrate(self):
        """Send bodies that have left the tile to their new owners. Returns rows that leave, records that come and what their
        contacts remember, None if nothing came."""
        state, team = self.state, self.team
        bodies = state.bodies
        rows, to = self._away()
        parcels = {}
        if len(rows):
            leaves = np.zeros(len(bodies.number), bool)
            leaves[rows] = True
            memory = None
            if state.pairs is not None:
                listed = state.pairs
                state.pairs = listed._replace(shape=self._present(listed.shape))
                shape, body = state.pairs.shape, state.shapes.body
                memory = self.memory.remember(
                    state, lambda pairs: (shape[pairs] >= 0).all(1) & leaves[body[shape[pairs]]].any(1)
                )
                state.pairs = listed
            for rank in np.unique(to):
                going = rows[to == rank]
                parcels[int(rank)] = self._records(bodies, state.label, going), about(memory, bodies.number[going])
        came = team.hand_round(parcels)
        arrived = np.concatenate([np.empty(0, self.columns), *(records for records, _ in came.values())])
        self.moved += len(arrived)
        memories = [memory for _, memory in came.values() if memory is not None]
        return rows, arrived, joined(memories) if memories else None

    def _away(self):
        """Rows (k,) of own bodies whose tiles are those of other processes, and these (k,)."""
        bodies, own, rank = self.state.bodies, self.state.own, self.team.rank
        if len(self.groups):
            rows = np.flatnonzero(bodies.motion[:own] == FREE)
            to = self.cuts.owner(self._homes(rows))
        else:  # nobody need be copied to be asked
            rows, to = np.arange(own), self.cuts.owner(bodies.position[:own])
        away = np.flatnonzero((to != rank) & (bodies.motion[rows] == FREE))
        return rows[away], to[away]

    def _homes(self, free):
        """Places (n,3) [m] whose tiles tell who moves these free bodies, rows (n,)."""
        bodies = self.state.bodies
        return self.groups.homes(bodies.number[free], bodies.position[free])

    def _present(self, shape):
        """Rows of Shapes (p,2) of the pairs of the list as they are now: bodies may have come or gone since, through inlets and outlets; -1 where one is gone."""
        state = self.state
        if state.former is None:
            return shape
        order = np.argsort(state.shapes.number, kind="stable")
        number = state.shapes.number[order]
        at = np.minimum(np.searchsorted(number, state.listed_number), len(number) - 1)
        now = np.where(number[at] == state.listed_number, order[at], -1).astype(np.int32)
        return now[shape]

    def _records(self, bodies, label, rows):
        """Rows of Bodies and their labels as one array of records."""
        records = np.empty(len(rows), self.columns)
        records["label"] = label[rows]
        for name, column in bodies._asdict().items():
            records[name] = column[rows]
        return records

    def bodies_of(self, records):
        """The Bodies of what `_records` or `gather` gave."""
        return type(self.state.bodies)(*(np.ascontiguousarray(records[name]) for name in self.state.bodies._fields))

    def _choose_ghosts(self, own):
        """Tell others of own bodies, the first so many, near their tiles; returns the records of what they tell of."""
        state, team = self.state, self.team
        bodies = type(state.bodies)(*(column[:own] for column in state.bodies))
        free = bodies.motion == FREE
        reach = self.reach[bodies.mold] * bodies.scale
        if self.larger is not None:
            rows = np.flatnonzero(free)
            reach[rows] += self.larger(some_bodies(bodies, rows))
        reach[~free] = -np.inf  # near nobody
        # Who is near a large body, or one of a group that is not in the tile, is asked of the body.
        large = reach > LARGE * state.size
        if len(self.groups):
            large |= free & (self.cuts.owner(bodies.position) != team.rank)
        table = np.column_stack([bodies.position[large], reach[large]])
        told = team.everywhere((float(reach.max(initial=0.0, where=~large)), bool(free.any()), table))
        self.going, parcels = [], {}
        for rank, (widest, some, others) in enumerate(told):
            if rank == team.rank or not some or not free.any():
                continue
            near = self.cuts.near(bodies.position, reach, rank, widest + state.margin)
            if len(others):
                kernel(meets_row)(own, bodies.position, reach, others, state.margin, state.edges, near)
            rows = np.flatnonzero(near)
            if len(rows):
                parcels[rank] = self._records(bodies, state.label, rows)
                self.going.append((rank, rows, np.empty((len(rows), state.rows.shape[1])), np.empty((len(rows), 4))))
        came = team.hand_round(parcels)
        self.coming, at = [], own
        for rank, records in came.items():
            self.coming.append((rank, at, at + len(records)))
            at += len(records)
        return np.concatenate([np.empty(0, self.columns), *came.values()])

    def _recall(self, numbers, memory):
        """Give contacts of bodies that came what they remember."""
        state = self.state
        came = np.isin(state.bodies.number, numbers)
        among = np.flatnonzero(came[state.shapes.body[state.pairs.shape]].any(1))
        self.memory.recall(state, memory, among)

    # In every step.

    def meet(self):
        """Bring ghosts to where their owners have moved them: one message to each process that has some of ours."""
        team, state, began = self.team, self.state, self.team.begin()
        comm, rows, orientation = team.comm, state.rows, state.bodies.orientation
        requests = [comm.Irecv(rows[first:last], rank, tag=2) for rank, first, last in self.coming]
        if self.turning:
            requests += [comm.Irecv(orientation[first:last], rank, tag=3) for rank, first, last in self.coming]
        for rank, own, place, turn in self.going:
            np.take(rows, own, axis=0, out=place)
            requests.append(comm.Isend(place, rank, tag=2))
            team.sent += place.nbytes
            if self.turning:
                np.take(orientation, own, axis=0, out=turn)
                requests.append(comm.Isend(turn, rank, tag=3))
                team.sent += turn.nbytes
        team.messages += len(self.going) * (1 + self.turning)
        team.MPI.Request.Waitall(requests)
        team.wait(began)

    def even_temperatures(self):
        """Give ghosts the temperatures that their owners have found."""
        team, temperature, began = self.team, self.state.bodies.temperature, self.team.begin()
        requests = [team.comm.Irecv(temperature[first:last], rank, tag=4) for rank, first, last in self.coming]
        sent = [(rank, np.ascontiguousarray(temperature[own])) for rank, own, *_ in self.going]
        requests += [team.comm.Isend(column, rank, tag=4) for rank, column in sent]
        team.sent += sum(column.nbytes for _, column in sent)
        team.messages += len(sent)
        team.MPI.Request.Waitall(requests)
        team.wait(began)

    # All bodies together.

    def gather(self, rows, beside=None):
        """Records of these own free bodies, of those that others choose, and of all walls, sorted by number, on every process; and so the rows of `beside` (own,...)."""
        state, bodies = self.state, self.state.bodies
        walls = np.flatnonzero(bodies.motion[: state.own] != FREE)

        def whole(some):
            return np.concatenate([self.team.join(some(rows)), some(walls)])

        records = whole(lambda rows: self._records(bodies, state.label, rows))
        order = np.argsort(records["number"], kind="stable")
        return records[order], None if beside is None else whole(lambda rows: beside[rows])[order]

    def around(self, low, high):
        """Bodies and Shapes of all processes that reach into the box from low to high (3,) [m], and all walls."""
        state = self.state
        bodies, own = state.bodies, state.own
        reach = self.reach[bodies.mold[:own]] * bodies.scale[:own]
        length, away = state.box.length, np.zeros((own, 3))
        for axis in range(3):
            x = bodies.position[:own, axis]
            for shift in (0.0, length[axis], -length[axis]):
                off = np.maximum(np.maximum(low[axis] - (x + shift), x + shift - high[axis]), 0.0)
                away[:, axis] = off if shift == 0.0 else np.minimum(away[:, axis], off)
        near = (bodies.motion[:own] == FREE) & (np.linalg.norm(away, axis=1) <= (1.0 + ROUNDING) * reach)
        records, _ = self.gather(np.flatnonzero(near))
        found = self.bodies_of(records)
        found, shapes, rows = place_shapes(found, records["label"], state.molds, state.parts)
        place_parts(found, shapes, state.parts, state.box, rows)
        return found, shapes

    def share(self):
        """The Bodies that this process tells of: its own, and the first of the walls, which are on every process."""
        bodies, own = self.state.bodies, self.state.own
        return some_bodies(bodies, np.flatnonzero((bodies.motion[:own] == FREE) | (self.team.rank == 0)))

    def everybody(self):
        """All Bodies, sorted by number, on every process."""
        return self.bodies_of(self.gather(np.flatnonzero(self.state.bodies.motion[: self.state.own] == FREE))[0])


def seats(own, leaving, arriving):
    """Who stands in which row when bodies have gone and come: for each row (m,) the row in which its body stood, or -1, -2 and so on for those that come.

    own: bodies that were there; leaving (k,): rows of those that leave, sorted; arriving: how many come. They take the rows of those that have left; if they are fewer,
    the last ones move there.
    """
    count = own - len(leaving) + arriving
    order = np.arange(count)
    free = np.concatenate([leaving, np.arange(own, count)])[:arriving]
    order[free] = -1 - np.arange(arriving)
    if arriving < len(leaving):
        holes = leaving[arriving:]
        stays = np.ones(own, bool)
        stays[leaving] = False
        order[holes[holes < count]] = count + np.flatnonzero(stays[count:])
    return order


def about(memory, numbers):
    """What `results.remember` gave, or some of its tables, of contacts that one of these bodies has."""
    if memory is None:
        return None
    kept = {name: np.isin(table["body"], numbers).any(1) for name, table in memory.items() if "body" in table}
    if "points" in kept:
        kept["history"] = kept["points"]
    return {
        name: {key: column[kept[name]] if len(column) else column for key, column in columns.items()}
        for name, columns in memory.items()
    }


def joined(memories):
    """The tables of several processes, or pieces of them, as one; the first has all."""
    return {
        name: {key: np.concatenate([memory[name][key] for memory in memories if name in memory]) for key in columns}
        for name, columns in memories[0].items()
    }
