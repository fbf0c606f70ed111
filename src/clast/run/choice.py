"""Which stepper takes the steps of a method, on one process or on many, and why one keeps no account of energies."""

from ..dem.method import DEM
from ..dem.stepper import Smooth
from ..dvi.ledger import Accounted
from ..dvi.method import Complementarity
from ..dvi.sleeping import Resting
from ..dvi.stepper import Hard
from ..kernels import backend
from ..mpi.hard import RankedHard
from ..mpi.stepper import Ranked

METHODS = DEM, Complementarity


def stepper_of(method, many):
    """The class of stepper for a method; many: several processes share the run."""
    if isinstance(method, DEM):
        return Ranked if many else Smooth
    if many:
        return RankedHard
    if method.sleep is not None:
        return Resting
    return Hard if method.ledger is False else Accounted


def without_ledger(sim):
    """Why a simulation keeps no account of energies, in words, or None if it keeps one."""
    if sim.stepper.ledger is not None:
        return None
    if sim.method.ledger is False:
        return "ledger=False"
    if sim.device is not backend.CPU:
        return "device='cuda'"
    if isinstance(sim.method, DEM):
        return f"integrator={sim.method.integrator!r}"
    return "several processes share hard contacts" if sim.team is not None else "bodies sleep"
