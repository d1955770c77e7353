"""When a replayed decision is the recorded one: to rounding, and to the bit."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from gp_active_sensing.replay.comparison import Comparison, difference, same_to_the_bit

DECISION: dict[str, Any] = {
    "event": "decision",
    "stage": 3,
    "at": 4,
    "waypoints": [7, 8],
    "path": [5, 7],
    "lower": 19.114599749090214,
    "upper": 19.5,
    "expanded": 40,
    "plan_seconds": 0.1,
    "deadline_hit": True,
    "horizon": 2,
    "metres": 20.0,
    "seconds": 4.0,
    "candidates": [[5, 18.0, 19.0], [7, 19.114599749090214, 19.5], [9, 19.114599749090218, 19.5]],
    "policy_state": {"stage": 3, "weights": [0.25, 0.75]},
}


def changed(decision: dict[str, Any] = DECISION, **keys: Any) -> dict[str, Any]:
    return {**copy.deepcopy(decision), **keys}


def scaled(by: float) -> dict[str, Any]:
    """The decision with all its bounds multiplied, as another processor would round them."""
    candidates = [
        [x, low * (1.0 + by), high * (1.0 - by)] for x, low, high in DECISION["candidates"]
    ]
    return changed(
        lower=DECISION["lower"] * (1.0 + by),
        upper=DECISION["upper"] * (1.0 - by),
        candidates=candidates,
    )


def test_the_same() -> None:
    assert difference(DECISION, changed(plan_seconds=9.0)) == ""
    assert same_to_the_bit(DECISION, changed(plan_seconds=9.0))


@pytest.mark.parametrize("by", [1e-12, -1e-12, 2.3e-16])
def test_rounding_is_no_difference_but_is_not_to_the_bit(by: float) -> None:
    assert difference(DECISION, scaled(by)) == ""
    assert not same_to_the_bit(DECISION, scaled(by))


@pytest.mark.parametrize("by", [1e-6, -1e-6, 1e-8])
def test_other_bounds_are_a_difference(by: float) -> None:
    assert difference(DECISION, scaled(by)).startswith("lower: recorded 19.114")
    assert difference(DECISION, changed(upper=19.5 * (1 + by))).startswith("upper: recorded 19.5")


def test_a_bound_about_zero_has_no_digits_of_its_own() -> None:
    recorded = changed(lower=1e-13, candidates=[[5, -3.0, 19.0], [7, 1e-13, 19.5]])
    assert difference(recorded, changed(recorded, lower=-4e-13)) == ""
    assert difference(recorded, changed(recorded, lower=1e-6)).startswith("lower")
    nothing = changed(lower=0.0, upper=0.0, candidates=[])
    assert difference(nothing, changed(nothing, upper=1e-14)) == ""
    assert difference(nothing, changed(nothing, upper=1e-9)).startswith("upper")


def test_another_place_is_a_difference() -> None:
    other = changed(waypoints=[5, 6], path=[5])
    assert difference(DECISION, other) == "waypoints: recorded [7, 8], replayed [5, 6]"
    assert difference(DECISION, changed(waypoints=[], path=[])).startswith("waypoints")
    assert difference(DECISION, changed(at=5)) == "at: recorded 4, replayed 5"


def test_what_would_come_after_the_place_is_no_part_of_it() -> None:
    other = changed(waypoints=[7, 9], expanded=39, policy_state={"stage": 3})
    assert difference(DECISION, other) == ""
    assert not same_to_the_bit(DECISION, other)


def test_a_tie_is_no_difference() -> None:
    tied = changed(waypoints=[9, 1], path=[9], metres=25.0, seconds=5.0)
    assert difference(DECISION, tied) == ""
    assert not same_to_the_bit(DECISION, tied)


def test_a_tie_that_only_one_of_them_sees_is_a_difference() -> None:
    apart = [[5, 18.0, 19.0], [7, 19.11, 19.5], [9, 19.114599749090218, 19.5]]
    tied = changed(waypoints=[9, 1], path=[9], candidates=apart)
    assert difference(DECISION, tied).startswith("waypoints")
    assert difference(tied, DECISION).startswith("waypoints")


def test_without_candidates_no_tie_can_be_told() -> None:
    """As of a policy that draws its places, all of which have the same worth."""
    drawn = changed(lower=0.0, upper=0.0, candidates=[])
    assert difference(drawn, changed(drawn, waypoints=[9])).startswith("waypoints")


def test_a_way_of_another_length_is_a_difference() -> None:
    assert difference(DECISION, changed(metres=20.0 + 1e-13)) == ""
    assert difference(DECISION, changed(metres=21.0)) == "metres: recorded 20.0, replayed 21.0"
    assert difference(DECISION, changed(seconds=4.1)).startswith("seconds")


def test_both_figures_are_counted() -> None:
    found = Comparison()
    assert found.decision(1, DECISION, changed())
    assert not found.decision(2, DECISION, scaled(1e-12))
    assert not found.decision(3, DECISION, scaled(1e-6))
    found.no_decision(4, "it was not asked for")
    assert (found.decisions, found.decisions_equal, found.decisions_to_the_bit) == (4, 2, 1)
    assert [text.split(":")[0] for text in found.differences] == ["decision 3", "decision 4"]
    assert not found.equal
    assert found.to_mapping()["decisions_to_the_bit"] == 1


def test_readings_are_equal_but_for_rounding() -> None:
    reading = {"event": "reading", "stamp_ns": 5, "location": 3, "value": 0.1 + 0.2, "count": 2}
    found = Comparison()
    found.compare_readings(
        [reading, {**reading, "stamp_ns": 6}, {**reading, "stamp_ns": 7}],
        [{**reading, "value": 0.3}, {**reading, "stamp_ns": 6, "value": 0.4}],
    )
    assert (found.readings, found.readings_equal, found.readings_extra) == (3, 1, 1)
    assert len(found.differences) == 3
    found = Comparison()
    found.compare_readings([reading], [{**reading, "location": 4}])
    assert (found.readings_equal, found.readings_extra) == (0, 1)
