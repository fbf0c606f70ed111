"""Contacts between very many bodies, and how they move."""

from importlib import import_module as _import_module
from sys import modules as _modules

TYPE_CHECKING = (
    False  # True to type checkers, by its name; to import `typing` for it takes ten times as long as all else here
)
if TYPE_CHECKING:  # they and editors see the real names; programs import them one by one, see below
    from . import files, materials, measure, scenes, view
    from .dem.method import DEM
    from .dem.own_law import law
    from .dvi.matrix import solve_cone
    from .dvi.method import Complementarity
    from .errors import (
        ClastError,
        Damaged,
        Diverged,
        Escaped,
        NotConverged,
        NotWritten,
        Penetrated,
        SceneError,
        Unavailable,
    )
    from .files import save
    from .kernels.backend import func
    from .mpi.contacts import contacts_by_boxes, find_contacts
    from .narrow.distance import distance
    from .narrow.triangle_distance import triangle_distance
    from .run.servo import Servo
    from .run.simulation import Simulation, resume
    from .scene.drives import Oscillation
    from .scene.filling import sieve
    from .scene.materials import Material
    from .scene.scene import Scene
    from .shapes import (
        Capsule,
        Clump,
        Compound,
        Cone,
        Cylinder,
        Ellipsoid,
        Mesh,
        MeshWall,
        Plane,
        Polyhedron,
        Quad,
        Sphere,
        Superquadric,
        load_mesh,
    )

    __version__: str

# Where each public name lives; the module is imported when the name is first used, so that `clast --help` is quick.
_HOMES = {
    "DEM": "dem.method",
    "ClastError": "errors",
    "Capsule": "shapes",
    "Clump": "shapes",
    "Complementarity": "dvi.method",
    "Compound": "shapes",
    "Cone": "shapes",
    "Cylinder": "shapes",
    "Damaged": "errors",
    "Diverged": "errors",
    "Ellipsoid": "shapes",
    "Escaped": "errors",
    "Material": "scene.materials",
    "Mesh": "shapes",
    "MeshWall": "shapes",
    "NotConverged": "errors",
    "NotWritten": "errors",
    "Oscillation": "scene.drives",
    "Penetrated": "errors",
    "Plane": "shapes",
    "Polyhedron": "shapes",
    "Quad": "shapes",
    "Scene": "scene.scene",
    "SceneError": "errors",
    "Servo": "run.servo",
    "Simulation": "run.simulation",
    "Sphere": "shapes",
    "Superquadric": "shapes",
    "Unavailable": "errors",
    "contacts_by_boxes": "mpi.contacts",
    "distance": "narrow.distance",
    "find_contacts": "mpi.contacts",
    "func": "kernels.backend",
    "law": "dem.own_law",
    "load_mesh": "shapes",
    "resume": "run.simulation",
    "save": "files",
    "sieve": "scene.filling",
    "solve_cone": "dvi.matrix",
    "triangle_distance": "narrow.triangle_distance",
}

_ROOMS = ("files", "materials", "measure", "scenes", "view")  # modules that users call by name

# Written out, so that type checkers know it.
__all__ = [
    "DEM",
    "ClastError",
    "Capsule",
    "Clump",
    "Complementarity",
    "Compound",
    "Cone",
    "Cylinder",
    "Damaged",
    "Diverged",
    "Ellipsoid",
    "Escaped",
    "Material",
    "Mesh",
    "MeshWall",
    "NotConverged",
    "NotWritten",
    "Oscillation",
    "Penetrated",
    "Plane",
    "Polyhedron",
    "Quad",
    "Scene",
    "SceneError",
    "Servo",
    "Simulation",
    "Sphere",
    "Superquadric",
    "Unavailable",
    "contacts_by_boxes",
    "distance",
    "find_contacts",
    "func",
    "law",
    "load_mesh",
    "resume",
    "save",
    "sieve",
    "solve_cone",
    "triangle_distance",
    "files",
    "materials",
    "measure",
    "scenes",
    "view",
    "__version__",
]


if not TYPE_CHECKING:  # to whom a name that is not there would be one of any type

    def __getattr__(name):
        if name == "__version__":
            from importlib.metadata import version

            return version("clast")
        if name in _ROOMS:
            room = _import_module(f".{name}", __name__)
            _show_themselves()
            return room
        if name not in _HOMES:
            raise AttributeError(f"module 'clast' has no attribute {name!r}")
        value = getattr(_import_module(f".{_HOMES[name]}", __name__), name)
        globals()[name] = value
        _show_themselves()
        return value


def _show_themselves() -> None:
    """Give scenes and simulations their picture in notebooks and `view`: rooms import downhill, and only here all are known."""
    for room, name in (("scene.scene", "Scene"), ("run.simulation", "Simulation")):
        thing = getattr(_modules.get(f"{__name__}.{room}"), name, None)
        if thing is not None and not hasattr(thing, "view"):
            thing.view, thing._repr_html_ = _view, _as_html


def _view(self, **options: object) -> object:
    """Show it in the browser, or inside a notebook: see `clast.view.show` for the options."""
    return _import_module(".view", __name__).show(self, **options)


def _as_html(self):
    return _import_module(".view.notebook", __name__).show_html(self)


def __dir__() -> list[str]:
    return sorted(__all__)


del TYPE_CHECKING
