"""Node ``simulator``: simulate the field, sensor, probes and clock of a scenario.

The node publishes ``/clock``, ``pose`` (nav_msgs/Odometry) and ``reading``, and subscribes to
``next_waypoint``. In a fleet each probe has its own topics in its namespace, such as
``probe_1/pose``. If the scenario has sorties, the node publishes ``battery_state``, and a probe
that stands for a minute at its end place gets another battery. If the scenario has an expert, the
node receives queries on ``expert/query`` and answers on ``expert/answer``
(sensor_msgs/PointCloud2).

The field may be the traffic in a running SUMO simulation, in which the probe is a car. The clock
advances by equal steps and does not wait for other nodes. A time is published after all messages
with earlier stamps. On a busy computer the clock is slower than ``speed_factor``, but it skips no
step.

The readings are ``sensor_msgs/msg/Temperature`` for any unit of the field. This is the smallest
standard message that has a stamp, a value and a variance.
"""

# ruff: noqa: E402  ROS is imported after the check for it
from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from gp_active_sensing.ros.environment import require_ros_in

require_ros_in(__name__)

from geometry_msgs.msg import PoseStamped
from nav_msgs.msg import Odometry
from rclpy.qos import QoSProfile
from rosgraph_msgs.msg import Clock as ClockMessage
from sensor_msgs.msg import BatteryState, Temperature

from gp_active_sensing.engine.config import SortieConfig
from gp_active_sensing.errors import ActiveSensingError
from gp_active_sensing.messages.conversions import heading_of
from gp_active_sensing.mission.names import probe_topic
from gp_active_sensing.ros import qos
from gp_active_sensing.ros import to_messages as outputs
from gp_active_sensing.ros.expert import ExpertServer
from gp_active_sensing.ros.node_base import GuardedNode, run_node
from gp_active_sensing.ros.parameters import ParameterTree, SimulatorConfig
from gp_active_sensing.sim import build_world, load_scenario
from gp_active_sensing.sim.robot import Observation, SimulatedBattery, SimulatedRobot, home_of
from gp_active_sensing.sim.runner import build_players
from gp_active_sensing.sim.world import expert_of
from gp_active_sensing.types import Reading

LIVE = ("silent",)
POSE_RATE = 10.0
"""Rate at which poses are published, in simulated time [Hz]."""
MOST_STEPS = 100.0
"""Largest rate of simulation steps in real time [Hz]. A large `speed_factor` needs longer steps."""


@dataclass
class _ProbeTopics:
    name: str
    player: SimulatedRobot
    pose_out: Any
    reading_out: Any
    last_waypoint: PoseStamped | None = None
    battery: SimulatedBattery | None = None
    battery_out: Any = None

    @property
    def body(self) -> str:
        """Name of the coordinate frame of the probe's body."""
        return probe_topic(self.name, "base_link")


