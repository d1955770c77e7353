"""The contract of every policy on a map, and which pairs of both are tested per commit."""

from __future__ import annotations

import dataclasses
import functools
import json
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gp_active_sensing.belief import Belief, BeliefConfig, belief_on, build_belief
from gp_active_sensing.belief.from_kernel_model import belief_of
from gp_active_sensing.config import from_mapping
from gp_active_sensing.errors import PlanningError
from gp_active_sensing.loop import SensingLoop
from gp_active_sensing.planning import Policy, build_policy, policies
from gp_active_sensing.planning.base import check_fit, crosses, revisits
from gp_active_sensing.planning.external import end as end_program
from gp_active_sensing.planning.request import PlanRequest
from gp_active_sensing.topology import MapConfig, Topology, build_topology
from gp_active_sensing.types import Budget, Plan, PlanLimit
from tests.chooser import CHOOSER
from tests.kernel_models import make_model

MAPS = {
    "line": {"kind": "line", "count": 12, "spacing": 1.0, "moves": "free"},
    "grid": {"kind": "grid", "columns": 4, "rows": 3, "spacing": 2.0, "neighbours": 8},
    "town": {"kind": "roads", "file": "town.geojson"},
    "town_relational": {"kind": "roads", "file": "town.geojson", "features": ["relational"]},
    "town_graph": {"kind": "roads", "file": "town.geojson", "anchor": 1.0},
    "line_kernels": {"kind": "line", "count": 11, "spacing": 1.0, "moves": "free"},
    "grid_kernels": {"kind": "grid", "columns": 4, "rows": 3, "spacing": 2.0, "neighbours": 8},
    "line_linear": {"kind": "line", "count": 11, "spacing": 1.0, "moves": "free"},
}
SCALES = {"town": 300.0, "town_relational": 3.0, "town_graph": 300.0}
"""Middle of the length-scales; 2 elsewhere."""
KERNELS = {
    "line_kernels": ("SE", "LIN", "PER×RQ", "LIN×SE+PER"),
    "grid_kernels": ("SE", "LIN", "PER×RQ", "LIN×SE+PER"),
    "line_linear": ("LIN",),
}
"""Maps on which the belief is over kernels; the variance of a LIN is 0 in the middle."""
NEEDED = {"external": {"command": [sys.executable, "-S", str(CHOOSER)]}}
"""Configuration that a policy cannot do without."""
REFUSED = {("ite", name) for name in MAPS if name not in ("line", "line_linear")}
REFUSED |= {("lawnmower", name) for name in MAPS if name.startswith("town")}
"""Policies that refuse a map before the mission begins."""
LIMITS = (
    PlanLimit(expansions=0),
    PlanLimit(seconds=0.0),
    PlanLimit(seconds=1e-6),
    PlanLimit(seconds=0.02),
)


def configured(name: str) -> dict[str, object]:
    return {"name": name, **NEEDED.get(name, {})}


@functools.cache
def shared_world(name: str) -> tuple[Topology, Belief, int]:
    """Return a map, a belief after readings at three places, and where the probe stands."""
    topology = build_topology(from_mapping(MapConfig, MAPS[name]))
    if name in KERNELS:
        belief, values = learned(topology, KERNELS[name]), [30.0, 31.0, 32.0]
    else:
        scale = SCALES.get(name, 2.0)
        known = {"length_scales": (0.5 * scale, scale, 3 * scale), "signal_std": (7.0,)}
        if name == "town_graph":  # kernels, parts of the places' own, length-scales
            kernels = ("graph_matern12", "graph_matern32", "matern12")
            known = {"kernel": kernels, "place_std": (0.0, 4.0), "signal_std": (7.0,)}
            known["length_scales"] = (scale, 3 * scale)
        config = BeliefConfig(**known, noise_std=(1.0,))  # type: ignore[arg-type]
        belief = belief_on(config, topology)
        values = np.random.default_rng(0).normal(30, 7, 3).tolist()
    for place, value in enumerate(values):
        belief.observe(place, value)
    return topology, belief, 1


def learned(topology: Topology, names: tuple[str, ...]) -> Belief:
    X = topology.features
    y = 30.0 + 7.0 * np.sin(1.3 * X[:, 0] + 0.4 * X[:, -1])
    bounds = {name: -0.5 * k for k, name in enumerate(names)}
    model = make_model(names, X, y, input_names=topology.feature_names, bounds=bounds)
    return belief_of(model, BeliefConfig(model="made"), X, topology.feature_names)


def ask(policy: Policy, world: Any, *, seed: int = 3, state: Any = None, **options: Any) -> Any:
    topology, belief, at = world
    options = {"limit": PlanLimit(expansions=20)} | options
    rng = np.random.default_rng(seed)
    return policy.plan(PlanRequest(belief, topology, at, rng=rng, **options), state)


