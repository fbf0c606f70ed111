"""A contact law of one's own: a linear spring without damping, and how far it keeps the energy of a bouncing ball.

python examples/own_law.py
"""

import clast
from clast import measure


@clast.func
def spring(touch, mix, dt):
    """Normal force [N], shear force on b [N], slip [m]; 2000 N/m, no friction, no loss."""
    return 2000.0 * touch.overlap, (0.0, 0.0, 0.0), touch.slip


scene = clast.Scene()
scene.add(clast.Plane())
scene.add(clast.Sphere(0.01), position=(0, 0, 0.05))
sim = clast.Simulation(scene, clast.DEM(law=spring), dt=1e-5)
before = measure.energy(sim)
sim.step(100_000)
after = measure.energy(sim)
lost = 1.0 - (after["kinetic"] + after["potential"]) / (before["kinetic"] + before["potential"])
print(
    f"after {sim.time:g} s the ball is at {sim.bodies.position[-1, 2]:.4f} m and its energy has changed by {-100.0 * lost:.1g} %"
)
