from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.ros.conftest import Ros
from tests.ros.probe import Probe, sensing


def lines(said: str) -> list[str]:
    """Return what the node said, without the level, time and name."""
    return [line.split("]: ", 1)[1] for line in said.splitlines() if "]: " in line]


def test_each_stage_is_read_before_the_next_is_chosen(
    ros: Ros, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    sensing(ros, "budget.readings:=3", "reading.unit:=degC", f"run_dir:={tmp_path / 'run'}")
    probe = Probe(ros).connect()
    probe.obedient = True
    probe.pose(0.0)
    probe.wait_value("state", "ended")
    told = lines(capfd.readouterr().err)
    assert told[0] == f"the mission is kept in {tmp_path / 'run'}"
    assert told[1] == "the mission begins: 4 places, budget 3 readings"
    order = [line for line in told if line.startswith("stage ")]
    kinds = [re.match(r"stage (\d): (next|chosen|.* read )", line) for line in order]
    found = [(int(m[1]), m[2].split()[-1]) for m in kinds if m]
    stages = [(n, word) for n in (1, 2, 3) for word in ("next", "chosen", "read")]
    assert found == stages, order
    first, second = (line for line in order if line.startswith(("stage 1: next", "stage 2: next")))
    assert re.fullmatch(r"stage 1: next: c0r0 \(here\); expected error [\d.]+ degC", first)
    assert re.search(r"\(\d+(\.\d)? m\); expected error [\d.]+ → [\d.]+ degC$", second)
    over = "the mission is over: the budget of readings is spent"
    assert f"{over}; the last waypoint stays published" in told
    assert not [line for line in told if re.search(r"\d{16}|\bns\b", line)]
