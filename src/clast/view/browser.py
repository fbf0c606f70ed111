"""A page in the browser that shows a run, a scene or a simulation: true shapes, colours, forces, cuts, trails, a body's numbers."""

import atexit
import io
import threading
import time as clock
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np

from .. import errors
from ..files import trajectory, vtk
from ..measure import snapshot
from ..measure.network import branches
from ..scene.scene import Scene
from ..signatures import Whole
from ..tables import DRIVEN, Contacts
from . import batches, colours, server
from .stage import VIEW_ANGLE, Stage, camera, corners, over_time

EXTENT = 10.0  # length units of the page across all that is shown: its near and far limits are made for rooms, not for grains
CACHE = 200  # frames that are kept in memory
TRAILED = 200  # bodies that draw trails
LOOK = 2.0  # [s] between two looks at a run that may have grown
PICKED = (255, 0, 200)


class Frames:
    """The frames of a run folder; looks again when the file has grown."""

    grows = True

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._kept: OrderedDict[int, trajectory.Frame] = OrderedDict()
        self._open()
        if not len(self.run) or not self.groups:
            self.run.close()
            raise ValueError(f"{str(path)!r} has no frames yet; wait for the first one or run longer")

    def _open(self):
        self._seen = self.path.stat().st_mtime_ns
        self.run = trajectory.Trajectory(self.path, "r")
        self.groups, self.attributes = self.run.groups, self.run.attributes

    def __len__(self) -> int:
        return len(self.run)

    def __getitem__(self, index: int) -> trajectory.Frame:
        with self._lock:
            if index not in self._kept:
                self._kept[index] = self.run[index]
                if len(self._kept) > CACHE:
                    self._kept.popitem(last=False)
            return self._kept[index]

    def grown(self) -> bool:
        """Whether the frames are others than before."""
        with self._lock:
            old, seen = self.run, self._seen
            try:
                if self.path.stat().st_mtime_ns == seen:
                    return False
                self._open()
            except (OSError, errors.ClastError):  # it is being replaced: looked at again later
                if self.run is not old:
                    self.run.close()
                self.run, self._seen = old, seen
                return False
            old.close()
            self._kept.clear()  # a run that goes on may write its last frame again
            return True

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self.run.close()


class Moment:
    """One moment of a scene as if it were a run of one frame."""

    grows = False

    def __init__(self, scene: Scene, time: float = 0.0, step: int = 0, contacts: Contacts | None = None) -> None:
        groups, self.attributes = scene.describe()
        columns = groups.pop("bodies")
        told = {} if contacts is None else {name: getattr(contacts, name) for name in trajectory.CONTACT_COLUMNS}
        self.groups, self.frame = groups, trajectory.Frame(time, step, columns, {}, told)

    def __len__(self) -> int:
        return 1

    def __getitem__(self, index: int) -> trajectory.Frame:
        return self.frame

    def close(self) -> None:
        """There is no file to close."""


