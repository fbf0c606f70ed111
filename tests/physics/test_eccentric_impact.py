"""Impacts that do not go through the centres of the bodies: restitution out = in at the contact point, and no energy from nothing at dt="auto"."""

import numpy as np
import pytest

import clast
from clast.dem.stepper import AUTO
from clast.measure import world_inertia

SIZE = 0.01
HALF = clast.Polyhedron.box(1.5 * SIZE, 1.2 * SIZE, 0.9 * SIZE)
SHAPES = {
    "ellipsoid": clast.Ellipsoid(1.6 * SIZE, SIZE, 0.7 * SIZE),
    "box": clast.Polyhedron.box(2.4 * SIZE, 1.2 * SIZE, 1.6 * SIZE),
    "rock": clast.Polyhedron.random(faces=14, seed=3, radius=SIZE),
    "clump": clast.Clump([(-SIZE, 0, 0), (SIZE, 0, 0), (0, 0.8 * SIZE, 0)], [0.7 * SIZE, 0.9 * SIZE, 0.6 * SIZE]),
    "compound": clast.Compound([(HALF, (0, 0, -0.45 * SIZE)), (HALF, (0.6 * SIZE, 0, 0.45 * SIZE))]),
    "mesh": clast.Mesh.random(60, radius=SIZE, seed=2, epsilon=0.1 * SIZE),
    "superquadric": clast.Superquadric(1.4 * SIZE, SIZE, 0.8 * SIZE, 0.6, 0.6),
    "capsule": clast.Capsule(0.7 * SIZE, 1.2 * SIZE),
}
NAMES = list(SHAPES)
# Each with its like and with the two next, so that all kinds meet those that they meet in another family; None: the plane.
PAIRS = [(a, None) for a in NAMES] + [(a, NAMES[(k + j) % len(NAMES)]) for k, a in enumerate(NAMES) for j in range(3)]


class Impacts:
    """Pairs of bodies far from each other, `each` of every two of PAIRS, a hair apart; they come at each other along the normal, at random points of
    their surfaces."""

    def __init__(self, restitution, speed, each, seed, spin=0.0, friction=0.0, young=1e9):
        rng = np.random.default_rng(seed)
        stone = clast.Material(density=2500.0, young=young, poisson=0.25, friction=friction, restitution=restitution)
        pairs = [pair for pair in PAIRS for _ in range(each)]
        turns = rng.normal(size=(len(pairs), 2, 4))
        self.pairs = pairs
        # The halo of a mesh is thin.
        speeds = np.where(["mesh" in pair for pair in pairs], 0.1, 1.0) * speed

        def make(place):
            scene = clast.Scene(gravity=(0, 0, 0))
            scene.add(clast.Plane(), material=stone)
            bodies = []
            for k, pair in enumerate(pairs):
                for name, at, turn in zip(pair, place[k], turns[k], strict=True):
                    bodies.append(
                        None
                        if name is None
                        else int(scene.add(SHAPES[name], position=at, orientation=turn, material=stone)[0])
                    )
            return scene, np.array([0 if b is None else b for b in bodies]).reshape(-1, 2)

        place = np.zeros((len(pairs), 2, 3))
        place[:, :, 0] = 14.0 * SIZE * np.arange(len(pairs))[:, None]
        place[:, :, 2] = np.where([[b is None] for _, b in pairs], 2.5 * SIZE, 20.0 * SIZE)
        way = rng.normal(size=(len(pairs), 3))
        place[:, 1] += 4.0 * SIZE * way / np.linalg.norm(way, axis=1)[:, None]
        scene, body = make(place)
        apart = self.nearest(scene, body)
        place[:, 0] += apart.normal * (apart.gap - 1e-6 * SIZE)[:, None]
        self.scene, body = make(place)
        near = self.nearest(self.scene, body)
        self.normal, self.point, self.body = near.normal, near.point, body
        bodies = self.scene.bodies
        bodies.velocity[body[:, 0]] += speeds[:, None] * self.normal
        bodies.spin[body] += (
            rng.normal(size=(len(pairs), 2, 3)) * spin * (body > 0)[:, :, None] * speeds[:, None, None] / SIZE
        )
        self.speeds = speeds

    @staticmethod
    def nearest(scene, body):
        """Of each pair the contact point with the least gap; its normal goes from the first to the second."""
        found = clast.find_contacts(scene, pairs=body, margin=np.inf)
        rows = []
        for a, b in body:
            mine = np.nonzero((found.pair == sorted((a, b))).all(1))[0]
            rows.append(mine[np.argmin(found.gap[mine])])
        sign = np.where(body[:, 0] < body[:, 1], 1.0, -1.0)[:, None]
        return found._replace(normal=sign * found.normal[rows], point=found.point[rows], gap=found.gap[rows])

    def run(self, part, until, look=50):
        """Take steps of `part` of dt="auto" until nothing touches, or all have gone `until` times their size at their speed; returns who is apart.

        Every `look` steps contacts are looked at: `normal`, `point` are those of the first look at which a pair touched, `plain` says whether it had
        one point with this normal all the time."""
        method = clast.DEM()
        self.sim = sim = clast.Simulation(self.scene, method, dt=part * AUTO * method.critical_step(self.scene)[0])
        self.began, self.before, steps = (
            self.motion(),
            self.energy(),
            int(np.ceil(until * SIZE / self.speeds.max() / sim.dt)),
        )
        row = {tuple(sorted(pair)): k for k, pair in enumerate(self.body.tolist())}
        self.plain, seen, touching = np.ones(len(row), bool), np.zeros(len(row), bool), np.ones(len(row), bool)
        while sim.steps < steps and touching.any():
            sim.step(look)
            contacts = sim.contacts()
            mine = np.array([row[tuple(pair)] for pair in contacts.pair.tolist()], int)
            count = np.bincount(mine, minlength=len(row))
            normal = np.where(self.body[mine, 0] < self.body[mine, 1], 1.0, -1.0)[:, None] * contacts.normal
            new = ~seen[mine]
            self.normal[mine[new]], self.point[mine[new]] = normal[new], contacts.point[new]
            turned = np.einsum("ki,ki->k", normal, self.normal[mine]) < 0.999
            self.plain[mine[turned]], self.plain[count > 1] = False, False
            seen |= count > 0
            touching = (count > 0) | ~seen
        return ~touching

    def motion(self):
        """Velocity and spin (k,2,3) of the two bodies of each pair."""
        return self.sim.bodies.velocity[self.body].copy(), self.sim.bodies.spin[self.body].copy()

    def inertia(self):
        """Mass (k,2) [kg] and inertia (k,2,3,3) [kg m^2] of the two bodies, those of the plane infinite."""
        bodies = self.sim.bodies
        turning = world_inertia(self.sim, bodies)[self.body]
        return bodies.mass[self.body], np.where((self.body > 0)[:, :, None, None], turning, 1e300 * np.eye(3))

    def energy(self):
        """Kinetic energy [J] of each pair; a plane has none."""
        (v, w), (mass, turning) = self.motion(), self.inertia()
        own = np.where(self.body > 0, mass, 0.0) * (v**2).sum(2) + np.einsum("kbi,kbij,kbj->kb", w, turning, w)
        return 0.5 * own.sum(1)


