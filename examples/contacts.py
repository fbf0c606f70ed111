"""Contacts as a library call: a million random spheres, no simulation.

python examples/contacts.py [COUNT]
"""

import sys
import time

import numpy as np

import clast

count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
rng = np.random.default_rng(1)
scene = clast.Scene()
scene.add(
    clast.Sphere(1.0), position=rng.uniform(0.0, 1.6 * count ** (1 / 3), (count, 3)), scale=rng.uniform(0.4, 0.6, count)
)

clast.find_contacts(scene)  # the first call in a fresh installation compiles its kernels
began = time.perf_counter()
contacts = clast.find_contacts(scene)
spent = time.perf_counter() - began
print(
    f"{count:,} spheres, {len(contacts.gap):,} contacts in {spent:.3f} s; deepest overlap {-contacts.gap.min():.3f} m"
)
