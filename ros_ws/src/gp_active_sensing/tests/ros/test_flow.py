"""Robots that need not stop: the follower of docs/nav2.md, goals through poses, degrees."""

from __future__ import annotations

import math
import subprocess
import sys
from collections import deque
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from geometry_msgs.msg import PoseStamped, Twist
from nav_msgs.msg import Path as PathMessage
from sensor_msgs.msg import NavSatFix

from gp_active_sensing.errors import ConfigError
from gp_active_sensing.ros import qos
from gp_active_sensing.ros import to_messages as geographic
from gp_active_sensing.ros import to_messages as outputs
from tests.pages import REPOSITORY, blocks
from tests.ros import fake_nav2
from tests.ros.conftest import Ros, wait_active, wait_until
from tests.ros.fake_nav2 import Client
from tests.ros.probe import GRID, RELIABLE, Probe, sensing

PAGE = REPOSITORY / "docs" / "nav2.md"
LAKE = (
    *RELIABLE,
    "map.kind:=grid",
    "map.columns:=5",
    "map.rows:=4",
    "map.spacing:=20.0",
    "belief.length_scales:=[40.0]",
    "belief.signal_std:=[1.0]",
    "belief.noise_std:=[0.1]",
    "policy.name:=ie",
    "mission.wait_for_reading:=false",
    "waypoint.ahead:=4",
)


class Boat:
    """A boat that takes a velocity, and a sensor that is late by 3 s."""

    def __init__(self, ros: Ros, node: Any, probe: Probe) -> None:
        self.x = self.y = self.heading = self.speed = 0.0
        self.t, self.log = 1.0, list[float]()
        self.metres = 0.0
        self.commands: list[Twist] = []
        self._node, self._probe = node, probe
        self._late = deque[float](maxlen=16)
        probe.node.create_subscription(Twist, "cmd_vel", self.commands.append, 10)

    def sail(self, dt: float = 0.2) -> None:
        self.t += dt
        if self.commands:
            command = self.commands[-1]
            self.speed += min(dt, max(-dt, command.linear.x - self.speed))  # 1 m/s²
            self.heading += command.angular.z * dt
        self.x += self.speed * math.cos(self.heading) * dt
        self.y += self.speed * math.sin(self.heading) * dt
        self.metres += self.speed * dt
        self.log.append(self.speed)
        answers, stamp = len(self.commands), round(1e9 * self.t)
        self._late.append(math.sin(0.05 * self.x) + 0.02 * self.y)
        self._probe.tick(self.t)
        self._probe.reading(self._late[0], t=stamp)
        self._probe.pose(self.x, self.y, t=stamp, heading=self.heading)
        wait_until(lambda: len(self.commands) > answers, "the follower's answer")
        mission = self._node.mission
        wait_until(
            lambda: mission.now_ns >= stamp - 5e8 and not mission.decisions.running, "the mission"
        )


def test_the_follower_of_the_page_does_not_stop(ros: Ros, tmp_path: Path) -> None:
    if not PAGE.exists():
        pytest.skip("the package lies outside its repository")
    (block,) = (b for b in blocks(PAGE) if b.option("file") == "follower.py")
    program = tmp_path / "follower.py"
    program.write_text(block.text, "utf-8")
    options = ("use_sim_time:=true", "budget.readings:=12", "reading.delay:=3.0")
    node = sensing(ros, *options, f"run_dir:={tmp_path / 'run'}", given=LAKE)
    probe = Probe(ros).connect()
    boat = Boat(ros, node, probe)
    follower = subprocess.Popen(
        [sys.executable, str(program), "--ros-args", "-r", "odom:=pose", "-p", "speed:=3.0"]
    )
    try:
        wait_until(lambda: probe.poses.get_subscription_count() == 2, "the follower")
        wait_until(lambda: probe.node.count_publishers("/cmd_vel"), "the follower's velocity")
        wait_active(node)
        while node.mission.state != "ended":
            boat.sail()
        wait_until((tmp_path / "run" / "summary.json").exists, "the summary")
    finally:
        follower.kill()  # rclpy's own handler of SIGTERM hangs now and then
        follower.wait()
    loop, speed = node.mission.loop, np.array(boat.log)
    under_way = speed[int(np.argmax(speed > 2.5)) : int(np.flatnonzero(speed > 1.0)[-1])]
    assert loop.belief.observed.sum() == 12
    assert loop.counts["missed"] == 0
    assert 0.2 * (under_way < 0.3).sum() / 12 <= 0.2
    assert under_way.mean() >= 0.85 * 3.0
    assert node.mission.driven.metres == pytest.approx(boat.metres, rel=0.05)
    records = (tmp_path / "run" / "records.jsonl").read_text().splitlines()
    assert len(records) == node.mission.decisions.stage
    assert not node.callback_errors


