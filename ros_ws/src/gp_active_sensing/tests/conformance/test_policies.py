"""What every registered policy promises off any map, and over whole missions."""

from __future__ import annotations

import dataclasses
import json
import zlib
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gp_active_sensing.belief import BeliefConfig, build_belief
from gp_active_sensing.config import from_mapping, param_of, to_mapping
from gp_active_sensing.errors import ConfigError, PlanningError
from gp_active_sensing.loop import SensingLoop
from gp_active_sensing.planning import Policy, build_policy, policies
from gp_active_sensing.planning.base import check_fit, revisits
from gp_active_sensing.planning.external import end as end_program
from gp_active_sensing.topology import FreeTopology, MapConfig, build_topology, make_line
from gp_active_sensing.types import Budget, PlanLimit, Reading
from tests.conformance.contract import MAPS, REFUSED, ask, configured, shared_world
from tests.recorded import check_recorded
from tests.requesting import believing

RECORD = Path(__file__).with_name("recorded.json")
MISSIONS = tuple(
    product(
        (Budget(metres=14.0), Budget(seconds=14.0), Budget(4, 20.0), Budget(5, 25.0, 22.0)),
        (("line", 0.0), ("grid", 0.0), ("grid", 4.0)),
        (None, 2, 11),
    )
)
"""Budgets, maps with their reach, and end places."""


@pytest.fixture(params=policies.names())
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def policy(name: str) -> Iterator[Policy]:
    built = build_policy(configured(name))
    yield built
    end_program(built)


def test_a_policy_that_does_not_fit_is_refused_at_once() -> None:
    for name, map_name in sorted(REFUSED):
        topology, belief, _ = shared_world(map_name)
        policy = build_policy(configured(name))
        for refused in (check_fit, lambda p, b, t: SensingLoop(t, b, p)):
            with pytest.raises(PlanningError, match=rf"policy {name} .* Take "):
                refused(policy, belief, topology)


def test_missions_stay_within_any_budget_and_end_where_they_have_to(
    name: str, policy: Policy
) -> None:
    """Each policy drives three of the missions as on record; together they drive all of them."""
    first = zlib.crc32(name.encode())  # other policies do not change it
    some = [MISSIONS[(first + 13 * number) % len(MISSIONS)] for number in range(3)]
    check_recorded(RECORD, name, [drive(name, policy, *mission) for mission in some])


@pytest.mark.long
def test_all_missions_stay_within_any_budget(name: str, policy: Policy) -> None:
    for mission in MISSIONS:
        drive(name, policy, *mission)


def drive(
    name: str, policy: Policy, budget: Budget, where: tuple[str, float], end: int | None
) -> list[Any]:
    """Drive a mission to its end and check what it took; return its plans."""
    map_name, reach = where
    topology = build_topology(from_mapping(MapConfig, MAPS[map_name] | {"reach": reach}))
    if revisits(policy) and budget.readings is None:  # staying where it is costs nothing else
        budget = dataclasses.replace(budget, readings=9)
    limit = dataclasses.replace(budget, end=end)
    belief = build_belief(BeliefConfig(length_scales=(1.0, 4.0)), topology.features)
    if (name, map_name) in REFUSED:
        return []
    loop = SensingLoop(topology, belief, policy, budget=limit, limit=PlanLimit(expansions=10))
    at, metres, seconds = 0, 0.0, 0.0
    plans = []
    while True:
        plan = loop.ask(at)
        plans.append([plan.waypoints, plan.path, plan.cost, plan.lower, plan.upper])
        for place in plan.path:
            at = place
            if loop.wants(at):
                loop.tell([Reading(0, at, float(np.sin(at)))])
        loop.moved(plan.cost)
        metres, seconds = metres + plan.cost.metres, seconds + plan.cost.seconds
        if plan.waypoint is None:
            break
    mission = (limit, where)
    assert plan.reason, mission
    assert end is None or at == end, mission
    assert limit.metres is None or metres <= limit.metres + 1e-9, mission
    assert limit.seconds is None or seconds <= limit.seconds + 1e-9, mission
    assert limit.readings is None or belief.observed.sum() <= limit.readings, mission
    assert belief.observed.sum() >= (1 if revisits(policy) else 2), mission
    return [*plans, loop.remaining, loop.spent]


