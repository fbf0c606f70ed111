"""A rehearsal of a simulation with a few of its bodies, to know which kernels it will launch; see `clast.kernels.ahead`."""

import contextlib
import copy
import dataclasses
import warnings

import numpy as np

from ..kernels import ahead, backend
from ..mpi import team
from ..narrow.contacts import find_contacts
from ..scene.lots import Store
from ..tables import FREE, some_bodies

EACH = 2  # bodies of each sort that take part
STEPS = 2


def sort(scene, mold):
    """Tells a mold from others as far as kernels are bound by it: round or not, where its parts are, of which kinds."""
    molds, parts = scene.molds, scene.parts
    own = slice(molds.first[mold], molds.first[mold] + molds.count[mold])
    kinds = tuple(np.unique(parts.kind[own]).tolist())
    return bool(molds.round[mold]), bool(molds.count[mold] > 1), bool(parts.offset[own].any()), kinds


def few(scene):
    """A scene with all walls, all bodies that are joined or driven, and a few others of each sort."""
    small = copy.copy(scene)
    bodies = scene.bodies
    joined = {number for held in (*scene.joints, *scene.springs) for number in (held.a, held.b)}
    kept: list[int] = []
    seen: dict[tuple, int] = {}
    sort_of = {mold: sort(scene, mold) for mold in np.unique(bodies.mold).tolist()}
    # The first free ones of each mold, and all others: a loop over all bodies would take a second for a million.
    loose = np.flatnonzero(bodies.motion == FREE)
    order = loose[np.argsort(bodies.mold[loose], kind="stable")]
    later = np.zeros(len(order), bool)
    later[EACH:] = bodies.mold[order[EACH:]] == bodies.mold[order[:-EACH]]
    meant = np.isin(bodies.number, list(joined)) | (bodies.motion != FREE)
    meant[order[~later]] = True
    for row in np.flatnonzero(meant).tolist():
        alike = sort_of[int(bodies.mold[row])]
        free = bodies.motion[row] == FREE
        seen[alike] = seen.get(alike, 0) + free
        if not free or seen[alike] <= EACH or int(bodies.number[row]) in joined:
            kept.append(row)
    chunks = [some_bodies(bodies, kept)]
    for inlet in scene.inlets:
        middle = 0.5 * (np.array(inlet.low) + np.array(inlet.high))
        chunks.append(
            small.pour(inlet, middle[None], np.array([inlet.sizes.largest]), np.array([[1.0, 0.0, 0.0, 0.0]]))
        )
    small.source, small._store, small.inlets, small.outlets = None, Store(*chunks), [], []
    return small


def look_at(scene):
    """Find the contacts of a scene as `find_contacts(scene)` does, and with all bodies as neighbours."""
    find_contacts(scene)
    number = scene.bodies.number
    find_contacts(scene, pairs=np.stack([number[k] for k in np.triu_indices(len(number), 1)], axis=1))


def rehearse(scene, method, dt, look=False):
    """Tasks for `ahead.compile_all`: the kernels that this scene launches and that are not on the disk; look: those too that
    find its contacts without a simulation.

    All bodies count as neighbours, so that whatever can touch is launched. What goes wrong here does so again, and is told, in earnest.
    """
    from .simulation import Simulation

    span = np.ptp(scene.bodies.position, axis=0).max() if len(scene.bodies.number) else 0.0
    with ahead.listening() as heard, warnings.catch_warnings(), team.alone():
        warnings.simplefilter("ignore")
        if look:
            with contextlib.suppress(Exception, ahead.Enough):
                look_at(few(scene))
        for margin in (float(span), None):
            if margin is not None and (not hasattr(method, "margin") or any(scene.periodic)):
                continue
            chosen = method if margin is None else dataclasses.replace(method, margin=margin)
            try:
                sim = Simulation(few(scene), chosen, dt=dt)
                stepper = sim.stepper
                stepper.start()
                for _ in range(STEPS):
                    stepper.step()
                stepper.finish()
            except (Exception, ahead.Enough):
                continue
            with contextlib.suppress(Exception, ahead.Enough), backend.use(stepper.device):
                stepper.rebuild()  # a second list takes over what contacts remember
                sim.contacts()
            break
    return list(heard.tasks.values())
