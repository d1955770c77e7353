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

import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from geometry_msgs.msg import PoseStamped, TransformStamped
from nav_msgs.msg import Odometry
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import NavSatFix

from gp_active_sensing.records.run_directory import RunDirectory
from gp_active_sensing.util.resources import find_resource
from tests.ros.conftest import Ros
from tests.ros.robot import Robot
from tests.waiting import LIMIT

pytestmark = [pytest.mark.ros, pytest.mark.slow]

MOST_COMMANDS = 5
MOST_LINES = 12
LAKE = (47.000001, 8.000243)
"""Latitude and longitude of the origin of the lake's map, as `init` says it [degree]."""
METRES_PER_DEGREE = 111_200.0
ODOM = (1.0, 0.5)
"""Where odometry began in the map of the house [m]; it looks north there."""
STANDIN = Path(__file__).parent / "standin"
"""A folder with a tf2_ros, which has no wheel."""


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


def with_nav2(ros: Ros) -> None:
    """Give a robot what Nav2 brings: map → odom → base_link by tf, and goals in the map.

    The transforms are as the stand-in for tf2_ros hears them.
    """
    node = ros.node("nav2")
    transforms = node.create_publisher(TransformStamped, "/tf", 100)
    goals = node.create_publisher(PoseStamped, "/goal", 10)

    def on_pose(message: Odometry) -> None:
        at, half = message.pose.pose.position, math.sqrt(0.5)
        for parent, child, x, y, quarter in (
            ("map", "odom", *ODOM, True),
            ("odom", "base_link", at.x, at.y, False),
        ):
            found = TransformStamped(child_frame_id=child)
            found.header.frame_id, found.header.stamp = parent, message.header.stamp
            found.transform.translation.x, found.transform.translation.y = x, y
            found.transform.rotation.z = half if quarter else message.pose.pose.orientation.z
            found.transform.rotation.w = half if quarter else message.pose.pose.orientation.w
            transforms.publish(found)

    def on_goal(message: PoseStamped) -> None:
        assert message.header.frame_id == "map"
        goal, at = PoseStamped(), message.pose.position
        goal.header.frame_id = "odom"
        goal.pose.position.x, goal.pose.position.y = at.y - ODOM[1], ODOM[0] - at.x
        goals.publish(goal)

    node.create_subscription(Odometry, "/odom", on_pose, 100)
    node.create_subscription(PoseStamped, "/goal_pose", on_goal, 10)


def copy(user: User, name: str, new_name: str) -> None:
    """Put a file into a user's folder that he has from elsewhere."""
    (user.folder / new_name).write_bytes(find_resource("maps", name).read_bytes())


def boat(ros: Ros, user: User) -> int:
    """A boat on an open lake with an island, drawn in Google Earth, and a satellite receiver."""
    pytest.importorskip("pyproj", reason="maps in degrees need the extra [maps]")
    copy(user, "lake.kml", "my_lake.kml")
    with_fix(ros, ros.add(Robot(times=6.0, frame_id="gps", x=-127.0, y=52.0)))
    said = user.init("--map", "my_lake.kml", "--pose", "/fix", "--budget", "200 m")
    assert "417 places, 465 × 285 m, frame map" in said
    assert "origin at latitude {:.6f}, longitude {:.6f}".format(*LAKE) in said
    assert "/fix: heard, " in said
    return 8


def rover(ros: Ros, user: User) -> int:
    """A rover in a house that Nav2 has a map of, and Nav2's frames."""
    copy(user, "house.yaml", "my_house.yaml")
    copy(user, "house.pgm", "house.pgm")
    with_nav2(ros)
    ros.add(Robot(times=6.0, frame_id="odom", speed=1.0))
    said = user.init(
        *("--map", "my_house.yaml", "--radius", "0.25", "--spacing", "0.6", "--pose", "tf"),
        *("--waypoint", "/goal_pose", "--budget", "15 m"),
    )
    assert "142 places, 11 × 7 m, frame map" in said
    assert "Does not fit" not in said
    return 8


def car(ros: Ros, user: User) -> int:
    """A car on a road map of a town."""
    copy(user, "town.geojson", "my_town.geojson")
    ros.add(Robot(times=6.0, frame_id="map", run_up=60.0, x=414.0, y=106.0, speed=15.0))
    said = user.init("--map", "my_town.geojson", "--pose", "/odom", "--budget", "1 km")
    assert "705 places" in said
    return 4


@pytest.mark.parametrize("mission", [boat, rover, car])
def test_from_an_empty_folder_to_a_map(
    ros: Ros,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    mission: Callable[[Ros, User], Any],
) -> None:
    path = os.pathsep.join(filter(None, (str(STANDIN), os.environ.get("PYTHONPATH"))))
    monkeypatch.setenv("PYTHONPATH", path)
    user = User(tmp_path)
    least = mission(ros, user)
    user.drive()
    user.export("geojson")
    user.looks(least)
