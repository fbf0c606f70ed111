"""Scene files that together have every number that a scene file can have, each of which is exchanged; tests/unit/test_campaign.py sees that none is missing.

rock.stl is a closed mesh beside the scene file.
"""

SCENE = """
[scene]
title = "all that a scene of spheres can have"
gravity = [0, 0, -9.81]
world = [[-1, -1, -1], [2, 2, 2]]
periodic = [true, false, false]

[materials.rock]
density = 2600
young = 1e7
poisson = 0.25
friction = 0.6
restitution = 0.5
rolling_friction = 0.0

[materials.steel]
density = 7800

[[pairs]]
between = ["rock", "steel"]
friction = 0.3
restitution = 0.4

[[walls]]
kind = "plane"
material = "steel"
normal = [0, 0, 1]
position = [0, 0, 0]

[[walls]]
kind = "plane"
material = "steel"
normal = [0, 0, -1]
position = [0, 0, 1.5]
oscillation = { amplitude = [0, 0, 0.001], frequency = 10, phase = 0.5 }

[[bodies]]
kind = "sphere"
material = "rock"
radius = 0.01
position = [0.5, 0.5, 0.5]
velocity = [0, 0, -0.1]
spin = [0, 1, 0]
scale = 1.5

[[fill]]
radius = 0.01
material = "rock"
count = 5
box = [[0, 0, 0.02], [0.2, 0.2, 0.2]]
scale = [0.8, 1.2]
seed = 3
within = { centre = [0.1, 0.1, 0], axis = [0, 0, 1], radius = 0.08 }

[[inlet]]
radius = 0.01
material = "rock"
box = [[0.3, 0.3, 0.8], [0.6, 0.6, 1.0]]
rate = 100
start = 0
stop = 2
count = 10
velocity = [0, 0, -1]

[[outlet]]
box = [[0.7, 0.7, 0.0], [0.9, 0.9, 0.1]]

[run]
until = 0.01
every = 0.005
margin = 0.002
overlap_limit = 0.05
"""
HARD = """
[[walls]]
kind = "cylinder"
radius = 0.5
length = 2.0
axis = [0, 1, 0]
position = [0, 0, 0]

[[walls]]
kind = "quad"
corners = [[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]]

[[bodies]]
name = "arm"
kind = "ellipsoid"
axes = [0.05, 0.04, 0.03]
position = [0, 0, 0.2]
orientation = [1, 0, 0, 0]

[[bodies]]
name = "lump"
kind = "clump"
centres = [[0, 0, 0], [0.01, 0, 0]]
radii = [0.01, 0.02]
position = [0.2, 0, 0.2]

[[joints]]
kind = "hinge"
between = ["arm", "lump"]
at = [0.1, 0, 0.2]
axis = [0, 1, 0]

[[springs]]
between = ["arm", "lump"]
stiffness = 10
damping = 0.1
rest = 0.2

[run]
method = "complementarity"
tolerance = 1e-4
iterations = 100
stabilisation = 0.2
recovery = 0.1
threshold = 0.01
sleep = 0.01
dt = 1e-3
until = 0.01
"""
# Particles and walls that the others have not, the other ways to say how many, and heat.
KINDS = """
[scene]
gravity = [0, 0, -9.81]

[materials.rock]
density = 2600
young = 1e7
poisson = 0.25
friction = 0.6
stiffness = 1e4
conductivity = 1.0
heat_capacity = 800
halo_stiffness = 1e4
halo_damping = 0.1
blaze_stiffness = 1e7
blaze_damping = 50
blaze_shear = 0.4
numbers = { adhesion = 0.05 }

[materials.steel]
conductivity = 10
heat_capacity = 400

[[pairs]]
between = ["rock", "steel"]
rolling_friction = 0.1
young = 1e7
shear = 4e6
stiffness = 1e4
halo_stiffness = 1e4
halo_damping = 0.1
blaze_stiffness = 1e7
blaze_damping = 50
blaze_shear = 0.4
conductivity = 2.0
numbers = { adhesion = 0.1 }

[[walls]]
kind = "plane"
position = [0, 0, 0]
orientation = [1, 0, 0, 0]
material = "steel"
temperature = 350

[[walls]]
material = "rock"
kind = "cone"
radius = 0.15
outlet = 0.02
height = 0.2
axis = [0, 0, 1]
segments = 12
position = [0.6, 0, 0.2]
velocity = [0, 0, 0.01]
spin = [0, 0, 1]
pivot = [0.6, 0, 0]

[[walls]]
material = "rock"
kind = "mesh"
file = "rock.stl"
scale = 2.0
position = [1.2, 0, 0.1]

[[bodies]]
kind = "superquadric"
material = "rock"
axes = [0.01, 0.008, 0.006]
exponents = [0.5, 0.7]
position = [0, 0, 0.1]
temperature = 300

[[bodies]]
material = "rock"
kind = "capsule"
radius = 0.003
length = 0.01
position = [0.05, 0, 0.1]

[[bodies]]
material = "rock"
kind = "polyhedron"
points = [[0, 0, 0], [0.01, 0, 0], [0, 0.01, 0], [0, 0, 0.01]]
position = [0.1, 0, 0.1]

[[bodies]]
material = "rock"
kind = "polyhedron"
edges = [0.02, 0.01, 0.01]
position = [0.15, 0, 0.1]

[[bodies]]
material = "rock"
kind = "polyhedron"
faces = 14
radius = 0.01
aspect = [1, 0.8, 0.6]
variant = 7
position = [0.2, 0, 0.1]

[[bodies]]
material = "rock"
kind = "mesh"
points = 30
radius = 0.01
distortion = [0.75, 1.0]
variant = 7
epsilon = 0.0002
position = [0.25, 0, 0.1]

[[bodies]]
material = "rock"
kind = "mesh"
vertices = [[0, 0, 0], [0.01, 0, 0], [0, 0.01, 0], [0, 0, 0.01]]
triangles = [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]]
position = [0.3, 0, 0.1]

[[bodies]]
material = "rock"
kind = "clump"
file = "rock.stl"
spheres = 4
position = [0.4, 0, 0.1]

[[bodies]]
material = "rock"
kind = "compound"
shapes = [{ kind = "sphere", radius = 0.01 }, { kind = "polyhedron", edges = [0.03, 0.01, 0.01], position = [0.02, 0, 0], orientation = [1, 0, 0, 0] }]
position = [0.5, 0.2, 0.1]

[[fill]]
material = "rock"
radius = 0.01
fraction = 0.05
method = "lattice"
jitter = 0.1
mix = [[1.0, 0.5], [1.5, 0.5]]
box = [[0, 0.3, 0.1], [0.1, 0.4, 0.2]]
velocity = [0, 0, -0.1]
spin = [1, 0, 0]
temperature = 300

[[fill]]
material = "rock"
radius = 0.003
count = 5
sieve = [[0.004, 0], [0.006, 0.4], [0.008, 1]]
box = [[0.2, 0.3, 0.1], [0.3, 0.4, 0.2]]

[[inlet]]
material = "rock"
radius = 0.003
rate = 100
scale = [0.9, 1.1]
seed = 2
temperature = 300
box = [[0, 0.5, 0.1], [0.1, 0.6, 0.2]]

[[inlet]]
material = "rock"
radius = 0.003
rate = 100
mix = [[1.0, 0.5], [1.5, 0.5]]
box = [[0.2, 0.5, 0.1], [0.3, 0.6, 0.2]]

[[inlet]]
material = "rock"
radius = 0.003
rate = 100
sieve = [[0.004, 0], [0.006, 0.4], [0.008, 1]]
box = [[0.4, 0.5, 0.1], [0.5, 0.6, 0.2]]

[run]
until = 0.01
dt = 1e-5
"""
# Joints with all that they can have, and what hard contacts alone know.
JOINED = """
[materials.rock]
spinning_friction = 0.01
cohesion = 0.01
compliance = 1e-7

[materials.steel]
density = 7800

[[pairs]]
between = ["rock", "steel"]
spinning_friction = 0.02
cohesion = 0.02
compliance = 1e-6

[[bodies]]
name = "one"
material = "rock"
radius = 0.05
position = [0, 0, 0.5]

[[bodies]]
name = "two"
material = "steel"
radius = 0.05
position = [0.2, 0, 0.5]

[[bodies]]
material = "rock"
name = "three"
radius = 0.05
position = [0.4, 0, 0.5]

[[bodies]]
material = "rock"
name = "four"
radius = 0.05
position = [0.6, 0, 0.5]

[[joints]]
kind = "hinge"
between = ["world", "one"]
at = [0, 0, 0.6]
axis = [0, 1, 0]
limits = [-0.5, 0.5]
motor = { spin = 2.0, most = 50.0 }

[[joints]]
kind = "hinge"
between = ["one", "two"]
at = [0.1, 0, 0.5]
axis = [0, 1, 0]
motor = { torque = 0.01 }

[[joints]]
kind = "slider"
between = ["world", "three"]
at = [0.4, 0, 0.5]
axis = [1, 0, 0]
motor = { speed = 0.1, most = 20.0 }

[[joints]]
kind = "slider"
between = ["world", "four"]
at = [0.6, 0, 0.5]
axis = [1, 0, 0]
motor = { force = 1.0 }

[[joints]]
kind = "hinge"
between = ["two", "three"]
at = [0.3, 0, 0.5]
axis = [0, 1, 0]
torsion = { stiffness = 20, damping = 1, rest = 0.1 }

[[joints]]
kind = "distance"
between = ["three", "four"]
points = [[0.4, 0, 0.5], [0.6, 0, 0.5]]

[[joints]]
kind = "universal"
between = ["world", "two"]
at = [0.2, 0, 0.5]
axis = [0, 1, 0]
across = [1, 0, 0]

[[springs]]
between = ["one", "two"]
points = [[0, 0, 0.5], [0.2, 0, 0.5]]
stiffness = 10

[run]
method = "complementarity"
solver = "jacobi"
omega = 0.3
relaxation = 1.0
dt = 1e-3
until = 0.01
"""