def test_places_ahead_are_one_goal_of_nav2(ros: Ros, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_nav2.install(monkeypatch)
    clients: list[Client] = []
    monkeypatch.setattr(
        "gp_active_sensing.ros.navigate.ActionClient",
        lambda *args: clients.append(Client(*args)) or clients[-1],
    )
    node = sensing(
        ros, "waypoint.navigate:=action", "waypoint.ahead:=3", "policy.name:=lawnmower", given=GRID
    )
    paths = ros.hear(PathMessage, "next_path", qos.latched(10))
    probe = Probe(ros).connect()
    probe.pose(0.0)
    wait_until(lambda: clients and clients[0].through, "the first goal")
    wait_until(lambda: paths, "the path")
    (client,) = clients
    assert client.name == "navigate_through_poses"
    wait_until(lambda: node.mission.probe.target == 1, "the first place to be passed")
    wait_until(lambda: client.at[-1] == (10.0, 0.0), "the next goal")
    path = [pose.pose.position.x for pose in client.through[-1]]
    assert path == [10.0, 20.0, 30.0]
    assert not any(handle.cancelled for handle in client.handles)
    wait_until(lambda: [p.pose.position.x for p in paths[-1].poses] == path, "the same path")
    late = ros.hear(PathMessage, "next_path")
    wait_until(lambda: late, "the path for one who came later, and asks for no latched messages")
    assert late[-1] == paths[-1]
    assert node.mission.probe.passed.pending() == {0}
    probe.reading(5.0)
    wait_until(lambda: not node.mission.probe.passed, "its reading")


def test_waypoints_in_degrees(ros: Ros) -> None:
    heard = ros.hear(NavSatFix, "target", qos.latched(10))
    sensing(
        ros,
        "waypoint.type:=sensor_msgs/msg/NavSatFix",
        "waypoint.topic:=target",
        "waypoint.altitude:=7.0",
        "pose.datum:=[45.0, 10.0]",
        "policy.name:=lawnmower",
    )
    probe = Probe(ros).connect()
    probe.pose(0.0)
    wait_until(lambda: heard, "the first waypoint")
    probe.reading(5.0)
    wait_until(lambda: len(heard) > 1, "the next waypoint")
    assert heard[0].latitude == pytest.approx(45.0, abs=1e-9)
    assert heard[1].latitude == pytest.approx(45.0, abs=1e-7)
    assert heard[1].longitude == pytest.approx(10.0 + 10.0 / 78_846.8, abs=1e-7)
    assert heard[1].altitude == 7.0


def test_messages_of_autopilots(monkeypatch: pytest.MonkeyPatch) -> None:
    zero = {"latitude": 0.0, "longitude": 0.0, "altitude": 0.0}
    pose = SimpleNamespace(position=SimpleNamespace(**zero), orientation=None)
    kinds: dict[str, Any] = {
        "GlobalPosition": partial(SimpleNamespace, coordinate_frame=0, type_mask=0, **zero),
        "GeoPoseStamped": partial(SimpleNamespace, pose=pose),
    }
    monkeypatch.setattr(geographic, "find_message_type", lambda name: kinds[name.split("/")[-1]])
    waypoint = outputs.waypoint_message((0.0, 100.0, 1.0), "odom", 5, 2.0)
    ardupilot = geographic.GeographicWaypoints("ardupilot_msgs/msg/GlobalPosition", (45.0, 10.0))
    found = ardupilot.convert(waypoint)
    assert found.latitude == pytest.approx(45.0009, abs=1e-5)
    assert (found.longitude, found.altitude) == (pytest.approx(10.0), 2.0)
    assert (found.coordinate_frame, found.header.frame_id) == (6, "map")
    assert found.type_mask == 8 + 16 + 32 + 64 + 128 + 256 + 1024 + 2048
    assert waypoint.header.frame_id == "odom"
    found = geographic.GeographicWaypoints("geographic", (45.0, 10.0)).convert(waypoint)
    assert found.pose.position.latitude == pytest.approx(45.0009, abs=1e-5)
    assert found.pose.orientation == waypoint.pose.orientation
    with pytest.raises(ConfigError, match=r"pose\.datum"):
        geographic.GeographicWaypoints("geographic", None)
    assert isinstance(waypoint, PoseStamped)
