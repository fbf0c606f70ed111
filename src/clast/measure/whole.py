"""Energies and momentum of all free bodies."""

from typing import TYPE_CHECKING

import numpy as np

from ..kernels.vec import rotation_matrices
from ..signatures import Floats
from ..tables import FREE, Bodies

if TYPE_CHECKING:
    from ..run.simulation import Simulation


def world_inertia(sim: "Simulation", bodies: Bodies) -> Floats:
    """Inertia tensors (n,3,3) [kg m^2] of free bodies in world axes, I = m s^2 R J R^T, rows as in bodies; zero for the others.

    m [kg]: mass; s: size factor; R: turns own axes into those of the world; J [m^2]: tensor over mass of the shape at size factor 1.
    """
    free = bodies.motion == FREE
    turn = rotation_matrices(bodies.orientation)
    size = np.where(free, bodies.mass, 0.0) * bodies.scale**2
    return size[:, None, None] * (turn @ sim.scene.molds.inertia[bodies.mold] @ turn.transpose(0, 2, 1))


def spinning(sim, bodies):
    """Angular momentum (n,3) [kg m^2/s] of free bodies about their centres, I w; zero for the others."""
    return (world_inertia(sim, bodies) * bodies.spin[:, None]).sum(2)


def body_energies(sim, bodies, gravity):
    """Energies (n,) [J] of each of these Bodies, of translation, of rotation and of gravity (3,) [m/s^2]; zero for those that are not free.

    Sums over three numbers stand alone, so that no term depends on how many bodies a process has.
    """
    mass = np.where(bodies.motion == FREE, bodies.mass, 0.0)
    translation, rotation = 0.5 * mass * (bodies.velocity**2).sum(1), 0.5 * (bodies.spin * spinning(sim, bodies)).sum(1)
    return translation, rotation, -mass * (bodies.position * np.array(gravity)).sum(1)


def energy(sim: "Simulation") -> dict[str, float]:
    """Energies [J] of a simulation: kinetic, rotational, potential, elastic and total; sums are exact, the same on any number of processes.

    kinetic = sum m v^2 / 2, rotational = sum w . I w / 2, potential = - sum m g . x, that of gravity against the origin; elastic as in
    `elastic_energy`; total = kinetic + rotational + potential + elastic.
    """
    kinetic, rotational, potential = sim.stepper.total(*body_energies(sim, sim.stepper.share(), sim.scene.gravity))
    elastic = elastic_energy(sim)
    return {
        "kinetic": kinetic,
        "rotational": rotational,
        "potential": potential,
        "elastic": elastic,
        "total": kinetic + rotational + potential + elastic,
    }


def elastic_energy(sim: "Simulation") -> float:
    """Energy [J] stored in the springs of all contacts, and in those of Scene.spring and Scene.torsion with a stiffness: E = sum_c U_c + sum_s k x^2 / 2.

    U_c is that of the contact law: k d^2 / 2 + k_t u^2 / 2 of "linear", 8/15 E* sqrt(R) d^(5/2) + k_t u^2 / 2 of "hertz", with overlap d and
    slip u [m]; compliance F_n^2 / 2 of hard contacts with a compliance, none of others; of bonds that of stretch, shear, bending and twist. A law that tells no energy counts as zero.
    """
    sim.start()
    return sim.stepper.elastic_energy()


def momentum(sim: "Simulation") -> tuple[Floats, Floats]:
    """Momentum P = sum m v (3,) [kg m/s] and angular momentum L = sum (m x cross v + I w) (3,) [kg m^2/s] about the origin, of all
    free bodies."""
    bodies = sim.stepper.share()
    linear = np.where(bodies.motion == FREE, bodies.mass, 0.0)[:, None] * bodies.velocity
    angular = np.cross(bodies.position, linear) + spinning(sim, bodies)
    found = sim.stepper.total(*linear.T, *angular.T)
    return np.array(found[:3]), np.array(found[3:])