class Browser:
    """The page. source: Frames or Moment; address: where to listen; port: the first free one from there on.

    `address` is what to open; `close` ends it.
    """

    def __init__(
        self,
        source: Frames | Moment,
        *,
        address: str = "127.0.0.1",
        port: int = 8080,
        label: str = "clast",
        colour: str = "speed",
    ) -> None:
        self.source: Any = source
        errors.pick("colour", colour, dict.fromkeys(self._colours()))
        self.server, self.address = server.start(address, port, label)
        self.lock = threading.RLock()
        self.nodes: dict = {}  # key of a batch -> (handle, rows of the stage)
        self.capacity: dict = {}  # key -> instances that the node has room for
        self.index, self.drawn = -1, 0
        self.picked: int | None = None
        self.frame: Any = None  # that is shown
        self.closed = False
        last = source[len(source) - 1]
        self.limits: dict = {}
        self.level: int | None = None
        self._frame_world(Stage.of(last, source.groups), over_time(source, source.groups), last)
        self._controls(colour)
        self.show(0 if len(source) == 1 else len(source) - 1)
        self._threads = [threading.Thread(target=self._play, daemon=True)]
        self._threads[0].start()
        # A thread that still reads frames while Python takes itself down ends in a crash.
        atexit.register(self.close)

    # What is there.

    def _frame_world(self, stage, seen, frame):
        """Scale, camera and walls: all that is seen at the beginning, in the middle and at the end is in the picture."""
        eye, target, up = camera(seen, (1200, 900))
        self.zoom = EXTENT / max(
            2.0 * float(np.linalg.norm(eye - target)) * np.tan(np.radians(VIEW_ANGLE) / 2.0), 1e-30
        )
        self.low, self.high = corners(seen)
        scene = self.server.scene
        scene.set_up_direction("+z")
        scene.configure_environment_map(None)
        scene.configure_default_lights(True, cast_shadow=False)
        scene.add_light_ambient("/light", intensity=0.7)
        view = self.server.initial_camera
        view.position, view.look_at, view.up = self.zoom * eye, self.zoom * target, up
        view.fov = np.radians(VIEW_ANGLE)
        self.walls = []
        where = {int(number): row for row, number in enumerate(frame.columns["number"])}
        for k, wall in enumerate(stage.walls):
            number = int(frame.columns["number"][wall.body])
            place, turn = _pose(frame, where[number])
            own = vtk.rotate(turn * (1.0, -1.0, -1.0, -1.0), wall.vertices - place)  # in the axes of the body
            handle = scene.add_mesh_simple(
                f"/walls/{k}",
                (self.zoom * own).astype(np.float32),
                wall.triangles,
                color=colours.rgb(colours.FLOOR if wall.flat else colours.WALL),
                opacity=0.35,
                side="double",
                wxyz=turn,
                position=self.zoom * place,
                cast_shadow=False,
            )
            self.walls.append((handle, number, int(frame.columns["motion"][wall.body]) == DRIVEN))

    def _controls(self, colour):
        gui = self.server.gui
        gui.configure_theme(control_width="medium", show_logo=False, show_share_button=False)
        known = bool(self.source[len(self.source) - 1].contacts)
        if self.source.grows:
            last = len(self.source) - 1
            self.over_time = gui.add_folder("Time", visible=last > 0)  # a run may have its first frame alone so far
            with self.over_time:
                self.slider = gui.add_slider("frame", 0, max(last, 1), 1, last)
                self.slider.on_update(lambda event: self.show(int(self.slider.value)))
                self.playing = gui.add_checkbox("play", False)
                self.rate = gui.add_slider("frames a second", 1, 60, 1, 25)
        self.told = gui.add_markdown("")
        with gui.add_folder("Colour"):
            self.colour = gui.add_dropdown("by", tuple(self._colours()), initial_value=colour)
            self.bar = gui.add_html("")
            self.colour.on_update(lambda event: self.redraw())
        with gui.add_folder("Show"):
            self.forces = gui.add_checkbox("contact forces", False, disabled=not known)
            self.least = gui.add_slider("forces above, in means", 0.0, 5.0, 0.1, 1.0)
            self.trail = gui.add_slider("trails over frames", 0, 50, 1, 0)
            self.cut = gui.add_dropdown("cut across", ("nothing", "x", "y", "z"), initial_value="nothing")
            self.depth = gui.add_slider("cut at", 0.0, 1.0, 0.01, 0.5)
            self.other = gui.add_checkbox("keep the other side", False)
            self.glass = gui.add_slider("opacity of walls", 0.0, 1.0, 0.05, 0.35)
            for handle in (self.forces, self.least, self.trail, self.cut, self.depth, self.other):
                handle.on_update(lambda event: self.redraw())
            self.glass.on_update(lambda event: self._glaze())
        self.shoot = gui.add_button("screenshot")
        self.shoot.on_click(self._screenshot)
        self.about = gui.add_markdown("Click a body to see its numbers.")

    def _colours(self):
        """What colours can show: names of quantities and columns; those of contacts where they are known."""
        names = [*colours.NAMED, "mass", "spin", "velocity_x", "velocity_y", "velocity_z"]
        if not self.source[len(self.source) - 1].contacts:
            names = [name for name in names if name not in ("force", "coordination")]
        own = self.source[0].columns
        return names + [n for n, c in own.items() if n not in (*names, "mold", "motion") and np.ndim(c) == 1]

    def _glaze(self):
        for handle, _, _ in self.walls:
            handle.opacity, handle.visible = float(self.glass.value), self.glass.value > 0.0

    # What is drawn.

    def show(self, index: int) -> None:
        """Draw this frame."""
        with self.lock:
            self.draw(self.source[index], index)

    def redraw(self) -> None:
        """Draw what is shown once more, after a control was moved."""
        with self.lock:
            self.draw(self.frame, self.index)

    def draw(self, frame: Any, index: int = 0) -> None:
        """Bring the page to this frame."""
        with self.lock:
            self.frame, self.index = frame, index
            stage = Stage.of(frame, self.source.groups, walls=False)
            if self.level is None and len(stage.centre):
                many = len(stage.centre)
                self.level = 2 if many <= 10_000 else 1
            if self.colour.value in ("force", "coordination") and not stage.contacts:
                stage = stage._replace(contacts={"pair": np.zeros((0, 2), int), "force": np.zeros((0, 3))})
            paint = self._paint(stage)
            size = self.zoom * batches.sizes(stage, frame.columns)
            size[~self._kept(stage.centre)] = 0.0
            with self.server.atomic():
                self._place(stage, paint, size)
                self._move_walls(frame)
                self._lines(stage, frame)
                self.told.content = (
                    f"t = {frame.time:.5g} s, step {frame.step:,}, {len(np.unique(stage.body)):,} bodies"
                )
                self._tell(stage)
            self.drawn += 1

    def _place(self, stage, paint, size):
        used: dict[tuple[str, int], np.ndarray] = {}
        for batch in batches.batches(stage, self.level):
            key = (batch.key, sum(1 for name in used if name[0] == batch.key))
            used[key] = batch.rows
            room = self.capacity.get(key, 0)
            if key not in self.nodes or room < len(batch.rows):
                room = max(len(batch.rows), int(1.5 * room))
                self.capacity[key] = room
                self.nodes[key] = self._node(key, batch, room)
            handle = self.nodes[key]
            rows = batch.rows
            handle.batched_positions = batches.filled(self.zoom * stage.centre[rows], room, np.float32)
            if not stage.ball[rows].all():
                turn = batches.filled(stage.orientation[rows], room, np.float32)
                turn[len(rows) :, 0] = 1.0
                handle.batched_wxyzs = turn
            handle.opacity = 0.3 if self.forces.value else None  # forces run inside the bodies
            handle.batched_scales = batches.filled(size[rows], room, np.float32)
            handle.batched_colors = batches.filled(paint[rows], room, np.uint8)
        for key, handle in self.nodes.items():
            if key not in used:
                handle.batched_scales = np.zeros((self.capacity[key], 3), np.float32)
        self.rows = used
        self.stage = stage

    def _node(self, key, batch, room):
        turn = np.zeros((room, 4), np.float32)
        turn[:, 0] = 1.0
        handle = self.server.scene.add_batched_meshes_simple(
            f"/bodies/{'_'.join(map(str, key))}",
            batch.vertices.astype(np.float32),
            batch.faces,
            turn,
            np.zeros((room, 3), np.float32),
            batched_scales=np.zeros((room, 3), np.float32),
            batched_colors=np.zeros((room, 3), np.uint8),
            flat_shading=not batch.smooth,
            lod="off",
            cast_shadow=False,
            receive_shadow=False,
        )
        handle.on_click(lambda event: self._pick(key, event.instance_index))
        return handle

    def _paint(self, stage):
        """Colours (s,3) of particles; the scale of a quantity stays what it was, unless it is left far behind."""
        name = self.colour.value
        if name == "material" or not len(stage.centre):
            paint, legend = colours.paint(stage, "material")
        else:
            numbers, title = colours.values(stage, name)
            low, high = colours.span(numbers, name, stage.radius)
            before = self.limits.get(name, (low, low))
            low, high = self.limits[name] = min(low, before[0]), max(high, before[1])
            paint, legend = colours.ramp((numbers - low) / max(high - low, 1e-300)), (low, high, title)
        stripe = ", ".join(colours.RAMP)
        shown = (
            f'<div style="margin:0 1em;font-size:.8em"><div style="height:.7em;border-radius:.3em;background:linear-gradient(to right,{stripe})">'
            f'</div><span>{legend[0]:.3g}</span><span style="float:right">{legend[1]:.3g}</span><div style="text-align:center">{legend[2]}</div></div>'
            if legend
            else ""
        )
        if shown != self.bar.content:
            self.bar.content = shown
        if self.picked is not None:
            paint = paint.copy()
            paint[np.asarray(stage.columns["number"])[stage.body] == self.picked] = PICKED
        return paint

    def _kept(self, points):
        """Which of these points (k,3) [m] the cut leaves."""
        axis = "xyz".find(self.cut.value)
        if axis < 0:
            return np.ones(len(points), dtype=bool)
        place = self.low[axis] + self.depth.value * (self.high[axis] - self.low[axis])
        return (points[:, axis] > place) == bool(self.other.value)

    def _move_walls(self, frame):
        for handle, number, driven in self.walls:
            if driven:
                row = int(np.searchsorted(frame.columns["number"], number))
                place, turn = _pose(frame, row)
                handle.position, handle.wxyz = self.zoom * place, turn

    def _lines(self, stage, frame):
        """Contact forces between centres, and trails."""
        points, paint = np.zeros((0, 2, 3)), np.zeros((0, 2, 3), np.uint8)
        if self.forces.value and frame.contacts and len(frame.contacts["pair"]):
            moment: Any = snapshot(frame, self.source)
            size = np.linalg.norm(moment.force, axis=1)
            mean = float(size[size > 0.0].mean()) if (size > 0.0).any() else 1.0
            strong = np.flatnonzero(size > self.least.value * mean)
            start, branch = (column[strong] for column in branches(moment))
            points = np.stack([start, start + branch], axis=1)
            paint = np.repeat(colours.ramp(size[strong] / (4.0 * mean))[:, None], 2, axis=1)
        width = 0.25 * float(np.median(stage.size)) if len(stage.size) else 0.0
        self._line("/forces", points, paint, width)
        points = self._trails() if self.trail.value else np.zeros((0, 2, 3))
        self._line("/trails", points, np.full((len(points), 2, 3), 90, np.uint8), 0.4 * width)

    def _line(self, name, points, paint, width):
        scene = self.server.scene
        keep = self._kept(points.mean(axis=1))
        points, paint = points[keep], paint[keep]
        if len(points):
            scene.add_line_segments(
                name, (self.zoom * points).astype(np.float32), paint, thickness=max(self.zoom * width, 1e-3)
            )
        elif scene.get_handle_by_name(name) is not None:
            scene.remove_by_name(name)

    def _trails(self):
        """Ways (k,2,3) [m] of some bodies over the last frames; jumps across a periodic world are left out."""
        first = max(0, self.index - int(self.trail.value))
        free = np.asarray(self.frame.columns["number"])[np.asarray(self.frame.columns["motion"]) == 0]
        chosen = np.unique(free[:: max(1, len(free) // TRAILED)])
        if self.picked is not None:
            chosen = np.union1d(chosen, [self.picked])
        ways = []
        far = 0.5 * float(np.max(self.high - self.low))
        for k in range(first, self.index):
            here, there = self.source[k].columns, self.source[k + 1].columns
            common, one, two = np.intersect1d(here["number"], there["number"], return_indices=True)
            wanted = np.isin(common, chosen)
            way = np.stack([here["position"][one[wanted]], there["position"][two[wanted]]], axis=1).astype(float)
            ways.append(way[np.linalg.norm(way[:, 1] - way[:, 0], axis=1) < far])
        return np.concatenate(ways) if ways else np.zeros((0, 2, 3))

    # What a user does.

    def _pick(self, key, instance):
        with self.lock:
            rows = self.rows.get(key, ())
            if instance is not None and instance < len(rows):
                number = int(np.asarray(self.stage.columns["number"])[self.stage.body[rows[instance]]])
                self.picked = None if number == self.picked else number
                self.redraw()

    def _tell(self, stage):
        """The numbers of the picked body."""
        if self.picked is None:
            text = "Click a body to see its numbers."
        else:
            text = self.describe(self.picked)
        if text != self.about.content:
            self.about.content = text

    def describe(self, number: Whole) -> str:
        """The numbers of a body in the frame that is shown, as a table in Markdown."""
        columns, attributes = self.frame.columns, self.source.attributes
        rows = np.flatnonzero(np.asarray(columns["number"]) == number)
        if not len(rows):
            return f"**body {number}** is not there at this time"
        row = int(rows[0])
        names, materials = attributes.get("names", []), attributes.get("materials", [])
        mold, material = int(columns["mold"][row]), int(columns["material"][row])
        shape = names[mold] if mold < len(names) else "body"
        told = {"mass [kg]": f"{float(columns['mass'][row]):.4g}"}
        own = np.flatnonzero(self.stage.body == row)
        if len(own) == 1:
            told["radius [m]"] = f"{float(self.stage.size[own[0]]):.4g}"
        if material < len(materials):
            told["material"] = materials[material].get("name") or str(material)
        for name, unit in (("position", "m"), ("velocity", "m/s"), ("spin", "rad/s")):
            told[f"{name} [{unit}]"] = ", ".join(f"{float(x):.4g}" for x in columns[name][row])
        told["speed [m/s]"] = f"{float(np.linalg.norm(columns['velocity'][row])):.4g}"
        if self.frame.contacts:
            pair = np.asarray(self.frame.contacts["pair"])
            second = pair[:, 1] == number
            mine = second | (pair[:, 0] == number)
            force = np.asarray(self.frame.contacts["force"], dtype=float) * np.where(second, 1.0, -1.0)[:, None]
            told["partners"] = str(len(np.unique(pair[mine], axis=0)))
            told["contact force [N]"] = ", ".join(f"{x:.4g}" for x in force[mine].sum(0))
        lines = [
            f"**body {number}**, {shape}",
            "",
            "| | |",
            "|---|---|",
            *(f"| {name} | {value} |" for name, value in told.items()),
        ]
        return "\n".join(lines)

    def _screenshot(self, event):
        from PIL import Image

        client = event.client
        shot = client.get_render(
            height=client.camera.image_height, width=client.camera.image_width, transport_format="png"
        )
        data = io.BytesIO()
        Image.fromarray(shot[..., :3]).save(data, "PNG")
        client.send_file_download(f"clast-{self.frame.step}.png", data.getvalue(), save_immediately=True)

    def _play(self):
        began, first, looked = None, 0, clock.monotonic()
        while not self.closed:
            clock.sleep(1.0 / 60.0)
            now = clock.monotonic()
            if self.source.grows and now - looked > LOOK:
                looked = now
                if self.source.grown():
                    self.slider.max = max(len(self.source) - 1, 1)
                    self.over_time.visible = len(self.source) > 1
            if len(self.source) < 2 or not self.playing.value:
                began = None
                continue
            if began is None:
                began, first = now, self.index
            index = (first + int((now - began) * self.rate.value)) % len(self.source)
            if index != self.index:
                if self.slider.value != index:
                    self.slider.value = index  # which draws it
                else:
                    self.show(index)

    def _repr_html_(self):
        from .notebook import frame_html

        return frame_html(self.address)

    def close(self) -> None:
        """End the page."""
        if self.closed:
            return
        self.closed = True
        atexit.unregister(self.close)
        for thread in self._threads:
            thread.join()
        with server.silence():
            self.server.stop()
        with self.lock:
            self.source.close()


def _pose(frame, row):
    place, turn = (np.asarray(frame.columns[name][row], dtype=float) for name in ("position", "orientation"))
    return place, turn
