"""Run every benchmark, print a table, and write results/<machine>.json, .csv and results/figures.png.

    python benchmarks/run.py             # about ten minutes on two cores
    python benchmarks/run.py --quick     # without the million spheres, one repeat fewer
    python benchmarks/run.py --draw      # only the picture again, from the stored results

A peer that is not installed is left out, and a line says how to install it.
"""

import argparse
import csv
import datetime
import importlib.metadata
import json
import platform
import re
from pathlib import Path

import contacts
import dem
import lammps
import start
from common import RESULTS, cores, machine
from rich.console import Console
from rich.table import Table


def about():
    """The machine and the versions that the numbers belong to."""
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        found = re.search(r"model name\s*:\s*(.+)", info.read_text())
        model = found.group(1).strip() if found else model
    versions = {}
    for name in ("clast", "numpy", "numba", "scipy"):
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = "source tree"
    if not lammps.missing():
        versions["lammps"] = lammps.version()
    return {
        "model": model,
        "cores": cores(),
        "python": platform.python_version(),
        "system": platform.system(),
        "date": datetime.date.today().isoformat(),
        "versions": versions,
    }


def lines(results):
    """The results as rows (what, size, clast, peer, peer's value, ratio, remark); ratios above 1 favour clast."""
    table = []
    for row in results.get("dem", []):
        what = "DEM step, shaken" if row["stir"] else "DEM step, settled"
        size = f"{row['count']:,} spheres"
        remark = "disturbed by other programs" if row["disturbed"] else ""
        rate = "{:.2f} M/s".format
        table.append(
            (
                what,
                size,
                rate(row["clast"]) if "clast" in row else "",
                "LAMMPS, 2 ranks",
                rate(row["lammps"]) if "lammps" in row else "",
                f"{row['ratio']:.2f}" if "ratio" in row else "",
                remark,
            )
        )
        # For fewer spheres the memory is that of the compiled kernels and the libraries.
        if not row["stir"] and row["count"] == max(r["count"] for r in results["dem"]):
            memory = {name: f"{row[f'{name}_memory']:.0f} B/sphere" for name in ("clast", "lammps") if name in row}
            both = "clast" in row and "lammps" in row
            table.append(
                (
                    "  memory",
                    size,
                    memory.get("clast", ""),
                    "LAMMPS, 2 ranks",
                    memory.get("lammps", ""),
                    f"{row['lammps_memory'] / row['clast_memory']:.2f}" if both and row["clast_memory"] > 0 else "",
                    f"{row['clast_base'] / 1e6:.0f} to {row['clast_peak'] / 1e6:.0f} MB" if "clast" in row else "",
                )
            )
    for row in results.get("contacts", []):
        if "peer_seconds" in row:
            table.append(
                (
                    f"contacts, {row['case']}",
                    f"{row['count']:,} spheres",
                    f"{row['seconds']:.3f} s" if "seconds" in row else "",
                    row["peer"],
                    f"{row['peer_seconds']:.3f} s",
                    f"{row['ratio']:.2f}" if "ratio" in row else "",
                    f"{row['contacts']:,} contacts"
                    + (", same set" if row.get("same") else "")
                    + (", disturbed" if (row["others"] or 0.0) > 0.25 else ""),
                )
            )
    first = results.get("start", {})
    if "import" in first:
        bare = f"{first['import_numpy_numba']:.2f} s"
        loaded = f"{first['import']:.3f} s; all names {first['import_all_names']:.2f} s"
        table.append(("import", "", loaded, "numpy and numba alone", bare, "", ""))
        for name in ("warm", "cold"):
            remark = f"{first[f'{name}_compiled']} kernels compiled"
            seconds = f"{first[f'{name}_first_step']:.2f} s"
            table.append((f"first step, {name}", "1,000 spheres", seconds, "", "", "", remark))
    return table


HEADER = ("what", "size", "clast", "peer", "peer's", "ratio", "remark")


