"""Import times of a probe's installation, each in a fresh interpreter."""

from __future__ import annotations

import subprocess
import sys

from common import Section, quantiles

CODE = "import time; t = time.perf_counter(); import {0}; print(time.perf_counter() - t)"


def run() -> Section:
    section = Section(
        "Import times",
        "python benchmarks/run.py import",
        "Seconds in a fresh interpreter, 7 runs after one warm-up.",
        ("module", "median s", "max s"),
    )
    for module in ("gp_active_sensing", "gp_active_sensing.loop", "gp_active_sensing.sim"):
        times = []
        for _ in range(8):
            out = subprocess.run(
                [sys.executable, "-c", CODE.format(module)],
                check=True, capture_output=True, text=True,
            )  # fmt: skip
            times.append(float(out.stdout))
        median, _, largest = quantiles(times[1:])
        section.rows.append((f"`{module}`", median, largest))
    return section
