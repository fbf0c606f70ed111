"""From the keys of a scene file to shapes."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from ..shapes import (
    Capsule,
    Clump,
    Compound,
    Cone,
    Cylinder,
    Ellipsoid,
    Mesh,
    Plane,
    Polyhedron,
    Quad,
    Sphere,
    Superquadric,
    load_mesh,
)
from .keys import (
    CLUMPS,
    COMPOUNDS,
    MESHES,
    PARTICLES,
    POLYHEDRA,
    CapsuleShape,
    ClumpShape,
    CompoundShape,
    ConeKeys,
    CylinderKeys,
    EllipsoidShape,
    MeshKeys,
    MeshShape,
    PieceKeys,
    PlaneKeys,
    PolyhedronShape,
    QuadKeys,
    SphereShape,
    SuperquadricShape,
)


class Shaper:
    """What a reader of scene files knows of shapes; it has `path`, `outside`, `fail`, `guard`, `keys` and `kind`."""

    path: Path
    outside: bool
    fail: Callable[..., NoReturn]
    guard: Callable[..., Any]
    keys: Callable[..., Any]
    kind: Callable[..., Any]

    def shape(self, place, keys):
        """The shape that these keys, one of the classes in MAKERS, describe."""
        return MAKERS[type(keys)](self, place, keys)

    def plane(self, place, keys):
        return self.guard(f"{place}.normal", Plane, normal=keys.normal)

    def cylinder(self, place, keys):
        length = math.inf if keys.length is None else keys.length
        return self.guard(place, Cylinder, keys.radius, length, axis=keys.axis, inside=keys.inside)

    def cone(self, place, keys):
        return self.guard(place, Cone, keys.radius, keys.outlet, keys.height, keys.axis, keys.segments)

    def quad(self, place, keys):
        return self.guard(f"{place}.corners", Quad, keys.corners)

    def mesh_wall(self, place, keys):
        return self.mesh(place, keys.file, "wall")

    def mesh(self, place, name, shape, **options):
        """What `load_mesh` makes of a file beside the scene file; shape and options as there."""
        try:
            file = (self.path.parent / name).resolve()
            known = file.is_file()
        except (OSError, ValueError):  # a name that no system takes
            file, known = self.path.parent, False
        if not (self.outside or file.is_relative_to(self.path.parent.resolve())):
            hint = "put the file there, or allow it with --outside (from Python: load(path, outside=True))"
            self.fail(f"{place}.file", f"is outside the folder of the scene file; {hint}", name)
        if not known:
            self.fail(f"{place}.file", f"no such file in {self.path.parent}; the path is seen from there", name)
        try:
            return load_mesh(file, shape=shape, **options)
        except Exception as fault:  # a mesh reader meets files of any kind and raises whatever it likes
            what, hint = ("mesh", "; use STL, OBJ or PLY") if shape == "wall" else (shape, "")
            self.fail(f"{place}.file", f"cannot be read as a {what}: {fault}{hint}", name)

    def particle(self, place, entry, model):
        """The shape, and the other keys of a table that describes both."""
        shape_model = self.kind(place, entry, PARTICLES, "sphere")
        names = set(shape_model.model_fields)
        keys = self.keys(place, {k: v for k, v in entry.items() if k not in names}, model, names)
        values = self.keys(place, {k: v for k, v in entry.items() if k in names}, shape_model)
        return self.shape(place, values), keys

    def sphere(self, place, values):
        return self.guard(place, Sphere, values.radius)

    def ellipsoid(self, place, values):
        return self.guard(f"{place}.axes", Ellipsoid, *values.axes)

    def superquadric(self, place, values):
        return self.guard(place, Superquadric, *values.axes, *values.exponents)

    def capsule(self, place, values):
        return self.guard(place, Capsule, values.radius, values.length)

    def clump(self, place, values):
        maker = self.maker(place, values, "clump", CLUMPS)
        if maker == "file":
            if values.spheres is None:
                self.fail(
                    f"{place}.spheres", "is missing; a clump fitted to a file needs their number, as spheres = 20"
                )
            mesh = self.mesh(place, values.file, "mesh")
            return self.guard(place, Clump.fit, mesh, spheres=values.spheres)
        if len(values.radii or ()) != len(values.centres):
            self.fail(f"{place}.radii", f"needs one radius for each of the {len(values.centres)} centres", values.radii)
        return self.guard(place, Clump, values.centres, values.radii)

    def compound(self, place, values):
        maker = self.maker(place, values, "compound", COMPOUNDS)
        if maker == "file":
            mesh = self.mesh(place, values.file, "mesh")
            return self.guard(place, Compound.decompose, mesh, threshold=values.threshold or 0.05)
        pieces = []
        for k, entry in enumerate(values.shapes):
            shape, keys = self.particle(f"{place}.shapes[{k}]", entry, PieceKeys)
            pieces.append((shape, keys.position, keys.orientation))
        return self.guard(f"{place}.shapes", Compound, pieces)

    def maker(self, place, values, kind, makers):
        """Which of the keys `makers` makes the shape of this kind in a table; others must go with that one."""
        given = {name: value for name, value in dict(values).items() if value is not None}
        found = [name for name in makers if name in given]
        if len(found) != 1:
            told = f"has {' and '.join(found)}" if found else "says nothing about its shape"
            self.fail(place, f"{told}; a {kind} needs exactly one of {', '.join(makers)}")
        (maker,) = found
        for name in given:
            if name != maker and name not in makers[maker]:
                used = next(other for other, names in makers.items() if name in names)
                self.fail(f"{place}.{name}", f"goes with {used}, not with {maker}; leave it out", given[name])
        if "radius" in makers[maker] and values.radius is None:
            self.fail(
                f"{place}.radius", f"is missing; {maker} needs the radius of the ball around it, as radius = 0.01"
            )
        return maker

    def triangulated(self, place, values):
        """The triangulated particle of a table that has one of the keys of MESHES, and what goes with it."""
        maker = self.maker(place, values, "mesh", MESHES)
        if maker == "file":
            return self.mesh(place, values.file, "mesh", epsilon=values.epsilon)
        if maker == "points":
            options = {"distortion": values.distortion or (0.75, 1.0), "seed": values.variant or 0}
            options |= {"radius": values.radius, "epsilon": values.epsilon}
            return self.guard(f"{place}.points", Mesh.random, values.points, **options)
        if values.triangles is None:
            self.fail(f"{place}.triangles", "is missing; vertices need triangles = [[0, 2, 1], ...], rows of vertices")
        return self.guard(f"{place}.triangles", Mesh, values.vertices, values.triangles, epsilon=values.epsilon)

    def polyhedron(self, place, values):
        """The polyhedron of a table that has one of the keys of POLYHEDRA, and what goes with it."""
        maker = self.maker(place, values, "polyhedron", POLYHEDRA)
        if maker == "points":
            return self.guard(f"{place}.points", Polyhedron, values.points)
        if maker == "edges":
            return self.guard(f"{place}.edges", Polyhedron.box, *values.edges)
        if maker == "solid":
            return self.guard(f"{place}.solid", Polyhedron.regular, values.solid, radius=values.radius)
        if maker == "file":
            return self.mesh(place, values.file, "polyhedron")
        aspect, seed = values.aspect or (1.0, 1.0, 1.0), values.variant or 0
        options = {"faces": values.faces, "radius": values.radius, "aspect": aspect, "seed": seed}
        return self.guard(f"{place}.faces", Polyhedron.random, **options)


MAKERS: dict[type, Callable[..., Any]] = {
    PlaneKeys: Shaper.plane,
    CylinderKeys: Shaper.cylinder,
    ConeKeys: Shaper.cone,
    QuadKeys: Shaper.quad,
    MeshKeys: Shaper.mesh_wall,
    SphereShape: Shaper.sphere,
    EllipsoidShape: Shaper.ellipsoid,
    SuperquadricShape: Shaper.superquadric,
    CapsuleShape: Shaper.capsule,
    PolyhedronShape: Shaper.polyhedron,
    MeshShape: Shaper.triangulated,
    ClumpShape: Shaper.clump,
    CompoundShape: Shaper.compound,
}
