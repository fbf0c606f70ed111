"""What the numbers of a run are called where people read them, in the terminal and on the page of a report."""

import json
import re

from ..measure.ledger import without_rounding

ENERGIES = ("kinetic", "rotational", "potential", "elastic", "total")
# What series.csv has of the solver of a run by complementarity, in every frame; with joints `open` too.
SOLVER = ("steps", "iterations", "missed", "worst", "stabilisation", "residual")
# What series.csv has of a ledger in every frame, behind `ledger_`; see `clast.measure.Balance`.
LEDGER = {
    "start": "energy at the start [J]",
    "work": "work of driven bodies [J]",
    "motors": "work of motors [J]",
    "through": "energy of bodies that came less that of those that went [J]",
    "stabilisation": "energy that parting overlaps added [J]",
    "normal": "lost by normal damping [J]",
    "shear": "lost by shear damping [J]",
    "sliding": "lost by sliding [J]",
    "rolling": "lost by rolling [J]",
    "twisting": "lost by twisting [J]",
    "bonds": "lost by bonds [J]",
    "dampers": "lost by dampers of springs [J]",
    "limits": "lost at limits of joints [J]",
    "undivided": "lost in all, with what is numerical [J]",
    "numerical": "lost numerically, the remainder of springs [J]",
    "turnover": "turnover of energy [J]",
    "dissipated": "lost in all, but for what is numerical [J]",
    "error": "error of the balance of energy [J]",
}
# The stages of a step.
STAGES = {"bodies": "motion of bodies", "pairs": "neighbour list", "contacts": "contacts", "solver": "solver"}
# Fields of `Report.as_dict()`, those of a dict behind its name and a dot.
WORDS = {
    "time": "simulated time [s]",
    "dt": "time step [s]",
    **{f"seconds.{name}": f"wall time: {words} [s]" for name, words in STAGES.items()},
    "compiling": "wall time: compiling, besides [s]",
    "steps_per_second": "steps per second",
    "bodies": "free bodies",
    "contacts": "contacts that carry a force",
    "coordination": "coordination number",
    "rebuilds": "neighbour lists made",
    "removed": "bodies removed",
    "poured": "bodies poured",
    "deepest": "deepest overlap [m]",
    **{f"energy.{name}": f"{name} energy [J]" for name in ENERGIES},
    **{f"ledger.{name}": text for name, text in LEDGER.items()},
    **{f"ledger.{name}": f"{name} energy in the balance [J]" for name in ("kinetic", "potential", "elastic")},
    "unbalanced": "no account of energies",
    "momentum": "momentum [kg m/s]",
    "angular_momentum": "angular momentum [kg m^2/s]",
    "crossings": "surfaces that crossed",
    "coincident": "spheres with one centre",
    "solver.solver": "solver",
    "solver.steps": "solver steps",
    "solver.iterations": "solver iterations",
    "solver.stabilisation": "energy that parting overlaps added at most [J]",
    "solver.open": "joints open by at most [m]",
    "solver.missed": "solver steps that missed the tolerance",
    "solver.worst": "solver residual, the worst [m/s]",
    "solver.residual": "solver residual of the last step [m/s]",
    "solver.asleep": "bodies that sleep",
    "ranks.bodies": "processes: free bodies of each",
    "ranks.ghosts": "processes: ghosts of each, bodies that others move",
    "ranks.moved": "processes: bodies that came from others",
    "ranks.cuts": "processes: times the world was divided anew",
    "ranks.steps": "processes: steps of these numbers",
    "ranks.bytes": "processes: bytes sent by each",
    "ranks.messages": "processes: messages sent by each",
    "ranks.seconds": "processes: wall time [s]",
    "ranks.worked": "processes: processor time without waiting [s]",
    "ranks.waited": "processes: wall time of waiting [s]",
    "ranks.uneven": "processes: work of the busiest over the mean",
    "ranks.bytes_a_step": "processes: bytes a step sent by each",
    "ranks.share": "processes: share of time in communication of each [%]",
}


