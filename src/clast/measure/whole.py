"""Energies and momentum of all free bodies."""

import numpy as np

from ..kernels.vec import rotation_matrices
from ..tables import FREE


def world_inertia(sim, bodies):
    """Inertia tensors (n,3,3) [kg m^2] of free bodies in world axes, I = m s^2 R J R^T, rows as in bodies; zero for the others.

    m [kg]: mass; s: size factor; R: turns own axes into those of the world; J [m^2]: tensor over mass of the shape at size factor 1.
    """
    free = bodies.motion == FREE
    turn = rotation_matrices(bodies.orientation)
    size = np.where(free, bodies.mass, 0.0) * bodies.scale**2
    return size[:, None, None] * (turn @ sim.scene.molds.inertia[bodies.mold] @ turn.transpose(0, 2, 1))


def energy(sim):
    """Energies [J] of a simulation: kinetic, rotational, potential, elastic and total.

    kinetic = sum m v^2 / 2, rotational = sum w . I w / 2, potential = - sum m g . x, that of gravity against the origin; elastic as in
    `elastic_energy`; total = kinetic + rotational + potential + elastic.
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
    """Energy [J] stored in the springs of all contacts, and in those of Scene.spring and Scene.torsion with a stiffness: E = sum_c U_c + sum_s k x^2 / 2.

    U_c is that of the contact law: k d^2 / 2 + k_t u^2 / 2 of "linear", 8/15 E* sqrt(R) d^(5/2) + k_t u^2 / 2 of "hertz", with overlap d and
    slip u [m]; compliance F_n^2 / 2 of hard contacts with a compliance, none of others. A law that tells no energy counts as zero.
    """
    sim.start()
    return sim.stepper.elastic_energy()


def momentum(sim):
    """Momentum P = sum m v (3,) [kg m/s] and angular momentum L = sum (m x cross v + I w) (3,) [kg m^2/s] about the origin, of all
    free bodies."""
    bodies = sim.bodies
    mass = np.where(bodies.motion == FREE, bodies.mass, 0.0)
    linear = mass[:, None] * bodies.velocity
    own = np.einsum("nij,nj->ni", world_inertia(sim, bodies), bodies.spin)
    return linear.sum(0), (np.cross(bodies.position, linear) + own).sum(0)
