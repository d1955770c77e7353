"""Records that cannot be written: the mission goes on and says so."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import IO

import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from gp_active_sensing.records import held
from gp_active_sensing.records.run_directory import JOURNAL, RECORDS
from tests.ros.conftest import Ros, wait_active, wait_until
from tests.ros.probe import Probe, sensing

FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def no_more(stream: IO[bytes], line: bytes) -> None:
    raise FULL


@pytest.mark.ros
def test_a_disk_that_fills_up_is_said_and_the_mission_goes_on(
    ros: Ros, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    node = sensing(ros, f"run_dir:={run}", "budget.readings:=4")
    probe = Probe(ros).connect()
    wait_active(node)
    probe.pose(0.0)
    wait_until(lambda: probe.waypoints, "the first waypoint")
    probe.go()
    wait_until(lambda: len(probe.waypoints) == 2, "the second one")
    records = run / RECORDS
    wait_until(lambda: records.exists() and records.stat().st_size, "the record of a stage")
    sync = os.fsync

    def fsync(number: int) -> None:
        if any((run / name).samefile(f"/proc/self/fd/{number}") for name in (JOURNAL, RECORDS)):
            raise FULL
        sync(number)

    monkeypatch.setattr(held, "append_whole", no_more)
    monkeypatch.setattr(os, "fsync", fsync)
    probe.obedient = True
    probe.go()
    probe.wait_value("state", "ended")
    assert int(probe.values["record_failures"]) > 3
    assert probe.values["readings_accepted"] == "4"
    wait_until((run / "summary.json").exists, "the summary, which is elsewhere")
    node.release()
    assert len(records.read_text().splitlines()) == 1
    said = capfd.readouterr().err
    assert f"{JOURNAL}: cannot write: {FULL.strerror} (failure 1; the mission goes on)" in said
    assert f"{JOURNAL}: cannot put on disk: " in said
    assert not node.callback_errors
