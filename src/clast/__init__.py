"""Contacts between very many bodies, and how they move."""

from importlib import import_module as _import_module

# Where each public name lives; the module is imported when the name is first used, so that `clast --help` is quick.
_HOMES = {
    "DEM": "dem.method",
    "ClastError": "errors",
    "Clump": "shapes",
    "Complementarity": "dvi.method",
    "Compound": "shapes",
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
    "Simulation": "run.simulation",
    "Sphere": "shapes",
    "Superquadric": "shapes",
    "Unavailable": "errors",
    "contacts_by_boxes": "narrow.by_boxes",
    "distance": "narrow.distance",
    "find_contacts": "narrow.contacts",
    "func": "kernels.backend",
    "load_mesh": "shapes",
    "resume": "run.simulation",
    "save": "files",
    "solve_cone": "dvi.matrix",
    "triangle_distance": "narrow.triangle_distance",
}

_ROOMS = ("files", "measure", "scenes", "view")  # modules that users call by name

__all__ = [*_HOMES, *_ROOMS, "__version__"]


def __getattr__(name):
    if name == "__version__":
        from importlib.metadata import version

        return version("clast")
    if name in _ROOMS:
        return _import_module(f".{name}", __name__)
    if name not in _HOMES:
        raise AttributeError(f"module 'clast' has no attribute {name!r}")
    value = getattr(_import_module(f".{_HOMES[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__():
    return sorted(__all__)
