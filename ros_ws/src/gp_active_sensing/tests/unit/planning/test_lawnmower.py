"""The policy `lawnmower`: rows for what is left of the budget, driven to their end."""

from __future__ import annotations

import numpy as np
import pytest

from gp_active_sensing.errors import PlanningError
from gp_active_sensing.planning.base import crosses
from gp_active_sensing.planning.lawnmower import Lawnmower
from gp_active_sensing.topology import MapConfig, build_topology, make_grid
from gp_active_sensing.types import Budget, PlanLimit
from tests.cases import for_each
from tests.requesting import asked
from tests.unit.planning.routes.driving import LAKE, drive, plain_belief

CENTRE = 30


def mean_distance(topology, read) -> float:
    x = topology.positions
    apart = np.hypot(*(x[:, None] - x[read]).transpose(2, 0, 1))
    return float(apart.min(axis=1).mean())


@for_each(
    "budget",
    [
        Budget(metres=60.0),
        Budget(seconds=60.0),
        Budget(readings=50),
        Budget(metres=60.0, end=CENTRE),
        Budget(40, 60.0, 70.0, 3),
    ],
)
@for_each("start", [CENTRE, 0, None])
@for_each("moves", ["adjacent", "free"])
def test_every_budget_is_used_and_kept(budget: Budget, start: int | None, moves: str) -> None:
    topology = LAKE if moves == "adjacent" else make_grid(16, 12, 1.0, moves="free")
    if start == 0 and moves == "adjacent":
        start = int(topology.n // 2)
    found = drive(Lawnmower(), topology, budget, [start])
    assert budget.metres is None or found.metres[0] <= budget.metres + 1e-9
    assert budget.seconds is None or found.seconds <= budget.seconds + 1e-9
    assert budget.readings is None or len(found.read) <= budget.readings
    assert budget.end is None or found.at == [budget.end]
    if budget == Budget(readings=50):
        assert len(found.read) == 50
    elif budget.readings is None:
        assert found.metres[0] > 57.0
    # Evenly: about as far from what was read as from as many places of a perfect lattice.
    reads = len(found.read) if topology.free and budget.readings else max(found.metres[0], 1.0)
    even = 0.5 * topology.n / reads if not (topology.free and budget.readings) else 0.0
    lattice = 0.38 * (topology.n / reads) ** 0.5
    assert mean_distance(topology, found.read) < 1.6 * max(even, lattice) + 0.6


def test_all_of_a_map_is_read_where_nothing_limits() -> None:
    joined = np.isfinite(LAKE.ways_from(CENTRE).seconds)
    found = drive(Lawnmower(), LAKE, Budget(), [CENTRE])
    assert sorted(found.read) == np.flatnonzero(joined).tolist()
    assert found.metres[0] < 1.4 * joined.sum()
    assert found.plans[-1].reason


def test_what_is_given_is_driven() -> None:
    grid = make_grid(13, 13, 1.0)
    found = drive(Lawnmower(spacing=4.0, inset=2.0, direction=90.0), grid, Budget(metres=200.0))
    xy = grid.positions[found.read]
    laid = [tuple(p) for p in xy.astype(int).tolist()][: 2 + 2 + 3 * 9 + 2 * 3]
    # From the corner to the first row, three columns from 2 to 10, and the ways between them.
    assert {x for x, y in laid if 4 <= y <= 8} == {2, 6, 10}
    assert max(y for _, y in laid) == 10


@for_each("moves", ["adjacent", "free"])
@for_each("starts", [(0, 0), (0, 99), (0, 0, 0), (3, 50, 96)])
def test_probes_share_the_rows_out(moves: str, starts: tuple[int, ...]) -> None:
    grid = make_grid(10, 10, 1.0, moves=moves)
    found = drive(Lawnmower(), grid, Budget(), starts)
    assert sorted(found.read) == list(range(100))
    assert len(set(found.read)) == 100
    assert max(found.metres) < 85.0  # one alone drives 99
    spent = drive(Lawnmower(), grid, Budget(readings=30), starts)
    assert len(spent.read) == 30


def test_a_limit_is_kept_and_said() -> None:
    grid = make_grid(12, 12, 1.0)
    belief = plain_belief(grid)
    rng = np.random.default_rng(0)
    budget = Budget(metres=60.0)
    for limit in (PlanLimit(expansions=0), PlanLimit(seconds=0.0)):
        plan, _ = Lawnmower().plan(asked(belief, grid, 0, rng=rng, remaining=budget, limit=limit))
        assert plan.waypoint is not None
        assert plan.deadline_hit
        assert plan.expanded == 1
    plan, state = Lawnmower().plan(asked(belief, grid, 0, rng=rng, remaining=budget))
    assert not plan.deadline_hit
    assert plan.expanded > 10
    plan, _ = Lawnmower().plan(asked(belief, grid, 0, rng=rng, remaining=budget), state)
    assert plan.expanded == 1


def test_roads_are_refused() -> None:
    town = build_topology(MapConfig(kind="roads", file="town.geojson"))
    with pytest.raises(PlanningError, match=r"rows over open ground.*Take tour"):
        Lawnmower().check(plain_belief(town), town)
    assert crosses(Lawnmower())
    assert not crosses(object())


def test_rows_that_the_map_has_no_room_for() -> None:
    topology = make_grid(12, 8, 1.0)
    request = asked(plain_belief(topology), topology, 0, remaining=Budget(metres=60.0))
    for fits in ({"inset": 3.0, "direction": 90.0}, {"spacing": 9.0}):
        assert Lawnmower(**fits).plan(request)[0].waypoints
    for key, value in (("inset", 6.0), ("spacing", 30.0)):
        with pytest.raises(PlanningError, match=rf"policy\.{key}: expected at most"):
            Lawnmower(**{key: value}).plan(request)
