"""The sections of scene files and their keys, with unit, limits and an example for the messages."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field


def key(description, example, default=..., **limits) -> Any:
    """One key of a section: what it means with its unit, and an example for the message."""
    return Field(default, description=description, examples=[example], **limits)


Triple = Annotated[list[float], Field(min_length=3, max_length=3)]
Box = Annotated[list[Triple], Field(min_length=2, max_length=2)]
SOME_BOX = "[[0, 0, 0], [1, 1, 1]]"


class Section(BaseModel):
    """A table of a scene file: keys it does not know are refused."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class SceneKeys(Section):
    title: str = key("one line about the scene", '"a drum"', "")
    gravity: Triple = key("acceleration [m/s^2]", "[0, 0, -9.81]", [0.0, 0.0, -9.81])
    world: Box | None = key("corners [m] of the room that no body may leave", SOME_BOX, None)
    periodic: Annotated[list[bool], Field(min_length=3, max_length=3)] = key(
        "which axes repeat", "[true, false, false]", [False, False, False]
    )


class MaterialKeys(Section):
    density: float = key("density [kg/m^3]", "2500", 2500.0, gt=0)
    young: float = key("Young's modulus [Pa]", "1e7", 1e7, gt=0)
    poisson: float = key("Poisson's ratio", "0.25", 0.25, gt=-1, le=0.5)
    friction: float = key("coefficient of sliding friction", "0.5", 0.5, ge=0)
    restitution: float = key("rebound speed over approach speed", "0.5", 0.5, ge=0, le=1)
    rolling_friction: float = key("coefficient of rolling friction", "0.1", 0.0, ge=0)
    spinning_friction: float = key(
        "complementarity, and forces with twisting: coefficient of spinning friction", "0.05", 0.0, ge=0
    )
    cohesion: float = key("complementarity: largest pull that a contact bears [N]", "0.01", 0.0, ge=0)
    compliance: float = key("complementarity: overlap over force of a contact [m/N]", "1e-6", 0.0, ge=0)
    stiffness: float | None = key("spring of the linear law [N/m]", "1e4", None, gt=0)
    blaze_stiffness: float | None = key("spring K_r of the law blaze [N/m^1.5]", "1e7", None, gt=0)
    blaze_damping: float | None = key("dashpot K_D of the law blaze [N s/m^1.5]", "50", None, ge=0)
    blaze_shear: float | None = key("shear dashpot K_T of the law blaze [N s/m]", "0.4", None, ge=0)
    halo_stiffness: float | None = key("spring of the law halo [N/m]", "1e5", None, gt=0)
    halo_damping: float | None = key("dashpot of the law halo [N s/m]", "0", None, ge=0)
    conductivity: float | None = key("conductivity of heat [W/(m K)]", "1.0", None, ge=0)
    heat_capacity: float | None = key("heat capacity [J/(kg K)]", "800", None, gt=0)
    numbers: dict[str, float] | None = key("numbers of other laws, by name", "{ adhesion = 0.05 }", None)


class PairKeys(Section):
    between: Annotated[list[str], Field(min_length=2, max_length=2)] = key("two materials", '["rock", "steel"]')
    friction: float | None = key("coefficient of sliding friction", "0.5", None, ge=0)
    restitution: float | None = key("rebound speed over approach speed", "0.5", None, ge=0, le=1)
    rolling_friction: float | None = key("coefficient of rolling friction", "0.1", None, ge=0)
    spinning_friction: float | None = key(
        "complementarity, and forces with twisting: coefficient of spinning friction", "0.05", None, ge=0
    )
    cohesion: float | None = key("complementarity: largest pull that a contact bears [N]", "0.01", None, ge=0)
    compliance: float | None = key("complementarity: overlap over force of a contact [m/N]", "1e-6", None, ge=0)
    young: float | None = key("effective Young's modulus [Pa]", "1e7", None, gt=0)
    shear: float | None = key("effective shear modulus [Pa]", "4e6", None, gt=0)
    stiffness: float | None = key("spring of the linear law [N/m]", "1e4", None, gt=0)
    blaze_stiffness: float | None = key("spring K_r of the law blaze [N/m^1.5]", "1e7", None, gt=0)
    blaze_damping: float | None = key("dashpot K_D of the law blaze [N s/m^1.5]", "50", None, ge=0)
    blaze_shear: float | None = key("shear dashpot K_T of the law blaze [N s/m]", "0.4", None, ge=0)
    halo_stiffness: float | None = key("spring of the law halo [N/m]", "1e5", None, gt=0)
    halo_damping: float | None = key("dashpot of the law halo [N s/m]", "0", None, ge=0)
    conductivity: float | None = key("conductivity of heat [W/(m K)]", "1.0", None, ge=0)
    numbers: dict[str, float] | None = key("numbers of other laws, by name", "{ adhesion = 0.05 }", None)


