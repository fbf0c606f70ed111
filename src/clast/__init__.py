"""Contacts between very many bodies, and how they move."""

from .backend import func
from .contact import find_contacts
from .drives import Oscillation
from .errors import ClastError, Damaged, Diverged, Escaped, NotConverged, SceneError, Unavailable
from .files import save
from .material import Material
from .motion.dem import DEM
from .scene import Scene
from .shapes import Clump, Cylinder, MeshWall, Plane, Quad, Sphere, load_mesh
from .simulation import Simulation, resume

__all__ = [
    "DEM",
    "ClastError",
    "Clump",
    "Cylinder",
    "Damaged",
    "Diverged",
    "Escaped",
    "Material",
    "MeshWall",
    "NotConverged",
    "Oscillation",
    "Plane",
    "Quad",
    "Scene",
    "SceneError",
    "Simulation",
    "Sphere",
    "Unavailable",
    "find_contacts",
    "func",
    "load_mesh",
    "resume",
    "save",
]
