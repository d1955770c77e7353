"""Node ``active_sensing``: receive readings and poses, publish the next waypoint.

Callbacks put messages into the inbox. The mission thread processes the messages. The planner thread
plans on a copy of the engine, so that no reading waits for a plan. This module connects the package
`mission` with topics, services and parameters.
"""

# ruff: noqa: E402  ROS is imported after the check for it
from __future__ import annotations

import dataclasses
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gp_active_sensing.ros.environment import require_ros_in
from gp_active_sensing.sim.world import field_knowledge

require_ros_in(__name__)

from gp_active_sensing.errors import ActiveSensingError, ConfigError, MapError, RunError
from gp_active_sensing.mission import live_parameters as live
from gp_active_sensing.mission.config import ActiveSensingConfig
from gp_active_sensing.mission.factory import MissionComponents, beside, build_parts
from gp_active_sensing.mission.live_map import FirstMap, NoMapYet
from gp_active_sensing.mission.log_messages import DEACTIVATED
from gp_active_sensing.mission.mission import Mission
from gp_active_sensing.mission.run_dirs import drop_note, note_run
from gp_active_sensing.planning import DEFAULT_POLICY, build_policy, policies
from gp_active_sensing.ros.environment import REFUSED
from gp_active_sensing.ros.journal_topic import JournalTopic
from gp_active_sensing.ros.node_base import GuardedNode, run_node
from gp_active_sensing.ros.parameters import ParameterTree
from gp_active_sensing.ros.publishers import Publishers
from gp_active_sensing.ros.services import FleetServices, Services
from gp_active_sensing.ros.subscriptions import Subscriptions
from gp_active_sensing.ros.worker import Worker
from gp_active_sensing.sim import load_scenario
from gp_active_sensing.sim.runner import asking_of, visits_of
from gp_active_sensing.sim.scenario import with_policy

if TYPE_CHECKING:
    from gp_active_sensing.ros.map_topic import MapTopic

NO_MAP = (
    "map: none is given, so there is no mission. Expected a map file (map:=FILE of the launch "
    "file, or map.file) or a map without one (map.kind: line, grid or points, with its keys) in "
    "the parameter file"
)
HEIGHTS = (
    "map.low, map.high: the points have heights (third entries, {} to {}), and drawn points lie in "
    "the plane: all would be at z = 0. Leave the heights out, set waypoint.altitude [m] to visit "
    "every point at that one height, or give a table of points with a column z (map.file), or a "
    "grid with map.heights"
)
LIVE = (*live.LIVE, "probes")
"""Parameters that may be changed after `configure` has run."""


