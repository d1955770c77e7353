"""Curves of a turning radius against searches that know none, and maps seen by such a probe."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gp_active_sensing.errors import ConfigError
from gp_active_sensing.planning.budget import BudgetConstraint
from gp_active_sensing.planning.turning import (
    EXCESS,
    Turning,
    check_radius,
    curve,
    curve_through,
    turn_to,
    turning,
)
from gp_active_sensing.topology import MapConfig, Topology, build_topology
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
        # The way home begins with the heading of arriving.
        home = seen.ways_to(3)
        for place in range(straight.n):
            route, back = ways.route(place), home.route(place)
            assert route is not None
            assert back is not None
            cost, _ = seen.drive((*(() if place == 8 else route.path), *back.path))
            assert cost.metres == pytest.approx(ways.metres[place] + back.cost.metres, rel=1e-9)
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


def dubins(x: float, y: float, facing: float, r: float) -> float:
    """Return the shortest way from the origin, facing along x, to a pose: the six words of Dubins.

    Each word is solved by itself, with the formulas for a start at (0, 0, a), an end at (d, 0, b).
    """
    d = math.hypot(x, y) / r
    to = math.atan2(y, x)
    a, b = (-to) % math.tau, (facing - to) % math.tau
    sa, sb, ca, cb, cab = math.sin(a), math.sin(b), math.cos(a), math.cos(b), math.cos(a - b)
    found = []

    def add(*parts: float) -> None:
        found.append(parts[0] % math.tau + parts[1] + parts[2] % math.tau)

    if (p := 2.0 + d * d - 2.0 * cab + 2.0 * d * (sa - sb)) >= 0.0:  # LSL
        t = math.atan2(cb - ca, d + sa - sb)
        add(-a + t, math.sqrt(p), b - t)
    if (p := 2.0 + d * d - 2.0 * cab + 2.0 * d * (sb - sa)) >= 0.0:  # RSR
        t = math.atan2(ca - cb, d - sa + sb)
        add(a - t, math.sqrt(p), -b + t)
    if (p := -2.0 + d * d + 2.0 * cab + 2.0 * d * (sa + sb)) >= 0.0:  # LSR
        q = math.sqrt(p)
        t = math.atan2(-ca - cb, d + sa + sb) - math.atan2(-2.0, q)
        add(-a + t, q, -b + t)
    if (p := -2.0 + d * d + 2.0 * cab - 2.0 * d * (sa + sb)) >= 0.0:  # RSL
        q = math.sqrt(p)
        t = math.atan2(ca + cb, d - sa - sb) - math.atan2(2.0, q)
        add(a - t, q, b - t)
    for sign in (1.0, -1.0):  # RLR, LRL
        p = (6.0 - d * d + 2.0 * cab + 2.0 * sign * d * (sa - sb)) / 8.0
        if abs(p) <= 1.0:
            q = (math.tau - math.acos(p)) % math.tau
            t = sign * a - math.atan2(ca - cb, d - sign * (sa - sb)) * sign + 0.5 * q
            if sign < 0:
                t = -a + math.atan2(-ca + cb, d + sa - sb) + 0.5 * q
            else:
                t = a - math.atan2(ca - cb, d - sa + sb) + 0.5 * q
            third = (a - b if sign > 0 else b - a) - t + q
            add(t, q, third)
    return r * min(found)


def reference(x: float, y: float, r: float) -> float:
    """Return the shortest way to a point: the least over the headings there, ever finer."""
    centre, width = 0.0, math.pi
    best = math.inf
    starts = np.linspace(-math.pi, math.pi, 361)
    values = [dubins(x, y, float(h), r) for h in starts]
    for k in np.argsort(values)[:6]:  # it jumps where a word ends
        centre, width = float(starts[k]), math.radians(1.0)
        while width > 1e-10:
            grid = np.linspace(centre - width, centre + width, 21)
            ends = [dubins(x, y, float(h), r) for h in grid]
            centre, width = float(grid[int(np.argmin(ends))]), 0.2 * width
            best = min(best, *ends)
    return best


def test_it_is_the_best_of_all_headings_by_dubins() -> None:
    for radius in (0.7, 3.0):
        rng = np.random.default_rng(5)
        points = np.concatenate(
            [
                radius * rng.uniform(-4.0, 4.0, (60, 2)),
                radius * rng.uniform(-0.5, 0.5, (20, 2)),
                radius * (np.array([0.0, 1.0]) + 0.9 * rng.uniform(-0.7, 0.7, (30, 2))),
                radius * (np.array([0.0, -1.0]) + 0.9 * rng.uniform(-0.7, 0.7, (30, 2))),
            ]
        )
        found = turn_to((0.0, 0.0), 0.0, points, radius).metres
        expected = [reference(x, y, radius) for x, y in points.tolist()]
        assert found == pytest.approx(expected, rel=1e-6, abs=1e-7)


def test_the_curve_is_as_long_ends_there_and_turns_no_tighter() -> None:
    for radius in (0.0, 2.0, 30.0):
        rng = np.random.default_rng(7)
        for _ in range(200):
            start, end = rng.uniform(-50.0, 50.0, (2, 2))
            heading = float(rng.uniform(-7.0, 7.0))
            told = turn_to(start, heading, [end], radius)
            line = curve((start[0], start[1]), heading, (end[0], end[1]), radius)
            steps = np.diff(line, axis=0)
            lengths = np.hypot(*steps.T)
            assert line[0].tolist() == start.tolist()
            assert line[-1].tolist() == end.tolist()
            assert lengths.sum() == pytest.approx(told.metres[0], rel=1e-3)
            assert lengths.sum() <= told.metres[0] * (1.0 + 1e-9)
            if radius and len(line) > 2:
                lengths, steps = lengths[lengths > 1e-6], steps[lengths > 1e-6]
                headings = np.unwrap(np.arctan2(steps[:, 1], steps[:, 0]))
                turns = np.abs(np.diff(headings))
                assert (turns <= math.radians(5.0) + 1e-6).all()
                last = headings[-1] - told.heading[0]
                assert abs(math.remainder(last, math.tau)) < math.radians(5.0)


def test_the_most_that_it_is_longer() -> None:
    near = np.linspace(-3.0, 3.0, 601)
    points = np.stack(np.meshgrid(near, near), axis=-1).reshape(-1, 2)
    points = np.concatenate([points, 0.01 * points, 100.0 * points])
    found = turn_to((0.0, 0.0), 0.0, points, 1.0)
    assert np.isfinite(found.metres).all()
    more = found.metres - np.hypot(*points.T)
    assert more.min() >= -1e-9
    assert 0.9 * EXCESS < more.max() <= EXCESS
