"""Routes for all that is left: what is driven and read, and what improves them."""

from __future__ import annotations

import numpy as np
import pytest

from gp_active_sensing.planning.routes.tours import (
    FeasibleRoute,
    RouteDriver,
    design_routes,
    evenly_spaced,
    improved,
)
from gp_active_sensing.types import Budget
from tests.cases import for_each
from tests.unit.planning.routes.driving import driver_of
from tests.unit.planning.test_map_error import believed, grid

BUDGETS = [
    Budget(metres=9.0),
    Budget(metres=14.0, end=0),
    Budget(seconds=8.0),
    Budget(readings=7),
    Budget(readings=5, metres=12.0, end=23),
]


def check(driver: RouteDriver, route: FeasibleRoute) -> None:
    """A route is what one gets by driving from stop to stop, and the budget lasts for it."""
    topology, budget = driver.topology, driver.budget
    at, metres, seconds = driver.at, 0.0, 0.0
    reads: dict[int, None] = {}
    if at is not None and driver.unread[at] and at in route.reads:
        reads[at] = None
    for stop in route.stops:
        way = topology.ways_from(at, driver.distances.by).route(stop)
        assert way is not None
        metres, seconds = metres + way.cost.metres, seconds + way.cost.seconds
        at = stop
    assert route.cost.metres == pytest.approx(metres)
    assert route.cost.seconds == pytest.approx(seconds)
    assert len(set(route.reads)) == len(route.reads)
    assert all(driver.unread[place] for place in route.reads)
    assert set(route.stops) <= set(route.reads) | set(np.flatnonzero(~driver.unread).tolist())
    if budget.end is not None and route.stops:
        way = topology.ways_to(budget.end, driver.distances.by).route(route.stops[-1])
        assert way is not None
        metres, seconds = metres + way.cost.metres, seconds + way.cost.seconds
    assert budget.metres is None or metres <= budget.metres + 1e-9
    assert budget.seconds is None or seconds <= budget.seconds + 1e-9
    needed = driver.needs(route)
    assert budget.metres is None or needed.metres == pytest.approx(min(metres, budget.metres))
    assert budget.seconds is None or needed.seconds == pytest.approx(min(seconds, budget.seconds))
    assert budget.readings is None or len(route.reads) <= budget.readings
    which = np.searchsorted(driver.field.places, np.array(route.reads, dtype=np.int64))
    assert driver.valued(route).value == pytest.approx(driver.field.value(which))


@for_each("budget", BUDGETS)
@for_each("moves", ["neighbours", "free"])
@for_each("seed", range(3))
def test_what_is_driven_keeps_the_budget(budget: Budget, moves: str, seed: int) -> None:
    more = {} if moves == "neighbours" else {"moves": "free"}
    topology = grid(**more)
    belief = believed(topology, np.random.default_rng(seed), readings=3)
    driver = driver_of(belief, topology, budget, 7, candidates=3)
    stops = np.random.default_rng(seed).permutation(driver.topology.n)[:12].tolist()
    found = driver.drive(stops)
    check(driver, found)
    for route in (*evenly_spaced(driver, lambda: True), *design_routes(driver, 12, lambda: True)):
        check(driver, route)
        assert route.reads
    check(driver, improved(driver, found, lambda: driver.evaluated < 40))
