"""Signed distances of ellipsoid pairs by MuJoCo, the peer of `ellipsoids.py`; run by it in the peers' environment.

    .bench-venv/bin/python benchmarks/mujoco_pairs.py pairs.npz distances.npz

One core; MuJoCo has no batched call, so the loop is Python's, about a microsecond of the fifteen a pair takes.
"""

import sys
import time

import mujoco
import numpy as np

SCENE = """<mujoco><option ccd_tolerance="1e-10" ccd_iterations="200"/><worldbody>
<body name="a"><geom name="a" type="ellipsoid" size="1 1 1"/></body>
<body name="b"><geom name="b" type="ellipsoid" size="1 1 1"/></body></worldbody></mujoco>"""


def main():
    pairs = np.load(sys.argv[1])
    model = mujoco.MjModel.from_xml_string(SCENE)
    data = mujoco.MjData(model)
    d, size_a, size_b = pairs["d"], pairs["size_a"], pairs["size_b"]
    count = len(d)
    distance = np.empty(count)
    first, second = pairs["turn_a"].reshape(count, 9), pairs["turn_b"].reshape(count, 9)
    mujoco.mj_forward(model, data)
    began = time.perf_counter()
    for k in range(count):
        model.geom_size[0], model.geom_size[1] = size_a[k], size_b[k]
        data.geom_xmat[0], data.geom_xmat[1] = first[k], second[k]
        data.geom_xpos[1] = d[k]
        distance[k] = mujoco.mj_geomDistance(model, data, 0, 1, 1e9, None)
    seconds = time.perf_counter() - began
    np.savez(sys.argv[2], distance=distance, seconds=seconds, version=mujoco.__version__)


if __name__ == "__main__":
    main()
