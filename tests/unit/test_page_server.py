"""The server of the page: who is answered and who is not, and a run that is looked on. No browser is needed here."""

import http.client
import math
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import closing

import numpy as np
import pytest

import clast
from clast import cli, view

pytest.importorskip("viser")
websockets = pytest.importorskip("websockets.sync.client")
from clast.files.trajectory import Trajectory  # noqa: E402
from clast.view import batches, browser, colours, live, server  # noqa: E402
from clast.view.browser import Browser, Frames, Moment  # noqa: E402
from clast.view.stage import Stage  # noqa: E402


def pair():
    scene = clast.Scene()
    scene.add(clast.Plane())
    scene.add(clast.Sphere(0.01), position=[(0, 0, 0.011), (0.1, 0, 0.5)])
    return scene


@pytest.fixture(scope="module")
def page():
    shown = view.show(pair(), port=0)
    yield shown
    shown.close()


def ask(page, path="/", **headers):
    """(status, headers, text) of a request to the page."""
    port = page.server.get_port()
    told = {"Host": f"localhost:{port}"} | {name.replace("_", "-"): value for name, value in headers.items()}
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    line.putrequest("GET", path, skip_host=True)
    for name, value in told.items():
        line.putheader(name, value.format(port=port))
    line.endheaders()
    with closing(line), line.getresponse() as answer:
        return answer.status, dict(answer.getheaders()), answer.read().decode(errors="replace")


def connect(page, origin=None, headers=None):
    import viser

    return websockets.connect(
        f"ws://localhost:{page.server.get_port()}",
        subprotocols=[f"viser-v{viser.__version__}"],
        origin=origin,
        additional_headers=headers,
    )


def test_it_listens_on_loopback_and_answers_its_own_names(page):
    assert page.server.get_host() == "127.0.0.1" and "token" not in page.address
    for host in ("localhost:{port}", "127.0.0.1:{port}", "localhost", "[::1]:{port}"):
        status, _, text = ask(page, Host=host)
        assert status == 200 and "<html" in text.lower()
    assert ask(page, Origin="http://localhost:{port}")[0] == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "localhost.evil.example", "192.168.0.7:{port}", ""]
)
def test_a_foreign_name_is_refused(page, host):
    status, _, text = ask(page, Host=host)
    assert status == 403 and "<html" not in text.lower()


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "https://localhost.evil.example", "http://localhost:1", "null"]
)
def test_a_foreign_page_is_refused(page, origin):
    assert ask(page, Origin=origin)[0] == 403
    with pytest.raises(Exception, match="403"):
        connect(page, origin=origin)


def test_files_outside_are_not_handed_out(page):
    for path in ("/../../../../etc/passwd", "/%2e%2e/%2e%2e/_viser.py"):
        assert ask(page, path)[0] == 404


def test_another_address_asks_for_its_token():
    shown = view.show(pair(), port=0, address="0.0.0.0")
    try:
        token = shown.address.partition("?token=")[2]
        assert len(token) >= 20
        assert ask(shown)[0] == 401 and ask(shown, "/?token=guess")[0] == 401
        assert ask(shown, Cookie="clast_token=guess")[0] == 401
        with pytest.raises(Exception, match="401"):
            connect(shown)
        status, told, _ = ask(shown, f"/?token={token}")
        assert status == 303 and told["Location"] == "/" and "HttpOnly; SameSite=Strict" in told["Set-Cookie"]
        cookie = told["Set-Cookie"].partition(";")[0]
        assert ask(shown, Cookie=cookie)[0] == 200
        assert ask(shown, Cookie=cookie, Origin="http://evil.example")[0] == 403
        connect(shown, headers={"Cookie": cookie}).close()
        assert server.Guard("0.0.0.0").token != token
        # By number or by our own names, never by a name that somebody else leads here.
        for host in ("10.1.2.3:{port}", "[fe80::1]:{port}", f"{socket.gethostname()}:{{port}}"):
            assert ask(shown, Host=host, Cookie=cookie)[0] == 200
        for host in ("evil.example:{port}", "10.1.2.3.evil.example", "0x0a010203", ""):
            assert ask(shown, Host=host, Cookie=cookie)[0] == 403
        assert "0.0.0.0" not in shown.address
    finally:
        shown.close()


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("127.0.0.1", "localhost"),
        ("localhost", "localhost"),
        ("::1", "[::1]"),
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8::7", "[2001:db8::7]"),
    ],
)
def test_the_address_that_is_told_can_be_opened(address, told):
    assert server.to_open(address) == told


