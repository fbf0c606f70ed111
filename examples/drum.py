"""A rotating drum of two sizes of grains: run it, keep frames for ParaView, print the numbers.

python examples/drum.py [COUNT] [SECONDS]
"""

import sys

import numpy as np

import clast

count = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
until = float(sys.argv[2]) if len(sys.argv) > 2 else 1.0

rock = clast.Material(density=2600, young=1e7, poisson=0.25, friction=0.5, restitution=0.3)
scene = clast.Scene(gravity=(0, 0, -9.81))
scene.add(clast.Cylinder(0.1, 0.12, axis=(0, 1, 0)), material=rock, spin=(0, 2, 0))
scene.add(clast.Plane(normal=(0, 1, 0)), position=(0, -0.06, 0), material=rock)
scene.add(clast.Plane(normal=(0, -1, 0)), position=(0, 0.06, 0), material=rock)
scene.fill(
    clast.Sphere(0.004),
    count=count,
    scale={1.0: 0.7, 1.5: 0.3},
    box=((-0.1, -0.06, -0.1), (0.1, 0.06, 0.1)),
    inside=lambda x: np.hypot(x[:, 0], x[:, 2]) < 0.096,
    material=rock,
    seed=1,
)
sim = clast.Simulation(scene, clast.DEM(law="hertz"), dt="auto")
for frame in sim.frames(until=until, every=0.02):
    clast.save(f"out/paraview/{frame:04d}.vtp", scene)
print(sim.report())
