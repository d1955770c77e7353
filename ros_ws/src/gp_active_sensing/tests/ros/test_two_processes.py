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

from gp_active_sensing.ros.environment import REFUSED
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


@pytest.mark.parametrize("dropout", [0.0, 0.4])
def test_a_whole_mission(tmp_path: Path, ros_environment: None, dropout: float) -> None:
    scenario = write_scenario(tmp_path / "tiny.yaml", dropout=dropout)
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
    if dropout:
        assert summary["missed"] > 0
    records = [json.loads(line) for line in (run / "records.jsonl").read_text().splitlines()]
    assert all(isinstance(r["rmspe"], float) for r in records)
    text = logs[0].read_text()
    assert "Traceback" not in text + logs[1].read_text()
    assert f"stage {records[-1]['stage']}: " in text
    check_command_reports(run)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_in_the_middle_leaves_readable_records(
    tmp_path: Path, ros_environment: None, number: signal.Signals
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
        for process in (sensing, other):
            process.send_signal(number)
            assert process.wait(timeout=LIMIT) == 0
    assert json.loads((run / "summary.json").read_text())["status"] == "interrupted"
    check_command_reports(run)
    assert "Traceback" not in log.read_text()


@pytest.mark.parametrize(
    ("name", "parameter", "text"),
    [
        ("active_sensing", "scenario:=no_such", "scenario: "),
        ("simulator", "scenario:=no_such", "no_such"),
        ("simulator", "speed_factor:=-1.0", "speed_factor: must be more than 0"),
        ("simulator", "reading.type:=std_msgs/msg/Float64", "a message with a header"),
    ],
)
def test_wrong_parameters_are_refused(
    tmp_path: Path, ros_environment: None, name: str, parameter: str, text: str
) -> None:
    log = tmp_path / "log"
    extra = ["scenario:=line"] if not parameter.startswith("scenario") else []
    with node(name, log, parameter, *extra) as process:
        assert process.wait(timeout=LIMIT) == REFUSED
    assert text in log.read_text()
    assert "Traceback" not in log.read_text()
