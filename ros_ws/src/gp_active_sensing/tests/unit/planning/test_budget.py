"""What a budget allows, in what words it is refused, and the way to where a mission has to end."""

from __future__ import annotations

import logging
import re

import numpy as np
import pytest

from gp_active_sensing.errors import PlanningError
from gp_active_sensing.planning.base import candidates_of, no_plan
from gp_active_sensing.planning.budget import BudgetConstraint, check_end, in_metres, with_way_home
from gp_active_sensing.topology import GraphTopology, Move, make_grid, make_line
from gp_active_sensing.types import Budget, Cost

LINE = make_line(10, 2.0, speed=4.0)
NOTHING = np.zeros(10, dtype=np.bool_)


def two_ways() -> GraphTopology:
    """From a to d by b, slow and short, or by c, fast and long; nothing leads back from e."""
    moves = [
        [Move(1, 10.0, 10.0), Move(2, 30.0, 3.0)],
        [Move(3, 10.0, 10.0)],
        [Move(3, 30.0, 3.0)],
        [Move(0, 5.0, 1.0), Move(4, 5.0, 1.0)],
        [],
    ]
    return GraphTopology("two ways", "map", list("abcde"), np.zeros((5, 2)), moves, stay=False)


def places(constraint: BudgetConstraint, at: int | None, observed=NOTHING, **options) -> list[int]:
    return [drive.place for drive in constraint.drives(at, observed, **options)]


def test_a_drive_needs_what_it_costs_and_the_way_home() -> None:
    observed = NOTHING.copy()
    observed[[4, 5, 6]] = True
    # Standing at 5: 3 and 7 are two moves away, and home is 2.
    assert places(BudgetConstraint(LINE, Budget(metres=4.0)), 5, observed) == [3, 7]
    assert places(BudgetConstraint(LINE, Budget(metres=3.9)), 5, observed) == []
    back = Budget(metres=6.0, end=2)
    assert places(BudgetConstraint(LINE, back), 5, observed) == [3]
    assert places(BudgetConstraint(LINE, Budget(metres=14.0, end=2)), 5, observed) == [3, 7]
    assert places(BudgetConstraint(LINE, Budget(metres=13.9, end=2)), 5, observed) == [3]
    assert places(BudgetConstraint(LINE, Budget(seconds=1.5, end=2)), 5, observed) == [3]
    assert places(BudgetConstraint(LINE, Budget(metres=14.0, seconds=3.4, end=2)), 5, observed) == [
        3
    ]
    drive = BudgetConstraint(LINE, back).drives(5, observed)[0]
    assert drive.route.path == (4, 3)
    assert drive.reads == (3,), "what is observed is not read again"
    assert drive.left(back) == Budget(None, 2.0, None, 2)


def test_what_may_be_read_on_the_way_counts() -> None:
    line = make_line(10, 2.0, reach=6.0)
    assert places(BudgetConstraint(line, Budget(readings=2)), 0) == [0, 1, 2]
    assert places(BudgetConstraint(line, Budget(readings=3)), 0) == [0, 1, 2, 3]
    observed = NOTHING.copy()
    observed[1] = True
    assert places(BudgetConstraint(line, Budget(readings=2)), 0, observed) == [0, 2, 3]
    # A place set aside gives no reading when it is crossed.
    assert places(BudgetConstraint(line, Budget(readings=1)), 0, observed, unavailable=(2,)) == [
        0,
        3,
    ]
    assert BudgetConstraint(line, Budget(readings=9)).restricts


def test_places_that_one_cannot_come_back_from() -> None:
    topology = two_ways()
    observed = np.array([True, True, True, True, False])
    assert places(BudgetConstraint(topology, Budget()), 3, observed) == [4]
    no_way_back = BudgetConstraint(topology, Budget(end=0))
    assert no_way_back.restricts
    assert places(no_way_back, 3, observed) == []
    assert no_way_back.why_none() == "no reachable place has a way to the end place 'a'"
    assert places(BudgetConstraint(topology, Budget(end=4)), 3, observed) == [4]


def test_the_way_home_is_the_one_that_fits() -> None:
    topology = two_ways()
    for budget, path in (
        (Budget(end=3), (2, 3)),
        (Budget(seconds=9.0, end=3), (2, 3)),
        (Budget(metres=20.0, end=3), (1, 3)),
        (Budget(metres=20.0, seconds=30.0, end=3), (1, 3)),
        (Budget(metres=90.0, seconds=30.0, end=3), (2, 3)),
        (Budget(metres=1.0, seconds=1.0, end=3), (2, 3)),  # none fits: the fastest
    ):
        home = BudgetConstraint(topology, budget).way_home(0)
        assert home is not None
        assert home.path == path, budget
    assert BudgetConstraint(topology, Budget(end=0)).way_home(4) is None
    assert BudgetConstraint(topology, Budget(end=0)).way_home(0) == ((), (0.0, 0.0))


