"""Policies that map a field, on one that drifts: they come back to what they have forgotten."""

from __future__ import annotations

import numpy as np

from gp_active_sensing.belief import BeliefConfig, belief_on
from gp_active_sensing.belief.drift import DriftConfig
from gp_active_sensing.loop import SensingLoop
from gp_active_sensing.planning import build_policy
from gp_active_sensing.topology import MapConfig, build_topology
from gp_active_sensing.types import PlanLimit, Reading
from tests.cases import for_each

INJECTION = DriftConfig(kind="injection", rate=0.05, forget_after=15.0)
MAPS = {
    "line": MapConfig(kind="line", count=24, spacing=1.0, moves="free"),
    "grid": MapConfig(kind="grid", columns=6, rows=4, spacing=1.0),
}


def mission(name: str, map_name: str, seconds: int):
    """One reading a second of a field that drifts; yield loop and place after each."""
    topology = build_topology(MAPS[map_name])
    config = BeliefConfig(
        length_scales=(2.0, 4.0), signal_std=(1.0,), noise_std=(0.1,), mean_std=2.0, drift=INJECTION
    )
    policy = build_policy({"name": name} | ({"horizon": 2} if name == "bal" else {}))
    loop = SensingLoop(
        topology, belief_on(config, topology), policy, seed=2, limit=PlanLimit(expansions=15)
    )
    x = topology.positions
    rng = np.random.default_rng(8)
    at: int | None = 0
    for second in range(seconds):
        phase = 2.0 * np.pi * second / 400.0
        field = 2.0 * np.cos(0.5 * x[:, 0] + 3.0 * phase) + np.sin(0.4 * x[:, 1] - 2.0 * phase)
        stamp = second * 10**9
        for place in (at,) if at is not None else ():
            loop.tell([Reading(stamp, place, float(field[place] + 0.1 * rng.normal()))])
        plan = loop.ask(at, now_ns=stamp)
        yield loop, at
        if plan.waypoint is None:
            return
        at = int(plan.waypoint)


@for_each("map_name", MAPS)
@for_each("name", ["ie", "bal", "max_entropy", "mutual_information", "apgd"])
def test_forgotten_places_are_visited_again_and_again(name: str, map_name: str) -> None:
    seconds = 60 if name == "bal" else 120
    visits = np.zeros(24, dtype=int)
    for loop, at in mission(name, map_name, seconds):
        visits[at] += 1
        last = np.flatnonzero(loop.belief.observed)
        assert last.size <= 16, "no more than what a probe can read in 15 s"
    assert visits.sum() == seconds, "the mission does not end: there is always something to see"
    assert (visits >= 2).sum() >= (5 if name == "bal" else 20)
