"""Publish the waypoints, plan, field, belief and map of ``active_sensing``; write its records."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from geometry_msgs.msg import PoseStamped
from nav_msgs.msg import OccupancyGrid, Path
from rclpy.event_handler import PublisherEventCallbacks
from sensor_msgs.msg import PointCloud2
from std_msgs.msg import Float64MultiArray
from visualization_msgs.msg import MarkerArray

from gp_active_sensing.belief.mixture import Mixture
from gp_active_sensing.errors import RunError
from gp_active_sensing.export.lattice import Lattice
from gp_active_sensing.export.occupancy import limits_of, square_lattice
from gp_active_sensing.loop import SensingLoop
from gp_active_sensing.mission.config import (
    POSE_STAMPED,
    ActiveSensingConfig,
    GridTopicsConfig,
    WaypointConfig,
)
from gp_active_sensing.mission.course import places_of_plan
from gp_active_sensing.mission.factory import MissionComponents
from gp_active_sensing.mission.mission_log import MissionLog
from gp_active_sensing.mission.names import probe_topic
from gp_active_sensing.mission.requests import DecisionRequest, Stage
from gp_active_sensing.planning.turning import curve_through
from gp_active_sensing.records.run_directory import PAGE
from gp_active_sensing.report import write_report
from gp_active_sensing.ros import qos
from gp_active_sensing.ros import to_messages as outputs
from gp_active_sensing.ros.diagnostics import Diagnostics
from gp_active_sensing.ros.expert import ExpertClient
from gp_active_sensing.ros.node_base import GuardedNode
from gp_active_sensing.topology import Topology
from gp_active_sensing.types import BoolArray, FloatArray, Plan
from gp_active_sensing.util.wording import PredictabilityMonitor, describe_predictability, promised

if TYPE_CHECKING:
    from gp_active_sensing.ros.navigate import Navigator

logger = logging.getLogger(__name__)

PROBE_TOPICS: tuple[tuple[str, Any, Any], ...] = (
    ("next_waypoint", PoseStamped, qos.latched()),
    ("next_path", Path, qos.latched()),
    ("~/plan", Path, qos.latched()),
)
"""Name (without namespace), type and QoS profile of each topic of a probe."""


class Waypoints:
    """Publisher of waypoints; `send` and `send_again` may be called by any thread.

    Args:
        origin: latitude and longitude of the map's origin [degree]; None = unknown.
        incompatible: returns, for a topic, the callback that reports an incompatible subscriber.

    Raises:
        ConfigError: waypoints in degrees are configured, and the map's origin is unknown.
        MissingDependencyError: goals of Nav2 are configured, and nav2_msgs is not installed.
    """

    def __init__(
        self,
        node: GuardedNode,
        parts: MissionComponents,
        config: WaypointConfig,
        origin: tuple[float, ...] | None,
        incompatible: Callable[[str], Callable[[Any], None]],
    ) -> None:
        self._geographic: outputs.GeographicWaypoints | None = None
        if config.type != POSE_STAMPED:
            self._geographic = outputs.GeographicWaypoints(config.type, origin)
        self._node = node
        self._mission = parts.mission
        self._config = config
        self._incompatible = incompatible
        self._last: dict[str, PoseStamped | Path] = {}
        self._publishers: dict[str, Any] = {}
        self._timer: Any = None
        self.navigator: Navigator | None = None
        if config.navigate == "action":
            from gp_active_sensing.ros.navigate import Navigator

            through = config.ahead > 1
            self.navigator = Navigator(node, parts.mission, config.action, through=through)
        for name in parts.mission.probes:
            self._offer(name)
        self._stream()

    def add_probe(self, name: str) -> None:
        """Create the topics of a probe."""
        self._offer(name)
        if self.navigator is not None:
            self.navigator.add_probe(name)

    def set_config(self, config: WaypointConfig) -> None:
        """Apply a changed rate or altitude."""
        faster = config.rate != self._config.rate
        self._config = config
        if faster:
            self._stream()

    def send(self, probe: str, plan: Plan) -> None:
        """Publish the waypoint and the route of a plan."""
        self.send_again(probe, plan.path[-1])
        loop = self._mission.loop
        with self._mission.lock:  # the mission thread may change the map
            topology, observed, unread = loop.topology, loop.belief.observed, set(loop.set_aside)
            start = self._mission.probes[probe].position
        places = places_of_plan(topology, start, plan, observed, unread)
        line = self._curve(probe, topology, places)
        path = outputs.plan_path(topology, places, self._node.now_ns(), self._config.altitude, line)
        self._publishers[probe_topic(probe, "~/plan")].publish(path)

    def send_again(self, probe: str, place: int) -> None:
        """Publish a place's waypoint again; for the target, the next waypoint on the way to it."""
        with self._mission.lock:
            state = self._mission.probes[probe]
            ahead = state.places_ahead(self._config.ahead)
            if place == state.target and ahead:
                place = ahead[0]
            # The decision's stamp makes a restarted node publish the same message.
            plan, stamp_ns = state.plan, state.sent_ns
        places = ahead if ahead[:1] == (place,) else (place,)
        messages = [self._waypoint(each, plan, stamp_ns) for each in places]
        self._publish(probe, messages)
        if self.navigator is not None:
            self.navigator.set_waypoints(probe, place, messages)

    def _waypoint(self, place: int, plan: Plan | None, stamp_ns: int) -> PoseStamped:
        topology = self._mission.loop.topology
        goal, z = topology.goals[place], self._config.altitude
        if plan is not None and plan.heading is not None and plan.path[-1:] == (place,):
            goal = np.array([goal[0], goal[1], plan.heading])  # heading on arrival
        if topology.heights is not None:
            z += float(topology.heights[place])
        return outputs.waypoint_message(goal, topology.frame, stamp_ns, z)

    def publish_position(self, probe: str) -> None:
        """Publish the probe's position as its waypoint, if `waypoint.pause` is ``hold``."""
        pose = self._mission.probes[probe].ingestion.track.newest
        if self._config.pause != "hold" or self.navigator is not None or pose is None:
            return
        topology = self._mission.loop.topology
        heading = pose.heading if math.isfinite(pose.heading) else 0.0
        z = self._config.altitude + (pose.z if topology.heights is not None else 0.0)
        here = (pose.x, pose.y, heading)
        now_ns = self._node.now_ns()
        self._publish(probe, [outputs.waypoint_message(here, topology.frame, now_ns, z)])

    def _publish(self, probe: str, messages: list[PoseStamped]) -> None:
        path = Path(header=messages[0].header, poses=messages)
        for name, message in (("next_waypoint", messages[0]), ("next_path", path)):
            topic = probe_topic(probe, name)
            self._last[topic] = message
            self._publishers[topic].publish(self._outgoing(message))

    def _outgoing(self, message: PoseStamped | Path) -> Any:
        """Convert a waypoint to the type of its topic; return a path unchanged."""
        if self._geographic is None or isinstance(message, Path):
            return message
        return self._geographic.convert(message)

    def close(self) -> None:
        """Release the action clients of Nav2."""
        if self.navigator is not None:
            self.navigator.close()

    def _curve(self, probe: str, topology: Topology, places: Sequence[int]) -> FloatArray | None:
        """Return a drivable curve (k, 2) from the probe's pose over the `places` [m].

        None = the probe has no turn radius, the places are roads, or no pose has come.
        """
        radius = self._mission.loop.turn_radius
        pose = self._mission.probes[probe].ingestion.track.newest
        if radius <= 0.0 or topology.roads or pose is None:
            return None
        points = topology.positions[list(places)]
        return curve_through((pose.x, pose.y), pose.heading, points, radius)

    def _offer(self, name: str) -> None:
        for topic, kind, profile in PROBE_TOPICS:
            full, other, sent = probe_topic(name, topic), topic, kind
            if topic == "next_waypoint":
                other = self._config.topic
                sent = kind if self._geographic is None else self._geographic.kind
            self._publishers[full] = self._node.own(
                self._node.create_publisher(
                    sent, probe_topic(name, other), profile, event_callbacks=self._events(full)
                )
            )

    def _events(self, topic: str) -> PublisherEventCallbacks:
        def matched(event: Any) -> None:
            # Late subscribers that do not request latched messages need another message.
            if event.current_count_change > 0 and (last := self._last.get(topic)):
                self._publishers[topic].publish(self._outgoing(last))

        return PublisherEventCallbacks(
            matched=self._node.guarded(matched),
            incompatible_qos=self._node.guarded(self._incompatible(topic)),
        )

    def _stream(self) -> None:
        """Repeat the newest waypoints at `waypoint.rate`."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._config.rate > 0.0:
            period = min(1.0 / self._config.rate, 1e6)  # a timer overflows at longer periods
            self._timer = self._node.own(self._node.create_timer(period, self._send_last))

    def _send_last(self) -> None:
        stamp = outputs.time_of(self._node.now_ns())
        for name, probe in self._mission.probes.items():
            topic = probe_topic(name, "next_waypoint")
            last = self._last.get(topic)
            if not isinstance(last, PoseStamped) or probe.gone:
                continue
            message = PoseStamped(pose=last.pose)
            message.header.frame_id, message.header.stamp = last.header.frame_id, stamp
            self._publishers[topic].publish(self._outgoing(message))


GRID_TOPICS: tuple[tuple[str, Any, Any], ...] = (
    ("~/mean_grid", OccupancyGrid, qos.latched()),
    ("~/std_grid", OccupancyGrid, qos.latched()),
    ("~/grid_limits", Float64MultiArray, qos.latched()),
)
"""Name, type and QoS profile of each grid topic; only maps with square cells have grids."""


def further_topics(name: str) -> tuple[tuple[str, Any, Any], ...]:
    """Return (topic, type, QoS profile) for each topic of the further quantity `name`."""
    topics = (("~/field", PointCloud2, qos.latched()), *GRID_TOPICS)
    return tuple((probe_topic(name, topic), kind, profile) for topic, kind, profile in topics)


class GridPublisher:
    """Publisher that converts a belief to occupancy grids."""

    def __init__(self, publish: Callable[[str, Any], None], config: GridTopicsConfig) -> None:
        self._publish = publish
        self._config = config
        self._known: tuple[Topology, Lattice | None] | None = None
        """Newest map and its lattice; lattice None = the map has no square cells."""

    def send(
        self, topology: Topology, mean: FloatArray, std: FloatArray, now_ns: int, quantity: str = ""
    ) -> None:
        """Publish grids of mean (n,) and standard deviation (n,), and the limits of their values.

        The configured limits hold only for the main quantity.
        """
        lattice = self._lattice(topology)
        if lattice is None:
            return
        config, frame = self._config, topology.frame
        if quantity:
            config = GridTopicsConfig()
        limits = {
            "mean": limits_of(mean, config.mean_low, config.mean_high),
            "std": limits_of(std, 0.0, config.std_high),
        }
        self._publish(probe_topic(quantity, "~/grid_limits"), outputs.limits_message(limits))
        for name, values in (("mean", mean), ("std", std)):
            message = outputs.occupancy_grid(lattice, values, limits[name], frame, now_ns)
            self._publish(probe_topic(quantity, f"~/{name}_grid"), message)

    def _lattice(self, topology: Topology) -> Lattice | None:
        if self._known is None or self._known[0] is not topology:
            try:
                self._known = topology, square_lattice(topology)
            except RunError:
                self._known = topology, None
                if topology.heights is not None:
                    logger.info(
                        "map %r has heights: nothing is published on ~/mean_grid, ~/std_grid and "
                        "~/grid_limits; ~/field has every place with its z",
                        topology.name,
                    )
        return self._known[1]


TOPICS: tuple[tuple[str, Any, Any], ...] = (
    ("~/field", PointCloud2, qos.latched()),
    ("~/map", MarkerArray, qos.latched()),
    ("~/probes", MarkerArray, qos.reliable(1)),
    ("~/length_scale_belief", Float64MultiArray, qos.latched()),
    *GRID_TOPICS,
)
"""Name, type and QoS profile of each topic; private names avoid a conflict with Nav2's /map."""

