"""Measure the import time of modules, each in a fresh interpreter."""

from __future__ import annotations

import json
import subprocess
import sys

from common import Section, quantiles

MODULES = (
    "numpy",
    "scipy.linalg, scipy.special",
    "gp_active_sensing",
    "gp_active_sensing.planning",
    "gp_active_sensing.loop",
    "gp_active_sensing.sim.driver",
    "gp_active_sensing.ros.active_sensing_node",
)
CODE = """
import json, resource, sys, time
wall, own = time.perf_counter(), time.process_time()
try:
    import {0}
except ImportError as error:
    print(json.dumps(str(error)))
    sys.exit()
wall, own = time.perf_counter() - wall, time.process_time() - own
ours = sum(name.startswith("gp_active_sensing") for name in sys.modules)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps([wall, own, ours, len(sys.modules), peak]))
"""


def run() -> Section:
    section = Section(
        "What an import costs",
        "python benchmarks/run.py import",
        "In a fresh interpreter, 7 runs after one warm-up: medians, and the longest of the 7. "
        "Byte code is there. numpy and the two parts of scipy are the floor.",
        ("import", "s", "longest s", "processor s", "our modules", "all modules", "peak MB"),
    )
    for modules in MODULES:
        runs = []
        for _ in range(8):
            out = subprocess.run(
                [sys.executable, "-c", CODE.format(modules)],
                check=True, capture_output=True, text=True,
            )  # fmt: skip
            runs.append(json.loads(out.stdout.splitlines()[-1]))
        if isinstance(runs[0], str):
            section.rows.append((f"`{modules}`", runs[0], *[""] * 5))
            continue
        wall, own, _, _, peak = zip(*runs[1:], strict=True)
        median, _, longest = quantiles(wall)
        ours, every = runs[0][2:4]
        used = (quantiles(own)[0], ours, every, quantiles(peak)[0])
        section.rows.append((f"`{modules}`", median, longest, *used))
    return section
