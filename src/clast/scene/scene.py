"""The scene: what is there before time runs. Every input is checked here, once, for whole arrays."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any, Literal, Unpack

import numpy as np
from numpy.typing import ArrayLike

from ..errors import pick
from ..signatures import (
    Corners,
    Floats,
    Functions,
    Motion,
    Numbers,
    Series,
    Shape,
    Start,
    Turns,
    Vector,
    Vectors,
    Whole,
    Wholes,
)
from ..tables import DRIVEN, FREE, Bodies, Shapes, WarmBodies
from . import clearance, filling, inputs, lots, packing
from .drives import Drive, Oscillation, describe_drives, pose, rates, rebuild_drives
from .filling import Inlet, Outlet, Sizes
from .foundry import MOLDED, Foundry
from .joining import Joinery
from .lots import Store
from .materials import NUMBERS, OVERRIDES, Material, check, check_numbers, refuse_number
from .stacking import bounding_radius, make_bodies, place_shapes, warmed

FILLINGS = {"random": "random", "lattice": "lattice", "packed": "packed"}


class Scene(Foundry, Joinery):
    """Bodies, their shapes and materials, what joins them (see `Joinery`), and what drives, feeds and drains them.

    gravity (3,) [m/s^2]; world: box ((x, y, z), (x, y, z)) [m] that no free body may leave, or None;
    periodic: for each axis, whether a body that leaves the world on one side comes back on the other. title: one line for people, which a report shows.
    """

    def __init__(
        self,
        gravity: Vector = (0.0, 0.0, -9.81),
        *,
        world: Corners | None = None,
        periodic: Sequence[bool] = (False, False, False),
        title: str = "",
    ) -> None:
        super().__init__()
        self.gravity = tuple(inputs.vector("Scene", "gravity", gravity).tolist())
        self.periodic = inputs.switches("Scene", "periodic", periodic)
        if any(self.periodic) and world is None:
            raise ValueError(
                f"Scene: periodic={self.periodic} needs a world to repeat; give world=((x, y, z), (x, y, z)) in metres"
            )
        self.world = None
        if world is not None:
            self.world = tuple(tuple(corner.tolist()) for corner in inputs.box("Scene", world, "world"))
        self.materials: list[Material] = []
        self.pairs: dict[tuple[int, int], dict[str, Any]] = {}
        self.drives: dict[int, Drive] = {}  # by body number
        self.inlets: list[Inlet] = []
        self.outlets: list[Outlet] = []
        self.title = str(title)
        self.seeds: list[int] = []  # of each filling, for reports
        self.next_number = 0
        self.warm = False  # some body was given a temperature: all have one
        self.source: Any = None  # the running simulation, asked for `bodies()`; None while the scene is being built
        self._store = Store()
        self._material_rows: dict[Material, int] = {}

    if TYPE_CHECKING:

        def view(self, **options: Any) -> Any:
            """Show it in the browser, see `clast.view.show`; the package adds it, rooms below this one know how."""

    def __repr__(self):
        bodies = self.bodies
        counts = np.bincount(bodies.mold, minlength=len(self.names))
        shapes: dict[str, int] = {}
        for name, count in zip(self.names, counts):
            shapes[name] = shapes.get(name, 0) + int(count)
        told = [f"{count:,} {name}" for name, count in shapes.items() if count]
        others = (("joint", self.joints), ("spring", self.springs), ("inlet", self.inlets), ("outlet", self.outlets))
        told += [f"{len(some)} {name}{'s' * (len(some) > 1)}" for name, some in others if some]
        free = int((bodies.motion == FREE).sum())
        return f"<Scene of {len(bodies.number):,} bodies, {free:,} free: {', '.join(told) or 'nothing yet'}>"

    def add(
        self,
        shape: Shape | Sequence[Shape],
        *,
        position: Vectors = (0.0, 0.0, 0.0),
        orientation: Turns = (1.0, 0.0, 0.0, 0.0),
        velocity: Vectors = (0.0, 0.0, 0.0),
        spin: Vectors = (0.0, 0.0, 0.0),
        scale: Numbers = 1.0,
        material: Material | None = None,
        motion: Literal["free", "fixed", "driven"] | None = None,
        pivot: Vector | None = None,
        drive: Oscillation | Motion | None = None,
        temperature: Numbers | None = None,
    ) -> Wholes:
        """Add bodies of one shape, or of n particle shapes in a list, and return their numbers (n,).

        position (3,) or (n,3) [m], centre of mass of a particle, origin of a wall; orientation (4,) or (n,4), w x y z;
        velocity [m/s] and spin [rad/s, world axes] (3,) or (n,3); scale: size factor, a number or (n,).
        material: Material, or None for Material(). motion: "free" (default of particles), "fixed" (default of walls)
        or "driven" (default of walls that move). Driven bodies turn about `pivot` (3,) [m], by default their position,
        which itself moves with `velocity`; drive: Oscillation, or a function t -> (velocity (3,), spin (3,)).
        temperature [K], a number or (n,): DEM conducts heat where some body is given one; fixed and driven bodies keep it, and without one let no
        heat in or out; free ones without have 293.15 K.
        """
        place, shapes = inputs.shapes("Scene.add", shape)
        self._check_open(place)
        columns = {
            "position": inputs.rows(place, "position", position, 3),
            "orientation": inputs.quaternions(place, "orientation", orientation),
            "velocity": inputs.rows(place, "velocity", velocity, 3),
            "spin": inputs.rows(place, "spin", spin, 3),
            "scale": inputs.column(place, "scale", scale),
            **self._temperature(place, temperature),
        }
        count = inputs.same_length(place, columns | {"shape": shapes})
        moving = bool(columns["velocity"].any() or columns["spin"].any())
        moves = inputs.motion(place, shapes[0].wall, motion, moving, drive, pivot)
        centre = None if pivot is None else tuple(inputs.vector(place, "pivot", pivot).tolist())
        if moves == FREE:
            columns["position"] = inputs.into_world(place, columns["position"], self.world, self.periodic)
        material = inputs.material(place, material)
        still = rates(drive, 0.0) if callable(drive) else None
        molds = np.array([self._mold_row(one) for one in shapes])
        chunk = self._rows(molds, self._material_row(material), moves, count, columns)
        if moves == DRIVEN:
            self._drive(chunk, centre, drive, still)
        self._store.chunks.append(chunk)
        return chunk.number.copy()

    def fill(
        self,
        shape: Shape | Sequence[Shape],
        *,
        count: Whole | None = None,
        fraction: float | None = None,
        box: Corners,
        scale: float | tuple[float, float] | Mapping[float, float] | Sizes = 1.0,
        material: Material | None = None,
        method: Literal["random", "lattice", "packed"] | None = None,
        jitter: float = 0.0,
        inside: Callable[..., ArrayLike] | None = None,
        seed: Whole = 0,
        **start: Unpack[Start],
    ) -> Wholes:
        """Add `count` free bodies without overlap, each wholly inside the box, and return their numbers (count,); or as many as fill the
        part `fraction` of the box.

        shape: one for all, or a list of `count` particles; start: velocity [m/s] and spin [rad/s] (3,) or (count,3), temperature [K] as in `add`,
        orientation, random unless given;
        box ((x, y, z), (x, y, z)) [m]; scale: a number, (low, high) uniform, {scale: weight} by number, or `clast.sieve`.
        method "random": random points, large bodies first, up to a solid fraction of about 0.35; it is taken unless said, or
        where a fraction above 0.3 is asked for "packed": the balls around bodies pushed apart, up to about 0.6, in an empty box;
        "lattice": a lattice from the bottom up, along each axis as wide as the widest body, shifted at random by `jitter`
        (part of the width); of more than 100,000 spheres the scene keeps the recipe, and makes them when they are asked for.
        inside: function points (n,3) -> mask (n,) that says where centres may be, each time the same.
        Bodies and walls already in the scene are kept clear of, by true shapes; of a triangulated particle its convex hull and halo count.
        """
        place, shapes = inputs.shapes("Scene.fill", shape)
        velocity, spin, orientation, temperature = inputs.start(place, start)
        self._check_open(place)
        if shapes[0].wall:
            raise ValueError(f"{place}: a wall cannot fill a box; use Scene.add")
        if (count is None) == (fraction is None):
            raise ValueError(f"{place}: give either count, a number of bodies, or fraction, the part of the box")
        low, high = self._box_in_world(place, box)
        sizes = Sizes.of(place, scale)
        if fraction is not None:
            fraction = inputs.number(place, "fraction", fraction, above=0.0)
            mean = float(np.mean([one.volume for one in shapes])) * sizes.mean_cube
            count = round(fraction * math.prod((high - low).tolist()) / mean)
        count = inputs.whole(place, "count", count)
        if method is None:
            method = "random" if fraction is None or fraction <= 0.3 else "packed"
        jitter = inputs.number(place, "jitter", jitter, least=0.0)
        inside = inputs.mask(place, inside)
        method = pick("filling method", method, FILLINGS)
        if method == "random" and jitter > 0.0:
            raise ValueError(f"{place}: jitter={jitter:g} is for method='lattice'; random filling needs none")
        material = inputs.material(place, material)
        seed = inputs.whole(place, "seed", seed)
        rng = np.random.default_rng(seed)
        reach = np.array([bounding_radius(one.parts()) for one in shapes])
        volume = np.array([one.volume for one in shapes])
        filling.check_room(place, count, reach, volume, sizes, low, high, method)
        columns = {
            "velocity": inputs.rows(place, "velocity", velocity, 3),
            "spin": inputs.rows(place, "spin", spin, 3),
            **self._temperature(place, temperature),
        }
        inputs.same_length(place, columns | {"shape": shapes, "count": range(count)}, count)
        if isinstance(orientation, str):
            pick("orientation", orientation, {"random": None})
        else:
            columns["orientation"] = inputs.quaternions(place, "orientation", orientation)
            inputs.same_length(place, {"count": range(count), "orientation": columns["orientation"]}, count)
        if method == "lattice" and count > lots.BLOCK and len(shapes) == 1:
            lot = lots.lattice(self, shapes[0], material, (count, seed, sizes, jitter), (low, high, inside), columns)
            if lot is not None:
                self._store.chunks.append(lot)
                self.seeds.append(seed)
                return lot.numbers()
        columns["scale"] = sizes.draw(rng.random(count))
        if "orientation" not in columns:
            columns["orientation"] = filling.random_orientation(rng.random((count, 3)))
        radius = columns["scale"] * reach
        columns["position"] = np.zeros((0, 3))
        if count:
            walls, known, near = self._room(low, high, radius.max())
            new = filling.newcomers(self, shapes, columns, radius, known, walls, near)
            whole = (np.array([low, high]) == (self.world or np.nan)).all(0) & self.periodic
            spot = packing.Spot(low, high, np.where(whole, high - low, 0.0), walls, known, inside)
            solid = columns["scale"] ** 3 * volume
            columns["position"] = packing.find_places(place, method, rng, new, solid, spot, jitter)
        molds = np.array([self._mold_row(one) for one in shapes])
        chunk = self._rows(molds, self._material_row(material), FREE, count, columns)
        self._store.chunks.append(chunk)
        self.seeds.append(seed)
        return chunk.number.copy()

    def inlet(
        self,
        shape: Shape,
        *,
        box: Corners,
        rate: float,
        velocity: Vector = (0.0, 0.0, 0.0),
        scale: float | tuple[float, float] | Mapping[float, float] | Sizes = 1.0,
        material: Material | None = None,
        start: float = 0.0,
        stop: float = math.inf,
        count: Whole | None = None,
        seed: Whole = 0,
        temperature: float | None = None,
    ) -> Inlet:
        """Pour bodies of one shape into a box while the simulation runs; returns the Inlet.

        box [m], free of walls; rate [1/s]; velocity (3,) [m/s]; scale as in `fill`; start, stop [s]; count: bodies in
        all, or None for no end; temperature [K] as in `add`. A body that finds no room waits; none is lost.
        """
        place = f"Scene.inlet({type(shape).__name__})"
        self._check_open(place)
        inputs.shape(place, shape)
        if shape.wall:
            raise ValueError(f"{place}: a wall cannot be poured; use Scene.add")
        low, high = self._box_in_world(place, box)
        sizes = Sizes.of(place, scale)
        reach = bounding_radius(shape.parts())
        filling.check_fit(place, np.full(3, 2.0 * reach * sizes.largest), low, high)
        filling.check_far(place, reach * sizes.smallest, low, high)
        start = inputs.number(place, "start", start)
        material = inputs.material(place, material)
        numbers = {
            "reach": reach,
            "low": tuple(low.tolist()),
            "high": tuple(high.tolist()),
            "rate": inputs.number(place, "rate", rate, above=0.0),
            "velocity": tuple(inputs.vector(place, "velocity", velocity).tolist()),
            "sizes": sizes,
            "start": start,
            "stop": inputs.number(place, "stop", stop, above=start, infinite=True),
            "count": None if count is None else inputs.whole(place, "count", count),
            "seed": inputs.whole(place, "seed", seed),
            **{name: float(column[0]) for name, column in self._temperature(place, temperature).items()},
        }
        self.inlets.append(Inlet(self._mold_row(shape), self._material_row(material), **numbers))
        return self.inlets[-1]

    def outlet(self, *, box: Corners) -> Outlet:
        """Remove and count bodies whose centre enters the box [m]; returns the Outlet."""
        self._check_open("Scene.outlet")
        low, high = inputs.box("Scene.outlet", box)
        self.outlets.append(Outlet(tuple(low.tolist()), tuple(high.tolist())))
        return self.outlets[-1]

    def combine(self, material_a: Material, material_b: Material, **values: float | Mapping[str, float] | None) -> None:
        """Set what a contact between two materials uses instead of the combined values.

        friction, restitution, rolling_friction; young, shear: the effective moduli E* and G* of the pair [Pa];
        stiffness [N/m]; blaze_stiffness, blaze_damping, blaze_shear, numbers: see Material. None keeps what was there.
        """
        place = "Scene.combine"
        self._check_open(place)
        for name, value in values.items():
            if name in NUMBERS:
                refuse_number(place, name, value, OVERRIDES)
            pick("property of a material pair", name, dict.fromkeys((*OVERRIDES, "numbers")))
        known = {
            name: check_numbers(place, value) if name == "numbers" else check(place, name, value)
            for name, value in values.items()
            if value is not None
        }
        if not known:
            raise ValueError(f"{place}: nothing to set; give at least one of {', '.join(OVERRIDES)}")
        for material in (material_a, material_b):
            if not isinstance(material, Material):
                raise TypeError(f"{place}: needs two clast.Material, got {material!r}")
        a, b = self._material_row(material_a), self._material_row(material_b)
        self.pairs.setdefault((min(a, b), max(a, b)), {}).update(known)

    @property
    def bodies(self) -> Bodies:
        """All bodies, sorted by number; those of the running simulation if there is one."""
        if self.source is not None:
            return self.source.bodies()
        bodies = self._store.whole()  # numbers only ever grow, so chunks in the order of adding are sorted
        return warmed(bodies) if self.warm else bodies

    @property
    def count(self) -> int:
        """How many bodies there are before a simulation has them; fillings need not be made for it."""
        return self._store.count

    def blocks(self) -> Iterator[Bodies]:
        """The same bodies as tables of about 100,000 rows, one after the other; of large fillings each is made when it is asked for."""
        for block in self._store.blocks():
            yield warmed(block) if self.warm else block

    def shapes(self, bodies: Bodies | None = None) -> Shapes:
        """All parts of all bodies, placed in the world. bodies: Bodies in any order; default those of the scene.

        Where each body is one part about its own centre, `centre` is the array `bodies.position` itself.
        """
        bodies = self.bodies if bodies is None else bodies
        return place_shapes(bodies, self.molds, self.parts)

    def hand_over(self, source: Any) -> None:
        """Let a simulation keep the bodies from now on: `source.bodies()` gives them, and the scene keeps no copy."""
        self.source, self._store = source, Store()

    def pour(self, inlet: Inlet, position: Floats, scale: Floats, orientation: Floats) -> Bodies:
        """New rows of Bodies, with new numbers, for what `inlet.place` returned. The scene does not store them."""
        columns: dict[str, Any] = {
            "position": position,
            "scale": scale,
            "orientation": orientation,
            "velocity": np.array([inlet.velocity]),
            "spin": np.zeros((1, 3)),
        }
        if inlet.temperature is not None:
            columns["temperature"] = inlet.temperature
        rows = self._rows(inlet.mold, inlet.material, FREE, len(scale), columns)
        return warmed(rows) if self.warm else rows

    def describe(self, bodies: bool = True) -> tuple[dict[str, Series], dict[str, Any]]:
        """The whole scene as (groups of named arrays, attributes that fit into JSON), for `rebuild`; bodies: False leaves these out."""
        groups = {name: getattr(self, name)._asdict() for name in (*("bodies",) * bodies, *MOLDED)}
        attributes = {
            "gravity": list(self.gravity),
            "world": None if self.world is None else [list(corner) for corner in self.world],
            "periodic": list(self.periodic),
            "title": self.title,
            "seeds": list(self.seeds),
            "next_number": self.next_number,
            "names": list(self.names),
            "materials": [asdict(material) for material in self.materials],
            "pairs": [[a, b, dict(values)] for (a, b), values in self.pairs.items()],
            "drives": describe_drives(self.drives),
            "inlets": [inlet.describe() for inlet in self.inlets],
            "outlets": [asdict(outlet) for outlet in self.outlets],
        }
        return groups, attributes | self.describe_joints()

    @classmethod
    def rebuild(
        cls,
        groups: Mapping[str, Any],
        attributes: Mapping[str, Any],
        *,
        drives: Mapping[int, Motion] | None = None,
        functions: Functions | None = None,
    ) -> "Scene":
        """The scene that `describe` described.

        drives: {body number: function} for bodies that were driven by a Python function, which no file can hold;
        functions: the same for joints, motors and springs, {("joint" | "motor" | "spring", number): function}.
        """
        scene = cls(attributes["gravity"], world=attributes["world"], periodic=attributes["periodic"])
        scene.title, scene.seeds = attributes.get("title", ""), list(attributes.get("seeds", []))
        scene.next_number = int(attributes["next_number"])
        scene.names = list(attributes["names"])
        scene.originals = [None] * len(scene.names)
        for values in attributes["materials"]:
            known = {field.name: values[field.name] for field in fields(Material) if field.name in values}
            scene.materials.append(Material(**known))
        scene._material_rows = {material: row for row, material in enumerate(scene.materials)}
        scene.pairs = {(int(a), int(b)): dict(values) for a, b, values in attributes["pairs"]}
        scene.inlets = [Inlet.rebuild(values) for values in attributes["inlets"]]
        scene.outlets = [Outlet(**{k: tuple(v) for k, v in values.items()}) for values in attributes["outlets"]]
        bodies = groups["bodies"]
        kind = lots.kind_of(getattr(bodies, "names", bodies))
        scene.warm = kind is WarmBodies
        later = hasattr(bodies, "pieces")  # it stays in the file until it is asked for
        scene._store = Store(lots.Kept(bodies) if later else kind(**{k: np.array(bodies[k]) for k in kind._fields}))
        molded = [table(**{k: np.array(groups[name][k]) for k in table._fields}) for name, table in MOLDED.items()]
        scene._mold_chunks = [tuple(molded)]
        moment = np.trace(molded[0].inertia, axis1=1, axis2=2) / 3.0
        scene._bulk = list(zip(molded[0].volume.tolist(), moment.tolist(), strict=True))
        scene.drives = rebuild_drives(attributes["drives"], drives)
        scene.rebuild_joints(attributes, functions)
        return scene

    def _check_open(self, place):
        if self.source is not None:
            raise RuntimeError(f"{place}: a simulation is running this scene; add everything first, or use Scene.inlet")

    def _material_row(self, material):
        """The row of this material; equal materials share one."""
        if material not in self._material_rows:
            self._material_rows[material] = len(self.materials)
            self.materials.append(material)
        return self._material_rows[material]

    def _rows(self, mold, material, motion, count, columns, first=None):
        """New rows of Bodies with new numbers, or with those from the first one on if that is given."""
        volume, moment = np.array([self._bulk[m] for m in np.atleast_1d(mold)]).T
        mass = inertia = math.inf
        if motion == FREE:
            mass = self.materials[material].density * volume * columns["scale"] ** 3
            inertia = moment * mass * columns["scale"] ** 2
        if first is None:
            first, self.next_number = self.next_number, self.next_number + count
        number = np.arange(first, first + count)
        own = {"number": number, "mass": mass, "inertia": inertia, "mold": mold, "material": material, "motion": motion}
        return make_bodies(count, columns | own)

    def _temperature(self, place, given):
        """The column of temperatures (n,) [K] by its name, or nothing where none is given."""
        self.warm |= given is not None
        return {} if given is None else {"temperature": inputs.column(place, "temperature", given)}

    def _drive(self, chunk, pivot, drive, still):
        """Keep the motion of driven bodies, and write their velocity and spin at time zero."""
        waves: dict[str, Any] = {}
        if callable(drive):
            waves = {"function": drive}
        elif drive is not None:
            waves = asdict(drive)
        pose_columns = (chunk.position, chunk.orientation, chunk.velocity, chunk.spin)
        for row, number in enumerate(chunk.number.tolist()):
            position, orientation, velocity, spin = (tuple(column[row].tolist()) for column in pose_columns)
            about = position if pivot is None else pivot
            motion = Drive(position, orientation, velocity, spin, about, **waves)
            chunk.velocity[row], chunk.spin[row] = pose(motion, 0.0)[2:] if still is None else still
            self.drives[number] = motion

    def _box_in_world(self, place, box):
        low, high = inputs.box(place, box)
        if self.world is not None and not ((low >= self.world[0]).all() and (high <= self.world[1]).all()):
            raise ValueError(
                f"{place}: the box {low.tolist()} to {high.tolist()} is not inside the world {list(self.world[0])} to "
                f"{list(self.world[1])}; use a smaller box or give the scene a larger world"
            )
        return low, high

    def _room(self, low, high, reach):
        """Walls that balls up to radius `reach` [m] may meet in the box, clearance.Known, and the Bodies that these are of."""
        span = np.zeros(3)
        if self.world is not None:
            span = np.where(self.periodic, np.subtract(self.world[1], self.world[0]), 0.0)
        bodies = lots.near_box(self._store.blocks(), self.molds, self.parts, low, high, span)
        shapes = self.shapes(bodies)
        walls = clearance.stack_walls(bodies, shapes, self.parts, self.meshes, low, high, reach)
        return walls, clearance.known_balls(shapes, low, high, span), bodies
