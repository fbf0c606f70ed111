"""Numbers from the tables of a simulation."""

import numpy as np

from .kernels.vec import rotation_matrices
from .tables import FREE, is_particle


def world_inertia(sim, bodies):
    """Inertia tensors (n,3,3) [kg m^2] of free bodies in world axes, rows as in bodies; zero for the others."""
    free = bodies.motion == FREE
    turn = rotation_matrices(bodies.orientation)
    size = np.where(free, bodies.mass, 0.0) * bodies.scale**2
    return size[:, None, None] * (turn @ sim.scene.molds.inertia[bodies.mold] @ turn.transpose(0, 2, 1))


def energy(sim):
    """Energies [J] of a simulation: kinetic, rotational, potential, elastic and total.

    The potential is that of gravity against the origin; the elastic energy that of the springs in all contacts,
    and of Scene.spring and Scene.torsion with a stiffness.
    """
    bodies = sim.bodies
    free = bodies.motion == FREE
    mass = np.where(free, bodies.mass, 0.0)
    kinetic = 0.5 * float(mass @ (bodies.velocity**2).sum(1))
    spin = bodies.spin
    rotational = 0.5 * float(np.einsum("ni,nij,nj->", spin, world_inertia(sim, bodies), spin))
    potential = -float(mass @ (bodies.position @ np.array(sim.scene.gravity)))
    elastic = elastic_energy(sim)
    return {
        "kinetic": kinetic,
        "rotational": rotational,
        "potential": potential,
        "elastic": elastic,
        "total": kinetic + rotational + potential + elastic,
    }


def elastic_energy(sim):
    """Energy [J] stored in the springs of all contacts, and between bodies."""
    sim.start()
    return sim.stepper.elastic_energy()


def momentum(sim):
    """Momentum (3,) [kg m/s] and angular momentum (3,) [kg m^2/s] about the origin, of all free bodies."""
    bodies = sim.bodies
    mass = np.where(bodies.motion == FREE, bodies.mass, 0.0)
    linear = mass[:, None] * bodies.velocity
    own = np.einsum("nij,nj->ni", world_inertia(sim, bodies), bodies.spin)
    return linear.sum(0), (np.cross(bodies.position, linear) + own).sum(0)


def coordination(sim):
    """Mean number of contacts of a free body, with walls counted once and with each other twice."""
    bodies = sim.bodies
    free = bodies.number[bodies.motion == FREE]
    return float(np.isin(touching(sim, sim.contacts()), free).sum()) / max(len(free), 1)


def touching(sim, contacts):
    """Bodies (k,2) of all contacts; a polyhedron or mesh and its partner once, however many points they have in common."""
    scene, bodies = sim.scene, sim.bodies
    part = scene.molds.first[bodies.mold]
    faced = bodies.number[is_particle(scene.parts.kind[part]) & (scene.parts.feature[part] >= 0)]
    patch = np.isin(contacts.pair, faced).any(1)
    return np.concatenate([contacts.pair[~patch], np.unique(contacts.pair[patch], axis=0)])


def wall_force(sim, number):
    """Contact force (3,) [N] on one body, for fixed and driven bodies too."""
    contacts = sim.contacts()
    on_b = contacts.force[contacts.pair[:, 1] == number].sum(0)
    on_a = contacts.force[contacts.pair[:, 0] == number].sum(0)
    return on_b - on_a