def test_one_address_is_known_by_itself_and_our_names_alone():
    guard = server.Guard("192.0.2.7")
    assert guard.knows("192.0.2.7") and guard.knows(socket.gethostname().lower())
    assert not guard.knows("192.0.2.8") and not guard.knows("evil.example") and not guard.knows(None)


def test_a_server_that_cannot_be_guarded_is_not_started(monkeypatch):
    import viser

    class Other:
        stopped = False

        def __init__(self, **options):
            pass

        def stop(self):
            Other.stopped = True

    monkeypatch.setattr(viser, "ViserServer", Other)
    with pytest.raises(clast.Unavailable, match="requests cannot be checked"):
        server.start()
    assert Other.stopped


def test_a_run_is_shown_frame_by_frame(small_run):
    shown = Browser(Frames(small_run / "trajectory.h5"), port=0)
    try:
        assert shown.index == len(shown.source) - 1 and len(shown.stage.centre) == 30
        (handle,) = shown.nodes.values()
        last = handle.batched_positions.copy()
        assert last == pytest.approx(shown.zoom * shown.stage.centre, rel=1e-5)
        shown.show(0)
        assert (handle.batched_positions[:, 2] > last[:, 2]).mean() > 0.9
        assert f"t = {shown.source[0].time:.5g} s" in shown.told.content
        # Colours: those of the ramp over the quantity, and another for another quantity.
        before = handle.batched_colors.copy()
        shown.colour.value = "size"
        shown.redraw()
        assert (handle.batched_colors != before).any() and "radius [mm]" in shown.bar.content
        shown.show(len(shown.source) - 1)
        shown.colour.value = "coordination"
        shown.redraw()
        pairs = {tuple(pair) for pair in shown.frame.contacts["pair"].tolist()}
        touching = np.array([sum(number in pair for pair in pairs) for number in range(1, 31)])
        assert touching.min() < touching.max()
        few, many = (handle.batched_colors[touching == end] for end in (touching.min(), touching.max()))
        assert (few == colours.rgb(colours.RAMP[0])).all() and (many == colours.rgb(colours.RAMP[-1])).all()
        # As many colours as there are numbers of partners.
        assert len(np.unique(handle.batched_colors, axis=0)) == len(set(touching.tolist()))
        # A cut leaves one side.
        shown.cut.value, shown.depth.value = "x", 0.5
        shown.redraw()
        left = handle.batched_scales[:, 0] > 0.0
        middle = 0.5 * (shown.low[0] + shown.high[0])
        assert np.array_equal(left, shown.stage.centre[:, 0] <= middle) and 0 < left.sum() < 30
        shown.other.value = True
        shown.redraw()
        assert np.array_equal(handle.batched_scales[:, 0] > 0.0, ~left)
        # Forces and trails are there when asked for, and go again.
        for control, name, value in ((shown.forces, "/forces", True), (shown.trail, "/trails", 3)):
            assert shown.server.scene.get_handle_by_name(name) is None
            shown.least.value = 0.0
            control.value = value
            shown.redraw()
            middle_of = np.asarray(shown.server.scene.get_handle_by_name(name).points).mean(axis=1) / shown.zoom
            assert len(middle_of) > 0 and (middle_of[:, 0] > middle).all()  # on the side that the cut leaves
            control.value = type(value)(0)
            shown.redraw()
            assert shown.server.scene.get_handle_by_name(name) is None
        shown._pick(next(iter(shown.nodes)), 4)
        assert (
            shown.picked == 5 and "**body 5**, Sphere" in shown.about.content and "speed [m/s]" in shown.about.content
        )
        assert (handle.batched_colors[4] == (255, 0, 200)).all()
        shown._pick(next(iter(shown.nodes)), 4)
        assert shown.picked is None
    finally:
        shown.close()


