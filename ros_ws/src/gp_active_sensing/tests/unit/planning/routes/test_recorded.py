"""Rows, tours, drives, passes and courses are those on record; see `tests.recorded`."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from gp_active_sensing.planning.budget import least_of, reachable_goals
from gp_active_sensing.planning.request import TargetError
from gp_active_sensing.planning.routes.base import next_pass, parts_only, pass_of
from gp_active_sensing.planning.routes.boustrophedon import CORNERS, Ground, Rows, rows_of
from gp_active_sensing.planning.routes.follow import (
    Course,
    nearest_plan,
    next_plan,
    read_along,
    trip_of,
    unread_of,
)
from gp_active_sensing.planning.routes.ordering import short_tour
from gp_active_sensing.planning.routes.tours import (
    design_routes,
    evenly_spaced,
    improved,
    in_short_order,
)
from gp_active_sensing.topology import FreeTopology, RoadMap, Roads, Segment, Topology, make_grid
from gp_active_sensing.types import OF, Aim, Budget, Plan
from tests.cases import for_each
from tests.recorded import check_recorded
from tests.requesting import asked
from tests.unit.planning.routes.driving import LAKE, driver_of
from tests.unit.planning.test_map_error import believed

RECORD = Path(__file__).with_name("recorded.json")
SLANTING = [(0.0, 0.0), (20.0, 12.0), (18.0, 15.0), (-2.0, 4.0)]
SCATTERED = np.random.default_rng(4).uniform(0.0, 12.0, (40, 2))


def city() -> Roads:
    """Four streets by three, a metre and a half apart; every third segment leads one way."""
    segments = []
    for number, (x, y, (dx, dy)) in enumerate(product(range(4), range(3), ((1, 0), (0, 1)))):
        if x + dx < 4 and y + dy < 3:
            ends, line = [f"{x} {y}", f"{x + dx} {y + dy}"], [(1.5 * x, y), (1.5 * x + dx, y + dy)]
            length = 1.0 + 0.1 * (number % 4)
            for way in range(1 if number % 3 == 2 else 2):
                a, b = ends[way], ends[1 - way]
                line_of = tuple(line[:: 1 - 2 * way])
                limit = 1.0 + number % 2
                segments.append(Segment(f"{a}-{b}", a, b, line_of, length, speed_limit=limit))
    return Roads(RoadMap("city", "map", tuple(segments)))


WORLDS: dict[str, Topology] = {
    "lake": LAKE,
    "slanting": make_grid(spacing=1.3, outline=SLANTING, moves="free"),
    "hole": make_grid(9, 7, (1.0, 1.5), obstacles=[((2.5, 2.0), (5.5, 6.1))], speed=0.7),
    "layers": make_grid(5, 4, 3.0, heights=[0.0, -1.0, -2.5], moves="free"),
    "scattered": FreeTopology("scattered", "map", [str(i) for i in range(40)], SCATTERED),
    "roads": city(),
    "reach": make_grid(6, 5, 1.0, reach=2.1, obstacles=[((2.0, 1.0), (3.0, 2.9))]),
}
BUDGETS = (
    Budget(metres=11.3),
    Budget(seconds=14.5, end=3),
    Budget(readings=6),
    Budget(7, 16.2, 21.7, 5),
    Budget(),
)
LAID = (
    {},
    {"sparse": True},
    {"spacing": 2.3},
    {"inset": 1.1, "direction": 20.0},
    {"spacing": 1.9, "inset": 0.4, "sparse": True},
)


@for_each("name", [name for name in WORLDS if name not in ("roads", "reach")])
def test_rows(name: str) -> None:
    ground = Ground(WORLDS[name], np.arange(WORLDS[name].n) % 11 != 7)
    n = WORLDS[name].n
    found: dict[str, Any] = {
        "pitch": ground.pitch,
        "directions": ground.directions,
        "extent": [ground.extent(d) for d in (0.0, 35.0, 90.0)],
        "corner": [
            ground.corner(d, at) for d in (0.0, 35.0, 90.0) for at in (None, 0, n // 2, n - 1)
        ],
        "apart": [ground.mean_distance(range(0, n, k)) for k in (1, 3, 7)],
    }
    for number, given in enumerate(LAID):
        families = list(ground.evenly(**given))
        found[f"families {number}"] = [family[:6] for family in families]
        some = [family[k] for family in families for k in (0, len(family) // 2, -1)]
        found[f"rows {number}"] = [
            rows_of(ground, dataclasses.replace(rows, corner=(number + k) % CORNERS), by)
            for k, (rows, by) in enumerate(product(some[::2], ("metres", "seconds")))
        ]
    odd = [Rows(2.0, 0.3, angle, corner, 1.7) for angle in (15.0, 90.0) for corner in range(4)]
    found["odd"] = [rows_of(ground, rows) for rows in odd]
    check_recorded(RECORD, f"rows {name}", found.values())


def test_short_tours() -> None:
    found = []
    for seed in range(16):
        rng = np.random.default_rng([8, seed])
        k = seed + 1 if seed < 12 else 45
        points = rng.uniform(0.0, 10.0, (k + 1, 2))
        far = np.linalg.norm(points[:, None] - points, axis=2) * rng.uniform(0.8, 1.2, (k + 1,) * 2)
        if seed % 3 == 2:
            far[rng.random(far.shape) < 0.15] = np.inf
        first, last = (far[0, 1:] if seed & 1 else None), (far[1:, 0] if seed & 2 else None)
        for limit in (None, 3):
            tour = short_tour(far[1:, 1:], first, last, limit=limit)
            found.append((tour.order, tour.expanded))
    check_recorded(RECORD, "tours", found)


@for_each("name", WORLDS)
def test_drives(name: str) -> None:
    topology, found = WORLDS[name], []
    for number, budget in enumerate(BUDGETS):
        rng = np.random.default_rng([9, number])
        belief = believed(topology, rng, readings=2)
        at = None if number == 2 else int(rng.integers(topology.n))
        most = [500, 9][number % 2]
        driver = driver_of(belief, topology, budget, at, candidates=3, most=most)
        stops = rng.permutation(topology.n)[:7].tolist()
        route = driver.drive(stops)
        up_to = [driver.evaluated + 25]
        routes = [
            route,
            in_short_order(driver, stops),
            *evenly_spaced(driver, lambda up_to=up_to, driver=driver: driver.evaluated < up_to[0]),
            *design_routes(driver, 6, lambda: True, [None, 2][number % 2]),
        ]
        most = driver.evaluated + 15
        better = improved(driver, route, lambda most=most, driver=driver: driver.evaluated < most)
        places = np.array(stops)
        found.append(
            {
                "routes": [*routes, better],
                "needs": [driver.needs(r) for r in routes[:3]],
                "home": driver.costs_to_end(places),
                "corners": [driver.distances.corners(r.reads) for r in routes[:4]],
            }
        )
    check_recorded(RECORD, f"drives {name}", found)


@for_each("name", ["lake", "slanting", "roads", "layers"])
def test_passes(name: str) -> None:
    topology, found = WORLDS[name], []
    cases = product((0, 2, 12), (0.4, 1.5, 2.6), OF, range(len(BUDGETS)))
    for number, (readings, error, of, which) in enumerate(cases):
        if number % 4:
            continue
        budget, aim = BUDGETS[which], Aim(error, of)
        rng = np.random.default_rng([10, number])
        belief = believed(topology, rng, readings=min(readings, topology.n - 2))
        driver = driver_of(belief, topology, budget, 1, candidates=3)
        elsewhere = rng.permutation(topology.n)[: number % 3].tolist()
        more = [lambda: True, lambda driver=driver: driver.evaluated < 2][number % 2]
        sought = [TargetError(0, belief, aim)]
        one = next_pass(driver, sought, 3, more, elsewhere=elsewhere, probes=1 + number % 2)
        request = asked(belief, topology, 1, elsewhere, remaining=budget, aim=aim)
        other = pass_of(request, reachable_goals(request), unread_of(request), lambda: False)
        least = least_of(one.budget, other.budget)
        only = parts_only(driver, sought, 3, elsewhere)
        found.append([one, other, least, only])
    check_recorded(RECORD, f"passes {name}", found)


def shown(plan: Plan | None) -> Any:
    if plan is None:
        return None
    return [plan.waypoints, plan.path, plan.cost, plan.horizon, plan.reason]


def asked_on(topology: Topology, seed: int, route: list[int]) -> Iterator[Any]:
    """Yield requests of a mission of several probes, mostly on a route, with what each has left."""
    rng = np.random.default_rng([11, seed])
    belief = believed(topology, rng, readings=1)
    for step in range(40):
        others = rng.permutation(topology.n).tolist()
        on_it = rng.permutation(route).tolist()
        places = list(dict.fromkeys([*on_it[: 4 + step % 3], *others]))
        budget = BUDGETS[(step + seed) % len(BUDGETS)] if step % 3 else Budget()
        yield asked(
            belief, topology, [places[0], None, places[1]][step % 7 % 3], places[1 : 1 + step % 4],
            places[8 : 8 + step % 2], budget, waiting=tuple(places[3 : 3 + step % 5 % 3]),
        )  # fmt: skip
        belief.observe(places[[0, 6][step % 2]], 1.0)


@for_each("name", WORLDS)
def test_courses(name: str) -> None:
    topology, found = WORLDS[name], []
    for seed in range(2):
        rng = np.random.default_rng([12, seed])
        route = rng.permutation(topology.n)[:14].tolist()
        course = Course(tuple(route))
        for step, request in enumerate(asked_on(topology, seed, route)):
            plan, course = course.next_plan(request)
            at, unread = request.at, unread_of(request)
            trip = trip_of(topology, route[step % 5 :: 4], at, unread, ("metres", "seconds")[seed])
            entry = [shown(plan), course.aims, shown(nearest_plan(request)), trip]
            entry.append(shown(next_plan(route, request, begin=step % 14)))
            if at is not None:
                driver = driver_of(request.belief, topology, request.remaining, at, candidates=3)
                limits = (request.remaining, driver.distances, driver._constraint)
                entry.append(read_along(route, at, unread, *limits, [None, 3][step % 2]))
            found.append(entry)
            assert Course.of(course.to_state()) == course
    check_recorded(RECORD, f"courses {name}", found)
