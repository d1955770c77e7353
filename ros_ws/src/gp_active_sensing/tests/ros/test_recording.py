"""Records that cannot be written: the mission goes on and says so."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from gp_active_sensing.records import JOURNAL, RECORDS
from tests.ros.conftest import Ros, wait_active, wait_until
from tests.ros.probe import Probe, sensing

FULL = Path("/dev/full")


def fill_up(path: Path) -> None:
    """Have whatever this process writes to an open file from now on meet a full disk."""
    (held,) = (fd for fd in Path("/proc/self/fd").iterdir() if fd.exists() and fd.samefile(path))
    with FULL.open("ab", buffering=0) as full:
        os.dup2(full.fileno(), int(held.name), inheritable=False)


@pytest.mark.ros
@pytest.mark.skipif(not FULL.exists(), reason="needs a device that is always full")
def test_a_disk_that_fills_up_is_said_and_the_mission_goes_on(
    ros: Ros, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    node = sensing(ros, f"run_dir:={run}", "budget.readings:=3")
    probe = Probe(ros).connect()
    wait_active(node)
    fill_up(run / JOURNAL)
    (run / RECORDS).symlink_to(FULL)  # nothing has been recorded yet
    probe.obedient = True
    probe.pose(0.0)
    probe.wait_value("state", "ended")
    assert int(probe.values["record_failures"]) > 3
    assert probe.values["readings_accepted"] == "3"
    wait_until((run / "summary.json").exists, "the summary, which is elsewhere")
    node.release()
    said = capfd.readouterr().err
    assert f"{JOURNAL}: cannot write: {os.strerror(28)} (failure 1; the mission goes on)" in said
    assert f"{JOURNAL}: cannot put on disk: " in said
    assert not node.callback_errors