def test_every_shape_is_drawn_as_it_is():
    """Along each axis of the world every instance reaches as far as its particle, turned and at its size, on both sides."""
    import viser.transforms as turns

    scene = clast.Scene()
    rock = clast.Polyhedron.random(faces=12, seed=1)
    corner = np.array([(0, 0, 0), (0.3, 0, 0), (0, 0.2, 0), (0, 0, 0.1)])
    wedge = clast.Mesh(corner, [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)])
    quarter = (math.sqrt(0.5), 0, 0, math.sqrt(0.5))  # about z: x comes to lie along y, y along -x
    scene.add(clast.Plane())
    scene.add(clast.Sphere(0.1), position=(0, 0, 1))
    scene.add(
        clast.Ellipsoid(0.1, 0.2, 0.3),
        position=[(1, 0, 1), (2, 0, 1)],
        scale=[1.0, 2.0],
        orientation=[(1, 0, 0, 0), quarter],
    )
    scene.add(rock, position=[(3, 0, 1), (4, 0, 1)], scale=[1.0, 0.5], orientation=[(1, 0, 0, 0), quarter])
    scene.add(clast.Superquadric(0.1, 0.15, 0.2, 0.5, 0.5), position=[(5, 0, 1), (6, 0, 1)], scale=[1.0, 3.0])
    scene.add(clast.Clump([(0, 0, 0), (0.1, 0, 0)], 0.1), position=(7, 0, 1), orientation=quarter)
    scene.add(wedge, position=(8, 0, 1), scale=2.0, orientation=quarter)

    def turned(points):
        return np.stack([-points[:, 1], points[:, 0], points[:, 2]], axis=1)

    def both(*half):
        return -np.array(half), np.array(half)

    def around(points):
        return points.min(0), points.max(0)

    stone, slab = np.asarray(rock.vertices), corner - corner.mean(0)
    shift = np.array([0, 0.05, 0])
    exact = {  # (low, high) [m] from the position of each particle of each body
        1: [both(0.1, 0.1, 0.1)],
        2: [both(0.1, 0.2, 0.3)],
        3: [both(0.4, 0.2, 0.6)],
        4: [around(stone)],
        5: [around(0.5 * turned(stone))],
        6: [both(0.1, 0.15, 0.2)],
        7: [both(0.3, 0.45, 0.6)],
        8: [tuple(side + way for side in both(0.1, 0.1, 0.1)) for way in (-shift, shift)],
        9: [around(2.0 * turned(slab))],
    }
    shown = view.show(scene, port=0)
    try:
        assert sorted((len(rows), key[0][:4]) for key, rows in shown.rows.items()) == [
            (1, "surf"),
            (2, "bent"),
            (2, "hull"),
            (5, "ball"),
        ]
        stage = shown.stage
        for key, rows in shown.rows.items():
            handle = shown.nodes[key]
            for k, row in enumerate(rows):
                turn = turns.SO3(np.asarray(handle.batched_wxyzs[k], dtype=float)).as_matrix()
                drawn = (handle.vertices * handle.batched_scales[k]) @ turn.T + handle.batched_positions[k]
                number = int(stage.columns["number"][stage.body[row]])
                within = int((stage.body[:row] == stage.body[row]).sum())
                expected = exact[number][within] + scene.bodies.position[number]
                # Of round ones the mesh is a little inside; how far, follows from its facets.
                room = 0.02 * np.ptp(expected, axis=0).max() if key[0][:4] in ("ball", "bent") else 1e-6
                assert np.abs(np.array(around(drawn / shown.zoom)) - expected).max() < room, number
    finally:
        shown.close()