class OscillationKeys(Section):
    amplitude: Triple = key("largest displacement [m]", "[0, 0, 0.01]")
    frequency: float = key("frequency [Hz]", "10", gt=0)
    phase: float = key("phase [rad]", "0", 0.0)


class WallKeys(Section):
    kind: str = key("kind of the wall", '"plane"')
    name: str | None = key("name, for joints and springs", '"arm"', None, min_length=1)
    position: Triple = key("place of the wall's origin [m]", "[0, 0, 0]", [0.0, 0.0, 0.0])
    orientation: Annotated[list[float], Field(min_length=4, max_length=4)] = key(
        "quaternion (w, x, y, z)", "[1, 0, 0, 0]", [1.0, 0.0, 0.0, 0.0]
    )
    material: str | None = key("name of a material", '"rock"', None)
    velocity: Triple = key("velocity [m/s]", "[0, 0, 0]", [0.0, 0.0, 0.0])
    spin: Triple = key("angular velocity [rad/s]", "[0, 1.5, 0]", [0.0, 0.0, 0.0])
    pivot: Triple | None = key("point [m] that the wall turns about", "[0, 0, 0]", None)
    oscillation: OscillationKeys | None = key("harmonic motion", "{ amplitude = [0, 0, 0.01], frequency = 10 }", None)
    temperature: float | None = key(
        "temperature [K] that it keeps; without one it lets no heat through", "350", None, gt=0
    )


class PlaneKeys(WallKeys):
    normal: Triple = key("direction towards the particles", "[0, 0, 1]", [0.0, 0.0, 1.0])


class CylinderKeys(WallKeys):
    radius: float = key("radius [m]", "0.15", gt=0)
    length: float | None = key("length [m]; leave it out for a cylinder without end", "0.2", None, gt=0)
    axis: Triple = key("direction of the axis", "[0, 1, 0]", [0.0, 0.0, 1.0])
    inside: bool = key("true: a hollow shell seen from inside; false: a solid cylinder", "true", True)


class ConeKeys(WallKeys):
    radius: float = key("radius of the wide end [m]", "0.15", gt=0)
    outlet: float = key("radius of the narrow end [m], at the position of the wall", "0.02", ge=0)
    height: float = key("distance of the two ends [m]", "0.2", gt=0)
    axis: Triple = key("direction from the narrow to the wide end", "[0, 0, 1]", [0.0, 0.0, 1.0])
    segments: int = key("facets around it", "96", 96, ge=3, le=10000)


class QuadKeys(WallKeys):
    corners: Annotated[list[Triple], Field(min_length=4, max_length=4)] = key(
        "four corners [m] in turn", "[[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]]"
    )


class MeshKeys(WallKeys):
    file: str = key("STL, OBJ or PLY file, seen from the scene file", '"funnel.stl"', min_length=1)
    scale: float = key("size factor, 0.001 if the file is in millimetres", "0.001", 1.0, gt=0)


class ParticleKeys(Section):
    kind: str = key("kind of the particle", '"sphere"', "sphere")
    material: str | None = key("name of a material", '"rock"', None)
    velocity: Triple = key("velocity [m/s]", "[0, 0, 0]", [0.0, 0.0, 0.0])
    temperature: float | None = key("temperature at the start [K]", "293.15", None, gt=0)


