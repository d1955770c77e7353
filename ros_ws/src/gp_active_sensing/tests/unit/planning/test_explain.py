from __future__ import annotations

from dataclasses import replace

import pytest

from gp_active_sensing.planning.explain import called, outcome, why
from gp_active_sensing.types import CandidateValue, Plan

NAMES = ("e9", "e12", "e13")


def plan(
    *candidates: tuple[int, float, float], hit: bool = False, horizon: int = 5, to: int = 1
) -> Plan:
    return Plan(
        waypoints=(to,),
        lower=0.0,
        upper=9.0,
        expanded=1,
        seconds=0.0,
        deadline_hit=hit,
        path=(to,),
        horizon=horizon,
        candidates=tuple(CandidateValue(*c) for c in candidates),
    )


def test_certain() -> None:
    assert why(plan((0, 3.1, 3.4), (1, 3.42, 3.47), (2, 1, 2)), NAMES, "bal") == (
        "Chosen: e12, worth 3.42 to 3.47 nat over 5 readings; the best other place, e9, is worth "
        "at most 3.40."
    )


def test_the_limit_came_first() -> None:
    assert why(plan((0, 3.1, 3.6), (1, 3.42, 3.47), hit=True), NAMES, "bal") == (
        "Chosen: e12, worth 3.42 to 3.47 nat over 5 readings; e9 may be worth up to 3.60: the "
        "limit ended the search before the choice was certain."
    )


def test_near_enough() -> None:
    assert why(plan((0, 3.1, 3.46), (1, 3.42, 3.44)), NAMES, "bal") == (
        "Chosen: e12, worth 3.42 to 3.44 nat over 5 readings; e9 may be worth up to 3.46: the "
        "choice is within 0.04 nat of the best, near enough."
    )


def test_a_step_on_the_way_to_a_goal() -> None:
    step = replace(plan((0, 3.0, 3.0), (1, 1.0, 1.0), horizon=1), waypoints=(1, 0))
    assert why(step, NAMES, "gp_ucb", "NTU") == (
        "Chosen: e12, which tells most of what could be next towards e9, worth 3.00 NTU."
    )
    unknown = replace(plan((1, 1.0, 1.0), horizon=1), waypoints=(1, 2))
    assert why(unknown, NAMES, "gp_ucb", "") == (
        "Chosen: e12, which tells most of what could be next towards e13."
    )


def test_a_place_chosen_beside_others() -> None:
    assert why(plan((0, 3.0, 3.0), (1, 1.0, 1.0), horizon=1), NAMES, "ucb_dpp_max", "") == (
        "Chosen: e12, worth 1.00, for what it tells beside the other probes; e9 is worth 3.00."
    )


def test_exact_values_of_a_myopic_policy() -> None:
    assert why(plan((0, 1.2, 1.2), (1, 1.25, 1.25), horizon=1), NAMES, "ie") == (
        "Chosen: e12, worth 1.25 nat; the best other place, e9, is worth 1.20."
    )


def test_equal_values_are_a_tie() -> None:
    text = why(plan((0, 3.7218, 3.7218), (1, 3.7218, 3.7218), horizon=1), NAMES, "ie")
    assert text == "Chosen: e12, worth 3.72 nat: a tie with e9."
    text = why(plan((0, 3.72182, 3.72182), (1, 3.72183, 3.72183), horizon=1), NAMES, "ie")
    assert text == "Chosen: e12, worth 3.7218 nat: a tie with e9 to 4 decimals."


def test_digits_tell_the_values_apart() -> None:
    text = why(plan((0, 1.0, 1.24996), (1, 1.25, 1.25), horizon=1), NAMES, "ie")
    assert "worth 1.2500 nat" in text
    assert "at most 1.2500" in text  # equal to four decimals: so it is said
    text = why(plan((0, 1.0, 1.248), (1, 1.25, 1.25), horizon=1), NAMES, "ie")
    assert "worth 1.250 nat" in text
    assert "at most 1.248" in text


def test_no_choice() -> None:
    assert why(plan((1, 2, 3)), NAMES, "bal") == (
        "Chosen: e12, the only place that could be next, worth 2.00 to 3.00 nat over 5 readings."
    )


def test_no_values() -> None:
    assert why(plan(), NAMES, "random") == "Chosen at random: e12."
    assert why(plan(), NAMES, "") == "Chosen by the policy: e12; no values were kept."
    assert why(plan((0, 1, 2)), NAMES, "mine") == "Chosen by mine: e12; no values were kept."


def test_the_next_place_on_a_route() -> None:
    following = replace(plan(), waypoints=(1, 0, 2))
    assert why(following, NAMES, "spread") == "Next on the route: e12; 2 more to read after it."
    assert why(replace(following, waypoints=(1,)), NAMES, "lawnmower") == "Next on the route: e12."
    said = "Next on the route that promises the best map: e12; 2 more to read after it."
    assert why(following, NAMES, "tour") == said


@pytest.mark.parametrize(
    ("expected", "value", "aside", "text"),
    [
        ((31.23, 5.44), 27.9, False, "Expected 31.2 ± 5.44 km/h; read 27.9 km/h."),
        ((31.23, 5.44), None, False, "Expected 31.2 ± 5.44 km/h; not read yet."),
        (
            (1234.0, 0.01),
            None,
            True,
            "Expected 1234 ± 0.01 km/h; no reading came, the place was set aside.",
        ),
        ((-5.35e-05, 10.0), None, False, "Expected 0.00 ± 10.0 km/h; not read yet."),
        (None, -0.5, False, "Read -0.50 km/h."),
        (None, 0.0, False, "Read 0.00 km/h."),
        (None, 1.5e9, False, "Read 1.5e+09 km/h."),
    ],
)
def test_outcome(
    expected: tuple[float, float] | None, value: float | None, aside: bool, text: str
) -> None:
    assert outcome(expected, value, "km/h", set_aside=aside) == text


def test_a_place_that_was_given_up() -> None:
    said = outcome((31.23, 5.44), None, "km/h", blocked="no nearer for 120 s")
    why_not = "given up, it could not be reached (no nearer for 120 s)"
    assert said == f"Expected 31.2 ± 5.44 km/h; {why_not}."
    assert "read 27.9" in outcome(None, 27.9, blocked="").lower()


@pytest.mark.parametrize(
    ("name", "text"), [("e12", "e12"), ("-262", "place -262"), ("7", "place 7"), (" ", "place  ")]
)
def test_names(name: str, text: str) -> None:
    assert called(name) == text
