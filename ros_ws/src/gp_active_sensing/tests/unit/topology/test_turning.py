"""Maps as a probe sees them that cannot turn on the spot."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gp_active_sensing.errors import ConfigError
from gp_active_sensing.planning.budget import BudgetConstraint
from gp_active_sensing.topology import MapConfig, Topology, build_topology
from gp_active_sensing.topology.turning import (
    Turning,
    check_radius,
    curve_through,
    turn_to,
    turning,
)
from gp_active_sensing.types import Budget
from tests.unit.mission.worlds import chain

LAKE = {"columns": 6, "rows": 5, "spacing": 20.0, "speed": 2.0}


def lake(moves: str = "free") -> Topology:
    return build_topology(MapConfig("grid", moves=moves, **LAKE))  # type: ignore[arg-type]


def length(line: np.ndarray) -> float:
    return float(np.hypot(*np.diff(line, axis=0).T).sum())


def test_ways_are_as_long_as_the_curves_through_their_places() -> None:
    for moves in ("free", "adjacent"):
        straight = lake(moves)
        seen = turning(straight, 12.0, 8, 2.0)
        assert isinstance(seen, Turning)
        assert isinstance(seen, type(straight))
        ways = seen.ways_from(8)
        x = straight.positions
        for goal in range(straight.n):
            route = ways.route(goal)
            assert route is not None
            places = () if goal == 8 else route.path
            line = curve_through((x[8, 0], x[8, 1]), 2.0, x[list(places)], 12.0)
            assert length(line) == pytest.approx(ways.metres[goal], rel=1e-3, abs=1e-9)
            cost, heading = seen.drive(places)
            assert cost.metres == pytest.approx(ways.metres[goal])
            assert cost.seconds == pytest.approx(ways.seconds[goal])
            if goal != 8:
                told = seen.route(8, goal, np.ones(straight.n, dtype=bool))
                assert told.cost.metres >= straight.ways_from(8).metres[goal] - 1e-9
                steps = np.diff(line, axis=0)[-1]
                assert (
                    abs(math.remainder(math.atan2(steps[1], steps[0]) - heading, math.tau)) < 0.06
                )
        assert ways.seconds == pytest.approx(ways.metres / 2.0)


def test_the_way_home_begins_with_the_heading_of_arriving() -> None:
    for moves in ("free", "adjacent"):
        straight = lake(moves)
        seen = turning(straight, 12.0, 8, 2.0)
        assert isinstance(seen, Turning)
        out, home = seen.ways_from(8), seen.ways_to(3)
        for place in range(straight.n):
            route, back = out.route(place), home.route(place)
            assert route is not None
            assert back is not None
            there = () if place == 8 else route.path
            cost, _ = seen.drive((*there, *back.path))
            assert cost.metres == pytest.approx(out.metres[place] + back.cost.metres, rel=1e-9)
        assert home.costs[3] == (0.0, 0.0)


def test_a_heading_that_is_not_known_counts_as_the_worst() -> None:
    straight = lake()
    seen = turning(straight, 12.0, 8, None)
    worst = seen.ways_from(8).metres
    for heading in np.linspace(-3.0, 3.0, 25).tolist():
        assert (turning(straight, 12.0, 8, heading).ways_from(8).metres <= worst + 1e-9).all()
    assert worst[8] == 0.0


def test_a_budget_lasts_for_curves_and_the_way_home() -> None:
    straight = lake()
    budget = Budget(metres=100.0, end=8)
    nothing = np.zeros(straight.n, dtype=np.bool_)
    seen = turning(straight, 12.0, 8, 0.0)
    assert isinstance(seen, Turning)
    allowed = {move.place for move in BudgetConstraint(seen, budget).drives(8, nothing)}
    flat = {move.place for move in BudgetConstraint(straight, budget).drives(8, nothing)}
    fits = set()
    for goal in set(range(straight.n)) - {8}:
        cost, _ = seen.drive((goal, 8))
        fits |= {goal} if cost.metres <= 100.0 else set()
    assert allowed - {8} == fits
    assert fits < flat


def test_roads_and_probes_that_turn_on_the_spot_see_the_map_itself() -> None:
    road, straight = chain(), lake()
    assert turning(road, 12.0, 0, 0.0) is road
    assert turning(straight, 0.0, 0, 0.0) is straight
    check_radius(road, 1e4)


def test_a_circle_wider_than_the_lake_is_refused() -> None:
    check_radius(lake(), 50.0)
    with pytest.raises(ConfigError, match=r"turning circle of 120 m across does not fit on map"):
        check_radius(lake(), 60.0)
    with pytest.raises(ConfigError, match=r"places cover 100 × 80 m; expected at most 50 m"):
        check_radius(lake(), 60.0)


def test_a_curve_without_a_heading_begins_towards_its_first_point() -> None:
    line = curve_through((0.0, 0.0), math.nan, np.array([[0.0, 30.0], [20.0, 30.0]]), 5.0)
    told = turn_to((0.0, 30.0), 0.5 * math.pi, [(20.0, 30.0)], 5.0)
    assert length(line) == pytest.approx(30.0 + told.metres[0], rel=1e-3)
