"""Node ``simulator``: plays a scenario's field, sensor and probe, and the clock.

The field is a known one, or the traffic of a running SUMO in which the probe is a car.

Publishes ``/clock``, ``pose`` (nav_msgs/Odometry) and ``reading``; drives to ``next_waypoint``. The
clock does not wait for anybody: it advances by equal steps, each published after what happened in
it, so whoever sees a time has been sent everything before it. Under load it runs slower than
``speed_factor``, and skips nothing.

The readings are ``sensor_msgs/msg/Temperature`` unless told otherwise: the smallest standard
message with a stamp, one value and its variance, whatever the unit of the field is.
"""

# ruff: noqa: E402  whether there is a ROS to import is looked at first
from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any

from gp_active_sensing.ros.environment import require_ros_in

require_ros_in(__name__)

from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import PoseStamped
from nav_msgs.msg import Odometry
from rclpy.qos import QoSProfile
from rosgraph_msgs.msg import Clock as ClockMessage

from gp_active_sensing.errors import ConfigError
from gp_active_sensing.messages.conversions import heading_of
from gp_active_sensing.messages.fields import FieldPath
from gp_active_sensing.ros import outputs, qos
from gp_active_sensing.ros.message_types import RosTypes, find_message_type
from gp_active_sensing.ros.node_base import GuardedNode, steady_clock
from gp_active_sensing.ros.parameters import ParameterTree
from gp_active_sensing.ros.player import Moment, Player
from gp_active_sensing.ros.running import run_node
from gp_active_sensing.ros.settings import SimulatorConfig
from gp_active_sensing.ros.traffic_player import TrafficPlayer
from gp_active_sensing.sim import build_world, load_scenario
from gp_active_sensing.types import Reading

__all__ = ["SimulatorNode", "main"]


class SimulatorNode(GuardedNode):
    """Starts by itself; its topics are in the module's docstring."""

    def __init__(self, **options: Any) -> None:
        super().__init__(
            "simulator", automatically_declare_parameters_from_overrides=True, **options
        )
        self._player: Player | TrafficPlayer | None = None
        self._last_waypoint: PoseStamped | None = None
        self.parameters = ParameterTree(self, SimulatorConfig)
        self.parameters.locked = lambda: self._player is not None
        self.parameters.declare({})
        self.start_by_itself()

    def configure(self) -> None:
        """Build the world and the topics."""
        config: SimulatorConfig = self.parameters.config()
        overrides = [] if config.seed is None else [f"seed={config.seed}"]
        scenario = load_scenario(config.scenario, overrides=overrides)
        world = build_world(scenario)
        kind = find_message_type(config.reading.type)
        if "header" not in kind.get_fields_and_field_types():
            msg = f"reading.type: expected a message with a header, got {config.reading.type!r}"
            raise ConfigError(msg)
        self._kind = kind
        types, name = RosTypes(), config.reading.type
        self._value = FieldPath.parse(config.reading.field, name, types, "reading.field")
        self._variance = (
            FieldPath.parse(config.reading.variance_field, name, types, "reading.variance_field")
            if config.reading.variance_field
            else None
        )
        self._config = config
        self._frame = world.topology.frame
        self._names = world.topology.names
        sensor = scenario.sensor
        kind_of_player = Player if world.traffic is None else TrafficPlayer
        self._player = kind_of_player(world, readings=sensor.readings, on_the_way=sensor.on_the_way)
        depth = 1000  # nothing is lost while a subscriber is busy
        # The profile rclpy's own /clock subscription expects, with more depth.
        self._clock_out = self.own(
            self.create_publisher(ClockMessage, "/clock", QoSProfile(depth=100))
        )
        self._pose_out = self.own(self.create_publisher(Odometry, "pose", qos.reliable(depth)))
        self._reading_out = self.own(self.create_publisher(kind, "reading", qos.reliable(depth)))
        self.own(
            self.create_subscription(PoseStamped, "next_waypoint", self._on_waypoint, qos.latched())
        )
        if config.exit_at_end:
            self.own(
                self.create_subscription(
                    DiagnosticArray, "/diagnostics", self._on_diagnostics, qos.reliable()
                )
            )
        self.get_logger().info(
            f"scenario {scenario.name}: {world.topology.n} places, {config.speed_factor:g} times "
            "real time"
        )

    def activate(self) -> None:
        """Let the time run."""
        self._seconds = max(
            1.0 / self._config.pose_rate, self._config.speed_factor / self._config.max_rate
        )
        period = self._seconds / self._config.speed_factor
        self._timer = self.own(self.create_timer(period, self._on_step, clock=steady_clock()))

    def deactivate(self) -> None:
        """Let the time stand."""
        if self._player is not None and hasattr(self, "_timer"):
            self._timer.cancel()

    def release(self) -> None:
        """Give back the topics."""
        if self._player is not None:
            self._player.close()
        self._player = None
        self.disown()

    # -- in ------------------------------------------------------------------------------------

    def _on_waypoint(self, message: PoseStamped) -> None:
        player = self._player
        if player is None or message == self._last_waypoint:
            return  # the same one, sent again to a late subscriber
        if message.header.frame_id.lstrip("/") != self._frame:
            self.get_logger().warning(
                f"waypoint in frame {message.header.frame_id!r}, the map is in {self._frame!r}; "
                "it is not used"
            )
            return
        pose = message.pose
        q = pose.orientation
        place = player.place_of(pose.position.x, pose.position.y, heading_of(q.x, q.y, q.z, q.w))
        if place is None:
            self.get_logger().warning(
                f"waypoint ({pose.position.x:.1f}, {pose.position.y:.1f}) is none of the map's; "
                "it is not used"
            )
            return
        self._last_waypoint = message
        player.go_to(place)

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        for status in message.status:
            if not status.name.endswith(": mission"):
                continue
            if any(item.key == "state" and item.value == "ended" for item in status.values):
                self.get_logger().info("the mission is over")
                self.end(0)

    # -- out -----------------------------------------------------------------------------------

    def _on_step(self) -> None:
        if self._player is None:
            return
        moment = self._player.step(self._seconds)
        self._pose_out.publish(self._pose_message(moment))
        for reading in moment.readings:
            self._reading_out.publish(self._reading_message(reading))
        self._clock_out.publish(ClockMessage(clock=outputs.time_of(moment.stamp_ns)))

    def _pose_message(self, moment: Moment) -> Odometry:
        x, y, heading = moment.pose
        message = Odometry(child_frame_id="base_link")
        message.header.frame_id = self._frame
        message.header.stamp = outputs.time_of(moment.stamp_ns)
        message.pose.pose.position.x, message.pose.pose.position.y = x, y
        message.pose.pose.orientation.z = math.sin(0.5 * heading)
        message.pose.pose.orientation.w = math.cos(0.5 * heading)
        message.twist.twist.linear.x = moment.speed
        return message

    def _reading_message(self, reading: Reading) -> Any:
        message = self._kind()
        message.header.frame_id = "base_link"
        message.header.stamp = outputs.time_of(reading.stamp_ns)
        self._value.write(message, reading.value)
        if self._variance is not None:
            self._variance.write(message, reading.noise_variance or 0.0)
        return message


def main(args: Sequence[str] | None = None) -> int:
    """Run the node; return the exit code of the process."""
    return run_node(SimulatorNode, args)


if __name__ == "__main__":
    sys.exit(main())
