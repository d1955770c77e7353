from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.journals import events_of
from tests.ros.probe import write_scenario
from tests.waiting import LIMIT

pytestmark = [pytest.mark.ros, pytest.mark.long]

SPEED, PATIENCE = 40.0, 4.0
"""Simulated seconds per second; how long a reading is waited for [s, real time]."""


def start(name: str, log: Path, *parameters: str) -> subprocess.Popen[bytes]:
    arguments = [word for text in parameters for word in ("-p", text)]
    command = [sys.executable, "-m", f"gp_active_sensing.ros.{name}_node", "--ros-args", *arguments]
    with log.open("ab") as stream:
        return subprocess.Popen(command, stdout=stream, stderr=subprocess.STDOUT)


def await_work(process: subprocess.Popen[bytes], journal: Path) -> None:
    """Wait until a line more is in the journal, or the process has ended."""

    def size() -> int:
        return journal.stat().st_size if journal.exists() else 0

    before, end = size(), time.monotonic() + LIMIT
    while size() == before and process.poll() is None and time.monotonic() < end:
        time.sleep(0.005)


def run_mission(folder: Path, scenario: Path, kills: Sequence[float]) -> list[dict[str, Any]]:
    """Run simulator and node; kill the node so long [s] after it has begun to work each time."""
    run, log = folder / "run", folder / "sensing.log"
    simulated = (f"speed_factor:={SPEED}", "keep:=true")
    simulator = start("simulator", folder / "simulator.log", f"scenario:={scenario}", *simulated)
    sensing: subprocess.Popen[bytes] | None = None
    given = (
        f"scenario:={scenario}", f"run_dir:={run}", "use_sim_time:=true",
        "mission.exit_at_end:=true", f"mission.reading_timeout:={PATIENCE * SPEED}",
        # A busy machine may keep the probe from moving for minutes of its time.
        "mission.drive_timeout:=0.0", "reading.variance_field:=variance",
        "reading.catch_up:=true", "pose.catch_up:=true",
    )  # fmt: skip
    try:
        for seconds in kills:
            sensing = start("active_sensing", log, *given)
            await_work(sensing, run / "journal.jsonl")
            try:
                sensing.wait(timeout=seconds)
            except subprocess.TimeoutExpired:
                sensing.kill()
                sensing.wait()
        if sensing is None or sensing.returncode != 0:
            sensing = start("active_sensing", log, *given)
        assert sensing.wait(timeout=LIMIT) == 0, log.read_text()[-3000:]
    finally:
        for process in (sensing, simulator):
            if process is not None and process.poll() is None:
                process.kill()
                process.wait()
    accepted = json.loads((run / "summary.json").read_text("utf-8"))["readings"]
    events = events_of(run)
    assert accepted == sum(event["event"] == "reading" for event in events)
    return events


def test_a_killed_mission_ends_as_the_one_that_was_not(
    tmp_path: Path, ros_environment: None
) -> None:
    size = {"columns": 6, "rows": 5}
    scenario = write_scenario(
        tmp_path / "killed.yaml", **size, dropout=0.2, policy="bal, horizon: 3", budget=8
    )
    found = []
    rng = np.random.default_rng(7)
    for name, kills in (("plain", []), ("killed", rng.uniform(0.0, 0.3, 2).tolist())):
        (tmp_path / name).mkdir()
        found.append(run_mission(tmp_path / name, scenario, kills))
    readings, decisions = (
        [[e for e in events if e["event"] == kind] for events in found]
        for kind in ("reading", "decision")
    )
    plain, killed = (Counter((e["location"], e["value"]) for e in read) for read in readings)
    assert plain.total() >= 8
    assert any(event["event"] == "resumed" for event in found[1])
    assert killed == plain, "lost or doubled"
    first, second = ([e["waypoints"][0] for e in taken] for taken in decisions)
    assert first == second
