"""What a shape is, one file each. A shape is whatever has `parts()`, `volume`, `inertia` and `surface()`.

All lengths are at size factor 1, in the axes of the body; the origin is the centre of mass of a particle and the
position of a wall. Walls have no volume and no inertia and may only be fixed or driven.
"""

from .capsule import Capsule
from .clump import Clump
from .compound import Compound
from .cone import Cone
from .cylinder import Cylinder
from .ellipsoid import Ellipsoid
from .loading import load_mesh
from .mesh import MeshWall
from .plane import Plane
from .polyhedron import Polyhedron
from .quad import Quad
from .sphere import Sphere
from .superquadric import Superquadric
from .triangulated import Mesh

__all__ = [
    "Capsule",
    "Clump",
    "Compound",
    "Cone",
    "Cylinder",
    "Ellipsoid",
    "Mesh",
    "MeshWall",
    "Plane",
    "Polyhedron",
    "Quad",
    "Sphere",
    "Superquadric",
    "load_mesh",
]