class SimulatorNode(GuardedNode):
    """Node that simulates a scenario. It configures and activates itself without a manager."""

    def __init__(self, **options: Any) -> None:
        super().__init__(
            "simulator", automatically_declare_parameters_from_overrides=True, **options
        )
        self._probes: dict[str, _ProbeTopics] = {}
        self._expert: ExpertServer | None = None
        self._silent: frozenset[str] = frozenset()
        self.parameters = ParameterTree(self, SimulatorConfig, live=LIVE)
        self.parameters.locked = lambda: bool(self._probes)
        self.parameters.declare({"probes": self._probe_names()})
        self.add_post_set_parameters_callback(self.guarded(self._on_parameters))
        self.start_by_itself()

    @property
    def players(self) -> dict[str, SimulatedRobot]:
        """Simulated probes by name ("" = no namespace); the node's thread moves them."""
        return {name: probe.player for name, probe in self._probes.items()}

    @property
    def batteries(self) -> dict[str, SimulatedBattery | None]:
        """Batteries of the probes by name; None = the scenario has no sorties."""
        return {name: probe.battery for name, probe in self._probes.items()}

    def _probe_names(self) -> list[str]:
        try:
            return list(load_scenario(str(self.parameters.given.get("scenario", ""))).names)
        except ActiveSensingError:  # `configure` reports the error
            return []

    def configure(self) -> None:
        """Build the simulated world and the topics."""
        config: SimulatorConfig = self.parameters.config()
        overrides = [] if config.seed is None else [f"seed={config.seed}"]
        overrides += [f"map.frame={config.map_frame}"] if config.map_frame else []
        policy = config.policy_name or None
        scenario = load_scenario(config.scenario, overrides=overrides, policy=policy)
        world = build_world(scenario)
        self._config = config
        self._frame = world.topology.frame
        self._names = world.topology.names
        players = build_players(scenario, world, config.probes, config.starts)
        # The profile is that of rclpy's subscription to /clock, with a longer queue.
        self._clock_out = self.own(
            self.create_publisher(ClockMessage, "/clock", QoSProfile(depth=100))
        )
        sortie, home = scenario.probe.sortie, home_of(world.topology, scenario.probe.end)
        for name, player in players.items():
            self._connect(name, player)
            if sortie != SortieConfig():
                self._probes[name].battery = SimulatedBattery(sortie, home)
                topic = probe_topic(name, "battery_state")
                charge = self.own(self.create_publisher(BatteryState, topic, qos.reliable()))
                self._probes[name].battery_out = charge
        expert = expert_of(scenario, world)
        self._expert = None if expert is None else ExpertServer(self, expert, world.topology)
        self._on_parameters([])
        self.get_logger().info(
            f"scenario {scenario.name}: {world.topology.n} places, {config.speed_factor:g} times "
            f"real time{self._where_they_begin() if config.probes else ''}"
        )

    def _connect(self, name: str, player: SimulatedRobot) -> None:
        # A busy subscriber loses nothing. With `keep`, a restarted subscriber loses nothing.
        profile = qos.reliable(1000, latched=self._config.keep)
        pose = self.create_publisher(Odometry, probe_topic(name, "pose"), profile)
        reading = self.create_publisher(Temperature, probe_topic(name, "reading"), profile)
        probe = _ProbeTopics(name, player, self.own(pose), self.own(reading))
        self._probes[name] = probe
        topic = probe_topic(name, "next_waypoint")
        callback = partial(self.drive, name)
        self.own(self.create_subscription(PoseStamped, topic, callback, qos.latched()))

    def _where_they_begin(self) -> str:
        places = [
            f"{name} at {'no place' if at is None else self._names[at]}"
            for name, at in ((name, probe.player.at) for name, probe in self._probes.items())
        ]
        return f"; {', '.join(places)}"

    def _on_parameters(self, parameters: list[Any]) -> None:
        value = self.parameters.mapping().get("silent", "")
        words = frozenset(word.strip() for word in str(value).split(",") if word.strip())
        if words != self._silent:
            unknown = sorted(words - set(self._probes))
            if unknown and self._probes:
                self.get_logger().warning(
                    f"silent: {', '.join(unknown)} is no probe here; there are "
                    f"{', '.join(name or '(one without a name)' for name in self._probes)}"
                )
            self._silent = words

    def activate(self) -> None:
        """Start the simulated clock."""
        self._seconds = max(1.0 / POSE_RATE, self._config.speed_factor / MOST_STEPS)
        period = self._seconds / self._config.speed_factor
        self._timer = self.own(self.create_timer(period, self._on_step))

    def deactivate(self) -> None:
        """Stop the simulated clock."""
        if self._probes and hasattr(self, "_timer"):
            self._timer.cancel()

    def release(self) -> None:
        """Release the simulated world and the topics."""
        for probe in self._probes.values():
            probe.player.close()
        self._probes = {}
        self._expert = None
        self.disown()

    def drive(self, name: str, message: PoseStamped) -> None:
        """Send a probe to a waypoint; a message on the waypoint topic calls this method."""
        probe = self._probes[name]
        if message == probe.last_waypoint or probe.name in self._silent:
            return  # the waypoint is repeated, or the probe has no radio link
        if message.header.frame_id.lstrip("/") != self._frame:
            self.get_logger().warning(
                f"waypoint in frame {message.header.frame_id!r}, the map is in {self._frame!r}; "
                "it is not used"
            )
            return
        pose = message.pose
        q = pose.orientation
        place = probe.player.place_of(
            pose.position.x,
            pose.position.y,
            heading_of(q.x, q.y, q.z, q.w),
            pose.position.z,
        )
        if place is None:
            self.get_logger().warning(
                f"waypoint ({pose.position.x:.1f}, {pose.position.y:.1f}) is none of the map's; "
                "it is not used"
            )
            return
        probe.last_waypoint = message
        probe.player.go_to(place)

    def _on_step(self) -> None:
        stamp_ns = 0
        for probe in self._probes.values():
            moment = probe.player.step(self._seconds)
            stamp_ns = moment.stamp_ns
            if probe.battery is not None:
                probe.battery.step(moment)
            if probe.name and probe.name in self._silent:
                continue
            probe.pose_out.publish(pose_message(moment, self._frame, probe.body))
            if probe.battery is not None:
                charge = BatteryState(percentage=probe.battery.level)
                charge.header.stamp = outputs.time_of(stamp_ns)
                probe.battery_out.publish(charge)
            for reading in moment.readings:
                probe.reading_out.publish(reading_message(reading, probe.body))
        if self._expert is not None:
            self._expert.step(stamp_ns)
        if self._probes:
            self._clock_out.publish(ClockMessage(clock=outputs.time_of(stamp_ns)))


def pose_message(moment: Observation, frame: str, body: str) -> Odometry:
    """Convert the pose of a simulated probe to a message in the frame of the map."""
    x, y, heading, *up = moment.pose
    message = Odometry(child_frame_id=body)
    message.header.frame_id = frame
    message.header.stamp = outputs.time_of(moment.stamp_ns)
    message.pose.pose.position.x, message.pose.pose.position.y = x, y
    message.pose.pose.position.z = up[0] if up else 0.0
    message.pose.pose.orientation.z = math.sin(0.5 * heading)
    message.pose.pose.orientation.w = math.cos(0.5 * heading)
    message.twist.twist.linear.x = moment.speed
    return message


def reading_message(reading: Reading, body: str) -> Temperature:
    """Convert a reading to a message in the frame `body` of the probe."""
    message = Temperature(temperature=reading.value, variance=reading.noise_variance or 0.0)
    message.header.frame_id = body
    message.header.stamp = outputs.time_of(reading.stamp_ns)
    return message


def main(args: Sequence[str] | None = None) -> int:
    """Run the node; return the exit code of the process."""
    return run_node(SimulatorNode, args)


if __name__ == "__main__":
    sys.exit(main())
