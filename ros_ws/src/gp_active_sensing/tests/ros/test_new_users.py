"""Three new users, each in an empty folder, with a robot that runs already and a map of their own.

They type at most five commands and their mission has at most twelve lines.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from nav_msgs.msg import Odometry
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import NavSatFix

from gp_active_sensing.records.run_directory import RunDirectory
from tests.ros.conftest import Ros
from tests.ros.robot import Robot
from tests.ros.test_robot import write_roads
from tests.waiting import LIMIT

pytestmark = [pytest.mark.ros, pytest.mark.slow]

MOST_COMMANDS = 5
MOST_LINES = 12
LAKE = (52.5, 13.4)
"""Where the lake's corner is [degree]."""
METRES_PER_DEGREE = 111_200.0


class User:
    """Types commands in an empty folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.commands = 0

    def types(self, *words: str) -> str:
        self.commands += 1
        done = subprocess.run(
            [sys.executable, "-m", *words],
            cwd=self.folder,
            env=dict(os.environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LIMIT,
            check=False,
        )
        assert done.returncode == 0, done.stdout
        return done.stdout

    def init(self, *words: str) -> str:
        given = ("--reading", "/temperature", "--waypoint", "/goal", "--run-dir", "run")
        return self.types("gp_active_sensing.cli", "init", *given, *words)

    def drive(self) -> str:
        words = ("params_file:=mission.yaml", "exit_at_end:=true")
        return self.types("gp_active_sensing.ros.runner", "probe", *words)

    def export(self, format: str) -> None:
        self.types("gp_active_sensing.cli", "export", "run", "--to", format)

    def looks(self, least: int) -> None:
        """Look at what came of it."""
        assert self.commands <= MOST_COMMANDS
        text = (self.folder / "mission.yaml").read_text()
        lines = [line.strip() for line in text.splitlines()]
        content = [line for line in lines if line and not line.startswith("#")]
        assert len(content) <= MOST_LINES, text
        run = RunDirectory.open(self.folder / "run")
        summary = run.summary()
        assert summary["status"] == "finished", summary
        assert summary["observed"] >= least, summary
        assert (run.path / "report.html").is_file()


def with_fix(ros: Ros, robot: Robot) -> None:
    """Give a robot a satellite receiver, of which it says odometry."""
    node = ros.node("receiver")
    fixes = node.create_publisher(NavSatFix, "/fix", qos_profile_sensor_data)
    cosine = math.cos(math.radians(LAKE[0]))

    def on_pose(message: Odometry) -> None:
        at = message.pose.pose.position
        fix = NavSatFix(header=message.header)
        fix.latitude = LAKE[0] + at.y / METRES_PER_DEGREE
        fix.longitude = LAKE[1] + at.x / METRES_PER_DEGREE / cosine
        fixes.publish(fix)

    node.create_subscription(Odometry, "/odom", on_pose, 100)


def write_house(folder: Path) -> None:
    """Write a map of map_server: two rooms with a door between them, and unknown ground."""
    pixels = np.full((40, 60), 254, dtype=np.uint8)  # 0.5 m each
    pixels[[0, -1], :] = pixels[:, [0, -1]] = 0
    pixels[:16, 30] = pixels[24:, 30] = 0
    pixels[1:6, 50:59] = 205
    (folder / "house.pgm").write_bytes(b"P5\n60 40\n255\n" + pixels.tobytes())
    (folder / "house.yaml").write_text(
        "image: house.pgm\nresolution: 0.5\norigin: [0.0, 0.0, 0.0]\nnegate: 0\n"
        "occupied_thresh: 0.65\nfree_thresh: 0.196\n"
    )


def boat(ros: Ros, user: User) -> int:
    """A boat on an open lake, with a satellite receiver."""
    with_fix(ros, ros.add(Robot(times=20.0, frame_id="gps")))
    said = user.init("--map", "60x40", "--pose", "/fix", "--budget", "80 m")
    assert "425 places, 60 × 40 m" in said
    return 15


def rover(ros: Ros, user: User) -> int:
    """A rover in a house that Nav2 has a map of."""
    write_house(user.folder)
    ros.add(Robot(times=20.0, frame_id="map", x=5.0, y=5.0, speed=1.5))
    said = user.init("--map", "house.yaml", "--pose", "/odom", "--budget", "60 m")
    assert "frame map" in said
    return 10


def car(ros: Ros, user: User) -> int:
    """A car on a road map."""
    write_roads(user.folder / "farm.geojson")
    ros.add(Robot(times=20.0, run_up=60.0, x=30.0, y=0.0, speed=8.0))
    said = user.init("--map", "farm.geojson", "--pose", "/odom", "--budget", "6")
    assert "10 places" in said
    return 6


@pytest.mark.parametrize("mission", [boat, rover, car])
def test_from_an_empty_folder_to_a_map(
    ros: Ros, tmp_path: Path, mission: Callable[[Ros, User], Any]
) -> None:
    user = User(tmp_path)
    least = mission(ros, user)
    user.drive()
    user.export("geojson")
    user.looks(least)
