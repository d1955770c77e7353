"""Evenly spaced rows: where they lie, in which order they are driven, and which of them fit."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from gp_active_sensing.planning.budget import BudgetConstraint
from gp_active_sensing.planning.lawnmower import densest_rows
from gp_active_sensing.planning.routes.boustrophedon import CORNERS, Ground, Rows, rows_of
from gp_active_sensing.planning.routes.distances import unit_of
from gp_active_sensing.planning.routes.follow import fits, trip_of
from gp_active_sensing.topology import Topology, make_grid, make_line
from gp_active_sensing.types import Budget
from tests.cases import for_each


def cells(topology: Topology, places: tuple[int, ...]) -> list[tuple[int, int]]:
    return [(int(x), int(y)) for x, y in topology.positions[list(places)]]


def all_unread(topology: Topology) -> np.ndarray:
    return np.ones(topology.n, dtype=np.bool_)


def test_rows_are_driven_back_and_forth() -> None:
    grid = make_grid(4, 5, 1.0)
    found = cells(grid, rows_of(Ground(grid), Rows(spacing=2.0)))
    row = [0, 1, 2, 3]
    assert found == [(x, 0) for x in row] + [(x, 2) for x in row[::-1]] + [(x, 4) for x in row]
    found = cells(grid, rows_of(Ground(grid), Rows(spacing=2.0, direction=90.0)))
    # Across 90 degrees is -x: the first row is the rightmost one as seen along the direction.
    column = [0, 1, 2, 3, 4]
    assert found == [(2, y) for y in column] + [(0, y) for y in column[::-1]]


def test_places_out_of_reach_are_left_out() -> None:
    grid = make_grid(7, 4, 1.0, obstacles=[((2.5, -1.0), (3.5, 4.0))])
    here = np.isfinite(grid.ways_from(0).seconds)
    places = rows_of(Ground(grid, here), Rows(spacing=1.0))
    assert sorted(places) == np.flatnonzero(here).tolist()
    nothing = Ground(grid, np.zeros(grid.n, dtype=np.bool_))
    assert rows_of(nothing, Rows(spacing=1.0)) == ()
    assert densest_rows(nothing, 0, Budget(metres=5.0), all_unread(grid)) is None


def test_the_long_axis_is_tried_where_there_is_one() -> None:
    along = make_grid(40, 40, 1.0, outline=[(0, 0), (4, 0), (39, 35), (39, 39), (35, 39), (0, 4)])
    assert Ground(along).directions == pytest.approx((0.0, 90.0, 45.0), abs=1.0)
    nearly_square = make_grid(40, 40, 1.0, outline=[(16, 0), (34, 18), (18, 34), (0, 16)])
    assert Ground(nearly_square).directions == (0.0, 90.0), "18 to 16 is less than 1.2"
    assert Ground(make_grid(30, 4, 1.0)).directions == (0.0, 90.0)
    assert Ground(make_grid(6, 6, 1.0)).directions == (0.0, 90.0)
    assert Ground(make_line(9, 2.0)).pitch == 2.0
    assert Ground(make_grid(1, 1, 1.0)).directions == (0.0, 90.0)


@for_each(
    "budget",
    [
        Budget(metres=40.0),
        Budget(seconds=80.0),
        Budget(readings=30),
        Budget(metres=45.0, end=0),
        Budget(40, 50.0, 90.0, 5),
    ],
)
@for_each("moves", ["adjacent", "free"])
def test_what_fits_a_budget_fits(budget: Budget, moves: str) -> None:
    obstacles = [((5.0, 3.0), (7.0, 6.0))]
    grid = make_grid(11, 8, 1.0, neighbours=8, moves=moves, speed=0.5, obstacles=obstacles)
    constraint = BudgetConstraint(grid, budget)
    ground, unread = Ground(grid), all_unread(grid)
    found = []
    for family in ground.evenly(sparse=moves == "free" and budget.readings is not None):
        for rows, corner in itertools.product(family, range(CORNERS)):
            laid = replace(rows, corner=corner)
            places = rows_of(ground, laid, unit_of(budget))
            if fits(trip_of(grid, places, 30, unread, unit_of(budget)), constraint):
                found.append(places)
    assert len(found) >= 8
    best = densest_rows(ground, 30, budget, unread)
    assert best is not None
    assert best.fits
    assert fits(best.laid.trip, constraint)
    away = [ground.mean_distance(places) for places in found]
    # Bisection begins in the nearest corner, so that another one may allow for a little more.
    assert ground.mean_distance(best.laid.places) <= 1.05 * min(away)


def test_what_is_given_is_kept_even_where_it_does_not_fit() -> None:
    grid = make_grid(20, 20, 1.0)
    best = densest_rows(
        Ground(grid), 0, Budget(metres=10.0), all_unread(grid), spacing=5.0, direction=90.0
    )
    assert best is not None
    assert not best.fits
    assert (best.laid.rows.spacing, best.laid.rows.direction) == (5.0, 90.0)
    given = densest_rows(Ground(grid), 0, Budget(metres=90.0), all_unread(grid), inset=3.0)
    assert given is not None
    assert given.fits
    assert given.laid.rows.inset == 3.0
    xy = grid.positions[list(given.laid.places)]
    assert xy.min() >= 3.0
    assert xy.max() <= 16.0