def test_where_nothing_is_restricted_nothing_is_looked_up() -> None:
    assert not BudgetConstraint(LINE, Budget()).restricts
    assert not BudgetConstraint(LINE, Budget(readings=3)).restricts
    assert not BudgetConstraint(LINE, Budget(readings=3, end=4)).restricts, (
        "there is always a way back"
    )
    assert BudgetConstraint(LINE, Budget(metres=1e9)).restricts
    free = make_line(10, 2.0, moves="free", speed=4.0)
    assert BudgetConstraint(free, Budget(metres=54.0)).leaves_room(3)
    assert not BudgetConstraint(free, Budget(metres=53.9)).leaves_room(3)
    assert not BudgetConstraint(free, Budget(metres=54.0, end=0)).leaves_room(3)
    assert BudgetConstraint(free, Budget(seconds=18.0, end=0)).leaves_room(3)
    assert not BudgetConstraint(free, Budget(seconds=17.9, end=0)).leaves_room(3)
    assert not BudgetConstraint(LINE, Budget(metres=1e9)).leaves_room(3)


def test_an_own_speed_turns_seconds_into_metres() -> None:
    assert in_metres(Budget(3, None, 10.0, 4), 2.0) == Budget(3, 20.0, None, 4)
    assert in_metres(Budget(3, 15.0, 10.0, 4), 2.0) == Budget(3, 15.0, None, 4)
    for budget in (Budget(3, 15.0, 10.0, 4), Budget(3)):
        assert in_metres(budget, None) is budget


class Belief:
    observed = np.zeros(10, dtype=np.bool_)


@pytest.mark.parametrize(
    ("budget", "more"),
    [
        (Budget(metres=1.0), ""),
        (Budget(seconds=0.1), ""),
        (
            Budget(metres=3.0, end=0),
            ", with the way from there to the end place '0'",
        ),
    ],
)
def test_why_nothing_is_chosen(budget: Budget, more: str) -> None:
    Belief.observed = np.arange(10) == 0
    found = candidates_of(Belief(), LINE, 0, (), (), budget)  # type: ignore[arg-type]
    assert found.reason == f"no reachable place is within the budget of metres or seconds{more}"
    assert not found.locations.size
    Belief.observed = np.ones(10, dtype=np.bool_)
    found = candidates_of(Belief(), LINE, 0, (), (), budget)  # type: ignore[arg-type]
    assert "every reachable place is observed" in found.reason


def test_readings_that_do_not_last() -> None:
    constraint = BudgetConstraint(make_line(3, 1.0, reach=2.0), Budget(readings=0))
    assert constraint.drives(0, np.array([True, False, False])) == []
    assert constraint.why_none() == "no reachable place is within the budget of readings"


@pytest.mark.parametrize(
    ("budget", "at", "speed", "message"),
    [
        (
            Budget(metres=11.0, end=7),
            1,
            None,
            "takes 12 m and 3 s, 11 m are left; raise the budget",
        ),
        (Budget(seconds=2.0, end=7), 1, None, "takes 12 m and 3 s, 2 s are left; raise the budget"),
        (Budget(seconds=5.0, end=7), 1, 2.0, "takes 12 m and 6 s, 5 s are left; raise the budget"),
        (
            Budget(metres=1.0, seconds=5.0, end=7),
            1,
            None,
            "takes 12 m and 3 s, 1 m and 5 s are left; raise",
        ),
    ],
)
def test_a_mission_that_cannot_end_is_refused(
    budget: Budget, at: int, speed: float | None, message: str
) -> None:
    with pytest.raises(PlanningError, match=re.escape(message)) as error:
        check_end(LINE, budget, at, speed=speed)
    assert str(error.value).startswith("end: the way from '1' to '7' takes")


def test_an_end_that_cannot_be_reached_is_refused() -> None:
    topology = two_ways()
    with pytest.raises(
        PlanningError, match="end: 'a' cannot be reached from 'e' on map 'two ways'"
    ):
        check_end(topology, Budget(end=0), 4)
    with pytest.raises(PlanningError, match="no place of map 'line' can be observed first"):
        # From nowhere any place may be first: with no metre to drive only the end itself, if free.
        check_end(make_line(3, 1.0), Budget(readings=0, end=0), None)
    with pytest.raises(PlanningError, match="end place 10; map 'line' has places 0 … 9"):
        BudgetConstraint(LINE, Budget(end=10))
    check_end(LINE, Budget(metres=12.0, end=7), 1)
    check_end(LINE, Budget(metres=0.0, end=7), 7)
    check_end(LINE, Budget(metres=0.0, end=7), None)
    check_end(LINE, Budget(), 1)


def test_the_last_plan_leads_home(caplog: pytest.LogCaptureFixture) -> None:
    last = no_plan("the budget of readings is spent")
    plan = with_way_home(last, LINE, 3, Budget(metres=8.0, end=1))
    assert (plan.path, plan.cost, plan.waypoint) == ((2, 1), Cost(4.0, 1.0), None)
    assert plan.reason == last.reason
    assert with_way_home(last, LINE, 1, Budget(end=1)).path == ()
    assert with_way_home(last, LINE, 1, Budget()) is last
    with caplog.at_level(logging.WARNING):
        assert with_way_home(last, LINE, 3, Budget(metres=3.0, end=1)).path == (2, 1)
    assert "takes 4 m and 1 s, more than is left of the budget" in caplog.text
    lost = with_way_home(last, two_ways(), 4, Budget(end=0))
    assert lost.path == ()
    assert lost.reason == f"{last.reason}; the end place 'a' cannot be reached"


def test_on_a_grid_the_way_home_may_cross_what_is_not_observed() -> None:
    grid = make_grid(4, 4, 1.0)
    home = BudgetConstraint(grid, Budget(metres=6.0, end=0)).way_home(15)
    assert home is not None
    assert (len(home.path), home.cost.metres) == (6, 6.0)
