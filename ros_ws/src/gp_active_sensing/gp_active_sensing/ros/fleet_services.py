"""Services of each of several probes, and the list of probes that may change."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from std_srvs.srv import Trigger

from gp_active_sensing.errors import ConfigError
from gp_active_sensing.mission.factory import MissionComponents
from gp_active_sensing.mission.fleet import OFF_LIST
from gp_active_sensing.mission.names import MOST_PROBES, probe_names, probe_topic
from gp_active_sensing.ros.node_base import GuardedNode
from gp_active_sensing.ros.publishers import Publishers
from gp_active_sensing.ros.subscriptions import Subscriptions

__all__ = ["FleetServices"]


class FleetServices:
    """Lets probes join and leave while the mission goes on.

    A probe that is new to the list gets its topics and joins with its first pose. One that is taken
    off leaves: it is heard no more, its services go and what waited for it is used or counted. What
    it found, what it drove and the topics that are sent to it stay, so that nothing is torn down
    that another thread may be using.

    Args:
        node: offers the services.
        parts: the mission.
        inputs: subscribes for a new probe.
        results: publishes for a new probe.
        listed: names in the parameter ``probes``.
    """

    def __init__(
        self,
        node: GuardedNode,
        parts: MissionComponents,
        inputs: Subscriptions,
        results: Publishers,
        listed: Sequence[str],
    ) -> None:
        self._node = node
        self._mission = parts.mission
        self._inputs = inputs
        self._results = results
        self._listed = frozenset(listed)
        self._services: dict[str, list[Any]] = {}
        """Of each probe on the list."""
        for name in self._mission.probes:
            if name:
                self._offer(name)

    def refusal(self, names: Sequence[str]) -> str:
        """Return why the list of probes cannot become this one, "" when it can."""
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
        ever = len({*self._mission.probes, *names})
        if ever > MOST_PROBES:
            return (
                f"probes: {ever} would have been named in this mission, those that have left "
                f"included; expected {MOST_PROBES} at most: use a name that it knows, or begin "
                "another mission"
            )
        return ""

    def change(self, names: Sequence[str]) -> None:
        """Let the probes of a list take part, and no others."""
        mission = self._mission
        for name in names:
            if name not in mission.probes:
                # Its topics first: nothing is sent to it, or said of it, before they are there.
                self._results.add_probe(name)
                self._inputs.listen(name)
                self._offer(name)
                mission.add(name)
                self._node.get_logger().info(f"{name} may join: its first pose is waited for")
            elif name not in self._listed:
                if name not in self._services:
                    self._inputs.listen(name)
                    self._offer(name)
                mission.join(name)
        for name in self._listed - set(names):
            mission.leave(name, OFF_LIST)
            self._inputs.drop(name)
            for service in self._services.pop(name):
                self._node.give_back(service)
        self._listed = frozenset(names)

    def _offer(self, name: str) -> None:
        for command, done in (
            ("join", "takes part from its next pose on"),
            ("leave", "takes no part any more; its last waypoint stands"),
            ("unreachable", "is sent to another place; this one is blocked for a while"),
        ):
            service = probe_topic(name, command)
            callback = partial(self._on_command, command, name, f"{name} {done}")
            made = self._node.own(self._node.create_service(Trigger, f"~/{service}", callback))
            self._services.setdefault(name, []).append(made)

    def _on_command(self, command: str, name: str, done: str, request: Any, response: Any) -> Any:
        problem = getattr(self._mission, command)(name)
        response.success = not problem
        response.message = problem or done
        return response