PROBES_SECONDS = 0.5
"""Interval between messages with the probes' positions [s, real time]."""
_NOTHING_KEPT = "nothing is kept, since there is no run_dir"


class Publishers:
    """Publishers of a mission's results; both threads of the worker use them.

    Raises:
        MissingDependencyError: see `Waypoints`.
    """

    def __init__(
        self, node: GuardedNode, parts: MissionComponents, config: ActiveSensingConfig
    ) -> None:
        self._node = node
        self._parts = parts
        self._log = MissionLog(parts.mission, str(config.policy["name"]), parts.recorder.unit)
        self._monitor = PredictabilityMonitor()
        self.health = Diagnostics(node, parts)
        self.health.unit = self._log.value_unit
        incompatible = partial(self.health.incompatible, publishing=True)
        origin = config.pose.origin(parts.mission.loop.topology.datum)
        self.waypoints = Waypoints(node, parts, config.waypoint, origin, incompatible)
        self.send_again = self.waypoints.send_again
        self.publish_position = self.waypoints.publish_position
        if self.waypoints.navigator is not None:
            self.health.goals = self.waypoints.navigator.state
        self._publishers = {
            topic: node.own(
                node.create_publisher(
                    kind,
                    topic,
                    profile,
                    event_callbacks=PublisherEventCallbacks(
                        incompatible_qos=node.guarded(incompatible(topic))
                    ),
                )
            )
            for topic, kind, profile in (
                *TOPICS,
                *(each for name in config.further for each in further_topics(name)),
            )
        }
        self._grids = GridPublisher(self._publish, config.grids)
        consulting = parts.mission.consulting
        self.asking: ExpertClient | None = None
        if consulting is not None:
            self.asking = ExpertClient(node, parts, consulting, self.health)
        node.own(node.create_timer(PROBES_SECONDS, self.send_probes))

    def _publish(self, topic: str, message: Any) -> None:
        self._publishers[topic].publish(message)

    def send_waypoint(self, probe: str, plan: Plan) -> None:
        """Publish the waypoint of a plan, and queue the log message with the plan's reasons."""
        self.waypoints.send(probe, plan)
        self._log.decision(probe, plan)

    def send_query(self, places: tuple[int, ...]) -> None:
        """Publish a query that asks the expert about places."""
        if self.asking is not None:
            self.asking.send(places)

    def send_probes(self) -> None:
        """Publish the positions of the probes."""
        probes = self._parts.mission.probes.items()
        newest = [(name, probe.ingestion.track.newest, not probe.gone) for name, probe in probes]
        shown = [(name, pose, there) for name, pose, there in newest if pose is not None]
        topology = self._parts.mission.loop.topology
        self._publish("~/probes", outputs.probe_markers(topology, shown))

    def send_map(self, observed: BoolArray | None = None) -> None:
        """Publish the map with marks on the observed, planned, blocked and abandoned places."""
        mission = self._parts.mission
        with mission.lock:
            topology = mission.loop.topology
            plans = [p.plan or p.stages.home for p in mission.probes.values()]
            ways = [plan.path for plan in plans if plan is not None]
            if observed is None:
                observed = mission.loop.belief.observed
            marks = {
                "visited": np.flatnonzero(observed).tolist(),
                "set_aside": sorted(mission.loop.unavailable - mission.loop.blocked),
                "blocked": sorted(mission.loop.blocked),
                "planned": [place for way in ways for place in way],
                "next": [way[-1] for way in ways if way],
            }
        self._publish("~/map", outputs.map_markers(topology, marks, self._node.now_ns()))

    def send_results(self, job: DecisionRequest) -> None:
        """Publish field, belief and map; record the stage that ended just before the job."""
        found = job.loop.belief.mixture()
        if job.finished is not None:
            self._record(job.finished, job.loop, found)
        mean, variance = found.moments()
        std = np.sqrt(np.maximum(variance, 0.0))
        belief, now = job.loop.belief, self._node.now_ns()
        weights = job.loop.topology.weights
        self._log.decisions(std, weights, known=belief.scale_known or bool(belief.observed.any()))
        self._publish("~/field", outputs.field_cloud(job.loop.topology, mean, std, now))
        self._grids.send(job.loop.topology, mean, std, now)
        for name, each in job.loop.quantities.items():
            mean, variance = each.belief.mixture().moments()
            std = np.sqrt(np.maximum(variance, 0.0))
            cloud = outputs.field_cloud(job.loop.topology, mean, std, now)
            self._publish(probe_topic(name, "~/field"), cloud)
            self._grids.send(job.loop.topology, mean, std, now, name)
        self._publish(
            "~/length_scale_belief",
            outputs.weights_message(belief.weights, belief.hyperparameters),
        )
        self.send_map(belief.observed)
        self._log.budget()

    def mission_ended(self) -> str:
        """Write summary and report; return the problems with the records, "" = no problem."""
        mission, recorder = self._parts.mission, self._parts.recorder
        logger = self._node.get_logger()
        logger.info(f"the mission is over: {mission.reason}; the last waypoint stays published")
        try:
            problem = recorder.conclude(mission, write_report)
            final = recorder.final_summary(mission)
            if final.promised_error is not None:
                logger.info(f"expected error of the map: {promised(final.to_mapping())}")
            if final.explained is not None:
                logger.info(describe_predictability(final.explained))
            if problem:
                logger.error(f"some records are missing: {problem}")
            elif recorder.run is not None:
                logger.info(f"report: {recorder.run.path / PAGE}")
            else:
                logger.info(_NOTHING_KEPT)
            if not mission.config.exit_at_end:
                logger.info("the node keeps its topics and services; Ctrl-C ends it")
            return problem
        finally:
            self.health.publish()  # must be published before the process may end
            if mission.config.exit_at_end:
                self._node.end(0)

    def finish(self, reason: str) -> str:
        """End the mission on request; return the problems with the records, "" = no problem."""
        self._stop(reason)
        self.send_results(self._parts.mission.preview())
        return self.mission_ended()

    def interrupted(self) -> None:
        """Write the final records of an unfinished mission, after the threads have stopped."""
        mission, recorder = self._parts.mission, self._parts.recorder
        ended, stage = mission.state == "ended", mission.decisions.stage
        untouched = mission.state == "idle" and not mission.loop.counts["accepted"]
        self._stop("the node was shut down", over=False)
        run, logger = recorder.run, self._node.get_logger()
        if ended:
            if run is not None and not (run.path / PAGE).exists():
                logger.warning(
                    "the report page is not written; "
                    f"`gp-active-sensing report {run.path}` writes it"
                )
            return
        saved = recorder.save(mission, "interrupted")
        if untouched:
            return
        if run is None:
            logger.info(f"stopped at stage {stage}; {_NOTHING_KEPT}")
        elif saved and (missing := recorder.missing):
            logger.error(
                f"stopped at stage {stage}: {missing}; make room, then start again with "
                f"run_dir:={run.path} to continue without them"
            )
        elif saved:
            logger.info(
                f"stopped at stage {stage}: mission kept in {run.path}; "
                f"start again with run_dir:={run.path} to continue"
            )

    def _stop(self, reason: str, *, over: bool = True) -> None:
        mission = self._parts.mission
        for stage in mission.stop(reason, over=over):
            self._record(stage, mission.loop)

    def _record(self, stage: Stage, loop: SensingLoop, found: Mixture | None = None) -> None:
        if not self._parts.mission.claim(stage):
            return  # the other thread has written the report
        recorder, logger = self._parts.recorder, self._node.get_logger()
        logger.info(recorder.stage(stage, loop, found))
        if turn := self._monitor.message(recorder.stages.newest):
            logger.info(turn)
