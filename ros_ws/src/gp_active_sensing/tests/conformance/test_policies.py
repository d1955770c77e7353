"""What every registered policy promises; walks the registry, so none can be forgotten."""

from __future__ import annotations

import dataclasses
import functools
import json
import sys
from collections.abc import Iterator

import numpy as np
import pytest

from gp_active_sensing.belief import Belief, BeliefConfig, belief_of, belief_on, build_belief
from gp_active_sensing.config import from_mapping, param_of, to_mapping
from gp_active_sensing.errors import ConfigError, PlanningError
from gp_active_sensing.loop import SensingLoop
from gp_active_sensing.planning import Policy, build_policy, policies
from gp_active_sensing.planning.base import PlanRequest, check_fit, crosses
from gp_active_sensing.planning.external import end as end_program
from gp_active_sensing.topology import MapConfig, Topology, build_topology
from gp_active_sensing.types import Budget, Plan, PlanLimit, Reading
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


NEEDED = {"external": {"command": [sys.executable, "-S", str(CHOOSER)]}}
"""Configuration that a policy cannot do without."""
VARIANTS: dict[str, dict[str, object]] = {}
"""Settings of a policy that do something else: they promise the same."""
REFUSED = {("ite", name) for name in MAPS if name not in ("line", "line_linear")}
REFUSED |= {("lawnmower", name) for name in MAPS if name.startswith("town")}
"""Policies that say that they cannot plan on a map; they are tested on the others."""


KERNELS = {
    "line_kernels": ("SE", "LIN", "PER×RQ", "LIN×SE+PER"),
    "grid_kernels": ("SE", "LIN", "PER×RQ", "LIN×SE+PER"),
    "line_linear": ("LIN",),
}
"""Maps on which the belief is over kernels. Their variance differs from place to place; that of a
LIN is 0 in the middle."""


def learned(topology: Topology, names: tuple[str, ...]) -> Belief:
    """Return a belief over kernels, about as probable as one another."""
    X = topology.features
    y = 30.0 + 7.0 * np.sin(1.3 * X[:, 0] + 0.4 * X[:, -1])
    bounds = {name: -0.5 * k for k, name in enumerate(names)}
    model = make_model(names, X, y, input_names=topology.feature_names, bounds=bounds)
    return belief_of(model, BeliefConfig(model="made", scales=3), X, topology.feature_names)


def make_world(name: str) -> tuple[Topology, Belief, int]:
    topology = shared_topology(name)
    if name in KERNELS:
        belief = learned(topology, KERNELS[name])
        for place in (0, 1, 2):
            belief.observe(place, 30.0 + place)
        return topology, belief, 1
    scale = SCALES.get(name, 2.0)
    known = {"length_scales": (0.5 * scale, scale, 3 * scale), "signal_std": (7.0,)}
    if name == "town_graph":  # of everything: kernels, parts of the places' own, length-scales
        known |= {"kernel": ("graph_matern12", "graph_matern", "matern12"), "place_std": (0.0, 4.0)}
        known |= {"length_scales": (scale, 3 * scale)}
    config = BeliefConfig(**known, noise_std=(1.0,))  # type: ignore[arg-type]
    belief = belief_on(config, topology)
    rng = np.random.default_rng(0)
    for place in (0, 1, 2):
        belief.observe(place, float(rng.normal(30, 7)))
    return topology, belief, 1


@functools.cache
def shared_topology(name: str) -> Topology:
    return build_topology(from_mapping(MapConfig, MAPS[name]))


@functools.cache
def untaught(name: str) -> Belief:
    """Return a belief without a reading and with one candidate, on a map."""
    return build_belief(BeliefConfig(length_scales=(1.0,)), shared_topology(name).features)


@functools.cache
def shared_world(name: str) -> tuple[Topology, Belief, int]:
    return make_world(name)


def configured(name: str) -> dict[str, object]:
    return {"name": name, **NEEDED.get(name, {}), **VARIANTS.get(name, {})}


