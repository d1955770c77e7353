"""Why a place was chosen, in the policy's words or from its values, and what came of it."""

from __future__ import annotations

from dataclasses import replace

from gp_active_sensing.planning.explain import gap_of, outcome, value_unit, why
from gp_active_sensing.types import CandidateValue, Plan, RouteValue
from tests.cases import for_each

NAMES = ("e9", "e12", "e13")


def plan(*candidates: tuple[int, float, float], hit: bool = False, horizon: int = 5) -> Plan:
    return Plan(
        waypoints=(1,),
        lower=0.0,
        upper=9.0,
        expanded=1,
        seconds=0.0,
        deadline_hit=hit,
        path=(1,),
        horizon=horizon,
        candidates=tuple(CandidateValue(*c) for c in candidates),
    )


CERTAIN = plan((0, 3.1, 3.4), (1, 3.42, 3.47), (2, 1, 2))
BESIDE = plan((0, 3.0, 3.0), (1, 1.0, 1.0), horizon=1)
ROUTE = replace(plan(), waypoints=(1, 0, 2))
WEIGHED = (RouteValue("the previous route, changed", 1, 9, 0.34), RouteValue("rows", 2, 8, 0.415))


@for_each(("plan", "policy", "words"), [
        (CERTAIN, "bal", ("worth 3.42 to 3.47 nat over 5 readings", "e9, is worth at most 3.40")),
        (plan((0, 3.1, 3.6), (1, 3.42, 3.47), hit=True), "bal", ("up to 3.60: the limit ended",)),
        (plan((0, 3.1, 3.46), (1, 3.42, 3.44)), "bal", ("within 0.04 nat of the best",)),
        (plan((1, 2, 3)), "bal", ("the only place", "worth 2.00 to 3.00 nat")),
        (BESIDE, "lp_ucb", ("beside the other probes; e9 is worth 3.00",)),
        (plan((0, 3.7, 3.7), (1, 3.7, 3.7), horizon=1), "ie", ("3.70 nat: a tie with e9.",)),
        (plan((0, 3.721, 3.721), (1, 3.7211, 3.7211), horizon=1), "ie", ("worth 3.7211 nat",)),
        (plan(), "random", ("at random: e12.",)),
        (plan(), "", ("by the policy: e12; no values",)),
        (plan((0, 1, 2)), "mine", ("by mine: e12; no values",)),
        (ROUTE, "spread", ("Next on the route: e12; 2 more",)),
        (replace(ROUTE, routes=WEIGHED), "tour",
            ("34 % of the map's variance", "41.5 % (rows, first place e13)")),
    ])  # fmt: skip
def test_the_reason_compares_the_place_with_what_else_could_be(
    plan: Plan, policy: str, words: tuple[str, ...]
) -> None:
    text = why(plan, NAMES, policy)
    for part in words:
        assert part in text


def test_policies_describe_their_values() -> None:
    assert [value_unit(name) for name in ("bal", "ie", "tour", "gp_ucb", "unknown")] == [
        "nat",
        "nat",
        "",
        "",
        "",
    ]
    assert gap_of("bal", 1.0, 1.0) == 0.0
    assert gap_of("ie", 1.0, 1.0) is None
    assert gap_of("mine", 1.0, 1.5) == 0.5


def test_outcome() -> None:
    cases = [
        ((31.23, 5.44), 27.9, False, "31.2 km/h (standard deviation 5.44); read 27.9 km/h."),
        ((31.23, 5.44), None, False, "31.2 km/h (standard deviation 5.44); not read yet."),
        ((1234.0, 0.01), None, True, "1234 km/h (standard deviation 0.01); no reading came,"),
        ((-5.35e-05, 10.0), None, False, "0.00 km/h (standard deviation 10.0); not read yet."),
        (None, -0.5, False, "Read -0.50 km/h."),
        (None, 1.5e9, False, "Read 1.5e+09 km/h."),
    ]
    for expected, value, aside, text in cases:
        assert text in outcome(expected, value, "km/h", set_aside=aside)
    blocked = outcome((31.23, 5.44), None, "km/h", blocked="no nearer for 120 s")
    assert "could not be reached (no nearer for 120 s)" in blocked
    assert "read 27.9" in outcome(None, 27.9, blocked="").lower()
