"""The node plans while the probe drives, and knows nothing of the field that it is not told."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path
from typing import Any

from gp_active_sensing.planning.request import PlanRequest
from gp_active_sensing.ros.active_sensing_node import ActiveSensingNode
from tests.journals import records_of
from tests.ros.conftest import Ros, wait_active, wait_until
from tests.ros.probe import Probe, sensing


class Held:
    """A policy that plans without end while it is `held`, but looks at its clock meanwhile."""

    def __init__(self, good: Any, *, held_after: float) -> None:
        self.calls = 0
        self.held = False
        self._good = good
        self._held_after = held_after

    def plan(self, request: PlanRequest, state: Any = None) -> Any:
        self.calls += 1
        if self.calls > self._held_after:
            self.held = True
        while self.held and request.clock() < math.inf:  # the end of time is when it is given up
            time.sleep(0.005)
        return self._good.plan(request, state)


def prepared(
    ros: Ros, *parameters: str, held_after: float = math.inf
) -> tuple[ActiveSensingNode, Probe, Held]:
    """Return a node, the probe, which stands at place 0, and the policy."""
    node = sensing(ros, "map.columns:=8", "mission.begin:=false", *parameters)
    probe = Probe(ros).connect()
    wait_active(node)
    loop = node.mission.loop
    loop.policy = policy = Held(loop.policy, held_after=held_after)
    probe.pose(0.0)
    assert probe.call("start").success
    return node, probe, policy


def test_the_next_waypoint_is_there_on_arrival(ros: Ros, tmp_path: Path) -> None:
    run = tmp_path / "run"
    node, probe, policy = prepared(ros, "budget.readings:=5", f"run_dir:={run}")
    ahead = node.mission.probe.ahead
    for number in range(1, 5):
        wait_until(lambda n=number: len(probe.waypoints) == n, "the waypoint")
        wait_until(lambda: ahead.progress == "5 of 5", "the plans for what comes next")
        place = probe.waypoints[-1].pose.position
        calls, value = policy.calls, ahead.contingent.medians[number % 2]
        t, policy.held = probe.now_ns(), True
        probe.pose(place.x, place.y, t=t)
        probe.reading(value, t=t)
        wait_until(lambda n=number: len(probe.waypoints) > n, "the next waypoint, without planning")
        assert policy.calls <= calls + 1, "planning goes on only for the reading after that"
        policy.held = False
    probe.wait_value("decisions_foreseen", "4")
    probe.wait_value("decisions_computed", "1")
    assert float(probe.values["arrival_to_waypoint_foreseen_median_ms"]) > 0.0
    place = probe.waypoints[-1].pose.position
    t = probe.now_ns()
    probe.pose(place.x, place.y, t=t)
    probe.reading(1.0, t=t)
    probe.wait_value("state", "ended")
    wait_until((run / "report.html").exists, "the report")
    assert [record["foreseen"] for record in records_of(run)] == [False, True, True, True, True]
    latency = json.loads((run / "summary.json").read_text())["latency"]
    assert latency["arrival_to_waypoint"]["count"] == 5
    assert latency["arrival_to_waypoint_foreseen"]["count"] == 4
    assert not node.callback_errors
