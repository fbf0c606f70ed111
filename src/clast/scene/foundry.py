"""The shapes of a scene: each distinct one is a mold, of which all its bodies are copies."""

from typing import Any

import numpy as np

from ..signatures import Shape
from ..tables import Hulls, Meshes, Molds, Parts, Surfaces
from .stacking import join_molds, make_mold

MOLDED: dict[str, Any] = {"molds": Molds, "parts": Parts, "meshes": Meshes, "hulls": Hulls, "surfaces": Surfaces}


class Foundry:
    """The part of a scene that keeps its shapes."""

    def __init__(self) -> None:
        super().__init__()
        self.originals: list = []  # the shape object of each mold; None after a restart
        self.names: list[str] = []  # the name of the shape of each mold
        self._mold_rows: dict = {}
        self._mold_chunks: list[tuple[Molds, Parts, Meshes | None, Hulls | None, Surfaces | None]] = []
        self._bulk: list[tuple[float, float]] = []  # volume and moment of inertia per mass of each mold
        self._molded: Any = None  # joined molds, parts, meshes, hulls and surfaces; made when asked

    @property
    def molds(self) -> Molds:
        """One row per distinct shape."""
        return self._tables()[0]

    @property
    def parts(self) -> Parts:
        """One row per part of a mold."""
        return self._tables()[1]

    @property
    def meshes(self) -> Meshes:
        """The triangles of all walls."""
        return self._tables()[2]

    @property
    def hulls(self) -> Hulls:
        """All convex polyhedra."""
        return self._tables()[3]

    @property
    def surfaces(self) -> Surfaces:
        """All triangulated particles."""
        return self._tables()[4]

    def _mold_row(self, shape: Shape) -> int:
        """The row of the mold of this shape; equal shapes share one."""
        try:
            key: tuple = ("equal", shape)
            hash(key)
        except TypeError:
            key = ("same", id(shape))  # `originals` keeps the object alive, so its id is not given again
        if key not in self._mold_rows:
            mold = make_mold(shape)
            self._mold_rows[key] = len(self.names)
            self.names.append(type(shape).__name__)
            self.originals.append(shape)
            self._bulk.append((float(shape.volume), float(np.trace(shape.inertia)) / 3.0))
            self._mold_chunks.append(mold)
            self._molded = None
        return self._mold_rows[key]

    def _tables(self) -> Any:
        if self._molded is None:
            self._molded = join_molds(self._mold_chunks)
            self._mold_chunks = [self._molded]
        return self._molded