class BodyKeys(ParticleKeys):
    name: str | None = key("name, for joints and springs", '"arm"', None, min_length=1)
    position: Triple = key("place of the centre of mass [m]", "[0, 0, 0.5]")
    orientation: Annotated[list[float], Field(min_length=4, max_length=4)] = key(
        "quaternion (w, x, y, z)", "[1, 0, 0, 0]", [1.0, 0.0, 0.0, 0.0]
    )
    spin: Triple = key("angular velocity [rad/s]", "[0, 0, 0]", [0.0, 0.0, 0.0])
    scale: float = key("size factor", "1.0", 1.0, gt=0)
    motion: Literal["free", "fixed", "driven"] = key("how the body moves", '"free"', "free")


class ManyKeys(ParticleKeys):
    box: Box = key("two opposite corners [m]", SOME_BOX)
    scale: Annotated[list[Annotated[float, Field(gt=0)]], Field(min_length=2, max_length=2)] = key(
        "smallest and largest size factor", "[0.8, 1.2]", [1.0, 1.0]
    )
    mix: list[Annotated[list[Annotated[float, Field(gt=0)]], Field(min_length=2, max_length=2)]] | None = key(
        "pairs of size factor and weight, instead of scale", "[[1.0, 0.5], [1.75, 0.5]]", None, min_length=1
    )
    sieve: list[Annotated[list[Annotated[float, Field(ge=0)]], Field(min_length=2, max_length=2)]] | None = key(
        "pairs of sieve opening [m] and part of the mass that passes, from 0 to 1, instead of scale",
        "[[0.002, 0], [0.004, 0.4], [0.008, 1]]",
        None,
        min_length=2,
    )
    seed: int = key("any whole number; the same seed gives the same bodies", "1", 1, ge=0)


class WithinKeys(Section):
    centre: Triple = key("a point on the axis [m]", "[0, 0, 0]", [0.0, 0.0, 0.0])
    axis: Triple = key("direction of the axis", "[0, 1, 0]", [0.0, 0.0, 1.0])
    radius: float = key("how far centres may be from the axis [m]", "0.14", gt=0)


class FillKeys(ManyKeys):
    count: int | None = key("number of bodies", "1000", None, ge=1, le=100_000_000)
    fraction: float | None = key("part of the box that the bodies fill, instead of count", "0.55", None, gt=0, lt=1)
    method: Literal["random", "lattice", "packed"] | None = key(
        "how places are chosen; random unless said, packed for a fraction above 0.3", '"random"', None
    )
    jitter: float = key("random shift on the lattice, as a share of the diameter", "0.1", 0.0, ge=0, le=1)
    spin: Triple = key("angular velocity [rad/s]", "[0, 0, 0]", [0.0, 0.0, 0.0])
    within: WithinKeys | None = key("only inside this cylinder", "{ axis = [0, 1, 0], radius = 0.14 }", None)


class InletKeys(ManyKeys):
    rate: float = key("bodies per second", "1000", gt=0)
    start: float = key("time [s] of the first body", "0", 0.0, ge=0)
    stop: float | None = key("time [s] of the last body; leave it out for no end", "2", None, gt=0)
    count: int | None = key("number of bodies; leave it out for no end", "1000", None, ge=1, le=100_000_000)


class SphereShape(Section):
    radius: float = key("radius [m]", "0.005", gt=0)


class EllipsoidShape(Section):
    axes: Annotated[list[Annotated[float, Field(gt=0)]], Field(min_length=3, max_length=3)] = key(
        "three half-axes [m] along x, y, z of the body", "[0.005, 0.004, 0.003]"
    )


class SuperquadricShape(EllipsoidShape):
    exponents: Annotated[list[float], Field(min_length=2, max_length=2)] = key(
        "exponents e1, towards z, and e2, about z, 0.1 to 1.9; 1 and 1 is an ellipsoid", "[0.4, 0.4]"
    )


class CapsuleShape(Section):
    radius: float = key("radius [m]", "0.003", gt=0)
    length: float = key("from the centre of one end to that of the other [m], along z of the body", "0.01", gt=0)