def goals(policy: Policy, world: Any) -> list[int]:
    """Return what may be chosen.

    The candidates, all places for policies that read places again, and for those that follow a
    route what can be reached through known places.
    """
    topology, belief, at = world
    if revisits(policy):
        return np.flatnonzero(np.isfinite(topology.ways_from(at).seconds)).tolist()
    if not crosses(policy) or topology.free:
        return topology.candidates(at, belief.observed).tolist()
    found = []
    for place in np.flatnonzero(~belief.observed).tolist():
        try:
            topology.route(at, place, belief.observed)
        except PlanningError:
            continue
        found.append(place)
    return found


def assert_ordered(plan: Plan) -> None:
    assert np.isfinite([plan.lower, plan.upper]).all()
    assert plan.lower <= plan.upper
    assert [c.location for c in plan.candidates] == sorted(c.location for c in plan.candidates)
    assert all(c.lower <= c.upper for c in plan.candidates)


def assert_contract(policy: Policy, world: Any) -> None:
    topology, belief, at = world
    before = (belief.weights, *belief.predict(), belief.observed.copy())
    plan, state = ask(policy, world)
    assert_legal(policy, world, plan)

    again, _ = ask(policy, world)
    assert dataclasses.replace(plan, seconds=0.0) == dataclasses.replace(again, seconds=0.0)

    restored = json.loads(json.dumps(state))
    first, second = ask(policy, world, state=state)[0], ask(policy, world, state=restored)[0]
    assert first.waypoints == second.waypoints, "the state does not survive JSON"

    for limit in LIMITS:
        plan, _ = ask(policy, world, limit=limit)
        assert plan.waypoint in goals(policy, world), limit
        assert_ordered(plan)

    candidates = topology.candidates(at, belief.observed)
    for option in ("pending", "unavailable"):
        plan, _ = ask(policy, world, **{option: tuple(candidates.tolist())})
        assert plan.waypoint not in candidates, option
        # On the grid and in the town there is always somewhere else.
        assert plan.waypoint is not None or (plan.reason and topology.free), option

    plan, _ = ask(policy, world, remaining=Budget(readings=0))
    assert plan.waypoint is None
    assert "readings" in plan.reason
    assert ask(policy, world, remaining=Budget(readings=1))[0].horizon == 1
    plan, _ = ask(policy, world, remaining=Budget(metres=0.0))
    here = topology.ways_from(at).metres[at] == 0.0
    assert plan.waypoint == (at if revisits(policy) and here else None)
    assert plan.waypoint is not None or "metres" in plan.reason

    fresh = build_belief(BeliefConfig(length_scales=(1.0,)), topology.features)
    plan, _ = ask(policy, (topology, fresh, 0))
    assert plan.waypoint is not None, "before the first reading, with one length-scale"
    assert_ordered(plan)

    for a, b in zip(before, (belief.weights, *belief.predict(), belief.observed), strict=True):
        np.testing.assert_array_equal(a, b, err_msg="the belief was changed")
    check_fit(policy, belief, topology)
    assert SensingLoop(topology, belief.copy(), policy).ask(at).waypoint is not None


def assert_legal(policy: Policy, world: Any, plan: Plan) -> None:
    """Assert that a plan goes to a place that may be chosen, on a legal way, at its cost."""
    topology, belief, at = world
    assert plan.waypoint in goals(policy, world)
    assert plan.path[-1] == plan.waypoint
    assert_ordered(plan)
    here = at
    for place in () if topology.free else plan.path:
        assert place in topology.neighbours(here)
        here = place
    if revisits(policy):
        route = topology.ways_from(at).route(plan.waypoint)
    else:
        route = topology.route(at, plan.waypoint, belief.observed)
    assert plan.cost == route.cost


def pairs(maps: tuple[str, ...]) -> list[Any]:
    """Return the pairs of a policy and one of some maps.

    Each policy meets a map of each file; all other pairs are of `make test-long`. Policies next to
    each other in the table are relatives and meet different maps.
    """
    found = []
    for number, name in enumerate(policies.names()):
        open_ = [m for m in maps if (name, m) not in REFUSED]
        for place, map_name in enumerate(open_):
            marks = () if place == number % len(open_) else (pytest.mark.long,)
            found.append(pytest.param(name, map_name, marks=marks, id=f"{name}-{map_name}"))
    return found


def contract_on(*maps: str) -> Callable[[str, str], None]:
    @pytest.mark.parametrize(("name", "map_name"), pairs(maps))
    def test_the_policy_keeps_its_contract(name: str, map_name: str) -> None:
        policy = build_policy(configured(name))
        try:
            assert_contract(policy, shared_world(map_name))
        finally:
            end_program(policy)

    return test_the_policy_keeps_its_contract
