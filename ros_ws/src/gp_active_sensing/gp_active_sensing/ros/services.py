"""Services of ``active_sensing``: commands for the mission, and for each probe of a fleet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from std_srvs.srv import Trigger

from gp_active_sensing.errors import ConfigError
from gp_active_sensing.mission import changes
from gp_active_sensing.mission.config import ActiveSensingConfig
from gp_active_sensing.mission.factory import MissionComponents
from gp_active_sensing.mission.fleet import OFF_LIST
from gp_active_sensing.mission.log_messages import FINISHING
from gp_active_sensing.mission.mission import Mission
from gp_active_sensing.mission.names import MOST_PROBES, probe_names, probe_topic, shared_topics
from gp_active_sensing.ros.node_base import GuardedNode
from gp_active_sensing.ros.publishers import Publishers
from gp_active_sensing.ros.subscriptions import Subscriptions
from gp_active_sensing.ros.worker import Worker

_INACTIVE = "the node is not active: configure and activate it first"


class Services:
    """Services of a mission. If a command is impossible, the answer states the reason."""

    def __init__(self, node: GuardedNode, parts: MissionComponents, results: Publishers) -> None:
        self._parts = parts
        self._results = results
        self.worker: Worker | None = None
        """Runner of the mission's threads; None while the node is not active."""
        mission = parts.mission
        commands: list[tuple[str, Callable[[], str], str]] = [
            ("start", partial(mission.start, "asked by ~/start"), "started"),
            ("pause", partial(mission.pause, "asked by ~/pause"), "paused"),
            ("resume", partial(mission.resume, "asked by ~/resume"), "resumed"),
        ]
        if "" in mission.probes:  # in a fleet, each probe has a service (`FleetServices`)
            done = "blocked for a while; another is chosen"
            commands.append(("unreachable", mission.unreachable, done))
        for name, command, done in commands:
            callback = partial(_carry_out, partial(self._if_active, command), done)
            node.own(node.create_service(Trigger, f"~/{name}", callback))
        for name in ("accept_gated", "finish", "save"):
            node.own(node.create_service(Trigger, f"~/{name}", getattr(self, f"_on_{name}")))

    def _if_active(self, command: Callable[[], str]) -> str:
        return _INACTIVE if self.worker is None else command()

    def _on_accept_gated(self, request: Any, response: Any) -> Any:
        mission = self._parts.mission
        if mission.state == "ended":
            response.message = f"the mission is ended ({mission.reason})"
            return response
        found = mission.accept_gated()
        response.success = found > 0
        response.message = f"{found} readings are used after all" if found else "none is set aside"
        return response

    def _on_finish(self, request: Any, response: Any) -> Any:
        """End the mission; answer when the summary and the report have been written."""
        mission, worker = self._parts.mission, self.worker
        if worker is None:
            response.message = _INACTIVE
        elif mission.state == "ended":
            response.message = f"the mission is ended already ({mission.reason})"
        else:
            mission.pause(FINISHING)
            worker.settle()
            problem = self._results.finish("asked to finish")
            response.success = not problem
            kept = f", but not everything is kept: {problem}" if problem else ""
            response.message = f"finished{kept}; the last waypoint stays published"
        return response

    def _on_save(self, request: Any, response: Any) -> Any:
        parts = self._parts
        if parts.recorder.run is None:
            response.message = "nothing is recorded: set the parameter run_dir and configure again"
            return response
        status = "finished" if parts.mission.state == "ended" else "running"
        response.success = parts.recorder.save(parts.mission, status)
        where = parts.recorder.run.path
        what = " and ".join(("summary", *parts.recorder.written))
        response.message = f"{what} written to {where}" if response.success else "see the log"
        return response


class FleetServices:
    """Services of a fleet's probes, and changes of the parameter `probes`.

    A new probe gets its topics and joins with its first pose. A removed probe leaves the mission:
    its subscriptions and services are destroyed, and readings that wait are used or rejected. Its
    publishers, drives and past readings are kept, since another thread may use them.
    """

    def __init__(
        self,
        node: GuardedNode,
        parts: MissionComponents,
        inputs: Subscriptions,
        results: Publishers,
        config: ActiveSensingConfig,
    ) -> None:
        self._node = node
        self._mission = parts.mission
        self._inputs = inputs
        self._results = results
        self._listed = frozenset(config.probes)
        self._topics = config.topics
        self._services: dict[str, list[Any]] = {}
        for name in self._mission.probes:
            if name:
                self._offer(name)

    def refusal(self, names: Sequence[str]) -> str:
        """Return why the probes cannot have these names; "" = they can."""
        try:
            probe_names(names)
        except ConfigError as error:
            return str(error)
        if "" in self._mission.probes:
            return (
                "probes: this mission has one probe without a name; clean up the node, set the "
                "names and configure it again to have several"
            )
        if not names:
            return "probes: one name at least must stay; ~/finish ends the mission"
        if problem := shared_topics(self._topics, names):
            return problem
        ever = len({*self._mission.probes, *names})
        if ever > MOST_PROBES:
            return (
                f"probes: {ever} would have been named in this mission, those that have left "
                f"included; expected {MOST_PROBES} at most: use a name that it knows, or begin "
                "another mission"
            )
        return ""

    def change(self, names: Sequence[str]) -> None:
        """Add and remove probes until the mission has exactly the probes `names`."""
        mission = self._mission
        for name in names:
            if name not in mission.probes:
                # The topics must exist first, since the mission publishes at once.
                self._results.waypoints.add_probe(name)
                self._inputs.listen(name)
                self._offer(name)
                changes.add_probe(mission, name)
                self._node.get_logger().info(f"{name} may join: waiting for its first pose")
            elif name not in self._listed:
                if name not in self._services:
                    self._inputs.listen(name)
                    self._offer(name)
                changes.join(mission, name)
        for name in self._listed - set(names):
            changes.leave(mission, name, OFF_LIST)
            self._inputs.drop(name)
            for service in self._services.pop(name):
                self._node.destroy_owned(service)
        self._listed = frozenset(names)

    def _offer(self, name: str) -> None:
        for word, command, done in (
            ("join", changes.join, "takes part from its next pose on"),
            ("leave", changes.leave, "leaves the mission; its last waypoint stays published"),
            (
                "unreachable",
                Mission.unreachable,
                "is sent to another place; this one is blocked for a while",
            ),
        ):
            service = probe_topic(name, word)
            run = partial(command, self._mission, name)
            callback = partial(_carry_out, run, f"{name} {done}")
            made = self._node.own(self._node.create_service(Trigger, f"~/{service}", callback))
            self._services.setdefault(name, []).append(made)


def _carry_out(command: Callable[[], str], done: str, request: Any, response: Any) -> Any:
    """Run a command, and fill the response of its service with the result."""
    problem = command()
    response.success = not problem
    response.message = problem or done
    return response
