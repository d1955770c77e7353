"""Publish messages or call services for load tests, and print the results as JSON.

``python load_publisher.py drive SECONDS READINGS_HZ SPEED`` publishes poses and readings.
``… flood SECONDS TOPIC BYTES`` publishes large messages. ``… ask SECONDS`` calls a service, and
prints the response times [ms].
"""

# ruff: noqa: TID251  uses ROS
from __future__ import annotations

import json
import math
import sys
import time
from typing import Any

import numpy as np
import rclpy
from geometry_msgs.msg import PoseStamped
from nav_msgs.msg import Odometry
from rclpy.signals import SignalHandlerOptions
from sensor_msgs.msg import Temperature
from std_srvs.srv import Trigger

from gp_active_sensing.ros import qos
from gp_active_sensing.ros import to_messages as outputs

POSES_HZ = 50.0


class Driver:
    """Robot that drives straight to each waypoint."""

    def __init__(self, node: Any, speed: float) -> None:
        self.node = node
        self.x = self.y = 0.0
        self.goal = (0.0, 0.0)
        self.speed = speed
        self.rng = np.random.default_rng([7])
        self.poses = node.create_publisher(Odometry, "pose", qos.reliable(1000))
        self.readings = node.create_publisher(Temperature, "reading", qos.reliable(1000))
        node.create_subscription(PoseStamped, "next_waypoint", self.on_waypoint, qos.latched())

    def on_waypoint(self, message: PoseStamped) -> None:
        self.goal = (message.pose.position.x, message.pose.position.y)

    def move(self, seconds: float) -> None:
        dx, dy = self.goal[0] - self.x, self.goal[1] - self.y
        far = math.hypot(dx, dy)
        step = min(far, self.speed * seconds)
        if far > 0.0:
            self.x += step * dx / far
            self.y += step * dy / far

    def pose(self) -> None:
        message = Odometry()
        message.header.frame_id = "map"
        message.header.stamp = self.node.get_clock().now().to_msg()
        message.pose.pose.position.x, message.pose.pose.position.y = self.x, self.y
        message.pose.pose.orientation.w = 1.0
        self.poses.publish(message)

    def reading(self) -> None:
        value = 20.0 + 3.0 * math.sin(self.x / 40.0) + 2.0 * math.cos(self.y / 30.0)
        message = Temperature(temperature=value + 0.3 * float(self.rng.standard_normal()))
        message.header.stamp = self.node.get_clock().now().to_msg()
        self.readings.publish(message)


def drive(node: Any, seconds: float, rate: float, speed: float) -> dict[str, float]:
    driver = Driver(node, speed)
    while not (driver.readings.get_subscription_count() and driver.poses.get_subscription_count()):
        time.sleep(0.01)
    sent = {"readings": 0, "poses": 0}
    begun = before = heard = time.monotonic()
    late = 0.0
    while (now := time.monotonic()) - begun < seconds:
        due = int((now - begun) * rate) - sent["readings"]
        if int((now - begun) * POSES_HZ) >= sent["poses"]:
            driver.move(now - before)
            before = now
            driver.pose()
            sent["poses"] += 1
        for _ in range(due):
            driver.reading()
        sent["readings"] += due
        late = max(late, due / rate)
        if now - heard >= 0.01:
            heard = now
            rclpy.spin_once(node, timeout_sec=0.0)
        ahead = begun + (sent["readings"] + 1) / rate - time.monotonic()
        if ahead > 0.0:
            time.sleep(min(ahead, 0.01))
    return {**sent, "seconds": time.monotonic() - begun, "latest_s": late}


def flood(node: Any, seconds: float, topic: str, size: int) -> dict[str, float]:
    kind = Odometry if topic == "pose" else Temperature
    publisher = node.create_publisher(kind, topic, qos.sensor(100.0))
    while not publisher.get_subscription_count():
        time.sleep(0.01)
    message = kind()
    message.header.frame_id = "x" * size
    sent, begun = 0, time.monotonic()
    while time.monotonic() - begun < seconds:
        message.header.stamp = outputs.time_of(node.get_clock().now().nanoseconds)
        publisher.publish(message)
        sent += 1
    return {"sent": sent, "seconds": time.monotonic() - begun}


def ask(node: Any, seconds: float) -> list[float]:
    # This service waits for the mission's lock and changes nothing.
    client = node.create_client(Trigger, "/active_sensing/resume")
    client.wait_for_service()
    took: list[float] = []
    begun = time.monotonic()
    while time.monotonic() - begun < seconds:
        asked = time.monotonic()
        future = client.call_async(Trigger.Request())
        rclpy.spin_until_future_complete(node, future, timeout_sec=10.0)
        took.append(1e3 * (time.monotonic() - asked))
        time.sleep(0.05)
    return took[1:]


def main() -> int:
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    node = rclpy.create_node(f"load_{sys.argv[1]}")
    found: Any
    if sys.argv[1] == "drive":
        found = drive(node, *map(float, sys.argv[2:5]))
    elif sys.argv[1] == "ask":
        found = ask(node, float(sys.argv[2]))
    else:
        found = flood(node, float(sys.argv[2]), sys.argv[3], int(sys.argv[4]))
    time.sleep(1.0)  # wait for the last messages
    sys.stdout.write(json.dumps(found) + "\n")
    node.destroy_node()
    rclpy.shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main())
