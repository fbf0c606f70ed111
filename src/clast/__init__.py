"""Contacts between very many bodies, and how they move."""

from importlib import import_module as _import_module
from sys import modules as _modules

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

__all__ = [*_HOMES, *_ROOMS, "__version__"]


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


def _show_themselves():
    """Give scenes and simulations their picture in notebooks and `view`: rooms import downhill, and only here all are known."""
    for room, name in (("scene.scene", "Scene"), ("run.simulation", "Simulation")):
        thing = getattr(_modules.get(f"{__name__}.{room}"), name, None)
        if thing is not None and not hasattr(thing, "view"):
            thing.view, thing._repr_html_ = _view, _as_html


def _view(self, **options):
    """Show it in the browser, or inside a notebook: see `clast.view.show` for the options."""
    return _import_module(".view", __name__).show(self, **options)


def _as_html(self):
    return _import_module(".view.notebook", __name__).show_html(self)


def __dir__():
    return sorted(__all__)
