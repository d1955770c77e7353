"""Node ``active_sensing``: readings and poses in, the next waypoint out.

Callbacks only leave messages in the inbox; the mission thread uses them, the planner thread plans
on a copy, so that no reading waits for a plan. All decisions are in `mission`, all conversions in
`conversions` and `outputs`; this file connects them to topics, services and parameters.
"""

# ruff: noqa: E402  whether there is a ROS to import is looked at first
from __future__ import annotations

import dataclasses
import sys
import time
from collections.abc import Sequence
from typing import Any

from gp_active_sensing.ros.environment import require_ros_in

require_ros_in(__name__)

from std_srvs.srv import Trigger

from gp_active_sensing.errors import ActiveSensingError, ConfigError
from gp_active_sensing.messages.conversions import ValueReader, pose_reader
from gp_active_sensing.mission.build import Parts, build_parts, plan_limit
from gp_active_sensing.mission.inbox import RawReading
from gp_active_sensing.mission.settings import ActiveSensingConfig
from gp_active_sensing.planning import build_policy, policies
from gp_active_sensing.ros import qos
from gp_active_sensing.ros.message_types import RosTypes, find_message_type
from gp_active_sensing.ros.node_base import GuardedNode
from gp_active_sensing.ros.parameters import ParameterTree
from gp_active_sensing.ros.publishing import Results
from gp_active_sensing.ros.running import run_node
from gp_active_sensing.ros.worker import Worker
from gp_active_sensing.sim import load_scenario
from gp_active_sensing.sim.scenario import with_policy

__all__ = ["ActiveSensingNode", "main"]

DEACTIVATED = "the node was deactivated"
LIVE = ("limit.seconds", "limit.expansions", "mission.arrival_radius", "mission.reading_timeout")


