"""The main job from end to end: two nodes over DDS, and how fast they answer."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import Section

RUNS = ((10.0, 60), (20.0, 60))


def run() -> Section:
    section = Section(
        "The demo: simulator and active_sensing as separate processes",
        "python benchmarks/run.py demo",
        "`sim/town.yaml`, 60 readings, belief and limit (expansions) as shipped. Reading in → "
        "belief updated, arrival (the message that completes a place) → next waypoint out: "
        "median / p99.",
        (
            "speed factor",
            "exit code",
            "wall s",
            "planning s",
            "reading → belief ms",
            "arrival → waypoint ms",
            "final RMSPE km/h",
        ),
    )
    for speed, readings in RUNS:
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "run"
            started = time.perf_counter()
            done = subprocess.run(
                [
                    sys.executable, "-m", "gp_active_sensing.commands.demo",
                    "--speed", str(speed), "--budget", str(readings), "--out", str(out),
                ],
                check=False, capture_output=True,
            )  # fmt: skip
            wall = time.perf_counter() - started
            summary = json.loads((out / "summary.json").read_text(encoding="utf-8"))
        latency, planning = summary["latency"], summary["planning"]
        section.rows.append(
            (
                speed,
                done.returncode,
                wall,
                f"{planning['median_seconds']:.3f} / {planning['p99_seconds']:.3f}",
                *(
                    f"{latency[key]['median_ms']:.1f} / {latency[key]['p99_ms']:.1f}"
                    for key in ("reading_to_belief", "arrival_to_waypoint")
                ),
                float(summary["rmspe"]),
            )
        )
    return section