class PolyhedronShape(Section):
    points: list[Triple] | None = key(
        "points [m] whose hull it is", "[[0, 0, 0], [0.01, 0, 0], [0, 0.01, 0], [0, 0, 0.01]]", None
    )
    edges: Annotated[list[Annotated[float, Field(gt=0)]], Field(min_length=3, max_length=3)] | None = key(
        "three edges [m] of a box along x, y, z of the body", "[0.02, 0.01, 0.01]", None
    )
    solid: str | None = key("name of a regular solid", '"cube"', None)
    faces: int | None = key("number of faces of a random rock", "14", None, ge=4, le=500)
    file: str | None = key(
        "STL, OBJ or PLY file of a closed convex mesh, seen from the scene file", '"rock.stl"', None, min_length=1
    )
    radius: float | None = key("radius [m] of the ball around a regular solid or rock", "0.01", None, gt=0)
    aspect: Annotated[list[Annotated[float, Field(gt=0)]], Field(min_length=3, max_length=3)] | None = key(
        "how long a rock is along x, y, z against each other", "[1, 0.8, 0.6]", None
    )
    variant: int | None = key("which of the rocks with so many faces, a whole number from 0 on", "7", None, ge=0)


# What makes a polyhedron, one of these, and the other keys that go with it.
POLYHEDRA = {"points": (), "edges": (), "solid": ("radius",), "faces": ("radius", "aspect", "variant"), "file": ()}


class MeshShape(Section):
    file: str | None = key(
        "STL, OBJ or PLY file of a closed mesh, seen from the scene file", '"rock.obj"', None, min_length=1
    )
    points: int | None = key("number of corners of a random lump", "50", None, ge=4, le=100_000)
    vertices: list[Triple] | None = key("corners [m]", "[[0, 0, 0], [0.01, 0, 0], [0, 0.01, 0], [0, 0, 0.01]]", None)
    triangles: list[Annotated[list[int], Field(min_length=3, max_length=3)]] | None = key(
        "three rows of vertices each, counterclockwise seen from outside",
        "[[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]]",
        None,
    )
    radius: float | None = key("radius [m] of the ball around a lump", "0.01", None, gt=0)
    distortion: Annotated[list[Annotated[float, Field(gt=0)]], Field(min_length=2, max_length=2)] | None = key(
        "least and largest part of their distance to which corners of a lump are moved", "[0.75, 1.0]", None
    )
    variant: int | None = key("which of the lumps with so many points, a whole number from 0 on", "7", None, ge=0)
    epsilon: float | None = key("thickness of the halo [m]", "0.0002", None, gt=0)


# What makes a triangulated particle, as for polyhedra.
MESHES = {
    "file": ("epsilon",),
    "points": ("radius", "distortion", "variant", "epsilon"),
    "vertices": ("triangles", "epsilon"),
}


class ClumpShape(Section):
    centres: list[Triple] | None = key("centres of the spheres [m]", "[[0, 0, 0], [0.004, 0, 0]]", None, min_length=1)
    radii: list[Annotated[float, Field(gt=0)]] | None = key(
        "radii of the spheres [m]", "[0.005, 0.005]", None, min_length=1
    )
    file: str | None = key(
        "STL, OBJ or PLY file of a closed mesh to which spheres are fitted, seen from the scene file",
        '"rock.obj"',
        None,
        min_length=1,
    )
    spheres: int | None = key("number of spheres fitted to a file", "20", None, ge=1, le=1000)


CLUMPS = {"centres": ("radii",), "file": ("spheres",)}


class PieceKeys(Section):
    kind: str = key("kind of the shape", '"sphere"', "sphere")
    position: Triple = key("place of its centre of mass [m]", "[0, 0, 0.01]", [0.0, 0.0, 0.0])
    orientation: Annotated[list[float], Field(min_length=4, max_length=4)] = key(
        "quaternion (w, x, y, z)", "[1, 0, 0, 0]", [1.0, 0.0, 0.0, 0.0]
    )


