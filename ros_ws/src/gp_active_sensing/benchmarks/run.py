"""Run benchmarks and print a report; `--record` keeps it under benchmarks/reports/."""

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
BENCHMARKS = (
    "town",
    "candidates",
    "tours",
    "turning",
    "belief",
    "beliefs",
    "draws",
    "promise",
    "aims",
    "algorithm1",
    "experiment1",
    "bounds",
    "horizons",
    "learning",
    "free",
    "curves",
    "policies",
    "untuned",
    "mapping",
    "networks",
    "roads",
    "bandits",
    "decisions",
    "scale",
    "demo",
    "ahead",
    "load",
    "fuzz",
    "gate",
    "fleet",
    "kill",
    "exit",
    "soak",
    "moving",
    "delay",
    "batches",
    "report",
    "sparq",
    "import",
    "install",
    "vbks_synthetic",
    "vbks_evidence",
    "vbks_real",
    "vbks_cost",
    "vbks_million",
    "vbks_probe",
)


def machine() -> str:
    """One line on where this ran."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [x for x in cpuinfo.read_text().splitlines() if x.startswith("model name")]
        model = names[0].partition(":")[2].strip() if names else model
    return f"{model}, {os.cpu_count()} cores, {platform.system()}"


def commit() -> str:
    """The commit of the source tree, marked when it has changes."""
    try:
        return subprocess.run(
            ["git", "describe", "--always", "--dirty"],
            cwd=HERE, check=True, capture_output=True, text=True,
        ).stdout.strip()  # fmt: skip
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *BENCHMARKS], help="default: all")
    parser.add_argument("--record", metavar="NAME", help="write benchmarks/reports/NAME.md")
    parser.add_argument("--smoke", action="store_true", help="a small size of those that have one")
    parser.add_argument("--quick", action="store_true", help="fewer draws, for those that have it")
    parser.add_argument("--routes", action="store_true", help="beliefs: along routes instead")
    parser.add_argument("--kept", help="folder of finished pieces, for those that can go on")
    parser.add_argument("--pictures", type=Path, help="folder for the pictures of some")
    parser.add_argument("--only", action="append", help="mapping: data set, or a part of its name")
    parser.add_argument("--policies", help="mapping: labels, with commas between them")
    parser.add_argument("--own", type=Path, help="mapping: YAML file of more policies, by label")
    parser.add_argument("--starts", type=int, help="draws of each data set, or fields, for some")
    parser.add_argument("--budgets", help="mapping: numbers of moves, with commas between them")
    parser.add_argument(
        "--kept-only", action="store_true", help="play nothing, report what is kept"
    )
    parser.add_argument("--processes", type=int, help="mapping: at work")
    parser.add_argument("--reference", help="mapping: label that others are compared with")
    options = parser.parse_args()
    if options.kept:
        os.environ["GPAS_KEPT"] = options.kept
    sys.path.insert(0, str(HERE))
    from gp_active_sensing.util.process import one_blas_thread

    one_blas_thread()  # before anything loads numpy
    from gp_active_sensing.util.process import versions

    found = ", ".join(f"{name} {version}" for name, version in versions().items())
    parts = [f"# Benchmarks\n\nCommit {commit()}; {machine()}; {found}. One BLAS thread.\n"]
    for name in options.names or BENCHMARKS:
        sys.stderr.write(f"{name} …\n")
        bench = importlib.import_module(f"bench_{name}").run
        known = inspect.signature(bench).parameters
        wanted = {
            "smoke": options.smoke,
            "quick": options.quick,
            "routes": options.routes,
            "pictures": options.pictures,
            "only": options.only,
            "policies": options.policies,
            "own": options.own,
            "starts": options.starts,
            "budgets": options.budgets,
            "processes": options.processes,
            "reference": options.reference,
            "kept_only": options.kept_only,
        }
        keys = {key: value for key, value in wanted.items() if key in known and value}
        parts.append(bench(**keys).markdown())
    report = "\n".join(parts)
    sys.stdout.write(report)
    if options.record:
        target = HERE / "reports" / f"{options.record}.md"
        target.write_text(report, encoding="utf-8")
        sys.stderr.write(f"written: {target}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
