"""simulator and active_sensing as separate processes, as the demo runs them."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from tests.ros.conftest import wait_until
from tests.ros.probe import write_scenario
from tests.ros.reports import check_command_reports
from tests.waiting import LIMIT

pytestmark = pytest.mark.ros


@contextlib.contextmanager
def node(name: str, log: Path, *parameters: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run one of our nodes; end it, by its own pid, whatever happens."""
    arguments = [word for text in parameters for word in ("-p", text)]
    command = [sys.executable, "-m", f"gp_active_sensing.ros.{name}_node", "--ros-args", *arguments]
    with log.open("wb") as stream:
        process = subprocess.Popen(command, stdout=stream, stderr=subprocess.STDOUT)
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()


def test_a_whole_mission_in_which_readings_are_lost(tmp_path: Path, ros_environment: None) -> None:
    scenario = write_scenario(tmp_path / "tiny.yaml", dropout=0.4)
    run = tmp_path / "run"
    logs = tmp_path / "sensing.log", tmp_path / "simulator.log"
    with (
        node("simulator", logs[1], f"scenario:={scenario}", "speed_factor:=20.0") as simulator,
        node(
            "active_sensing",
            logs[0],
            f"scenario:={scenario}",
            f"run_dir:={run}",
            "use_sim_time:=true",
            "mission.exit_at_end:=true",
        ) as sensing,
    ):
        sensing.wait(timeout=LIMIT)
        simulator.wait(timeout=LIMIT)
        assert (sensing.returncode, simulator.returncode) == (0, 0), logs[0].read_text()
    summary = json.loads((run / "summary.json").read_text())
    assert summary["status"] == "finished"
    assert summary["observed"] == 5
    assert summary["rmspe"] is not None
    assert summary["rejected"] == 0
    assert summary["missed"] > 0
    records = [json.loads(line) for line in (run / "records.jsonl").read_text().splitlines()]
    assert all(isinstance(r["rmspe"], float) for r in records)
    text = logs[0].read_text()
    assert "Traceback" not in text + logs[1].read_text()
    assert f"stage {records[-1]['stage']}: " in text
    check_command_reports(run)


@pytest.mark.long
def test_a_signal_in_the_middle_leaves_readable_records(
    tmp_path: Path, ros_environment: None
) -> None:
    scenario = write_scenario(tmp_path / "tiny.yaml", budget=8)
    run = tmp_path / "run"
    log = tmp_path / "sensing.log"
    with (
        node(
            "simulator", tmp_path / "s.log", f"scenario:={scenario}", "speed_factor:=4.0"
        ) as other,
        node(
            "active_sensing", log, f"scenario:={scenario}", f"run_dir:={run}", "use_sim_time:=true"
        ) as sensing,
    ):
        records = run / "records.jsonl"

        def begun() -> bool:
            assert sensing.poll() is None, log.read_text()
            return records.exists() and bool(records.read_text())

        wait_until(begun, f"the first stage, see {log}")
        for process, number in ((sensing, signal.SIGINT), (other, signal.SIGTERM)):
            process.send_signal(number)
            assert process.wait(timeout=LIMIT) == 0
    assert json.loads((run / "summary.json").read_text())["status"] == "interrupted"
    check_command_reports(run)
    assert "Traceback" not in log.read_text()
