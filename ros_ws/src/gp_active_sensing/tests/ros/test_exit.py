"""Ctrl-C ends a node whatever it is doing; how soon is measured by ``benchmarks/run.py exit``."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from tests.ros.conftest import Ros, wait_until
from tests.ros.probe import Probe
from tests.ros.test_two_processes import node
from tests.waiting import LIMIT

pytestmark = pytest.mark.ros
LONG = (
    "map.kind:=grid", "map.columns:=20", "map.rows:=20", "map.spacing:=10.0", "policy.name:=bal",
    "policy.horizon:=6", "policy.alpha:=0.0", "limit.seconds:=100000.0", "plan_ahead:=false",
    "mission.wait_for_reading:=false",
)  # fmt: skip


def end(process: subprocess.Popen[bytes], log: Path) -> None:
    """Send SIGINT and see that the node ends in order."""
    assert process.poll() is None, log.read_text()
    process.send_signal(signal.SIGINT)
    assert process.wait(LIMIT) == 0, log.read_text()
    assert "Traceback" not in log.read_text()


@pytest.mark.long
def test_while_it_plans_for_a_day(ros: Ros, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with node("active_sensing", log, *LONG, f"run_dir:={tmp_path / 'run'}") as process:
        probe = Probe(ros).connect()

        def planning() -> bool:
            probe.pose(0.0)  # a first one may be sent before the other process knows who sends
            return probe.values.get("planning") == "yes"

        wait_until(planning, "the node to plan")
        end(process, log)
    assert "start again with run_dir:=" in log.read_text()
