"""Ready scenes as functions: shared by the command line, tests, benchmarks and docs. One file per family."""

from .all_shapes import all_shapes
from .ellipsoids import ellipsoid_box, ellipsoid_hopper
from .flows import silo, tank
from .machines import chain_on_gravel, tracked_vehicle
from .meshes import granulate, two_particles
from .polyhedra import cube_drum, cube_material, gravity_packing, rock_drum
from .ready import Ready, check_overlap
from .shaken import floating_ball, mixer, shaker
from .spheres import box, drum, hopper, pile

SCENES = {
    "drum": drum,
    "all-shapes": all_shapes,
    "hopper": hopper,
    "pile": pile,
    "box": box,
    "ellipsoid-box": ellipsoid_box,
    "ellipsoid-hopper": ellipsoid_hopper,
    "cube-drum": cube_drum,
    "gravity-packing": gravity_packing,
    "rock-drum": rock_drum,
    "two-particles": two_particles,
    "granulate": granulate,
    "silo": silo,
    "tank": tank,
    "shaker": shaker,
    "mixer": mixer,
    "floating-ball": floating_ball,
    "chain-on-gravel": chain_on_gravel,
    "tracked-vehicle": tracked_vehicle,
}

__all__ = [
    "SCENES",
    "Ready",
    "all_shapes",
    "box",
    "chain_on_gravel",
    "check_overlap",
    "cube_drum",
    "cube_material",
    "drum",
    "ellipsoid_box",
    "ellipsoid_hopper",
    "floating_ball",
    "granulate",
    "gravity_packing",
    "hopper",
    "mixer",
    "pile",
    "rock_drum",
    "shaker",
    "silo",
    "tank",
    "tracked_vehicle",
    "two_particles",
]