class CompoundShape(Section):
    shapes: list[dict] | None = key(
        "shapes, each with the keys of its kind, position and orientation",
        '[{ kind = "sphere", radius = 0.01 }, { kind = "polyhedron", edges = [0.03, 0.01, 0.01], position = [0.02, 0, 0] }]',
        None,
        min_length=1,
    )
    file: str | None = key(
        "STL, OBJ or PLY file of a closed mesh that is cut into convex shapes, seen from the scene file",
        '"ring.obj"',
        None,
        min_length=1,
    )
    threshold: float | None = key("how concave a shape of a file may stay", "0.05", None, ge=0.01, le=1)


COMPOUNDS = {"shapes": (), "file": ("threshold",)}


Two = Annotated[list[str], Field(min_length=2, max_length=2)]
Points = Annotated[list[Triple], Field(min_length=2, max_length=2)]
BETWEEN = "names of two bodies, or world"


class MotorKeys(Section):
    spin: float | None = key("speed of turning [rad/s]", "2.0", None)
    torque: float | None = key("torque [N m]", "5.0", None)
    speed: float | None = key("speed of sliding [m/s]", "0.1", None)
    force: float | None = key("force [N]", "10.0", None)
    most: float | None = key("strength of a motor of spin [N m] or speed [N]", "50.0", None, gt=0)


class TorsionKeys(Section):
    rest: float = key("angle without torque [rad]", "0", 0.0)
    stiffness: float = key("stiffness [N m/rad]", "200", 0.0, ge=0)
    damping: float = key("damping [N m s/rad]", "10", 0.0, ge=0)


class JointKeys(Section):
    between: Two = key(BETWEEN, '["world", "arm"]')
    kind: str | None = key("kind of the joint", '"hinge"', None)
    locked: Annotated[list[bool], Field(min_length=6, max_length=6)] | None = key(
        "instead of kind: shift along x, y, z and turn about x, y, z that are locked",
        "[true, true, true, true, true, false]",
        None,
    )
    at: Triple | None = key("place of the joint [m]", "[0, 0, 0]", None)
    axis: Triple | None = key("direction of the axis", "[0, 1, 0]", None)
    across: Triple | None = key("direction of the second axis", "[1, 0, 0]", None)
    points: Points | None = key("points [m] on the two bodies, for distance and hinge-and-ball", SOME_BOX, None)
    limits: Annotated[list[float], Field(min_length=2, max_length=2)] | None = key(
        "least and largest angle [rad] or shift [m]", "[-0.5, 0.5]", None
    )
    collide: bool = key("whether the two bodies may touch", "false", False)
    motor: MotorKeys | None = key("what drives the joint", "{ spin = 2.0 }", None)
    torsion: TorsionKeys | None = key("rotational spring and damper", "{ stiffness = 200, damping = 10 }", None)


class SpringKeys(Section):
    between: Two = key(BETWEEN, '["world", "arm"]')
    points: Points | None = key("points [m] on the two bodies; leave it out for their centres", SOME_BOX, None)
    rest: float | None = key("length without force [m]; leave it out for the length at the start", "0.5", None, ge=0)
    stiffness: float = key("stiffness [N/m]", "100", 0.0, ge=0)
    damping: float = key("damping [N s/m]", "5", 0.0, ge=0)


class OutletKeys(Section):
    box: Box = key("two opposite corners [m]", SOME_BOX)


