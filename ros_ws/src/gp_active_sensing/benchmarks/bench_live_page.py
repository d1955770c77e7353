"""What an update of the live page costs, by the number of stages so far.

``OMP_NUM_THREADS=1 python benchmarks/bench_live_page.py`` plays a mission of 300 stages on 1000
places, writes its journal again stage by stage, without its truth, and prints for each hundred
stages: milliseconds of one core to take in a stage and to make the parts of the page, their
median and largest, and kB that a viewer is sent. ``--run DIR`` takes a run that there is.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from gp_active_sensing.records.run_directory import CONFIG, JOURNAL, RECORDS
from gp_active_sensing.sim import load_scenario, run_scenario
from gp_active_sensing.web.follow import RunFollower
from gp_active_sensing.web.view import LiveView

STAGES = 300
SCENARIO: dict[str, Any] = {
    "name": "live_page",
    "seed": 1,
    "map": {"kind": "grid", "columns": 40, "rows": 25, "spacing": 50.0, "moves": "free"},
    "field": {"kind": "gp", "length_scale": 300.0, "signal_std": 1.5, "mean": 8.0},
    "sensor": {"noise_std": 0.2},
    "belief": {
        "length_scales": [60, 100, 150, 200, 300, 450, 650, 900],
        "signal_std": [1.0, 1.5, 2.0],
        "noise_std": [0.2],
        "mean_std": 100.0,
    },
    "policy": {"name": "variance_only"},
    "budget": {"readings": STAGES},
}
"""Every place may be next, so each stage has hundreds of candidates."""


def updates(run: Path, out: Path) -> Iterator[tuple[float, float, int]]:
    """Yield of each stage: seconds to take it in, seconds to make the parts, bytes that are new."""
    config = yaml.safe_load((run / CONFIG).read_text())
    for key in ("field", "sensor"):
        config.pop(key, None)
    (out / CONFIG).write_text(yaml.safe_dump(config))
    follower = RunFollower(out)
    view = LiveView(follower)
    records = (run / RECORDS).read_text().splitlines(keepends=True)
    before: dict[str, str] = {}
    with (out / JOURNAL).open("a") as journal, (out / RECORDS).open("a") as kept:
        for line in (run / JOURNAL).read_text().splitlines(keepends=True):
            event = json.loads(line)
            journal.write(line)
            journal.flush()
            if event["event"] != "decision":
                continue
            while records and json.loads(records[0])["stage"] < event["stage"]:
                kept.write(records.pop(0))
            kept.flush()
            began = time.process_time()
            follower.go_on(60.0)
            taken = time.process_time()
            parts = view.parts()
            made = time.process_time()
            new = sum(len(part) for name, part in parts.items() if before.get(name) != part)
            before = parts
            yield taken - began, made - taken, new


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", type=Path, help="a run that there is, with its records")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run = options.run or Path(folder) / "run"
        if options.run is None:
            scenario = Path(folder) / "live_page.yaml"
            scenario.write_text(yaml.safe_dump(SCENARIO))
            run_scenario(load_scenario(scenario), run)
        out = Path(folder) / "growing"
        out.mkdir()
        found = np.array(list(updates(run, out)))
    print("stages       take in ms   parts ms (largest)   sent kB (largest)")
    for first in range(0, len(found), 100):
        taken, made, sent = found[first : first + 100].T
        print(
            f"{first + 1:3d} to {min(first + 100, len(found)):3d}   {1e3 * np.median(taken):8.1f}"
            f"   {1e3 * np.median(made):8.1f} ({1e3 * made.max():6.0f})"
            f"   {1e-3 * np.median(sent):8.1f} ({1e-3 * sent.max():6.0f})"
        )


if __name__ == "__main__":
    main()
