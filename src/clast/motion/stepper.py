"""What steppers of both methods share: the count of steps, driven bodies, and messages about what went wrong."""

import math
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..errors import Diverged, Escaped, Penetrated
from ..kernels import backend, sums
from ..narrow import mesh_slots
from ..scene import drives
from ..scene.stacking import particle_radii
from ..tables import FREE, some_bodies


class Stepper:
    """Takes the steps of one method. A Simulation calls it, and it knows nothing of the Simulation.

    A method adds dt [s], state (State), seconds ({stage: wall time [s]}), widest [m], fresh (nothing has been
    computed yet), start, step, finish, rebuild, cause, contacts,
    touching, elastic_energy, describe, remember and recall.
    """

    dt: float
    state: Any
    ledger: Any = None  # what was lost and done since the start, where it is asked for
    fresh: bool
    start: Callable[[], None]
    touching: Callable[[], int]
    contacts: Callable[[], Any]
    _move: Callable[..., None]
    cause: Callable[[], str]
    remedy: Callable[[bool], str]

    def __init__(self, scene, method, device, box):
        self.scene, self.method, self.device, self.box = scene, method, device, box
        self.on_device = backend.use(device)  # one for all steps: a new one takes 0.5 us each time
        self.steps = 0
        self.left = 0  # steps that were asked for and are still to be taken
        self.crossings = 0  # pairs of bodies whose surfaces crossed, summed over steps
        self.coincident = 0  # pairs of spheres with one centre, summed over steps of DEM
        low, high = scene.world or ((-math.inf,) * 3, (math.inf,) * 3)
        self.world = (*map(float, low), *map(float, high))

    @property
    def time(self):
        """Simulated time [s]."""
        return self.steps * self.dt

    # What several processes that share a run answer otherwise, see `clast.mpi.stepper`.

    listen: tuple = (lambda: False, lambda: False)

    def same_run(self, **asked):
        """Refuse a run that other processes do not ask for too; asked: {name: value} in words."""

    def heard(self):
        """What `listen` tells, for all processes: whether the run is to stop, whether it is time to look at it."""
        return tuple(bool(ask()) for ask in self.listen)

    @contextmanager
    def listening(self, stop, look):
        """Within the block these two functions are what `heard` asks."""
        self.listen = stop, look
        try:
            yield
        finally:
            self.listen = Stepper.listen

    def all_stop(self):
        """Whether all processes were interrupted, as this one was, so that they can still do something together."""
        return True

    def uneven(self):
        """Whether the list is to be made anew, at the same step on all processes, because one of them has much more work than others."""
        return False

    def everywhere(self, rows):
        """The rows of an array of all processes."""
        return rows

    def together(self, check):
        """Call a function that may raise."""
        check()

    def attempt(self, function, *arguments):
        """The same, and what it returns; other processes hear of what it raises later in the step, and then None is returned."""
        return function(*arguments)

    def name_contacts(self):
        """Keep whose the contacts of the last step are, before bodies come or go and stand in other rows; by forces, contacts go with them."""

    def chosen(self, state):
        """The Bodies that this process has at the start, copies, and labels of their shapes; and of all bodies the median of the radii of their shapes [m], None where there
        are none, and the largest."""
        bodies = self.scene.bodies
        radii, largest = particle_radii(bodies, state.molds, state.parts)
        middle = float(np.median(radii)) if len(radii) else None
        own = type(bodies)(*(np.array(column) for column in bodies))
        return own, state.new_labels(bodies), middle, largest

    def admit(self, bodies):
        """Take in Bodies that came through an inlet."""
        self.name_contacts()
        self.state.insert(bodies)

    def around(self, low, high):
        """Bodies and Shapes, among them all that reach into the box from low to high (3,) [m]."""
        return self.state.bodies, self.state.shapes

    def ranks(self):
        """What Report tells of the processes; nothing of one."""
        return {}

    def bodies(self):
        """All Bodies, sorted by number, a copy."""
        self.state.fetch()
        order = np.argsort(self.state.bodies.number, kind="stable")
        return some_bodies(self.state.bodies, order)

    def share(self):
        """The Bodies that this process tells of, in any order: all are in that of one process."""
        self.state.fetch()
        return self.state.bodies

    def shared_contacts(self):
        """The same of `contacts`."""
        return self.contacts()

    def total(self, *columns):
        """The exact sums of columns (k,), those of all processes, rounded once."""
        return [sums.exact(column) for column in columns]

    def table(self, names=None):
        """All bodies for a file, sorted by number: {name: column}, all columns or those with these names."""
        bodies = self.share()
        order = np.argsort(bodies.number, kind="stable")
        return {name: getattr(bodies, name)[order] for name in names or bodies._fields}

    def contact_table(self, contacts, columns):
        """The same of what `shared_contacts` gave; columns: {name: (c,...)}."""
        return columns

    def counted(self):
        """What is counted over steps, for a checkpoint."""
        return {"crossings": np.array(self.crossings), "coincident": np.array(self.coincident)}

    def recount(self, counted):
        """Go on from what `counted` gave."""
        self.crossings, self.coincident = int(counted["crossings"]), int(counted["coincident"])

    def poses(self, time):
        """Rows of driven bodies, each with the position, orientation, velocity and spin that its drive has at `time`."""
        bodies = self.state.bodies
        for row in self.state.driven:
            drive = self.scene.drives[int(bodies.number[row])]
            if drive.function is None:
                yield row, drives.pose(drive, time)
            else:
                here = bodies.position[row], bodies.orientation[row]
                yield row, drives.advance(drive, *here, time - self.dt, self.dt)

    def drive(self, poses):
        """Put driven bodies where their drives say they are."""
        if not self.state.driven:
            return
        bodies = self.state.bodies
        for row, pose in poses:
            bodies.position[row], bodies.orientation[row], bodies.velocity[row], bodies.spin[row] = pose
        self.state.send_driven()

    def complain(self):
        """Say which body went wrong, where and why."""
        self.state.fetch()
        bodies, time = self.state.bodies, self.time + self.dt
        free = bodies.motion == FREE
        columns = bodies.position, bodies.velocity, bodies.spin
        wrong = free & ~np.logical_and.reduce([np.isfinite(column).all(1) for column in columns])
        # Finite, but its square is not: nothing can follow that.
        fast = free & (np.abs(np.hstack(columns)) > 1e150).any(1)
        if wrong.any() or fast.any():
            row = int(np.argmax(wrong if wrong.any() else fast))
            what = "its state is not a number" if wrong.any() else "it is faster than numbers can follow"
            raise Diverged(f"{self.name(row)} at t = {time:.6g} s: {what}; {self.cause()}")
        low, high = np.array(self.world[:3]), np.array(self.world[3:])
        out = free & ~((bodies.position >= low) & (bodies.position <= high)).all(1)
        row = int(np.argmax(out))
        speed = float(np.linalg.norm(bodies.velocity[row]))
        where = ", ".join(f"{x:.4g}" for x in bodies.position[row])
        raise Escaped(
            f"{self.name(row)} at t = {time:.6g} s: left the world at ({where}) m with {speed:.3g} m/s; "
            f"likely a gap in the walls or too small a world; {self.cause()}"
        )

    def look_for_crossings(self, manifolds, push, time):
        """Answer to triangulated bodies at `time` [s] that the halo did not keep apart: an error that names them or, where surfaces
        cross and push is set, a count. manifolds (s,): those whose surfaces cross, see `mesh_slots.find_points`."""
        if len(manifolds):
            listed = self.state.candidates.listed
            self.crossings += len(self.state.told(listed.rows[listed.manifold[manifolds]] + self.state.spheres_count))
            if not push:
                self._penetrated(listed.pair[listed.manifold[manifolds[0]]], "their surfaces cross", time)
            self._look_inside(manifolds, time)
        if self.state.since == 0:
            self._look_inside(None, time)

    def _look_inside(self, manifolds, time):
        """A body that lies wholly inside a triangulated one touches nothing, and is lost all the same.

        A sphere whose centre is inside would be pulled in. manifolds: those that cross are looked at, or all pairs.
        """
        for pair in mesh_slots.swallowed(self.state, manifolds):
            self._penetrated(pair, "one lies inside the other", time)

    def _penetrated(self, pair, what, time):
        state = self.state
        rows = state.shapes.body[pair]
        one, two = (self.name(row) for row in rows)
        speed = float(np.linalg.norm(state.bodies.velocity[rows[1]] - state.bodies.velocity[rows[0]]))
        raise Penetrated(
            f"{one} and {two} at t = {time:.6g} s: {what}, the halo did not keep them apart at {speed:.3g} m/s; give bodies a larger "
            f"epsilon{self.remedy('cross' in what)}; {self.cause()}"
        )

    def name(self, row, state=None):
        """Number and shape of the body in this row of memory, for messages."""
        bodies = (self.state if state is None else state).bodies
        return f"body {int(bodies.number[row])} ({self.scene.names[bodies.mold[row]]})"