class RunKeys(Section):
    dt: float | None = key('time step [s], or "auto"', "2e-5", None, gt=0)
    until: float = key("end of the run [s]", "2", 1.0, gt=0)
    every: float | None = key("time between frames [s]", "0.02", None, gt=0)
    method: Literal["dem", "complementarity"] = key(
        "how contacts act: as springs or as hard", '"complementarity"', "dem"
    )
    law: str = key("contact law", '"hertz"', "hertz")
    damping: str = key("dashpot of the law", '"tsuji"', "auto")
    shear: str = key("shear of the law", '"rescaled"', "auto")
    shear_damping: bool = key("whether shear has a dashpot", "false", True)
    cohesion: str = key("what holds contacts together", '"jkr"', "none")
    rolling: str = key("resistance to rolling", '"constant"', "spring")
    twisting: str = key("resistance to twisting", '"spring"', "none")
    bonds: bool = key("bodies that touch at the start are bonded", "true", False)
    in_step: bool | None = key("normal forces are means over the step", "true", None)
    attraction: bool = key("law blaze: contacts may pull where damping outweighs the spring", "true", False)
    conserving: bool | None = key(
        "laws hertz and linear: contacts give back what they took in; blaze: false is the force as published",
        "true",
        None,
    )
    integrator: str | None = key("how motion is integrated", '"verlet"', None)
    margin: float | None = key("extra reach of the neighbour search [m]", "0.001", None, ge=0)
    broad: str | None = key("how pairs that may touch are found", '"bins"', None)
    narrow: str | None = key("meshes: how the distance of two triangles is found", '"brute"', None)
    penetration: str | None = key(
        "what happens where surfaces of meshes cross, or a body goes through a thin wall: raise or push",
        '"raise"',
        None,
    )
    ledger: bool | None = key(
        "whether contacts tell what they lose by what, for the balance of energy; false: no balance is kept",
        "true",
        None,
    )
    solver: str | None = key("complementarity: how the impulses are found", '"apgd"', None)
    tolerance: float | None = key(
        'complementarity: error of the velocities of bodies [m/s], or "auto"', "1e-4", None, gt=0
    )
    iterations: int | None = key('complementarity: the most that a step may take, or "auto"', "200", None, ge=1)
    coulomb: bool | None = key("complementarity: Coulomb friction without lift of what slides", "true", None)
    warm: bool | None = key("complementarity: begin with the impulses of the last step", "true", None)
    stabilisation: float | None = key(
        "complementarity: part of an overlap taken away in a step", "0.2", None, gt=0, le=1
    )
    recovery: float | None = key("complementarity: fastest that overlaps are parted [m/s]", "0.1", None, ge=0)
    threshold: float | None = key("complementarity: slower impacts do not rebound [m/s]", "0.1", None, ge=0)
    sleep: Any = key('complementarity: bodies that are slower [m/s] for long sleep, or "auto"', '"auto"', None)
    omega: float | None = key("complementarity: step of the solver jacobi", "0.3", None, gt=0)
    relaxation: float | None = key("complementarity: share of a new value, solver jacobi", "1.0", None, gt=0, le=1)
    overlap_limit: float = key(
        "overlap allowed at the start, share of the smaller radius or half-axis", "0.05", 0.05, ge=0
    )


# The keys of [run] that go with one method only.
METHODS = {
    "dem": (
        *(
            "law",
            "damping",
            "shear",
            "shear_damping",
            "cohesion",
            "rolling",
            "twisting",
            "bonds",
            "in_step",
            "attraction",
            "conserving",
        ),
        *("integrator", "margin", "broad", "narrow", "penetration"),
    ),
    "complementarity": (
        *("solver", "tolerance", "iterations", "coulomb", "warm"),
        *("stabilisation", "recovery", "threshold", "sleep", "omega", "relaxation"),
    ),
}
WALLS = {"plane": PlaneKeys, "cylinder": CylinderKeys, "cone": ConeKeys, "quad": QuadKeys, "mesh": MeshKeys}
PARTICLES = {
    "sphere": SphereShape,
    "ellipsoid": EllipsoidShape,
    "superquadric": SuperquadricShape,
    "capsule": CapsuleShape,
    "polyhedron": PolyhedronShape,
    "mesh": MeshShape,
    "clump": ClumpShape,
    "compound": CompoundShape,
}
SECTIONS = ("scene", "materials", "pairs", "walls", "bodies", "joints", "springs", "fill", "inlet", "outlet", "run")
LISTS = SECTIONS[2:-1]


def odd_numbers(value, path=()):
    """Paths and values of numbers in a parsed file that are so large or small that products of a few of them are none."""
    if isinstance(value, dict | list):
        for name, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from odd_numbers(item, (*path, name))
    elif isinstance(value, float | int) and not isinstance(value, bool):
        # What is not finite is told by the key that does not take it.
        if value != 0 and not 1e-30 < abs(value) < 1e30 and value - value == 0:
            yield path, value
