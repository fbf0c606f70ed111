"""How scenes and simulations show themselves in a notebook: a picture and numbers."""

import base64
import html
import io

from .. import errors
from ..tables import FREE

SIZE = (480, 360)
MOST = 20_000  # bodies; with more the picture would keep a notebook waiting


def show_html(subject):
    """A Scene or Simulation as HTML: a picture, where one can be drawn, and a table of numbers."""
    scene = getattr(subject, "scene", subject)
    cells = "".join(
        f"<tr><td style='text-align:left;color:#77838d'>{html.escape(name)}</td><td style='text-align:left'>{html.escape(value)}</td></tr>"
        for name, value in numbers(subject).items()
    )
    return (
        "<div style='display:flex;gap:1em;align-items:center;flex-wrap:wrap'>"
        f"{picture(scene)}<table style='font-size:90%'>{cells}</table></div>"
    )


def picture(scene):
    """The scene as an <img>, or nothing where there is nothing to draw or to draw with."""
    from . import render

    count = len(scene.bodies.number)
    if not 0 < count <= MOST:
        return ""
    try:
        shot = render(scene, None, size=SIZE, quality=1)
    except errors.Unavailable:
        return ""
    data = io.BytesIO()
    shot.convert("RGB").save(data, "JPEG", quality=88)
    return f"<img width={SIZE[0]} height={SIZE[1]} alt='' src='data:image/jpeg;base64,{base64.b64encode(data.getvalue()).decode()}'>"


def numbers(subject):
    """What the table tells, by name."""
    scene = getattr(subject, "scene", subject)
    bodies = scene.bodies
    free = bodies.motion == FREE
    told = {
        "bodies": f"{len(bodies.number):,}, {int(free.sum()):,} free",
        "mass": f"{float(bodies.mass[free].sum()):.4g} kg",
    }
    names = list(dict.fromkeys(scene.names))
    told["shapes"] = ", ".join(names) or "none yet"
    told["gravity"] = ", ".join(f"{g:g}" for g in scene.gravity) + " m/s²"
    if scene is not subject:
        told |= {
            "time": f"{subject.time:.6g} s, {subject.steps:,} steps of {subject.dt:.3g} s",
            "method": type(subject.method).__name__,
            "kinetic energy": f"{subject.kinetic_energy():.4g} J",
        }
        if subject.steps:
            told["contacts"] = f"{subject.touching():,} that carry a force"
    return told


def frame_html(address, height=560):
    """A page of this address inside a notebook."""
    return f"<iframe src='{html.escape(address)}' width='100%' height='{height}' style='border:0'></iframe>"
