"""The policy `spread`: places far from one another, in a short order, for any budget."""

from __future__ import annotations

import numpy as np
import pytest

from gp_active_sensing.planning.routes.distances import PartDistances
from gp_active_sensing.planning.spread import FarthestPoints, Spread
from gp_active_sensing.topology import MapConfig, Topology, build_topology, make_grid
from gp_active_sensing.types import Budget
from tests.cases import for_each
from tests.requesting import asked
from tests.unit.planning.routes.driving import LAKE, drive, plain_belief

TOWN = build_topology(MapConfig(kind="roads", file="town.geojson", largest_component=True))
FREE = make_grid(12, 10, 2.0, moves="free", speed=0.5)
MAPS = {"town": TOWN, "lake": LAKE, "free": FREE}
UNIT = {"town": 150.0, "lake": 1.0, "free": 2.0}
"""About how far it is from place to place [m]."""


def everything(topology: Topology) -> np.ndarray:
    return np.ones(topology.n, dtype=np.bool_)


def test_each_place_is_the_farthest_from_those_before_it() -> None:
    grid = make_grid(5, 5, 1.0)
    far = FarthestPoints(grid, everything(grid), covered=[0])
    # Where moves are along x and y, the middle is as far from three corners as the fourth.
    assert far.first(4) == [24, 4, 12, 20]
    assert far.first(99) == far.found
    assert sorted(far.found) == list(range(25))
    assert FarthestPoints(grid, everything(grid)).first(1) == [12]
    assert FarthestPoints(grid, everything(grid), begin=3).first(2) == [3, 20]
    assert FarthestPoints(grid, ~everything(grid)).first(2) == []


@for_each("name", MAPS)
def test_as_by_looking_at_all_distances(name: str) -> None:
    topology = MAPS[name]
    apart = PartDistances(topology)
    whole = np.array([apart.row(place) for place in range(topology.n)])
    np.testing.assert_allclose(whole, whole.T)
    chosen = [5]
    far = FarthestPoints(topology, everything(topology), covered=[5])
    for place in far.first(12):
        away = whole[chosen].min(axis=0)
        away[chosen] = -1.0
        assert away[place] == pytest.approx(away.max())
        chosen.append(place)
    np.testing.assert_allclose(apart.nearest([3, 5, 8]), whole[[3, 5, 8]].min(axis=0))


BUDGETS = {
    "metres": Budget(metres=40.0),
    "seconds": Budget(seconds=30.0),
    "readings": Budget(readings=20),
    "home": Budget(metres=40.0, end=3),
    "all": Budget(25, 40.0, 35.0, 3),
}


@for_each("budget", BUDGETS)
@for_each("start", [30, None])
@for_each("name", MAPS)
def test_every_budget_is_used_and_kept(name: str, start: int | None, budget: str) -> None:
    topology, unit, given = MAPS[name], UNIT[name], BUDGETS[budget]
    slow = {"town": 10.0, "lake": 1.0, "free": 0.5}[name]
    limits = Budget(
        given.readings,
        None if given.metres is None else given.metres * unit,
        None if given.seconds is None else given.seconds * unit / slow,
        given.end,
    )
    found = drive(Spread(), topology, limits, [start])
    assert limits.metres is None or found.metres[0] <= limits.metres + 1e-6
    assert limits.seconds is None or found.seconds <= limits.seconds + 1e-6
    assert limits.readings is None or len(found.read) <= limits.readings
    assert limits.end is None or found.at == [limits.end]
    assert len(found.read) == len(set(found.read))
    if budget == "readings":
        assert len(found.read) == limits.readings
    elif budget == "metres":
        assert found.metres[0] > 0.85 * limits.metres


def test_as_many_places_as_readings_where_any_place_may_be_next() -> None:
    plan, state = Spread().plan(asked(plain_belief(FREE), FREE, 0, remaining=Budget(readings=17)))
    assert len(state["route"]) == 17
    assert plan.waypoints == tuple(state["route"])
    assert plan.waypoint == 0  # it stands there
    x = FREE.positions[state["route"]]
    apart = np.hypot(*(x[:, None] - x).transpose(2, 0, 1)) + 99.0 * np.eye(17)
    assert apart.min() >= 4.0  # two cells; random places would touch
    far = np.hypot(*(FREE.positions[:, None] - x).transpose(2, 0, 1)).min(axis=1)
    assert far.max() <= 5.0


def test_what_is_known_counts_as_covered() -> None:
    belief = plain_belief(FREE)
    for place in range(60):  # the lower half
        belief.observe(place, 0.0)
    _, state = Spread().plan(asked(belief, FREE, 0, remaining=Budget(readings=6)))
    assert min(FREE.positions[state["route"], 1]) >= 12.0


@for_each("name", MAPS)
def test_all_is_read_where_nothing_limits(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gp_active_sensing.planning.spread.MOST", 50)
    topology = MAPS[name]
    joined = np.flatnonzero(np.isfinite(topology.ways_from(30).seconds))
    found = drive(Spread(), topology, Budget(), [30])
    assert sorted(found.read) == joined.tolist()


def test_a_far_corner_that_does_not_fit_with_the_rest_is_no_reason_to_stay() -> None:
    grid = make_grid(40, 40, 1.0)
    found = drive(Spread(), grid, Budget(metres=30.0, end=820), [820])
    assert len(found.read) >= 20
    assert found.at == [820]


@for_each("name", ["lake", "free"])
@for_each("starts", [(30, 30), (30, 31, 90)])
def test_probes_share_a_set_out(name: str, starts: tuple[int, ...]) -> None:
    topology = MAPS[name]
    joined = int(np.isfinite(topology.ways_from(30).seconds).sum())
    found = drive(Spread(), topology, Budget(), starts)
    assert len(found.read) == len(set(found.read)) == joined
    alone = drive(Spread(), topology, Budget(), [30])
    assert max(found.metres) < 0.85 * alone.metres[0]
