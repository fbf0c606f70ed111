"""Heat that goes from body to body where they touch.

Two bodies that touch at a circle of radius a, small against both, conduct

    Q = 2 k a (T_a - T_b)

(Batchelor and O'Brien 1977), k = 2 k_a k_b / (k_a + k_b) the harmonic mean of their conductivities and a = sqrt(R d) Hertz's radius of the contact at the overlap d, R the
reduced radius. Points that share the stiffness of one area share its radius in the same parts. Each body has one temperature, m c dT/dt = sum of Q: within a body heat
spreads at once, which holds where a is much smaller than the body. Gaps conduct nothing, whatever the law does across them.

A pair has one flow, what one body gains the other loses; a body adds up its pairs in the order of its partners' numbers, as it does with forces.
"""

import math

import numpy as np

from ..broad.near import image, repeats
from ..kernels.backend import func, kernel
from ..kernels.rows import PER_MASS, REACH, centre_at
from ..kernels.vec import norm, sub
from ..scene.materials import combine
from ..tables import SIDE_BY_SIDE
from .method import may_touch, movers, shortest

# By which a step is judged before the first one: contacts of a body, and their radius as a part of its own; a ball that overlaps its like by an eighth of its radius.
TOUCHING, WIDE = 12.0, 0.25
CONDUCTS, FLOWS = 0, 1  # columns of a table of pairs: conductance [W/K], heat that flows into the second body [W]


@func
def conduct(p, radius, k, one, two, flows):
    """Write what pair p conducts through a circle of this radius [m] between bodies of temperatures one and two [K], of which NaN conducts nothing."""
    conducts = 2.0 * k * radius if one == one and two == two else 0.0
    flows[p, CONDUCTS] = conducts
    flows[p, FLOWS] = conducts * (one - two) if conducts > 0.0 else 0.0


def ball_row(p, rows, body, pairs, idle, conductivity, temperature, edges, flows):
    """What pair p of spheres conducts; conductivity (m*m,) [W/(m K)] of pairs of materials; body (s,): column of Shapes."""
    radius = 0.0
    s, t = pairs.shape[p, 0], pairs.shape[p, 1]
    if idle[p // SIDE_BY_SIDE] == 0:
        d = sub(centre_at(rows, t), centre_at(rows, s))
        if repeats(edges):
            d = (image(d[0], edges[0], edges[3]), image(d[1], edges[1], edges[4]), image(d[2], edges[2], edges[5]))
        reach = rows[s, REACH] + rows[t, REACH]
        radius = math.sqrt(rows[s, REACH] * rows[t, REACH] / reach * max(reach - norm(d), 0.0))
    conduct(p, radius, conductivity[pairs.mix[p]], temperature[body[s]], temperature[body[t]], flows)


def point_row(q, spheres, body, pairs, points, history, conductivity, temperature, flows):
    """The same of pair q, counted behind the pairs of spheres, by its contact points."""
    p, radius = q + spheres, 0.0
    if points.count[q] > 0:
        for c in range(pairs.slot[q], pairs.slot[q + 1]):
            if history.live[c] == 1:
                radius += history.share[c] * math.sqrt(points.radius[c] * max(points.overlap[c], 0.0))
    one, two = temperature[body[pairs.shape[p, 0]]], temperature[body[pairs.shape[p, 1]]]
    conduct(p, radius, conductivity[pairs.mix[p]], one, two, flows)


def warm_row(i, dt, rows, start, entry, material, per_capacity, flows, temperature, part):
    """Warm body i by all that flows into it in dt [s]; per_capacity (m,) [kg K/J] of materials; part (n,): of the difference to its neighbours that evens out within dt."""
    part[i] = 0.0
    if rows[i, PER_MASS] > 0.0:
        conducts, gains = 0.0, 0.0
        for at in range(start[i], start[i + 1]):
            p = entry[at] >> 1
            conducts += flows[p, CONDUCTS]
            gains += flows[p, FLOWS] if entry[at] & 1 else -flows[p, FLOWS]
        per = dt * rows[i, PER_MASS] * per_capacity[material[i]]
        temperature[i] += per * gains
        part[i] = per * conducts


class Heat:
    """Conducts heat between the bodies of a simulation by forces."""

    def __init__(self, scene):
        names = [material.name or f"number {row}" for row, material in enumerate(scene.materials)]
        radius, mass, material, number = movers(scene, scene.parts.ball)
        self.capacity = np.array([m.heat_capacity or np.nan for m in scene.materials])  # (m,) [J/(kg K)]
        lacking = material[np.isnan(self.capacity[material])]
        if len(lacking):
            raise ValueError(
                f"DEM: bodies have temperatures, and material {names[lacking[0]]} has no heat capacity; give Material(heat_capacity=...) in J/(kg K)"
            )
        conductivity = combine(scene.materials, scene.pairs).conductivity
        for a, b in np.argwhere(np.isnan(conductivity) & may_touch(scene)):
            raise ValueError(
                f"DEM: bodies have temperatures, and materials {names[a]} and {names[b]} have no conductivity; give Material(conductivity=...) in W/(m K)"
            )
        conductivity = np.nan_to_num(conductivity)
        self.conductivity, self.per_capacity = conductivity.ravel(), 1.0 / self.capacity
        conducts = TOUCHING * 2.0 * conductivity.max(axis=1)[material] * WIDE * radius
        # Longest step [s], and the body that sets it: a longer one would take a body past the temperatures around it.
        self.longest, self.quickest = shortest(mass * self.capacity[material] / np.maximum(conducts, 1e-300), number)
        self._flows, self._part = np.zeros((0, 2)), np.zeros(0)

    def flows(self, state):
        """What each pair of a State conducts at present, (p,2): CONDUCTS, FLOWS."""
        pairs, balls, temperature = state.pairs, state.spheres_count, state.bodies.temperature
        if len(self._flows) != len(pairs.shape):  # the same array each time: then the launch is the same, and known
            self._flows = np.zeros((len(pairs.shape), 2))
        given = self.conductivity, temperature
        body, flows = state.shapes.body, self._flows
        kernel(ball_row)(balls, state.rows, body, pairs, state.spheres.idle, *given, state.edges, flows)
        kernel(point_row)(len(flows) - balls, balls, body, pairs, state.points, state.history, *given, flows)
        return flows

    def spread(self, state, dt):
        """Let heat flow for dt [s]; the row of a body that would go past the temperatures around it, or None."""
        flows, own = self.flows(state), state.own
        if len(self._part) != own:
            self._part = np.zeros(own)
        pairs, bodies = state.pairs, state.bodies
        summed = pairs.start, pairs.entry, bodies.material, self.per_capacity, flows
        kernel(warm_row)(own, dt, state.rows, *summed, bodies.temperature, self._part)
        return int(np.argmax(self._part)) if self._part.max(initial=0.0) > 1.0 else None

    def told(self, state):
        """Numbers of the bodies of pairs that conduct heat (k,2), and what flows into the second (k,) [W]."""
        flows = self.flows(state)
        rows = state.told(np.flatnonzero(flows[:, CONDUCTS]))
        return state.bodies.number[state.shapes.body[state.pairs.shape[rows]]], flows[rows, FLOWS]
