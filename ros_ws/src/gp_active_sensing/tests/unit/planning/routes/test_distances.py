"""Ways from place to place: those of the map, kept for as long as there is the map."""

from __future__ import annotations

import gc
import weakref
from itertools import pairwise

import numpy as np
import pytest

from gp_active_sensing.planning.routes import distances as module
from gp_active_sensing.planning.routes.distances import Distances, PartDistances, distances_of
from gp_active_sensing.topology import GraphTopology, MapConfig, Move, build_topology, make_grid
from gp_active_sensing.types import Cost
from tests.cases import for_each

GRID = make_grid(7, 6, 2.0, neighbours=8, obstacles=[[(3.0, 3.0), (7.0, 9.0)]], speed=0.5)
TOWN = build_topology(MapConfig(kind="roads", file="town.geojson"))
FREE = make_grid(4, 3, 2.0, moves="free", speed=0.5)


class Untold:
    """A map of somebody else's: what the contract asks for, and no list of its moves."""

    def __init__(self, topology: GraphTopology) -> None:
        self._inner = topology
        self.free = topology.free
        self.n = topology.n
        self.points = topology.points

    def ways_from(self, at: int | None, by: str = "seconds"):
        return self._inner.ways_from(at, by)


@for_each("by", ["metres", "seconds"])
@for_each("topology", [GRID, TOWN, FREE, Untold(FREE), Untold(GRID)])  # type: ignore[arg-type]
def test_they_are_those_of_the_map(topology, by: str) -> None:
    distances = Distances(topology, by)
    for at in (0, topology.n // 2, topology.n - 1):
        ways = topology.ways_from(at, by)
        least = np.array(ways.metres if by == "metres" else ways.seconds)
        least[at] = 0.0
        np.testing.assert_allclose(distances.row(at), least, atol=1e-9)
    places = [3, 0, topology.n - 1]
    between = distances.between(places)
    assert between.shape == (3, 3)
    for i, a in enumerate(places):
        np.testing.assert_allclose(between[i], distances.row(a)[places])


@for_each("topology", [GRID, TOWN, FREE])
def test_a_way_is_legal_and_costs_what_is_said(topology) -> None:
    rng = np.random.default_rng(0)
    distances = Distances(topology)
    for a, b in rng.integers(topology.n, size=(40, 2)).tolist():
        way = distances.way(a, b)
        least = distances.row(a)[b]
        if way is None:
            assert np.isinf(least)
            continue
        here, cost = a, Cost(0.0, 0.0)
        everything = np.ones(topology.n, dtype=np.bool_)
        for place in way.path:
            assert topology.free or place in topology.neighbours(here)
            cost = cost.plus(topology.route(here, place, everything).cost)
            here = place
        assert here == b
        assert way.cost.seconds == pytest.approx(least)
        assert way.cost == pytest.approx(cost)


def corners_by_ways(distances: Distances, route: list[int]) -> tuple[int, ...]:
    """Return the corners of a route as they are defined: by the way to each place in turn."""
    kept, start = [route[0]], 0
    for i in range(2, len(route)):
        way = distances.way(route[start], route[i])
        if way is None or way.path != tuple(route[start + 1 : i + 1]):
            start = i - 1
            kept.append(route[start])
    return (*kept, route[-1])


@for_each("topology", [GRID, TOWN])
@for_each("small", [module._SMALL, 0])
def test_corners_and_drives_are_those_of_the_ways(
    topology, small: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(2)
    plain = Distances(topology)
    monkeypatch.setattr(module, "_SMALL", small)
    distances = Distances(topology)
    for _ in range(12):
        route = [int(rng.integers(topology.n))]
        while len(route) < 60:
            way = plain.way(route[-1], int(rng.integers(topology.n)))
            route += [] if way is None else [p for p in way.path if rng.random() < 0.98]
        assert distances.corners(route) == corners_by_ways(plain, route)
        legs = [plain.way(a, b) for a, b in pairwise(route)]
        path, cost = distances.drive(np.array(route))
        assert path.tolist() == [place for leg in legs for place in leg.path]
        assert cost.seconds == pytest.approx(sum(leg.cost.seconds for leg in legs))
        assert cost.metres == pytest.approx(sum(leg.cost.metres for leg in legs))


@for_each("by", ["metres", "seconds"])
def test_between_places_of_a_large_grid_it_is_the_closed_form_or_a_search(
    by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = Distances(GRID, by)
    monkeypatch.setattr(module, "_SMALL", 0)
    found = Distances(GRID, by).between(range(GRID.n), range(0, GRID.n, 2))
    np.testing.assert_allclose(found, plain.between(range(GRID.n), range(0, GRID.n, 2)), atol=1e-9)


def test_there_is_not_the_same_as_back_on_a_one_way_ring() -> None:
    moves = [[Move((i + 1) % 5, 10.0, 1.0)] for i in range(5)] + [[]]
    ring = GraphTopology("ring", "map", list("abcdef"), np.zeros((6, 2)), moves, stay=False)
    distances = Distances(ring)
    assert distances.row(0).tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, np.inf]
    assert distances.way(1, 0).cost == (40.0, 4.0)
    assert distances.way(0, 0) == ((), (0.0, 0.0))
    assert distances.way(0, 5) is None
    assert PartDistances(ring).row(0).tolist() == [0.0, 10.0, 20.0, 20.0, 10.0, np.inf]
    assert PartDistances(ring).row(0, 15.0).tolist() == [0.0, 10.0, np.inf, np.inf, 10.0, np.inf]


@for_each("topology", [GRID, TOWN])
@for_each("kept", [module._KEPT_NUMBERS, 0])
def test_ways_on_a_large_map_do_not_depend_on_what_was_asked_before(
    topology, kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Distances(topology)
    monkeypatch.setattr(module, "_SMALL", 0)
    monkeypatch.setattr(module, "_KEPT_NUMBERS", kept)
    searches: list[float] = []
    search = Distances._search

    def counted(self: Distances, at: int, limit: float = np.inf):
        searches.append(limit)
        return search(self, at, limit)

    monkeypatch.setattr(Distances, "_search", counted)
    nearby = Distances(topology)
    pairs = [(a, b) for a in (0, 1, topology.n // 2) for b in range(0, topology.n, 3)]
    for a, b in np.random.default_rng(1).permutation(pairs).tolist():
        assert nearby.way(a, b) == whole.way(a, b)
    if kept:
        assert len(searches) < len(pairs) / 2  # what was found nearby is used again
    assert min(searches) < np.inf


def test_they_are_kept_for_as_long_as_there_is_the_map() -> None:
    grid = make_grid(4, 4, 1.0)
    found = distances_of(grid, "metres")
    assert distances_of(grid, "metres") is found
    assert distances_of(grid, "seconds") is not found
    gone = weakref.ref(grid)
    del grid
    gc.collect()
    assert gone() is None
    with pytest.raises(TypeError):
        hash(Unhashable())
    assert distances_of(Unhashable()).row(0).size == GRID.n  # type: ignore[arg-type]
    lost = distances_of(Untold(GRID))  # type: ignore[arg-type]
    with pytest.raises(ReferenceError, match="gone"):
        lost.row(0)


class Unhashable(Untold):
    def __init__(self) -> None:
        super().__init__(GRID)  # type: ignore[arg-type]

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = None  # type: ignore[assignment]


def test_what_is_kept_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_KEPT_NUMBERS", 6 * GRID.n)
    monkeypatch.setattr(module, "_KEPT_WAYS", 20)
    distances = Distances(GRID)
    for at in range(GRID.n):
        assert distances.row(at)[at] == 0.0
        assert distances.way(at, GRID.n - 1 - at) is not None
    assert len(distances._rows) <= 3
    assert sum(len(way.path) for way in distances._ways.values()) <= 20
