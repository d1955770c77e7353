"""A robot that knows nothing of the package, driven by `probe.launch.py`."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import PoseStamped
from std_srvs.srv import Trigger

from gp_active_sensing.config import from_mapping
from gp_active_sensing.records.run_directory import RunDirectory
from gp_active_sensing.topology import MapConfig, Topology, build_topology
from gp_active_sensing.types import FloatArray
from tests.ros.conftest import Ros
from tests.ros.robot import Robot, field
from tests.waiting import LIMIT, wait_until

pytestmark = pytest.mark.ros

COMMON = """
    map: {map}
    belief: {{length_scales: [10.0, 20.0, 40.0], signal_std: [3.0], noise_std: [0.2]}}
    policy: {{name: ie}}
    budget: {{readings: 8}}
    limit: {{seconds: 0.2}}
    reading: {{rate: 200.0}}
    pose: {{rate: 400.0}}
    mission: {{reading_timeout: 4.0, exit_at_end: true}}
"""
FIELD = "{kind: grid, columns: 6, rows: 4, spacing: 10.0, frame: odom}"


class Drive:
    """A robot, and the node that tells it where to go, in a process of the runner.

    Args:
        ros: where the robot lives.
        folder: for the parameter file, the log and the records.
        robot: what is special about the robot.
        map: map of the mission in YAML, "" = none is given.
        given: further arguments of the launch.
    """

    def __init__(
        self,
        ros: Ros,
        folder: Path,
        robot: dict[str, Any] | None = None,
        map: str = FIELD,
        given: tuple[str, ...] = (),
    ) -> None:
        self.folder = folder
        self.run = folder / "run"
        self.log = folder / "log"
        self.values: dict[str, str] = {}
        self.levels: dict[str, tuple[int, str]] = {}
        self.waypoints: list[PoseStamped] = []
        self.ros = ros
        # Slow enough for any machine: a node that falls behind its messages drives hardly at all.
        self.robot = ros.add(Robot(**({"times": 6.0} | (robot or {}))))
        self.ears = ears = ros.node("ears")
        ears.create_subscription(DiagnosticArray, "/diagnostics", self._on_diagnostics, 10)
        ears.create_subscription(PoseStamped, "goal", self.waypoints.append, 10)
        # Made early: right after a service of another process was found, an answer may get lost.
        self.clients = {
            name: ears.create_client(Trigger, f"/active_sensing/{name}")
            for name in ("finish", "resume")
        }
        words = ["pose_topic:=odom", "reading_topic:=temperature", "waypoint_topic:=goal"]
        words += ["use_sim_time:=true", f"run_dir:={self.run}", *given]
        if map:
            file = folder / "robot.yaml"
            file.write_text(f"/**:\n  ros__parameters:{COMMON.format(map=map)}", encoding="utf-8")
            words.append(f"params_file:={file}")
        with self.log.open("wb") as stream:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "gp_active_sensing.ros.runner", "probe", *words],
                stdout=stream,
                stderr=subprocess.STDOUT,
            )

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        for status in message.status:
            level = status.level[0] if isinstance(status.level, bytes) else int(status.level)
            self.levels[status.name.rpartition(": ")[2]] = level, status.message
            self.values.update({item.key: item.value for item in status.values})

    def wait(self, condition: Callable[[], Any], what: str) -> None:
        """Wait for a state, while the node is there."""

        def look() -> Any:
            found = condition()
            assert found or self.process.poll() is None, self.log.read_text()
            return found

        wait_until(look, f"{what}; see {self.log}")

    def call(self, service: str) -> Any:
        """Call a service of the node."""
        return self.ros.call(self.clients[service], Trigger.Request())

    def wait_end(self) -> int:
        """Wait until the launch has ended; return its exit code."""
        return self.process.wait(timeout=LIMIT)

    def events(self, kind: str) -> list[dict[str, Any]]:
        """Return the events of a kind in the journal."""
        return [e for e in RunDirectory.open(self.run).events() if e["event"] == kind]

    def off(self) -> FloatArray:
        """(m,) how far each reading in the journal is from the field at its place [degC]."""
        at = self.topology().positions
        told = [(e["value"], *at[e["location"]].tolist()) for e in self.events("reading")]
        return np.array([value - field(x, y) for value, x, y in told])

    def topology(self) -> Topology:
        """Return the map."""
        return build_topology(from_mapping(MapConfig, RunDirectory.open(self.run).config["map"]))

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(LIMIT)
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


@pytest.fixture
def start(ros: Ros, tmp_path: Path) -> Iterator[Callable[..., Drive]]:
    """Start robots with a mission; end them afterwards."""
    started: list[Drive] = []

    def begin(**options: Any) -> Drive:
        started.append(Drive(ros, tmp_path, **options))
        return started[-1]

    yield begin
    for drive in started:
        drive.close()


def test_a_field_is_learned(start: Callable[..., Drive]) -> None:
    drive = start()
    assert drive.wait_end() == 0, drive.log.read_text()
    summary = RunDirectory.open(drive.run).summary()
    assert (summary["status"], summary["observed"]) == ("finished", 8)
    assert np.abs(drive.off()).max() < 2.5, "the robot reads where it is, near the place"
    assert "Traceback" not in drive.log.read_text()


@pytest.mark.long
def test_a_lag_is_found_and_named(start: Callable[..., Drive]) -> None:
    large = FIELD.replace("columns: 6, rows: 4", "columns: 16, rows: 12")
    # Ended as soon as it is found.
    drive = start(robot={"lag": 1.5, "speed": 2.0}, map=large, given=("budget:=192",))
    drive.wait(lambda: "set reading.delay" in drive.levels.get("inputs", (0, ""))[1], "a delay")
    assert float(drive.values["reading_delay_seconds"]) == pytest.approx(1.5, abs=0.3)
    assert "set reading.delay: 1." in drive.levels["inputs"][1]
    said = "older than their stamps: set reading.delay: 1."
    drive.wait(lambda: said in drive.log.read_text(), "a word in the log")
    assert drive.call("finish").success
    assert drive.wait_end() == 0, drive.log.read_text()
    [found] = RunDirectory.open(drive.run).summary()["delays"]
    assert found["seconds"] == pytest.approx(1.5, abs=0.3)


@pytest.mark.long
def test_a_sensor_that_dies_stops_the_robot(start: Callable[..., Drive]) -> None:
    drive = start()
    drive.wait(lambda: len(drive.waypoints) >= 3, "some waypoints")
    drive.robot.alive = False
    drive.wait(lambda: drive.values.get("state") == "paused", "a pause")
    assert "at 3 places in a row (c" in drive.values["reason"]
    assert "check the sensor, then call ~/resume" in drive.values["reason"]
    assert drive.values["reason"] in drive.log.read_text()
    drive.robot.alive = True
    assert drive.call("resume").success
    assert drive.wait_end() == 0, drive.log.read_text()
    assert RunDirectory.open(drive.run).summary()["status"] == "finished"
