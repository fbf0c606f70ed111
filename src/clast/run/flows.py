"""What went through inlets and outlets: how many bodies, of what mass, and when."""

import math

import numpy as np

from ..scene.scene import Scene
from ..signatures import Floats, Series, Wholes


class Flow:
    """What one inlet has let in, or one outlet has taken out, up to now. dt [s]: of the simulation."""

    def __init__(self, dt: float) -> None:
        self._dt = dt
        self._steps: list[int] = []
        self._counts: list[int] = []
        self._masses: list[float] = []

    @property
    def count(self) -> int:
        """Bodies in all."""
        return self._counts[-1] if self._counts else 0

    @property
    def mass(self) -> float:
        """Their mass [kg]."""
        return self._masses[-1] if self._masses else 0.0

    @property
    def times(self) -> Floats:
        """When something passed, (k,) [s]."""
        return np.array(self._steps, dtype=np.float64) * self._dt

    @property
    def counts(self) -> Wholes:
        """Bodies up to and including each of the times, (k,)."""
        return np.array(self._counts, dtype=np.int64)

    @property
    def masses(self) -> Floats:
        """Their mass up to and including each of the times, (k,) [kg]."""
        return np.array(self._masses, dtype=np.float64)

    def note(self, step: int, masses: Floats) -> None:
        """Bodies of these masses (n,) [kg] passed before this step."""
        if len(masses):
            # An exact sum has the same last bit in any order of memory.
            self._masses.append(math.fsum([self.mass, *np.asarray(masses).tolist()]))
            self._counts.append(self.count + len(masses))
            self._steps.append(int(step))

    def as_dict(self) -> dict[str, float]:
        """Count and mass [kg]."""
        return {"count": self.count, "mass": self.mass}


class Flows:
    """All inlets and outlets of a simulation: `inlets` and `outlets`, lists of Flow in the order of the scene's."""

    def __init__(self, scene: Scene, dt: float) -> None:
        self.inlets = [Flow(dt) for _ in scene.inlets]
        self.outlets = [Flow(dt) for _ in scene.outlets]

    def scalars(self) -> dict[str, float]:
        """Count and mass [kg] of each by name, `outlet_0_mass` say."""
        gates = (("inlet", self.inlets), ("outlet", self.outlets))
        named = {f"{kind}_{k}": flow for kind, flows in gates for k, flow in enumerate(flows)}
        return {f"{gate}_{what}": float(v) for gate, flow in named.items() for what, v in flow.as_dict().items()}

    def remember(self) -> Series:
        """All that passed as a table for a checkpoint."""
        flows = [*self.inlets, *self.outlets]
        gate = np.repeat(np.arange(len(flows)), [len(flow._steps) for flow in flows]).astype(np.int64)
        step = np.array([step for flow in flows for step in flow._steps], dtype=np.int64)
        count = np.concatenate([np.zeros(0, np.int64), *(flow.counts for flow in flows)])
        mass = np.concatenate([np.zeros(0), *(flow.masses for flow in flows)])
        return {"gate": gate, "step": step, "count": count, "mass": mass}

    def recall(self, table: Series) -> None:
        """Take back what `remember` gave."""
        for k, flow in enumerate([*self.inlets, *self.outlets]):
            rows = np.flatnonzero(table["gate"] == k)
            flow._steps, flow._counts, flow._masses = (table[name][rows].tolist() for name in ("step", "count", "mass"))
