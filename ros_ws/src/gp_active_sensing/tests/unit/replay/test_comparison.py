"""When a replayed decision is the recorded one: to rounding, and to the bit."""

from __future__ import annotations

import copy
from typing import Any

from gp_active_sensing.replay.verify import Comparison, difference

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


def exact(recorded: dict[str, Any], replayed: dict[str, Any]) -> bool:
    return Comparison().decision(1, recorded, replayed)


def test_rounding_is_no_difference_but_is_not_to_the_bit() -> None:
    same = changed(plan_seconds=9.0)
    assert difference(DECISION, same) == ""
    assert exact(DECISION, same)
    for by in (1e-12, -1e-12, 2.3e-16):
        assert difference(DECISION, scaled(by)) == "", by
        assert not exact(DECISION, scaled(by)), by
    other = changed(waypoints=[7, 9], expanded=39, policy_state={"stage": 3})
    assert difference(DECISION, other) == "", "what would come after the place is no part of it"
    assert not exact(DECISION, other)
    assert not exact(DECISION, changed(policy_state={"stage": 3, "weights": [0.75, 0.25]}))
    assert not exact(changed(lower=0.0), changed(lower=-0.0))


def test_each_difference_names_its_key() -> None:
    for key, value in (
        *(("lower", DECISION["lower"] * (1 + 1e-8)), ("lower", DECISION["lower"] * (1 - 1e-6))),
        *(("upper", 19.5 * (1 + 1e-8)), ("at", 5), ("waypoints", [5, 6]), ("waypoints", [])),
        *(("metres", 21.0), ("seconds", 4.1)),
    ):
        assert difference(DECISION, changed(**{key: value})).startswith(f"{key}: recorded"), key
    assert difference(DECISION, changed(metres=20.0 + 1e-13)) == ""


def test_a_bound_about_zero_has_no_digits_of_its_own() -> None:
    recorded = changed(lower=1e-11, candidates=[[5, -3.0, 19.0], [7, 1e-11, 19.5]])
    assert difference(recorded, changed(recorded, lower=-4e-11)) == ""
    assert difference(recorded, changed(recorded, lower=1e-6)).startswith("lower")
    nothing = changed(lower=0.0, upper=0.0, candidates=[])
    assert difference(nothing, changed(nothing, upper=1e-14)) == ""
    assert difference(nothing, changed(nothing, upper=1e-9)).startswith("upper")


def test_both_figures_are_counted() -> None:
    found = Comparison()
    assert found.decision(1, DECISION, changed())
    assert not found.decision(2, DECISION, scaled(1e-12))
    assert not found.decision(3, DECISION, scaled(1e-6))
    found.no_decision(4, "it was not asked for")
    assert (found.decisions, found.decisions_equal, found.decisions_to_the_bit) == (4, 2, 1)
    assert [text.split(":")[0] for text in found.differences] == ["decision 3", "decision 4"]


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