class ActiveSensingNode(GuardedNode):
    """Lifecycle node of a mission.

    The topics, actions, services and parameters are in ``docs/ros.md``.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(
            "active_sensing", automatically_declare_parameters_from_overrides=True, **options
        )
        self._parts: MissionComponents | None = None
        self._worker: Worker | None = None
        self._note: tuple[str, int] | None = None
        self.results: Publishers | None = None
        """Publishers of the mission's results; None while the node is not configured."""
        self._fleet: FleetServices | None = None
        self._journal: JournalTopic | None = None
        self._map: MapTopic | None = None
        self._config: ActiveSensingConfig
        self._scenario: dict[str, Any] | None = None
        self.parameters = ParameterTree(self, ActiveSensingConfig, live=LIVE)
        self.parameters.locked = lambda: self._parts is not None or self._map is not None
        self._declare()
        self.add_post_set_parameters_callback(self.guarded(self._on_parameters))
        if self.parameters.mapping().get("autostart", True):
            self.start_by_itself()

    @property
    def mission(self) -> Mission | None:
        """Mission; None while the node is not configured.

        Hold ``mission.lock`` while you read several values that must be consistent.
        """
        return None if self._parts is None else self._parts.mission

    @property
    def is_active(self) -> bool:
        """True while readings are used and decisions are taken."""
        return super().is_active and self._worker is not None and self._worker.is_running

    def _declare(self) -> None:
        given = self.parameters.given
        defaults: dict[str, Any] = {}
        if name := given.get("scenario", ""):
            try:
                scenario = load_scenario(str(name))
                self._scenario = scenario.to_mapping()
                # The probes of a bag are not those of the scenario.
                followed = given.get("mission.follow") == "probe"
                defaults = {**self._scenario, "probes": [] if followed else list(scenario.names)}
                defaults["mission"] = visits_of(scenario)
                defaults["expert"] = asking_of(scenario)
            except ActiveSensingError as error:
                self.parameters.problem(f"scenario: {error}")
        policy = given.get("policy.name", defaults.get("policy", DEFAULT_POLICY)["name"])
        section: Any = None
        try:
            section = policies.factory(policy)
            defaults = with_policy(defaults, policy)
        except ConfigError:  # `configure` reports the error
            defaults["policy"] = {"name": policy}
        self.parameters.declare(defaults, policy=section)

    def _on_parameters(self, parameters: list[Any]) -> None:
        if self._parts is None or not any(p.name in LIVE for p in parameters):
            return
        before, self._config = self._config, self.parameters.config()
        with self._parts.mission.lock:
            if self._journal is not None:
                self._journal.changed(self._config)
            if self._fleet is not None and any(p.name == "probes" for p in parameters):
                self._fleet.change(self._config.probes)
            live.adjust(self._parts, before, self._config)
        if self.results is not None:
            self.results.waypoints.set_config(self._config.waypoint)

    def configure(self) -> None:
        """Build the mission from the parameters; report all problems in one message.

        If the map comes from a topic, the mission is built after the first map has come. A mission
        that is resumed is built at once with its stored map.
        """
        config: ActiveSensingConfig = self.parameters.config(check=self._check)
        config = dataclasses.replace(config, map=beside(config.map, self.file_folders))
        self._config = config
        if not config.map.topic:
            self._build(config, None)
            return
        from gp_active_sensing.ros.map_topic import MapTopic
        from gp_active_sensing.topology.map_config import OccupancyConfig

        assert isinstance(config.map, OccupancyConfig)
        self._map = MapTopic(self, config.map, self._begin, self._map_changed)
        try:
            self._build(config, None)
        except NoMapYet:
            self.get_logger().info(f"the mission begins with the first map on {self._map.name}")

    def _begin(self, first: FirstMap) -> None:
        try:
            self._build(self._config, first)
        except MapError:
            raise
        except ActiveSensingError as error:
            self.get_logger().error(f"cannot configure: {error}")
            self.end(REFUSED)
            return
        if super().is_active:
            self.activate()

    def _map_changed(self) -> None:
        if self.results is not None:
            self.results.send_map()

    def _build(self, config: ActiveSensingConfig, first: FirstMap | None) -> None:
        self._parts = parts = build_parts(
            config, self._scenario, field_knowledge=field_knowledge, first=first
        )
        run = parts.recorder.run
        if run is not None and not parts.recorder.earlier:
            self.get_logger().info(f"the mission is kept in {run.path}")
        try:  # the live page reads the note
            self._note = self.get_fully_qualified_name(), self.context.get_domain_id()
            note_run(*self._note, None if run is None else run.path)
        except RunError as error:
            self.get_logger().warning(f"the live page needs its parameter run_dir: {error}")
        self.results = Publishers(self, parts, config)
        inputs = Subscriptions(self, config, parts, self.results.health)
        self._commands = Services(self, parts, self.results)
        complete = dataclasses.replace(config, belief=parts.belief, map=parts.map)
        self._journal = JournalTopic(self, complete, self._scenario, parts)
        self._fleet = FleetServices(self, parts, inputs, self.results, config)
        self.parameters.checks["probes"] = self._fleet.refusal
        if self._map is not None:
            self._map.follow(parts.mission)

    def _check(self, mapping: dict[str, Any]) -> None:
        """Check that a map is given and that the policy is valid; raise ConfigError otherwise."""
        found: list[str] = []
        given = mapping.get("map", {})
        has_map = given.get("file") or given.get("topic")
        if not has_map and given.get("kind") in (None, "", "roads"):
            found.append(NO_MAP)
        box = [corner for key in ("low", "high") if isinstance(corner := given.get(key), list)]
        altitude = mapping.get("waypoint", {}).get("altitude")
        asked = altitude or "waypoint.altitude" in self.parameters.given
        heights = [corner[2] for corner in box if len(corner) > 2]
        if given.get("kind") == "points" and len(heights) == 2 and not asked:
            found.append(HEIGHTS.format(*heights))
        try:
            build_policy(mapping.get("policy", {}))
        except ConfigError as error:
            found += error.problems
        if found:
            raise ConfigError(found)

    def activate(self) -> None:
        """Start the threads, then start or resume the mission."""
        if self._parts is None or self.results is None:
            return
        mission = self._parts.mission
        self._worker = Worker(mission, self.results, self.now_ns, self._is_simulated)
        self.results.health.worker_errors = self._worker.errors
        self.results.send_map()
        self._worker.start()
        self._commands.worker = self._worker
        if mission.config.begin and mission.state == "idle":
            mission.start()
        elif mission.reason == DEACTIVATED:
            mission.resume("the node is active again")
        elif mission.state != "running":
            self.get_logger().info(f"active; the mission is {_state_text(mission)}")

    def _is_simulated(self) -> bool:
        return bool(self.get_clock().ros_time_is_active)

    def deactivate(self) -> None:
        """Stop the threads and the probes; keep the mission."""
        self._stop_work()
        if self._parts is not None and self.results is not None:
            for name, probe in self._parts.mission.probes.items():
                if probe.target is not None and self._parts.mission.reason == DEACTIVATED:
                    self.results.publish_position(name)

    def _stop_work(self) -> None:
        if self._worker is None or self._parts is None:
            return
        mission = self._parts.mission
        if mission.pause(DEACTIVATED) and mission.state != "ended":
            self.get_logger().info(f"deactivated; the mission is {_state_text(mission)}")
        if not self._worker.stop():
            over = mission.state == "ended"
            what = "its records were still being written" if over else "it was still computing"
            self.get_logger().warning(f"{what} when the node was stopped; that is given up")
        self._worker = self._commands.worker = None

    def release(self) -> None:
        """Write the final records, and release topics and services."""
        self._stop_work()  # the threads may still run after an error
        if self._map is not None:
            self._map.close()
            self._map = None
        parts, results = self._parts, self.results
        self._parts = self.results = self._fleet = None
        if parts is not None and results is not None:
            results.waypoints.close()
            results.interrupted()
        if self._journal is not None:
            self._journal.flush()
            self._journal = None
        if parts is not None:
            parts.recorder.close()
        if self._note is not None:
            drop_note(*self._note)
        self.disown()


def _state_text(mission: Mission) -> str:
    idle = ": readings are used, no place is chosen; ~/start begins it"
    command = {"idle": idle, "paused": "; ~/resume goes on"}.get(mission.state, "")
    return mission.state + (f" ({mission.reason})" if mission.reason else "") + command


def main(args: Sequence[str] | None = None) -> int:
    """Run the node; return the exit code of the process."""
    return run_node(ActiveSensingNode, args)


if __name__ == "__main__":
    sys.exit(main())