def test_many_bodies_are_drawn_in_batches_below_50_000():
    scene = clast.Scene()
    scene.add(clast.Sphere(0.1), position=np.arange(300_000.0).reshape(-1, 3))
    made = batches.batches(Stage.of(scene, None, walls=False))
    assert max(len(batch.rows) for batch in made) < 50_000
    assert np.array_equal(np.concatenate([batch.rows for batch in made]), np.arange(100_000))


def test_frames_follow_each_other_while_it_plays(small_run):
    shown = Browser(Frames(small_run / "trajectory.h5"), port=0)

    def until(condition):
        end = time.monotonic() + 100.0
        while not condition():
            assert time.monotonic() < end, "waited too long"
            time.sleep(0.002)

    try:
        drawn, draw = set(), shown.draw
        shown.draw = lambda frame, index=0: (drawn.add(index), draw(frame, index))
        shown.rate.value, shown.playing.value = 20, True
        until(lambda: len(drawn) >= 5)  # from the last frame to the first and on; a busy machine may leave some out
    finally:
        shown.close()


def test_a_run_can_be_paused_and_stepped_from_the_page():
    sim = clast.Simulation(pair(), dt=1e-4)
    look = live.Live(sim, port=0)
    look.hold()
    run = threading.Thread(target=lambda: sim.run(until=0.05, progress=False, between=look))

    def settled(count):
        """Whether the run stands at this step, and the page shows it."""
        for _ in range(500):
            if sim.steps == count and look.frame.step == count:
                time.sleep(0.05)
                return sim.steps == count
            time.sleep(0.01)
        return False

    try:
        with connect(look):
            run.start()
            assert settled(0)
            look.single()
            assert settled(1)
            look.single()
            assert settled(2) and len(look.frame.contacts["pair"]) == len(sim.contacts().pair)
            look.release()
            run.join(20)
            assert sim.steps == 500 and not run.is_alive()
    finally:
        look.release()
        look.close()


def test_a_state_that_cannot_be_drawn_is_told_and_the_page_goes_on(monkeypatch, capsys):
    sim = clast.Simulation(pair(), dt=1e-4)
    look = live.Live(sim, port=0)
    draw = look.draw

    def fails(frame, index=0):
        if frame.step == 1:
            raise RuntimeError("no such colour")
        draw(frame, index)

    def until(condition):
        for _ in range(1000):
            if condition():
                return True
            time.sleep(0.01)
        return False

    try:
        monkeypatch.setattr(look, "draw", fails)
        for step in (1, 2):
            sim.step(1)
            look._take(sim)
            assert until(lambda: look._state is None)
            if step == 1:
                assert "step 1 could not be drawn: RuntimeError: no such colour" in look.told.content
        assert look.frame.step == 2 and "step 2," in look.told.content
        assert capsys.readouterr().err.count("no such colour") == 1
    finally:
        look.close()


def test_nobody_there_means_nothing_is_copied(monkeypatch):
    sim = clast.Simulation(pair(), dt=1e-4)
    look = live.Live(sim, port=0)
    try:
        monkeypatch.setattr(live.Live, "_take", lambda *_: pytest.fail("copied"))
        sim.run(until=0.01, progress=False, between=look)
    finally:
        look.close()


def test_a_page_that_costs_much_is_brought_up_to_date_seldom():
    sim = clast.Simulation(pair(), dt=1e-4)
    look = live.Live(sim, port=0)
    try:
        look._cost = 0.06
        before = time.thread_time()  # of the run, not of a wall that a busy machine makes longer
        look(sim)
        assert before + 0.06 / live.SHARE <= look._next <= time.thread_time() + 0.06 / live.SHARE
    finally:
        look.close()


