"""Simulated robot for a long mission. It also publishes the node's clock, and bad messages.

The simulated time runs as fast as the node can follow.
"""

# ruff: noqa: TID251  uses ROS
from __future__ import annotations

import math
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import rclpy
from geometry_msgs.msg import PoseStamped
from nav_msgs.msg import Odometry
from rclpy.serialization import serialize_message
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Temperature
from std_srvs.srv import Trigger

from gp_active_sensing.ros import qos
from gp_active_sensing.ros import to_messages as outputs

COLUMNS, ROWS, SPACING = 10, 10, 10.0
NOISE = 0.3
DEPTH = 2000
"""Number of messages that a publisher stores for a restarting node."""
BATCH_NS = 100_000_000
READINGS, POSES = 30, 1
"""Number of readings, and number of poses, in a batch of messages."""
DRIVE = 2
"""Number of batches without readings on the way to a waypoint."""
STAY = 9
"""Number of batches at a waypoint before the robot waits for the node."""
MOST = 1500
"""Largest number of readings for one waypoint."""
WAITING_PAUSE = 0.05
"""Wall-clock time between two batches while the robot waits for the node [s]."""
POLL = 0.002
MOST_SETTLING = 2.0
"""Longest wait until the node is idle [s]."""
FUTURE_NS = 3_600_000_000_000
STRANGERS = ("pose in a wrong frame", "pose from the future", "pose of NaN", "pose of noise",
             "reading of NaN", "reading from the future", "reading of noise", "reading cut off",
             "reading of a negative variance")  # fmt: skip


def truth(x: float, y: float) -> float:
    """Return the true value [degC] of the cell that contains a position [m]."""
    x, y = SPACING * round(x / SPACING), SPACING * round(y / SPACING)
    return 20.0 + 3.0 * math.sin(x / 18.0) * math.cos(y / 23.0)