def opening(impacts, arms, velocity, spin):
    """Speed [m/s] at which the points at these arms (k,2,3) of each pair part along the normal."""
    v = velocity + np.cross(spin, arms)
    return np.einsum("ki,ki->k", v[:, 1] - v[:, 0], impacts.normal)


@pytest.mark.parametrize("restitution", [0.3, 0.8])
def test_restitution_at_the_contact_point_is_as_asked_however_far_from_the_centres_it_is(restitution):
    """Bodies whose points of contact meet at a speed v part with e v there; both get the impulse (1 + e) v m, 1/m = sum of 1/m_i + (r_i x n).J_i^-1 (r_i x n)."""
    impacts = Impacts(restitution, 0.2, 2, 1)
    assert impacts.run(0.1, 0.03, look=5).all()
    # Corners at corners have no normal of their own: those that have one are told.
    plain = impacts.plain
    assert {pair for pair, one in zip(impacts.pairs, plain, strict=True) if one} >= {
        (name, other) for name in NAMES for other in (name, None)
    } - {("rock", "rock")}
    assert plain.sum() > 0.9 * len(plain)
    arms = impacts.point[:, None] - impacts.sim.bodies.position[impacts.body]
    before, after = opening(impacts, arms, *impacts.began), opening(impacts, arms, *impacts.motion())
    assert np.abs(after / before + restitution)[plain].max() < 1e-2
    mass, turning = impacts.inertia()
    lever = np.cross(arms, impacts.normal[:, None])
    light = (1.0 / mass + np.einsum("kbi,kbij,kbj->kb", lever, np.linalg.inv(turning), lever)).sum(1)
    assert (light[plain] * np.min(mass, axis=1)[plain]).max() > 4.0  # some are struck far from their centres
    impulse = mass[:, 0] * np.linalg.norm(impacts.motion()[0][:, 0] - impacts.began[0][:, 0], axis=1)
    assert np.abs(impulse * light / ((1.0 + restitution) * -before) - 1.0)[plain].max() < 1e-2


@pytest.mark.parametrize("restitution", [0.0, 0.5])
def test_no_impact_gains_energy_at_the_automatic_step(restitution):
    """At 30 m/s bodies go a fifth of their size deep. Dashpots by the mass of the body threw 13 of 112 such back at restitution 0, up to 3.4 times as
    lively as they came."""
    for speed in (5.0, 30.0):
        impacts = Impacts(restitution, speed, 4, 2, spin=0.5, young=1e8)
        impacts.run(1.0, 0.5)
        # One that spins past the other keeps what it has, to rounding.
        assert (impacts.energy() / impacts.before).max() < 1.0 + 1e-13