def test_the_last_place_and_nothing_left() -> None:
    topology = build_topology(from_mapping(MapConfig, MAPS["line"] | {"count": 3}))
    for name in policies.names():
        belief = build_belief(BeliefConfig(length_scales=(1.0, 2.0)), topology.features)
        policy, world = build_policy(configured(name)), (topology, belief, None)
        for place in (0, 2):
            belief.observe(place, 1.0)
        plan, _ = ask(policy, world)
        assert plan.waypoint in ((0, 1, 2) if revisits(policy) else (1,)), name
        belief.observe(1, 1.0)
        plan, _ = ask(policy, world)
        if revisits(policy):
            assert plan.waypoint in (0, 1, 2), name
            plan, _ = ask(policy, world, pending=(1,), unavailable=(0, 2))
        assert plan.waypoint is None, name
        assert ("set aside" if revisits(policy) else "observed") in plan.reason, name
        end_program(policy)


DEGENERATE: tuple[dict[str, Any], ...] = (
    {"length_scales": (2.0,)},
    {"length_scales": (2.0, 2.0), "noise_std": (1e6,)},
    {"length_scales": (1e-6, 1e6)},
    {"length_scales": (50.0,), "noise_std": (1e-9,), "mean_std": 0.0},
    {"noise_std": (0.1, 5.0)},
    {"weights": (0.5, 0.0, 0.5)},
    {"weights": (0.0, 0.0, 1.0)},
    {"mean": "linear"},
    {"length_scales": None, "signal_std": None, "noise_std": None},
)


@pytest.mark.parametrize("part", range(4))
def test_degenerate_beliefs_give_numbers_to_the_end(part: int) -> None:
    """On a line with an outlier, and where places are one and all readings the same."""
    at = np.column_stack([[0.0, 0.0, 1.0, 2.0, 2.0, 5.0, 6.0], np.zeros(7)])
    twins = FreeTopology("twins", "map", list("abcdefg"), at)
    for name in policies.names()[part::4]:
        if name == "external":
            continue  # what it plans is another program's
        for topology, options in product((make_line(7, 1.0, moves="free"), twins), DEGENERATE):
            known = {"length_scales": (0.6, 2.0, 7.0), "signal_std": (3.0,), "noise_std": (0.4,)}
            belief, policy = believing(topology, **(known | options)), build_policy({"name": name})
            budget, limit = Budget(readings=7), PlanLimit(expansions=10)
            loop = SensingLoop(topology, belief, policy, budget=budget, limit=limit)
            place = None
            for stage in range(7):
                plan = loop.ask(place)
                place = plan.waypoint
                numbers = [plan.lower, plan.upper, *(c.lower for c in plan.candidates)]
                assert place is not None, (name, options, stage)
                assert np.isfinite(numbers).all(), (name, options, stage)
                loop.policy_state = json.loads(json.dumps(loop.policy_state))
                value = 5.0 if topology is twins else (1e8 if stage == 4 else float(np.sin(stage)))
                loop.tell([Reading(stage, place, value)])
            assert np.isfinite(belief.predict()).all(), (name, options)


def test_configuration_round_trip_help_and_unknown_key() -> None:
    for name in policies.names():
        policy = build_policy(configured(name))
        cls = type(policy)
        assert from_mapping(cls, to_mapping(policy)) == policy
        for field in dataclasses.fields(cls):
            assert param_of(field).help, f"{cls.__name__}.{field.name} has no help"
        assert (cls.__doc__ or "").strip(), name
        with pytest.raises(dataclasses.FrozenInstanceError):
            policy.anything = 1  # type: ignore[attr-defined]
        with pytest.raises(ConfigError, match=r"policy\.horizonn: unknown key"):
            build_policy({**configured(name), "horizonn": 3})
        for removed in getattr(cls, "REMOVED", {}):
            with pytest.raises(ConfigError, match=rf"policy\.{removed}: is removed"):
                build_policy({**configured(name), removed: 3})


def test_unknown_policy_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match="Did you mean 'bal'"):
        build_policy({"name": "ball"})
    with pytest.raises(ConfigError, match=r"policy\.name: is required"):
        build_policy({"horizon": 3})