def of_ranks(told):
    """What follows from the lists that a run tells of its processes, see `clast.mpi.stepper.Divided.ranks`."""
    worked, count = [max(spent, 1e-9) for spent in told["worked"]], len(told["worked"])
    found = {
        "uneven": max(worked) * count / sum(worked),
        "share": [100.0 * part / max(all_, 1e-9) for part, all_ in zip(told["waited"], told["seconds"])],
    }
    if "steps" in told:  # earlier reports were without it
        found["bytes_a_step"] = [round(sent / max(steps, 1)) for sent, steps in zip(told["bytes"], told["steps"])]
    return found


def rows(numbers, prefix=""):
    """(name in words, value) of what `Report.as_dict()` holds, without what `about` tells and what is empty."""
    if prefix == "ledger.":
        numbers = without_rounding(numbers)
    for name, value in numbers.items():
        if name == "made":
            continue
        if prefix in ("inlets.", "outlets."):
            gate = f"{prefix.removesuffix('s.')} {name}"
            yield f"{gate}: bodies", value["count"]
            yield f"{gate}: mass [kg]", value["mass"]
        elif isinstance(value, dict):
            yield from rows(value | of_ranks(value) if name == "ranks" and value else value, f"{prefix}{name}.")
        elif value not in (None, "", [], {}):
            yield WORDS.get(prefix + name, (prefix + name).replace(".", " ").replace("_", " ")), value


def about(plan, made, scene):
    """(name, value) of what was run. plan: what run.json holds; made: `clast.run.report.made_with`; scene: attributes of the trajectory, see
    `Scene.describe`; each may be empty."""
    versions = made.get("versions", {})
    told = {
        "scene": title(plan, scene),
        "from": plan.get("source"),
        "shapes": ", ".join(dict.fromkeys(scene.get("names", []))) or None,
        "bodies asked for": plan.get("count"),
        "seed": _seeds([plan["seed"]] if "seed" in plan else []),
        "seed of filling": _seeds(scene.get("seeds", [])),
        "seed of inlets": _seeds(inlet["seed"] for inlet in scene.get("inlets", [])),
    }
    told |= {"end [s]": plan.get("until"), "between frames [s]": plan.get("every"), "method": made.get("method")}
    told |= {f"option {name}": value for name, value in made.get("options", {}).items() if value is not None}
    told |= {"device": made.get("device"), "threads": made.get("threads"), "machine": made.get("machine")}
    told |= {"versions": ", ".join(f"{name} {value}" for name, value in versions.items()) or None}
    return [(name, value) for name, value in told.items() if value is not None]


def _seeds(numbers):
    """Different ones as text, without the commas of counts; None if there are none."""
    return ", ".join(map(str, dict.fromkeys(numbers))) or None


def title(plan, scene):
    """One line that says what was run, or None: that of the command, or of the scene; see `about`."""
    return plan.get("scene") or scene.get("title") or None


def of_frame(series):
    """The last moment of a series {name: (k,) column}, put in order as `Report.as_dict()` has it."""
    last = {name: column[-1].item() for name, column in series.items()}
    told = {"energy": {name: last.pop(name) for name in ENERGIES if name in last}}
    if has_solver(last):
        told["solver"] = {name: last.pop(name) for name in (*SOLVER, "open") if name in last}
    if "ledger_start" in last:
        told["ledger"] = {name: last.pop(f"ledger_{name}") for name in LEDGER if f"ledger_{name}" in last}
    gates: dict[str, dict] = {"inlets": {}, "outlets": {}}
    for name in list(last):
        match = re.fullmatch(r"(inlet|outlet)_(\d+)_(count|mass)", name)
        if match:
            gates[f"{match[1]}s"].setdefault(match[2], {})[match[3]] = last.pop(name)
    return {"frames": len(series["time"])} | last | gates | told


def has_solver(series):
    """Whether a series has the columns of a solver; one recorded function may have the name of one of them."""
    return all(name in series for name in SOLVER)


def written(value):
    """A number, a list of numbers or a word of a report as text."""
    if isinstance(value, list):
        return ", ".join(map(written, value))
    if isinstance(value, float):
        return f"{value:.6g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def stored(path):
    """The JSON object in a file of a run; empty where there is no file."""
    if not path.is_file():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as fault:
        raise ValueError(f"{path} is damaged: {fault}") from None
    if not isinstance(found, dict):
        raise ValueError(f"{path} is not what a run writes")
    return found
