"""Several probes decided for at once, places visited again: the loop, with a policy for both."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest

from gp_active_sensing.belief import BeliefConfig, build_belief
from gp_active_sensing.config import from_mapping
from gp_active_sensing.engine.reservations import BudgetReservations, Observed, Visit
from gp_active_sensing.loop import SensingLoop
from gp_active_sensing.planning.base import PolicyState
from gp_active_sensing.planning.request import PlanRequest
from gp_active_sensing.topology import MapConfig, build_topology
from gp_active_sensing.types import Budget, Cost, Plan, Reading

Asked = list[tuple[str, tuple[Any, ...], tuple[int, ...]]]


@dataclass(frozen=True)
class Listed:
    """Goes where its list says; a batch takes as many entries as there are probes."""

    revisits: ClassVar[bool] = True
    places: tuple[int, ...] = (3, 7, 11, 3, 7, 3)

    asked: ClassVar[Asked] = []

    def _plan(self, place: int) -> Plan:
        return Plan((place,), 0.0, 1.0, 1, 0.0, deadline_hit=False, path=(place,), cost=Cost(1, 1))

    def plan(self, request: PlanRequest, state: PolicyState = None) -> tuple[Plan, PolicyState]:
        done = 0 if state is None else state["done"]
        self.asked.append(("one", (request.at,), tuple(request.pending)))
        return self._plan(self.places[done]), {"done": done + 1}

    def plan_batch(
        self,
        request: PlanRequest,
        at: Sequence[int | None],
        state: PolicyState = None,
    ) -> tuple[list[Plan], PolicyState]:
        done = 0 if state is None else state["done"]
        self.asked.append(("batch", tuple(at), tuple(request.pending)))
        plans = [self._plan(place) for place in self.places[done : done + len(at)]]
        return plans, {"done": done + len(at)}


@pytest.fixture
def loop() -> SensingLoop:
    Listed.asked.clear()
    topology = build_topology(
        from_mapping(MapConfig, {"kind": "grid", "columns": 5, "rows": 4, "moves": "free"})
    )
    belief = build_belief(BeliefConfig(length_scales=(2.0,)), topology.features)
    return SensingLoop(topology, belief, Listed(), budget=Budget(readings=6))


def test_one_choice_for_all_is_given_to_each_as_it_is_asked_for(loop: SensingLoop) -> None:
    waiting = {"a": 0, "b": 1, "c": None}
    first = loop.ask(0, probe="a", waiting=waiting)
    loop.policy_state = json.loads(json.dumps(loop.policy_state))  # as a journal gives it back
    second = loop.ask(1, probe="b", pending=(3,), waiting={"c": None})
    third = loop.ask(None, probe="c", pending=(3, 7))
    assert [p.waypoint for p in (first, second, third)] == [3, 7, 11]
    assert Listed.asked == [("batch", (0, 1, None), ())]
    assert loop.decisions == 3
    assert loop.policy_state == {"done": 3}
    assert second.path == (7,)
    assert (second.lower, second.upper, second.cost) == (0.0, 1.0, Cost(1, 1))


def test_what_was_read_since_makes_the_choice_worthless(loop: SensingLoop) -> None:
    loop.ask(0, probe="a", waiting={"b": 1})
    loop.tell([Reading(0, 3, 1.0)])
    plan = loop.ask(1, probe="b", pending=(3,))
    assert plan.waypoint == 11
    assert Listed.asked[-1] == ("one", (1,), (3,))


def test_a_probe_that_moved_on_or_cannot_get_there_is_decided_for_alone(loop: SensingLoop) -> None:
    loop.ask(0, probe="a", waiting={"b": 1, "c": 2})
    assert loop.ask(5, probe="b", pending=(3,)).waypoint == 3
    # The place kept for the third one is as good as given.
    assert Listed.asked[-1] == ("one", (5,), (3, 11))
    loop.blocked.add(11)
    loop.ask(2, probe="c", pending=(3,))
    assert Listed.asked[-1] == ("one", (2,), (3,))


def test_a_share_that_the_budget_does_not_allow_any_more_is_not_taken(loop: SensingLoop) -> None:
    loop.remaining = replace(loop.remaining, metres=10.0)
    loop.ask(0, probe="a", waiting={"b": 1})
    loop.remaining = replace(loop.remaining, metres=0.5)
    loop.ask(1, probe="b", pending=(3,))
    assert Listed.asked[-1][0] == "one"


def test_a_snapshot_takes_the_choice_and_the_loop_adopts_it(loop: SensingLoop) -> None:
    copy = loop.snapshot()
    assert copy.ask(0, probe="a", waiting={"b": 1}).waypoint == 3
    assert loop.decisions == 0
    loop.adopt(copy, "a")
    assert loop.ask(1, probe="b", pending=(3,)).waypoint == 7
    assert len(Listed.asked) == 1


def test_a_visit_of_an_observed_place_costs_one_reading(loop: SensingLoop) -> None:
    for value in (1.0, 2.0):
        loop.tell([Reading(0, 3, value)])
    assert loop.remaining.readings == 5
    assert not loop.costs(3)
    assert loop.ask(0).waypoint == 3
    assert loop.costs(3)
    report = loop.tell([Reading(1, 3, 1.5), Reading(2, 3, 1.6)])
    assert report.new_places == (3,)
    assert report.accepted == 2
    assert loop.remaining.readings == 4


def test_a_decision_from_the_journal_counts_its_visit_too(loop: SensingLoop) -> None:
    loop.tell([Reading(0, 3, 1.0)])
    loop.replay_decision({"done": 1}, (3,), again=True)
    assert loop.tell([Reading(1, 3, 1.0)]).new_places == (3,)
    loop.replay_decision({"done": 2}, (3,))
    assert loop.tell([Reading(2, 3, 1.0)]).new_places == ()


def test_the_last_reading_is_kept_for_a_visit(loop: SensingLoop) -> None:
    loop.remaining = Budget(readings=2)
    loop.tell([Reading(0, 3, 1.0)])
    loop.ask(0)
    assert loop.wants(3)
    assert not loop.wants(8)
    loop.tell([Reading(1, 8, 1.0), Reading(1, 3, 1.0)])
    assert loop.remaining.readings == 0
    assert loop.counts["rejected_budget_spent"] == 1
    assert loop.ask(0).reason


def observed(*places: int, ph: tuple[int, ...] = ()) -> Observed:
    """Return what says which of ten places have a reading of the main quantity, and of ph."""

    def of(quantity: str) -> np.ndarray:
        flags = np.zeros(10, dtype=bool)
        flags[list(ph if quantity else places)] = True
        return flags

    return of


def places_of(visits: set[Visit]) -> set[int]:
    return {place for _, place in visits}


def test_readings_are_kept_for_what_lies_on_the_way_and_for_visits_to_come() -> None:
    promises = BudgetReservations()
    promises.make("a", (1, 2, 3))
    promises.make("b", (4, 5), again=True)
    assert places_of(promises.kept(observed(2, 5), ())) == {1, 3, 4, 5}
    assert places_of(promises.kept(observed(2, 5), {1})) == {3, 4, 5}
    assert places_of(promises.goals(observed(2, 5), ())) == {3, 5}
    assert places_of(promises.goals(observed(3), {5})) == set()
    assert promises.is_due(5)
    assert not promises.is_due(3)


def test_what_is_kept_from_a_probe_is_what_the_others_were_promised() -> None:
    promises = BudgetReservations()
    promises.make("a", (1, 2))
    promises.make("b", (5,), again=True)
    promises.make("c", (7, 8))
    seen = observed(1, 5)
    assert promises.kept_from("a", (5, 8), seen, ()) == 3  # 5 again, 7 and 8
    assert promises.kept_from("a", (5, 8), seen, {7}) == 2
    assert promises.kept_from("b", (2, 8), seen, ()) == 3  # 2, 7 and 8
    assert promises.kept_from("c", (2, 5), seen, ()) == 2  # 2, and 5 again
    assert promises.kept_from("c", (9,), seen, ()) == 1  # of a probe that nothing is known of
    assert promises.kept_from("a", (2, 8), observed(5), ()) == 3  # 2, 7 and 8: not its own 1


def test_each_way_is_compared_with_what_its_own_probe_measures() -> None:
    promises = BudgetReservations()
    promises.make("a", (1, 2))
    promises.make("b", (2, 3), "ph")
    seen = observed(3, ph=(1, 2))
    assert promises.kept(seen, ()) == {("", 1), ("", 2), ("ph", 3)}
    assert promises.goals(seen, {3}) == {("", 2)}
    assert promises.kept_from("a", (3,), seen, ()) == 1
    assert promises.kept_from("b", (2,), seen, ()) == 2
    promises.make("b", (2,), "ph", again=True)
    assert (promises.is_due(2, "ph"), promises.is_due(2)) == (True, False)
    promises.pay(2)
    assert promises.kept_from("a", (2,), seen, ()) == 1
    promises.pay(2, "ph")
    assert promises.kept_from("a", (2,), seen, ()) == 0
