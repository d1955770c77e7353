"""An engine whose map changes: what was read, spent and promised stays."""

from __future__ import annotations

import pytest

from gp_active_sensing.belief import BeliefConfig, belief_on
from gp_active_sensing.loop import SensingLoop
from gp_active_sensing.planning import build_policy
from gp_active_sensing.types import Budget, Reading
from tests.unit.belief.test_more_places import cells

CONFIG = BeliefConfig(length_scales=(20.0, 60.0), signal_std=(1.0,), noise_std=(0.1,))


def loop(count: int = 25) -> SensingLoop:
    topology = cells(count)
    policy = build_policy({"name": "ie"})
    return SensingLoop(topology, belief_on(CONFIG, topology), policy, budget=Budget(readings=9))


def test_what_was_spent_stays_and_occupied_places_are_not_chosen() -> None:
    engine = loop()
    engine.tell([Reading(i, i, 20.0 + i) for i in range(3)])
    before, copy = engine.remaining, engine.snapshot()
    larger = cells(60)
    plan = engine.ask(0)
    engine.move_to(larger, belief_on(CONFIG, larger), closed=plan.path)
    assert engine.remaining == before
    assert engine.spent == 3
    assert copy.topology.n == copy.belief.n == 25, "a snapshot keeps its map"
    again = engine.ask(0)
    assert again.waypoint is not None
    assert again.waypoint not in plan.path
    engine.move_to(larger, belief_on(CONFIG, larger))
    assert engine.unavailable == frozenset(), "they come back"


def test_a_probe_in_a_place_that_became_occupied_drives_on_from_the_nearest_one() -> None:
    engine = loop()
    topology = engine.topology
    engine.move_to(topology, belief_on(CONFIG, topology), closed=[0])
    near = engine.open_place(0)
    assert near in topology.neighbours(0).tolist()
    assert engine.open_place(near) == near


def test_another_map_is_refused_and_nothing_has_changed() -> None:
    engine = loop(60)
    smaller = cells(25)
    with pytest.raises(ValueError, match=r"begins with the 60 places .* got one of 25"):
        engine.move_to(smaller, belief_on(CONFIG, smaller))
    assert engine.topology.n == engine.belief.n == 60