def test_the_command_shows_runs_and_scenes(small_run, monkeypatch, capsys):
    from clast.cli import showing

    def leave():
        raise KeyboardInterrupt

    monkeypatch.setattr(showing, "wait", leave)
    assert cli.answer(["view", str(small_run), "--port", "0", "--colour", "size"]) == 130
    assert "open http://localhost:" in capsys.readouterr().out
    assert cli.answer(["view", "drumm"]) == 2
    assert "did you mean 'drum'?" in capsys.readouterr().err
    assert cli.answer(["view", str(small_run), "--colour", "sped"]) == 2
    assert capsys.readouterr().err.startswith("clast: unknown colour 'sped'; did you mean 'speed'?")
    assert cli.answer(["view", "out/nothing"]) == 2
    assert "give the folder of a run, a ready scene" in capsys.readouterr().err
    assert cli.answer(["view", str(small_run.parent)]) == 2
    assert "there is no trajectory.h5 in it" in capsys.readouterr().err


def test_the_command_tells_an_address_that_others_can_open(small_run, monkeypatch, capsys):
    from clast.cli import showing

    answers = []

    def look():
        found = re.search(r"open http://(\S+):(\d+)(/\?token=\S+)", capsys.readouterr().out)
        line = http.client.HTTPConnection(found[1], int(found[2]), timeout=10)
        line.request("GET", found[3])
        with closing(line), line.getresponse() as answer:
            answers.append((found[1], answer.status))
        raise KeyboardInterrupt

    monkeypatch.setattr(showing, "wait", look)
    assert cli.answer(["view", str(small_run), "--port", "0", "--address", "0.0.0.0"]) == 130
    ((host, status),) = answers
    assert host != "0.0.0.0" and status == 303  # the token is taken
    assert cli.answer(["view", str(small_run), "--port", "0", "--address", "192.0.2.7"]) == 2
    assert "this machine cannot listen there" in capsys.readouterr().err


@pytest.mark.parametrize("ended", ["interrupted", "left open"])
def test_a_program_that_shows_a_run_ends_cleanly(small_run, ended):
    """A thread that read frames while Python took itself down ended in a crash."""
    command = [sys.executable, "-m", "clast", "view", str(small_run), "--port", "0"]
    if ended == "left open":
        show = "from clast import view; page = view.show({!r}, port=0); print('open', page.address, flush=True)"
        command = [sys.executable, "-c", show.format(str(small_run))]
    # Shells ignore the signal in what they start in the background, and children inherit that.
    heed = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.default_int_handler)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **heed) as program:
        assert program.stdout.readline().startswith("open http://localhost:")
        if ended == "interrupted":
            program.send_signal(signal.SIGINT)
        told = program.communicate(timeout=100)[1]
    assert program.returncode == (130 if ended == "interrupted" else 0), told


def test_a_scene_that_is_empty_at_first_can_be_shown():
    scene = clast.Scene()
    scene.add(clast.Plane())
    scene.inlet(clast.Sphere(0.01), box=((-1, -1, 1), (1, 1, 2)), rate=100.0)
    shown = Browser(Moment(scene), port=0)
    shown.close()


def test_a_run_that_is_opened_at_its_first_frame_gets_its_slider_later(small_run, tmp_path, monkeypatch):
    monkeypatch.setattr(browser, "LOOK", 0.0)
    with Trajectory(small_run / "trajectory.h5") as run:
        groups, attributes, frames = run.groups, run.attributes, run[:3]
    path = tmp_path / "trajectory.h5"
    with Trajectory(path, "w") as writing:
        writing.header(groups, attributes)
        writing.append(frames[0].time, frames[0].step, frames[0].columns)
        shown = Browser(Frames(path), port=0)
        try:
            assert not shown.over_time.visible
            for frame in frames[1:]:
                writing.append(frame.time, frame.step, frame.columns)
            end = time.monotonic() + 100.0
            while not (shown.over_time.visible and shown.slider.max == 2):
                assert time.monotonic() < end, "nobody looked again"
                time.sleep(0.01)
            shown.slider.value = 2
            shown.show(2)
            assert shown.frame.step == frames[2].step
        finally:
            shown.close()
