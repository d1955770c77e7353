"""A robot that knows nothing of this project: it drives to the pose it hears of, and measures.

Odometry comes at 20 Hz and a temperature at 10 Hz of its own time, which it publishes on /clock and
which runs `times` as fast as real time. As a program: ``python robot.py --ros-args -p lag:=1.5``.
"""

import math
from collections import deque

import rclpy
from geometry_msgs.msg import PoseStamped
from nav_msgs.msg import Odometry
from rclpy.node import Node
from rclpy.time import Time
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Temperature

TICK = 0.05


def field(x: float, y: float) -> float:
    return 20.0 + 3.0 * math.sin(x / 15.0) * math.cos(y / 20.0)


class Robot(Node):
    def __init__(self, **given: float | str | bool) -> None:
        super().__init__("robot")
        parameters = {"x": 0.0, "y": 0.0, "speed": 4.0, "lag": 0.0, "frame_id": "odom"}
        parameters |= {"times": 10.0, "alive": True, "run_up": 0.0}
        for name, default in parameters.items():
            setattr(self, name, self.declare_parameter(name, given.get(name, default)).value)
        self.heading, self.ticks, self.way = 0.0, 20, deque()
        self.been = deque([(self.x, self.y)], maxlen=1 + round(self.lag / TICK))
        self.odometry = self.create_publisher(Odometry, "odom", 100)
        self.sensor = self.create_publisher(Temperature, "temperature", 100)
        self.clock = self.create_publisher(Clock, "/clock", 100)
        self.create_subscription(PoseStamped, "goal", self.hear, 10)
        self.create_timer(TICK / self.times, self.tick)

    def hear(self, goal: PoseStamped) -> None:
        """Drive there; with `run_up` [m] along the goal's heading at the end, as on a road."""
        x, y, q = goal.pose.position.x, goal.pose.position.y, goal.pose.orientation
        heading = 2.0 * math.atan2(q.z, q.w)
        back = (x - self.run_up * math.cos(heading), y - self.run_up * math.sin(heading))
        self.way = deque([back, (x, y)])

    def tick(self) -> None:
        left = self.speed * TICK
        while self.way and left > 1e-9:
            dx, dy = self.way[0][0] - self.x, self.way[0][1] - self.y
            distance = math.hypot(dx, dy)
            part = min(1.0, left / distance) if distance > 0.0 else 1.0
            self.heading = math.atan2(dy, dx) if distance > 0.0 else self.heading
            self.x, self.y, left = self.x + part * dx, self.y + part * dy, left - part * distance
            if part == 1.0:
                self.way.popleft()
        self.ticks += 1
        self.been.append((self.x, self.y))
        now = Time(nanoseconds=round(1e9 * TICK) * self.ticks).to_msg()
        message = Odometry(child_frame_id="base_link")
        message.header.frame_id, message.header.stamp = self.frame_id, now
        message.pose.pose.position.x, message.pose.pose.position.y = self.x, self.y
        message.pose.pose.orientation.z = math.sin(0.5 * self.heading)
        message.pose.pose.orientation.w = math.cos(0.5 * self.heading)
        self.odometry.publish(message)
        if self.ticks % 2 == 0 and self.alive:  # what it felt `lag` seconds ago, stamped with now
            reading = Temperature(temperature=field(*self.been[0]))
            reading.header.stamp = now
            self.sensor.publish(reading)
        self.clock.publish(Clock(clock=now))


if __name__ == "__main__":
    rclpy.init()
    rclpy.spin(Robot())
