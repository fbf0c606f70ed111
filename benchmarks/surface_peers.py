"""Distances of two triangle meshes by coal, the peer of `surfaces.py`; run in its environment.

    .bench-venv/bin/python benchmarks/surface_peers.py pairs.npz distances.npz

On one core, trees of boxes with rectangle swept spheres (OBBRSS). There is no call for many pairs: the loop is Python's, and
what it does without measuring anything is timed too and taken off.
"""

import sys
import time

import coal
import numpy as np


def main(source, target):
    data = np.load(source)
    mesh = coal.BVHModelOBBRSS()
    mesh.beginModel(len(data["triangles"]), len(data["vertices"]))
    vertices = coal.StdVec_Vec3s()
    triangles = coal.StdVec_Triangle() if hasattr(coal, "StdVec_Triangle") else None
    for x in data["vertices"]:
        vertices.append(x)
    if triangles is None:
        for t in data["triangles"]:
            mesh.addTriangle(*data["vertices"][t])
    else:
        for t in data["triangles"]:
            triangles.append(coal.Triangle(*map(int, t)))
        mesh.addSubModel(vertices, triangles)
    mesh.endModel()
    places = [
        [
            coal.Transform3s(np.ascontiguousarray(turn), np.ascontiguousarray(x))
            for turn, x in zip(turns, xs, strict=True)
        ]
        for turns, xs in zip(data["turn"], data["position"], strict=True)
    ]
    distance = np.empty(len(places))
    request = coal.DistanceRequest()
    begin = time.perf_counter()
    for k, (a, b) in enumerate(places):
        result = coal.DistanceResult()
        distance[k] = coal.distance(mesh, a, mesh, b, request, result)
    seconds = time.perf_counter() - begin
    begin = time.perf_counter()
    for k, (_a, _b) in enumerate(places):
        result = coal.DistanceResult()
        distance[k] = distance[k] + 0.0
    seconds -= time.perf_counter() - begin
    np.savez(target, distance=distance, seconds=seconds, version=coal.__version__)


main(*sys.argv[1:])
