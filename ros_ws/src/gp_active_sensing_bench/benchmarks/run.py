"""Run benchmarks and print a report. ``--record`` stores the report in benchmarks/reports/."""

from __future__ import annotations

import argparse
import importlib
import inspect
import os
import platform
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
BENCHMARKS = {
    "mapping": "which policy or planner maps a field best for its metres",
    "beliefs": "error and honesty of the belief at places that were not read",
    "intervals": "promised and actual error along routes, and with many readings of a place",
    "quantities": "a link between two quantities, and one route for three",
    "limits": "crossings of places below a limit, on drawn lakes with shoals",
    "roads": "Experiment 2 of the BAL paper over many fields (needs GPAS_DATA)",
    "town": "seconds of a decision of `bal`",
    "large": "first and later decisions on 600 to 100,000 places, a reading, memory",
    "load": "the node at 1 kHz, with publishers that flood, for two hours (needs ROS)",
    "soak": "a node that is killed, whose disk is full, whose clock steps (needs ROS)",
    "fuzz": "absurd messages and parameters, spoilt files (needs ROS)",
    "import": "seconds and memory of an import",
    "install": "megabytes and first start of an installation",
}
OPTIONS = ("quick", "routes", "only", "policies", "own", "starts", "budgets", "processes",
           "reference", "kept_only")  # fmt: skip


def machine() -> str:
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [x for x in cpuinfo.read_text().splitlines() if x.startswith("model name")]
        model = names[0].partition(":")[2].strip() if names else model
    return f"{model}, {os.cpu_count()} cores, {platform.system()}"


def commit() -> str:
    """Return the commit of the source tree, with a note if files have changed."""
    try:
        return subprocess.run(
            ["git", "describe", "--always", "--dirty"],
            cwd=HERE, check=True, capture_output=True, text=True,
        ).stdout.strip()  # fmt: skip
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def parser() -> argparse.ArgumentParser:
    names = "\n".join(f"  {name:8} {what}" for name, what in BENCHMARKS.items())
    found = argparse.ArgumentParser(
        description=f"{__doc__}\n\nbenchmarks:\n{names}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = found.add_argument
    add("names", nargs="*", metavar="NAME", help="benchmarks to run; none: list them")
    add("--all", action="store_true", help="run all of them, which takes hours")
    add("--record", metavar="NAME", help="write benchmarks/reports/NAME.md")
    add("--quick", action="store_true", help="a small size, for those that have one")
    add("--kept", metavar="FOLDER", help="folder of finished missions: go on where a run stopped")
    add("--kept-only", action="store_true", help="play nothing, report what is kept")
    add("--routes", action="store_true", help="beliefs: readings along routes")
    add("--only", action="append", help="mapping: data set, or a part of its name")
    add("--policies", help="mapping: labels, with commas between them")
    add("--own", type=Path, help="mapping: YAML file of more policies, by label")
    add("--starts", type=int, help="mapping: draws of each data set")
    add("--budgets", help="mapping: numbers of moves, with commas between them")
    add("--processes", type=int, help="mapping: missions at the same time")
    add("--reference", help="mapping: label that others are compared with")
    return found


def main(words: list[str] | None = None) -> int:
    options = parser().parse_args(words)
    names = list(BENCHMARKS) if options.all else options.names
    if unknown := [name for name in names if name not in BENCHMARKS]:
        parser().error(
            f"unknown {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}. What earlier "
            "benchmarks found, and the commit that has them, is in docs/fidelity.md"
        )
    if not names:
        parser().print_help()
        return 0
    if options.kept:
        os.environ["GPAS_KEPT"] = options.kept
    sys.path.insert(0, str(HERE))
    from gp_active_sensing.util.process import one_blas_thread

    one_blas_thread()  # before numpy is loaded
    from gp_active_sensing.util.process import versions

    found = ", ".join(f"{name} {version}" for name, version in versions().items())
    parts = [f"# Benchmarks\n\nCommit {commit()}; {machine()}; {found}. One BLAS thread.\n"]
    for name in names:
        sys.stderr.write(f"{name} …\n")
        bench = importlib.import_module(f"bench_{name}").run
        known = inspect.signature(bench).parameters
        wanted = {key: getattr(options, key) for key in OPTIONS if key in known}
        parts.append(bench(**{key: value for key, value in wanted.items() if value}).markdown())
    report = "\n".join(parts)
    sys.stdout.write(report)
    if options.record:
        target = HERE / "reports" / f"{options.record}.md"
        target.write_text(report, encoding="utf-8")
        sys.stderr.write(f"written: {target}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
