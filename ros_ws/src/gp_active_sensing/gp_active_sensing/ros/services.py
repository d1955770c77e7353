"""Services of ``active_sensing``: commands of an operator to the mission."""

from __future__ import annotations

from typing import Any

from std_srvs.srv import Trigger

from gp_active_sensing.mission.command_words import FINISHING
from gp_active_sensing.mission.factory import MissionComponents
from gp_active_sensing.ros.node_base import GuardedNode
from gp_active_sensing.ros.publishers import Publishers
from gp_active_sensing.ros.worker import Worker

__all__ = ["Services"]

_INACTIVE = "the node is not active: configure and activate it first"


class Services:
    """Makes the services; they answer with a reason where a command does not fit the state.

    Args:
        node: offers them.
        parts: the mission and its records.
        results: writes summary and report at the end.
    """

    def __init__(self, node: GuardedNode, parts: MissionComponents, results: Publishers) -> None:
        self._parts = parts
        self._results = results
        self.worker: Worker | None = None
        """At work while the node is active."""
        names = ["start", "pause", "resume", "accept_gated", "finish", "save"]
        if "" in parts.mission.probes:  # of several each has its own (`fleet_services`)
            names.append("unreachable")
        for name in names:
            node.own(node.create_service(Trigger, f"~/{name}", getattr(self, f"_on_{name}")))

    def _on_start(self, request: Any, response: Any) -> Any:
        return self._command("start", "started", response, "asked by ~/start")

    def _on_pause(self, request: Any, response: Any) -> Any:
        done = "paused; the last waypoint stands"
        return self._command("pause", done, response, "asked by ~/pause")

    def _on_resume(self, request: Any, response: Any) -> Any:
        return self._command("resume", "resumed", response, "asked by ~/resume")

    def _on_unreachable(self, request: Any, response: Any) -> Any:
        """Hear from a controller that it cannot get to the waypoint."""
        return self._command("unreachable", "blocked for a while; another is chosen", response)

    def _on_accept_gated(self, request: Any, response: Any) -> Any:
        """Use the readings that were set aside: it was the field, not the sensor."""
        mission = self._parts.mission
        if mission.state == "ended":
            response.message = f"the mission is ended ({mission.reason})"
            return response
        found = mission.accept_gated()
        response.success = found > 0
        response.message = f"{found} readings are used after all" if found else "none is set aside"
        return response

    def _command(self, name: str, done: str, response: Any, *who: str) -> Any:
        command = getattr(self._parts.mission, name)
        problem = _INACTIVE if self.worker is None else command(*who)
        response.success = not problem
        response.message = problem or done
        return response

    def _on_finish(self, request: Any, response: Any) -> Any:
        """End the mission; the answer comes when summary and report are written."""
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
            response.message = f"finished{kept}; the last waypoint stands"
        return response

    def _on_save(self, request: Any, response: Any) -> Any:
        parts = self._parts
        if parts.recorder.run is None:
            response.message = "nothing is recorded: set the parameter run_dir and configure again"
            return response
        status = "finished" if parts.mission.state == "ended" else "running"
        response.success = parts.recorder.save(parts.mission, status)
        where = parts.recorder.run.path
        response.message = f"summary written to {where}" if response.success else "see the log"
        return response
