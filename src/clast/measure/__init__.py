"""Numbers from simulations, scenes and saved frames: energies, contacts, stress, fields, packing, flow, mixing, walls.

Most functions take a Simulation, a Scene, or a `Snapshot` of a saved frame (`snapshot(frame, run)`); energies, momentum and walls need a
Simulation, and those that need contacts a Simulation or a frame that holds them. The formula of each stands in its docstring.
"""

from .fields import Fields, fields, mean
from .flow import angle_of_repose, lacey, mass_flow, relative_deviation
from .heat import heat, heat_flow, mean_temperature
from .ledger import Balance, Stored, ledger, stored
from .network import (
    Network,
    coordination,
    coordination_numbers,
    fabric,
    force_distribution,
    force_network,
    stress,
    touching,
)
from .packing import packing_fraction, packing_profile, radial_distribution
from .snapshot import Snapshot, snapshot
from .walls import Wear, wall_force, wall_power, wall_torque
from .whole import elastic_energy, energy, momentum, world_inertia

__all__ = [
    "Balance",
    "Fields",
    "Network",
    "Snapshot",
    "Stored",
    "Wear",
    "angle_of_repose",
    "coordination",
    "coordination_numbers",
    "elastic_energy",
    "energy",
    "fabric",
    "fields",
    "force_distribution",
    "force_network",
    "heat",
    "heat_flow",
    "lacey",
    "ledger",
    "mass_flow",
    "mean",
    "mean_temperature",
    "momentum",
    "packing_fraction",
    "packing_profile",
    "radial_distribution",
    "relative_deviation",
    "snapshot",
    "stored",
    "stress",
    "touching",
    "wall_force",
    "wall_power",
    "wall_torque",
    "world_inertia",
]