class Driver:
    """Publisher of all inputs of the node, and subscriber to its waypoints."""

    def __init__(self, seed: int) -> None:
        self.node = rclpy.create_node("soak")
        stranger = self.stranger = rclpy.create_node("stranger")
        kept = qos.reliable(DEPTH, latched=True)
        few = qos.reliable(5, latched=True)  # serves late subscribers
        self._clock = self.node.create_publisher(Clock, "/clock", qos.reliable(10))
        self._poses = self.node.create_publisher(Odometry, "pose", kept)
        self._readings = self.node.create_publisher(Temperature, "reading", kept)
        self._strange = {
            "pose": stranger.create_publisher(Odometry, "pose", few),
            "reading": stranger.create_publisher(Temperature, "reading", few),
        }
        self.node.create_subscription(PoseStamped, "next_waypoint", self._on_goal, qos.latched())
        self._clients = {
            name: self.node.create_client(Trigger, f"/active_sensing/{name}")
            for name in ("resume", "finish")
        }
        self._rng = np.random.default_rng([16, seed])
        self.now_ns = 1_700_000_000_000_000_000
        self.x = self.y = 0.0
        self.goal = (0.0, 0.0)
        self.goals = 0
        """Number of waypoint messages, including repetitions."""
        self._stamp: tuple[int, int] | None = None
        self.decisions = 0
        """Number of waypoints with different time stamps."""
        self.heard_at = 0.0
        self.stamps: list[int] = []
        self.values: list[float] = []
        self.poses = 0
        self.strange: Counter[str] = Counter()
        self._batches = 0
        self.set_clock()

    def close(self) -> None:
        self.node.destroy_node()
        self.stranger.destroy_node()

    def _on_goal(self, message: PoseStamped) -> None:
        self.goal = (message.pose.position.x, message.pose.position.y)
        self.goals += 1
        self.heard_at = time.monotonic()
        stamp = (message.header.stamp.sec, message.header.stamp.nanosec)
        self.decisions += stamp != self._stamp
        self._stamp = stamp

    def spin(self, seconds: float = 0.0) -> None:
        until = time.monotonic() + seconds
        while True:
            rclpy.spin_once(self.node, timeout_sec=max(0.0, until - time.monotonic()))
            if time.monotonic() >= until:
                return

    def call(self, name: str) -> None:
        """Call the node's service ``resume`` or ``finish``, if it is available."""
        if self._clients[name].service_is_ready():
            self._clients[name].call_async(Trigger.Request())

    def set_clock(self, step_ns: int = 0) -> None:
        """Change the clock by `step_ns`, and publish the new time and a pose."""
        self.now_ns += step_ns
        self._clock.publish(Clock(clock=outputs.time_of(self.now_ns)))
        self._poses.publish(_pose(self.now_ns, self.x, self.y))

    def settle(self, pid: int) -> None:
        """Receive messages until all threads of process `pid` are idle."""
        until, idle = time.monotonic() + MOST_SETTLING, 0
        while idle < 2 and time.monotonic() < until:
            self.spin(POLL)
            idle = 0 if is_busy(pid) else idle + 1

    def serve(self, pid: int, patience: float) -> bool:
        """Drive to the newest waypoint and measure there until the next waypoint arrives.

        Return False if the next waypoint does not arrive within `patience` [s].
        """
        goals, sent, goal = self.goals, len(self.stamps), self.goal
        until = time.monotonic() + patience
        for i in range(DRIVE):
            part = 1.0 / (DRIVE - i)
            x, y = self.x + part * (goal[0] - self.x), self.y + part * (goal[1] - self.y)
            self.batch(x, y, readings=False)
            self.settle(pid)
        for _ in range(STAY):
            self.batch(*goal)
            self.settle(pid)
        while self.goals == goals and time.monotonic() < until:
            self.batch(*goal, readings=len(self.stamps) - sent < MOST)
            self.settle(pid)
        return self.goals > goals

    def stay(self, *, readings: bool = True) -> None:
        """Publish a batch of messages at the current position."""
        self.batch(self.x, self.y, readings=readings)
        self.spin(WAITING_PAUSE)

    def batch(self, x: float, y: float, *, readings: bool = True) -> None:
        """Publish a batch of messages on a straight drive to (x, y)."""
        begin, self.now_ns = self.now_ns, self.now_ns + BATCH_NS
        self._clock.publish(Clock(clock=outputs.time_of(self.now_ns)))
        x0, y0, self.x, self.y = self.x, self.y, x, y
        for i in range(1, POSES + 1):
            part = i / POSES
            stamp_ns = begin + round(part * BATCH_NS)
            self._poses.publish(_pose(stamp_ns, x0 + part * (x - x0), y0 + part * (y - y0)))
        self.poses += POSES
        noise = NOISE * self._rng.standard_normal(READINGS)
        for i in range(READINGS if readings else 0):
            part = (i + 0.5) / READINGS
            stamp_ns = begin + round(part * BATCH_NS)
            value = truth(x0 + part * (x - x0), y0 + part * (y - y0)) + float(noise[i])
            self._readings.publish(_reading(stamp_ns, value))
            self.stamps.append(stamp_ns)
            self.values.append(value)
        self._batches += 1
        if self._batches % 2 == 0:
            self._disturb()

    def _disturb(self) -> None:
        what = str(self._rng.choice(STRANGERS))
        self.strange[what] += 1
        now_ns, x, y = self.now_ns, self.x, self.y
        message: Any
        if what.endswith("of noise"):
            message = self._rng.bytes(int(self._rng.integers(0, 400)))
        elif what == "pose in a wrong frame":
            message = _pose(now_ns, x, y, "odom")
        elif what == "pose from the future":
            message = _pose(now_ns + FUTURE_NS, x + 500.0, y)
        elif what == "pose of NaN":
            message = _pose(now_ns, math.nan, y)
        elif what == "reading of NaN":
            message = _reading(now_ns, math.nan)
        elif what == "reading from the future":
            message = _reading(now_ns + FUTURE_NS, 20.0)
        elif what == "reading of a negative variance":
            message = _reading(now_ns, 20.0)
            message.variance = -1.0
        else:
            message = serialize_message(_reading(now_ns, 20.0))[:-9]
        self._strange[what.split()[0]].publish(message)


def _pose(stamp_ns: int, x: float, y: float, frame: str = "map") -> Odometry:
    message = Odometry()
    message.header.frame_id = frame
    message.header.stamp = outputs.time_of(stamp_ns)
    message.pose.pose.position.x, message.pose.pose.position.y = x, y
    message.pose.pose.orientation.w = 1.0
    return message


def _reading(stamp_ns: int, value: float) -> Temperature:
    message = Temperature(temperature=value, variance=NOISE**2)
    message.header.stamp = outputs.time_of(stamp_ns)
    return message


def resident_mb(pid: int) -> float:
    """Return the resident memory of a process [MB]."""
    for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024.0
    return math.nan


def is_busy(pid: int) -> bool:
    """Return whether a thread of a process is running or ready. An ended process is not busy."""
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            state = (task / "stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
            if state in "RD":
                return True
    except OSError:  # the thread has ended
        pass
    return False


def spent_seconds(pid: int) -> float:
    """Return the processor time of a process [s]."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100.0