class ActiveSensingNode(GuardedNode):
    """The lifecycle node.

    ROS Parameters:
        Those of `settings.ActiveSensingConfig`, each with unit, bounds and help in its descriptor.

    Subscribers:
        reading (``reading.type``), pose (``pose.type``): best effort, or reliable when asked.

    Publishers:
        next_waypoint (geometry_msgs/PoseStamped, latched), plan (nav_msgs/Path),
        field (sensor_msgs/PointCloud2: x y z mean std), map (visualization_msgs/MarkerArray,
        latched), length_scale_belief (std_msgs/Float64MultiArray), /diagnostics.

    Services:
        ~/start, ~/pause, ~/resume, ~/finish, ~/save (std_srvs/Trigger).
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(
            "active_sensing", automatically_declare_parameters_from_overrides=True, **options
        )
        self._parts: Parts | None = None
        self._worker: Worker | None = None
        self._results: Results | None = None
        self._scenario: dict[str, Any] | None = None
        self.parameters = ParameterTree(self, ActiveSensingConfig, live=LIVE)
        self.parameters.locked = lambda: self._parts is not None
        self._declare()
        self.add_post_set_parameters_callback(self.guarded(self._on_parameters))
        if self.parameters.mapping().get("autostart", True):
            self.start_by_itself()

    # -- parameters ----------------------------------------------------------------------------

    def _declare(self) -> None:
        """Declare the parameters; what the scenario says is their default."""
        given = self.parameters.given
        defaults: dict[str, Any] = {}
        if name := given.get("scenario", ""):
            try:
                self._scenario = load_scenario(str(name)).to_mapping()
                defaults = dict(self._scenario)
                retries = defaults["sensor"]["retries"]
                defaults["mission"] = {"retries": retries}
            except ActiveSensingError as error:
                self.parameters.problem(f"scenario: {error}")
        policy = given.get("policy.name", defaults.get("policy", {}).get("name", "bal"))
        section: Any = None
        try:
            section = policies.factory(policy)
            defaults = with_policy(defaults, policy)
        except ConfigError:  # said by `configure`, with everything else
            defaults["policy"] = {"name": policy}
        self.parameters.declare(defaults, policy=section)

    def _on_parameters(self, parameters: list[Any]) -> None:
        """Use the parameters that may change at any time."""
        if self._parts is None or not any(p.name in LIVE for p in parameters):
            return
        values = self.parameters.mapping()
        mission, limit = self._parts.mission, values.get("limit", {})
        mission.loop.limit = plan_limit(limit.get("seconds"), limit.get("expansions"))
        for probe in mission.probes.values():
            probe.arrival.timeout = values["mission"]["reading_timeout"]
            if (radius := values["mission"].get("arrival_radius")) is not None:
                probe.arrival.radius = radius

    # -- lifecycle -----------------------------------------------------------------------------

    def configure(self) -> None:
        """Build everything from the parameters; all problems in one message."""
        config: ActiveSensingConfig = self.parameters.config(
            check=lambda mapping: build_policy(mapping.get("policy", {}))
        )
        reading, pose = config.reading, config.pose
        self._read_value = ValueReader(
            RosTypes(),
            reading.type,
            reading.field,
            reading.variance_field,
            noise_variance=reading.noise_variance,
            scale=reading.scale,
            offset=reading.offset,
        )
        pose_type = find_message_type(pose.type)
        self._parts = build_parts(config, self._scenario)
        frame = self._parts.mission.loop.topology.frame
        self._read_pose = pose_reader(pose.type, datum=pose.datum, frame=frame)
        self._results = Results(self, self._parts, exit_at_end=config.mission.exit_at_end)
        for topic, kind, callback, stream in (
            ("reading", find_message_type(reading.type), self._on_reading, reading),
            ("pose", pose_type, self._on_pose, pose),
        ):
            profile = qos.sensor(stream.rate, reliable=stream.reliable)
            self._results.health.listen(topic, kind, callback, profile)
        for name in ("start", "pause", "resume", "finish", "save"):
            self.own(self.create_service(Trigger, f"~/{name}", getattr(self, f"_on_{name}")))

    def activate(self) -> None:
        """Start the threads, and the mission when nobody else will."""
        if self._parts is None or self._results is None:
            return
        mission = self._parts.mission
        self._worker = Worker(mission, self._results, self._results.now_ns)
        self._results.health.worker_errors = self._worker.errors
        self._results.send_map()
        self._worker.start()
        if mission.config.begin and mission.state == "idle":
            mission.start()
        elif mission.reason == DEACTIVATED:
            mission.resume()

    def deactivate(self) -> None:
        """Stop the threads; what was learnt stays."""
        if self._worker is None or self._parts is None:
            return
        self._parts.mission.pause(DEACTIVATED)
        if not self._worker.stop():
            self.get_logger().warning("a plan was still being computed; it is given up")
        self._worker = None

    def release(self) -> None:
        """Write the last words and give back topics and services."""
        self.deactivate()  # after an error it may still be at work
        parts, results = self._parts, self._results
        self._parts = self._results = None
        if parts is not None and results is not None:
            results.interrupted()
        if parts is not None:
            parts.recorder.close()
        self.disown()

    # -- in ------------------------------------------------------------------------------------

    def _on_reading(self, message: Any) -> None:
        parts = self._parts
        if parts is None:
            return
        value = self._read_value.read(message)
        stamp = value.stamp_ns
        if stamp is None:  # a type without a header
            stamp = self.get_clock().now().nanoseconds
        raw = RawReading(self._stamped("reading", stamp), value.value, value.noise_variance)
        parts.mission.inbox.put(raw, time.monotonic())

    def _on_pose(self, message: Any) -> None:
        parts = self._parts
        if parts is not None:
            pose = self._read_pose(message)
            pose = dataclasses.replace(pose, stamp_ns=self._stamped("pose", pose.stamp_ns))
            parts.mission.inbox.put(pose, time.monotonic())

    def _stamped(self, topic: str, stamp_ns: int) -> int:
        """Return the stamp, or the time of arrival for one that its publisher left at zero."""
        if stamp_ns != 0 or self._results is None:
            return stamp_ns
        self._results.health.note_unstamped(topic)
        return int(self.get_clock().now().nanoseconds)

    def _on_start(self, request: Any, response: Any) -> Any:
        return self._command("start", "started", response)

    def _on_pause(self, request: Any, response: Any) -> Any:
        return self._command("pause", "paused; the last waypoint stands", response)

    def _on_resume(self, request: Any, response: Any) -> Any:
        return self._command("resume", "resumed", response)

    def _command(self, name: str, done: str, response: Any) -> Any:
        if self._parts is None or self._worker is None:
            problem = "the node is not active: configure and activate it first"
        else:
            problem = getattr(self._parts.mission, name)()
        response.success = not problem
        response.message = problem or done
        return response

    def _on_finish(self, request: Any, response: Any) -> Any:
        """End the mission; the answer comes when summary and report are written."""
        parts, worker, results = self._parts, self._worker, self._results
        if parts is None or worker is None or results is None:
            response.message = "the node is not active: configure and activate it first"
        elif parts.mission.state == "ended":
            response.message = f"the mission is ended already ({parts.mission.reason})"
        else:
            parts.mission.pause("about to finish")
            worker.settle()
            results.finish("asked to finish")
            response.success = True
            response.message = "finished; the last waypoint stands"
        return response

    def _on_save(self, request: Any, response: Any) -> Any:
        parts = self._parts
        if parts is None or parts.recorder.run is None:
            response.message = "nothing is recorded: set the parameter run_dir and configure again"
            return response
        status = "finished" if parts.mission.state == "ended" else "running"
        response.success = parts.recorder.save(parts.mission, status)
        where = parts.recorder.run.path
        response.message = f"summary written to {where}" if response.success else "see the log"
        return response


def main(args: Sequence[str] | None = None) -> int:
    """Run the node; return the exit code of the process."""
    return run_node(ActiveSensingNode, args)


if __name__ == "__main__":
    sys.exit(main())
