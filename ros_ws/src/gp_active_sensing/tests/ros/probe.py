"""A node that plays the probe for `active_sensing`, and listens to everything it says."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import PoseStamped
from nav_msgs.msg import OccupancyGrid, Odometry
from nav_msgs.msg import Path as PathMessage
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import PointCloud2, Temperature
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import Trigger
from visualization_msgs.msg import MarkerArray

from gp_active_sensing.records.run_map import GridMap
from gp_active_sensing.ros import qos
from gp_active_sensing.ros import to_messages as outputs
from gp_active_sensing.ros.active_sensing_node import ActiveSensingNode
from tests.ros.conftest import Ros, wait_until

RELIABLE = ("pose.reliable:=true", "reading.reliable:=true")
"""So that a busy machine loses none of the few messages of a test."""
GRID = (
    *RELIABLE,
    "map.kind:=grid",
    "map.columns:=4",
    "map.rows:=1",
    "map.spacing:=10.0",
    "belief.length_scales:=[20.0, 60.0]",
    "belief.signal_std:=[1.0]",
    "belief.noise_std:=[0.1]",
    "belief.mean_std:=10.0",
    "policy.name:=ie",
    "reading.variance_field:=variance",
    "mission.wait_for_reading:=false",
    "pose.max_age:=100.0",  # on a busy machine long may pass between the one pose and a reading
)
NAMES = {
    "plan": PathMessage,
    "field": PointCloud2,
    "map": MarkerArray,
    "length_scale_belief": Float64MultiArray,
}


def sensing(ros: Ros, *parameters: str, given: tuple[str, ...] = GRID) -> ActiveSensingNode:
    arguments = [word for text in (*given, *parameters) for word in ("-p", text)]
    node: ActiveSensingNode = ros.add(ActiveSensingNode(cli_args=["--ros-args", *arguments]))
    return node


class Probe:
    """Publishes poses and readings by hand, or drives to each waypoint when `obedient`."""

    def __init__(self, ros: Ros) -> None:
        self.ros = ros
        self.node = ros.node("probe")
        self.waypoints: list[PoseStamped] = []
        self.heard: dict[str, list[Any]] = {name: [] for name in NAMES}
        self.values: dict[str, str] = {}
        self.problems = ""
        self.obedient = False
        self.field: Callable[[float, float], float] = lambda x, y: 10.0 + math.sin(x)
        self._lock = threading.Lock()
        node = self.node
        self.poses = node.create_publisher(Odometry, "pose", qos.reliable(100))
        self.readings = node.create_publisher(Temperature, "reading", qos.reliable(100))
        self.clock = node.create_publisher(Clock, "/clock", 10)
        node.create_subscription(PoseStamped, "next_waypoint", self.hear, qos.latched())
        for topic, kind in NAMES.items():
            name = f"/active_sensing/{topic}"
            node.create_subscription(kind, name, self.heard[topic].append, qos.latched(10))
        node.create_subscription(
            DiagnosticArray, "/diagnostics", self._on_diagnostics, qos.reliable()
        )
        self._clients: dict[str, Any] = {}

    def connect(self) -> Probe:
        self.ros.match(self.poses, self.readings)
        return self

    def now_ns(self) -> int:
        return int(self.node.get_clock().now().nanoseconds)

    def pose(
        self,
        x: float,
        y: float = 0.0,
        *,
        frame: str = "map",
        t: int | None = None,
        z: float = 0.0,
        heading: float = 0.0,
    ) -> None:
        message = Odometry()
        message.header.frame_id = frame
        message.header.stamp = outputs.time_of(self.now_ns() if t is None else t)
        message.pose.pose.position.x, message.pose.pose.position.y = x, y
        message.pose.pose.position.z = z
        message.pose.pose.orientation.z = math.sin(0.5 * heading)
        message.pose.pose.orientation.w = math.cos(0.5 * heading)
        self.poses.publish(message)

    def reading(self, value: float, *, variance: float = 0.0, t: int | None = None) -> None:
        message = Temperature(temperature=value, variance=variance)
        message.header.stamp = outputs.time_of(self.now_ns() if t is None else t)
        self.readings.publish(message)

    def tick(self, seconds: float) -> None:
        self.clock.publish(Clock(clock=outputs.time_of(round(1e9 * seconds))))

    def call(self, service: str) -> Any:
        if service not in self._clients:
            self._clients[service] = self.node.create_client(Trigger, f"/active_sensing/{service}")
        return self.ros.call(self._clients[service], Trigger.Request())

    def wait_value(self, key: str, value: str) -> None:
        wait_until(lambda: self.values.get(key) == value, f"diagnostics {key} = {value}")

    def hear(self, message: PoseStamped) -> None:
        """Take a waypoint, and go there at once when `obedient`."""
        self.waypoints.append(message)
        if self.obedient:
            self.go()

    def go(self) -> None:
        position = self.waypoints[-1].pose.position
        x, y = position.x, position.y
        t = self.now_ns()
        self.pose(x, y, t=t, z=position.z)
        self.reading(self.field(x, y), t=t)

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        for status in message.status:
            self.values.update({item.key: item.value for item in status.values})
            if status.name.endswith(": inputs"):
                self.problems = status.message


def started(
    ros: Ros, *parameters: str, given: tuple[str, ...] = GRID
) -> tuple[ActiveSensingNode, Probe]:
    """Return a node that has sent its first waypoint, and the probe, which stands at place 0."""
    node = sensing(ros, *parameters, given=given)
    probe = Probe(ros).connect()
    probe.pose(0.0)
    wait_until(lambda: probe.waypoints, "the first waypoint")
    return node, probe


def grid_message(found: GridMap) -> OccupancyGrid:
    grid, message = found.grid, OccupancyGrid()
    message.header.frame_id = found.frame
    message.info.height, message.info.width = grid.shape
    message.info.resolution = grid.resolution
    message.info.origin.position.x, message.info.origin.position.y = grid.origin
    message.info.origin.orientation.w = 1.0
    message.data = grid.values.astype(np.int8).ravel().tolist()
    return message


def write_scenario(
    path: Path,
    *,
    columns: int = 4,
    rows: int = 2,
    dropout: float = 0.0,
    policy: str = "ie",
    budget: int = 5,
) -> Path:
    path.write_text(
        f"""
name: tiny
seed: 3
map: {{kind: grid, columns: {columns}, rows: {rows}, spacing: 10.0, speed: 5.0}}
field: {{kind: gp, length_scale: 20.0, signal_std: 3.0, mean: 20.0, unit: degC}}
sensor: {{noise_std: 0.2, dropout: {dropout}}}
probe: {{start: 0}}
belief: {{length_scales: [10.0, 20.0, 40.0], signal_std: [3.0], noise_std: [0.2], mean_std: 50.0}}
policy: {{name: {policy}}}
budget: {{readings: {budget}}}
limit: {{expansions: 10}}
""",
        encoding="utf-8",
    )
    return path