@pytest.fixture(params=[*policies.names(), *VARIANTS])
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def policy(name: str) -> Iterator[Policy]:
    built = build_policy(configured(name))
    yield built
    end_program(built)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Every policy on every map that it does not refuse."""
    if "world" in metafunc.fixturenames:
        names = [*policies.names(), *VARIANTS]
        pairs = [(p, m) for p in names for m in sorted(MAPS) if (p, m) not in REFUSED]
        metafunc.parametrize(("name", "world"), pairs, indirect=["world"])


@pytest.fixture
def world(request: pytest.FixtureRequest) -> tuple[Topology, Belief, int]:
    return shared_world(request.param)


@pytest.mark.parametrize("map_name", sorted(MAPS))
def test_a_policy_that_does_not_fit_is_refused_at_once(
    name: str, policy: Policy, map_name: str
) -> None:
    topology, belief, _ = shared_world(map_name)
    if (name, map_name) in REFUSED:
        for refused in (check_fit, lambda p, b, t: SensingLoop(t, b, p)):
            with pytest.raises(PlanningError, match=rf"policy {name} .* Take "):
                refused(policy, belief, topology)
    else:
        assert SensingLoop(topology, belief.copy(), policy).ask(1).waypoint is not None


def ask(policy: Policy, world, *, seed: int = 3, state=None, **options) -> tuple[Plan, object]:
    topology, belief, at = world
    options = {"limit": PlanLimit(expansions=20)} | options
    rng = np.random.default_rng(seed)
    return policy.plan(PlanRequest(belief, topology, at, rng=rng, **options), state)


def revisits(policy: Policy) -> bool:
    return getattr(policy, "revisits", False)


def goals(policy: Policy, world) -> list[int]:
    """What may be chosen: the candidates, or all that is of policies that read places again.

    Of those that follow a route, what can be reached through known places.
    """
    topology, belief, at = world
    if crosses(policy) and not topology.free:
        return [place for place in np.flatnonzero(~belief.observed) if has_way(world, place)]
    if not revisits(policy):
        return topology.candidates(at, belief.observed).tolist()
    return np.flatnonzero(np.isfinite(topology.ways_from(at).seconds)).tolist()


def has_way(world, place: int) -> bool:
    topology, belief, at = world
    try:
        topology.route(at, place, belief.observed)
    except PlanningError:
        return False
    return True


def test_waypoint_is_a_candidate_with_a_legal_way(policy: Policy, world) -> None:
    topology, belief, at = world
    plan, _ = ask(policy, world)
    assert plan.waypoint in goals(policy, world)
    assert plan.path[-1] == plan.waypoint
    assert plan.lower <= plan.upper
    if not topology.free:
        here = at
        for place in plan.path:
            assert place in topology.neighbours(here)
            here = place
    if revisits(policy):
        route = topology.ways_from(at).route(plan.waypoint)
    else:
        route = topology.route(at, plan.waypoint, belief.observed)
    assert plan.cost == route.cost
    assert [c.location for c in plan.candidates] == sorted(c.location for c in plan.candidates)
    assert all(c.lower <= c.upper for c in plan.candidates)


def test_same_arguments_give_the_same_plan(policy: Policy, world) -> None:
    first, second = ask(policy, world)[0], ask(policy, world)[0]
    assert dataclasses.replace(first, seconds=0.0) == dataclasses.replace(second, seconds=0.0)


def test_belief_is_not_changed(policy: Policy, world) -> None:
    _, belief, _ = world
    before = (belief.weights, *belief.predict(), belief.observed.copy())
    ask(policy, world, pending=(5, 6))
    for a, b in zip(before, (belief.weights, *belief.predict(), belief.observed), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    "limit",
    [
        PlanLimit(expansions=0),
        PlanLimit(seconds=0.0),
        PlanLimit(seconds=1e-6),
        PlanLimit(seconds=0.0, expansions=0),
        PlanLimit(seconds=0.02),
    ],
)
def test_any_limit_gives_a_legal_waypoint(policy: Policy, world, limit: PlanLimit) -> None:
    plan, _ = ask(policy, world, limit=limit)
    assert plan.waypoint in goals(policy, world)
    assert np.isfinite([plan.lower, plan.upper]).all()
    assert plan.lower <= plan.upper


def test_pending_and_unavailable_places_are_not_chosen(policy: Policy, world) -> None:
    topology, belief, at = world
    candidates = topology.candidates(at, belief.observed)
    for option in ("pending", "unavailable"):
        plan, _ = ask(policy, world, **{option: tuple(candidates.tolist())})
        assert plan.waypoint not in candidates
        if plan.waypoint is None:
            assert plan.reason
            assert topology.free, "on the grid and in the town there is always somewhere else"


def test_budget_is_obeyed(policy: Policy, world) -> None:
    plan, _ = ask(policy, world, remaining=Budget(readings=0))
    assert plan.waypoint is None
    assert "readings" in plan.reason
    plan, _ = ask(policy, world, remaining=Budget(readings=1))
    assert plan.horizon == 1
    plan, _ = ask(policy, world, remaining=Budget(metres=0.0))
    topology, _, at = world
    here = topology.ways_from(at).metres[at] == 0.0
    assert plan.waypoint == (at if revisits(policy) and here else None)
    assert plan.waypoint is not None or "metres" in plan.reason


BUDGETS = {
    "metres": Budget(metres=14.0),
    "seconds": Budget(seconds=14.0),
    "readings and metres": Budget(4, 20.0),
    "all": Budget(5, 25.0, 22.0),
}


@pytest.mark.slow
@pytest.mark.parametrize("budget", BUDGETS.values(), ids=BUDGETS)
@pytest.mark.parametrize(("map_name", "reach"), [("line", 0.0), ("grid", 0.0), ("grid", 4.0)])
def test_missions_stay_within_any_budget_and_end_where_they_have_to(
    name: str, policy: Policy, map_name: str, reach: float, budget: Budget
) -> None:
    topology = build_topology(from_mapping(MapConfig, MAPS[map_name] | {"reach": reach}))
    if revisits(policy) and budget.readings is None:  # staying where it is costs nothing else
        budget = dataclasses.replace(budget, readings=9)
    for end in (None, 2, topology.n - 1):
        limit = dataclasses.replace(budget, end=end)
        belief = build_belief(BeliefConfig(length_scales=(1.0, 4.0)), topology.features)
        if (name, map_name) in REFUSED:
            with pytest.raises(PlanningError):
                SensingLoop(topology, belief, policy, budget=limit)
            continue
        loop = SensingLoop(topology, belief, policy, budget=limit, limit=PlanLimit(expansions=10))
        at, metres, seconds = 0, 0.0, 0.0
        while True:
            plan = loop.ask(at)
            for place in plan.path:
                at = place
                if loop.wants(at):
                    loop.tell([Reading(0, at, float(np.sin(at)))])
            loop.moved(plan.cost)
            metres, seconds = metres + plan.cost.metres, seconds + plan.cost.seconds
            if plan.waypoint is None:
                break
        assert plan.reason
        assert end is None or at == end
        assert limit.metres is None or metres <= limit.metres + 1e-9
        assert limit.seconds is None or seconds <= limit.seconds + 1e-9
        assert limit.readings is None or belief.observed.sum() <= limit.readings
        assert belief.observed.sum() >= (1 if revisits(policy) else 2)


def test_nothing_left_to_observe_is_said(policy: Policy) -> None:
    topology = build_topology(from_mapping(MapConfig, MAPS["line"] | {"count": 2}))
    belief = build_belief(BeliefConfig(length_scales=(1.0,)), topology.features)
    for place in (0, 1):
        belief.observe(place, 1.0)
    plan, _ = ask(policy, (topology, belief, None))
    if revisits(policy):
        assert plan.waypoint in (0, 1)
        plan, _ = ask(policy, (topology, belief, None), pending=(1,), unavailable=(0,))
        assert plan.waypoint is None
        assert "set aside" in plan.reason
    else:
        assert plan.waypoint is None
        assert "observed" in plan.reason


def test_one_place_left(policy: Policy) -> None:
    topology = build_topology(from_mapping(MapConfig, MAPS["line"] | {"count": 3}))
    belief = build_belief(BeliefConfig(length_scales=(1.0, 2.0)), topology.features)
    for place in (0, 2):
        belief.observe(place, 1.0)
    plan, _ = ask(policy, (topology, belief, None))
    if revisits(policy):
        assert plan.waypoint in (0, 1, 2)
    else:
        assert plan.waypoint == 1


def test_before_the_first_reading_and_with_one_candidate_length_scale(
    name: str, policy: Policy
) -> None:
    for map_name in sorted(m for m in MAPS if (name, m) not in REFUSED):
        plan, _ = ask(policy, (shared_topology(map_name), untaught(map_name).copy(), 0))
        assert plan.waypoint is not None
        assert np.isfinite([plan.lower, plan.upper]).all()


def test_state_survives_json(policy: Policy, world) -> None:
    _, state = ask(policy, world)
    restored = json.loads(json.dumps(state))
    first, second = ask(policy, world, state=state)[0], ask(policy, world, state=restored)[0]
    assert first.waypoints == second.waypoints


def test_configuration_round_trip_and_help(policy: Policy) -> None:
    cls = type(policy)
    assert from_mapping(cls, to_mapping(policy)) == policy
    for field in dataclasses.fields(cls):
        assert param_of(field).help, f"{cls.__name__}.{field.name} says what it is"
    assert (cls.__doc__ or "").strip()
    with pytest.raises(dataclasses.FrozenInstanceError):
        policy.anything = 1  # type: ignore[attr-defined]


def test_unknown_key_is_an_error(name: str) -> None:
    with pytest.raises(ConfigError, match=r"policy\.horizonn: unknown key"):
        build_policy({**configured(name), "horizonn": 3})


def test_unknown_policy_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match="Did you mean 'bal'"):
        build_policy({"name": "ball"})
    with pytest.raises(ConfigError, match=r"policy\.name: is required"):
        build_policy({"horizon": 3})