def show(console, results):
    """Print the table."""
    table = Table(title=f"{results['machine']['model']}, {results['machine']['cores']} cores", title_justify="left")
    for name in HEADER:
        table.add_column(name, justify="right" if name in ("clast", "peer's", "ratio") else "left")
    for row in lines(results):
        table.add_row(*row)
    console.print(table)
    skipped = [row["skipped"] for part in ("dem", "contacts") for row in results.get(part, []) if "skipped" in row]
    skipped += [results["start"]["skipped"]] if "skipped" in results.get("start", {}) else []
    for line in dict.fromkeys(skipped):
        console.print(f"left out: {line}", style="yellow", markup=False)


def store(results):
    """Write the JSON, the CSV and the picture; returns their paths."""
    RESULTS.mkdir(exist_ok=True)
    base = RESULTS / machine()
    data, sheet, picture = base.with_suffix(".json"), base.with_suffix(".csv"), RESULTS / "figures.png"
    data.write_text(json.dumps(results, indent=1) + "\n")
    with sheet.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(HEADER)
        writer.writerows(lines(results))
    try:
        import figures
    except ImportError:
        return [data, sheet], "no picture: install matplotlib (pip install 'clast[view]')"
    figures.draw(results, picture)
    return [data, sheet, picture], ""


def into_readme(results):
    """Put the table and the picture between the markers of the README."""
    readme = RESULTS.parent.parent / "README.md"
    about = results["machine"]
    table = ["| " + " | ".join(HEADER) + " |", "|---|---|---:|---|---:|---:|---|"]
    table += ["| " + " | ".join(cell.strip() for cell in row) + " |" for row in lines(results)]
    text = (
        "![particle-steps per second and contact search](benchmarks/results/figures.png)\n\n"
        f"{about['model']}, {about['cores']} cores, {about['date']}; a ratio above 1 favours clast.\n\n"
        + "\n".join(table)
    )
    pattern = r"(<!-- measured -->\n).*?(<!-- /measured -->)"
    readme.write_text(re.sub(pattern, lambda m: f"{m[1]}{text}\n{m[2]}", readme.read_text(), flags=re.DOTALL))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="without the million spheres, fewer repeats")
    parser.add_argument("--draw", action="store_true", help="only the table and the picture, from the stored results")
    parser.add_argument("--only", choices=("dem", "contacts", "start"), help="one part; the others stay as stored")
    parser.add_argument("--readme", action="store_true", help="put the table and the picture into the README too")
    options = parser.parse_args()
    console = Console()
    if not console.is_terminal:
        console = Console(width=132)
    stored = RESULTS / f"{machine()}.json"
    results = json.loads(stored.read_text()) if stored.exists() and (options.draw or options.only) else {}
    if not options.draw:
        results["machine"] = about()
        wanted = (options.only,) if options.only else ("start", "contacts", "dem")
        if "start" in wanted:
            console.print("start: import, first step warm and cold ...")
            results["start"] = start.run(3 if options.quick else 5)
        if "contacts" in wanted:
            console.print("contacts: against SciPy and against C++ ...")
            results["contacts"] = contacts.run(3 if options.quick else 5)
        if "dem" in wanted:
            results["dem"] = []
            cases = [(10_000, 0.0), (100_000, 0.0), (100_000, dem.STIR)] + ([] if options.quick else [(1_000_000, 0.0)])
            for count, speed in cases:
                console.print(f"dem: {count:,} spheres{', shaken' if speed else ''} ...")
                results["dem"].append(dem.run(count, 2 if options.quick else 3, speed))
    if not results:
        raise SystemExit(f"no stored results {stored.name}; run without --draw first")
    show(console, results)
    paths, reason = store(results)
    for path in paths:
        console.print(f"written: benchmarks/results/{path.name}", highlight=False)
    if reason:
        console.print(reason)
    if options.readme:
        into_readme(results)


if __name__ == "__main__":
    main()
