"""Whether the work of processes that share a run is even: who is told to cut space anew and when, and what a body weighs then."""

import numpy as np

UNEVEN = 1.1  # work of the busiest process over the mean above which space is cut anew
POINT = (
    1.2  # what a contact point costs, in bodies, where processes do not tell: measured with spheres, 19 ns over 16 ns
)
TRIED = POINT * 2.0 ** np.arange(-5.0, 5.1, 0.25)  # costs of a point that may explain how long processes took
TRUST = 0.05  # in the measured one: so much in the logarithm of times weighs as much as a factor of e in the cost


def is_even(work):
    """Whether no process has much more work than the mean."""
    return max(work) * len(work) <= UNEVEN * sum(work)


class Losses:
    """What is lost because the busiest process is waited for, and whether that has come to be as much as a new list costs."""

    def __init__(self):
        self.even = True  # at the last look
        self._lost = 0.0  # [s], since work became uneven or space was cut
        self._patience = 1.0  # lists that must have been lost; more where a cut did not help, since a group of joined bodies stays whole

    def add(self, work, cost):
        """Whether to cut now; work: processor times [s] of all processes since the last look; cost: of a new list [s]."""
        mean, most = sum(work) / len(work), max(work)
        self.even = is_even(work)
        if self.even:
            self._lost, self._patience = 0.0, 1.0
            return False
        self._lost += most - mean
        if self._lost < self._patience * cost:
            return False
        self._lost, self._patience = 0.0, 2.0 * self._patience
        return True


def point_cost(work, bodies, points):
    """What a contact point costs, in bodies, so that it explains best how long processes took; work, bodies, points: of each process (p,), above 0."""
    spread = np.var(np.log(work / (bodies + TRIED[:, None] * points)), axis=1)
    return float(TRIED[np.argmin(spread + (TRUST * np.log(TRIED / POINT)) ** 2)])


def weights(points, work, bodies, touching, rank):
    """What each body of a process weighs (n,): with its points of contact (n,) as much as they cost, all together as long as the process took.

    work: processor times of all processes (p,); bodies, touching: how many bodies and contact points each has.
    """
    if (bodies > 0.0).all() and (work > 0.0).all():
        weight = 1.0 + point_cost(work, bodies, touching) * points
        return weight * (work[rank] / weight.sum())
    return 1.0 + POINT * points  # a process that has nothing to do yet has no clock to go by
