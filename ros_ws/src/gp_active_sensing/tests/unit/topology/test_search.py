"""The searches along moves against networkx, and what a reach adds to a map."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from gp_active_sensing.config import from_mapping
from gp_active_sensing.errors import ConfigError
from gp_active_sensing.topology import (
    GraphTopology,
    MapConfig,
    Roads,
    build_topology,
    make_grid,
    make_line,
    route_geometry,
)
from gp_active_sensing.topology.loaders import load_roads
from gp_active_sensing.topology.search import within
from gp_active_sensing.types import Cost
from tests.random_maps import directed_graph
from tests.unit.topology.road_maps import street, write


def random_graph(seed: int, n: int = 25, reach: float = 0.0) -> GraphTopology:
    return directed_graph(np.random.default_rng(seed), n, 3, reach=reach)


def as_graph(topology: GraphTopology) -> nx.DiGraph:
    graph = nx.DiGraph()
    graph.add_nodes_from(range(topology.n))
    for a, out in enumerate(topology._moves):
        for move in out:
            graph.add_edge(a, move.to, metres=move.metres, seconds=move.seconds)
    return graph


def driven(topology: GraphTopology, at: int, path: tuple[int, ...]) -> Cost:
    """Return what a path costs, every step of it a legal move."""
    cost = Cost(0.0, 0.0)
    for b in path:
        move = next(m for m in topology._moves[at] if m.to == b)
        cost = cost.plus(Cost(move.metres, move.seconds))
        at = b
    return cost


def test_ways_to_a_place_are_the_cheapest() -> None:
    for seed in range(12):
        for by in ("metres", "seconds"):
            topology = random_graph(seed)
            goal = seed % topology.n
            ways = topology.ways_to(goal, by)
            expected = nx.single_source_dijkstra_path_length(
                as_graph(topology).reverse(), goal, weight=by
            )
            assert ways.route(goal) == ((), (0.0, 0.0))
            for at in range(topology.n):
                route = ways.route(at)
                assert (route is None) == (at not in expected)
                if route is not None:
                    cost = driven(topology, at, route.path)
                    assert not route.path or route.path[-1] == goal
                    assert getattr(route.cost, by) == pytest.approx(expected[at])
                    assert tuple(route.cost) == pytest.approx(tuple(cost))
            assert topology.ways_to(goal, by) is ways, "found once a map"


def test_of_equally_cheap_ways_the_one_through_the_first_place_counts() -> None:
    grid = make_grid(5, 5, 1.0)
    before = grid.ways_from(0).before.reshape(5, 5)
    assert before[1:, 1:].tolist() == [[5 * r + c for c in range(1, 5)] for r in range(4)]


def test_what_is_near_is_what_short_ways_lead_to() -> None:
    for seed in range(8):
        topology = random_graph(seed)
        at, reach = 3, 90.0
        graph = as_graph(topology)
        lengths: dict[int, float] = {}
        for b in graph.successors(at):  # the place itself only where a loop leads back to it
            step = graph.edges[at, b]["metres"]
            found = nx.single_source_dijkstra_path_length(graph, b, weight="metres")
            for x, metres in found.items():
                lengths[x] = min(lengths.get(x, np.inf), step + metres)
        near = within(topology._moves, at, reach)
        assert set(near) == {x for x, metres in lengths.items() if metres <= reach}
        for x, route in near.items():
            assert route.path[-1] == x
            assert route.cost.metres == pytest.approx(lengths[x])
            assert tuple(driven(topology, at, route.path)) == pytest.approx(tuple(route.cost))


def test_a_reach_adds_what_is_near_and_takes_nothing_away() -> None:
    for seed in range(10):
        for reach in (40.0, 150.0):
            plain, wide = random_graph(seed), random_graph(seed, reach=reach)
            rng = np.random.default_rng(seed)
            for _ in range(20):
                at = int(rng.integers(plain.n))
                observed = rng.random(plain.n) < 0.5
                aside = tuple(np.flatnonzero(rng.random(plain.n) < 0.1).tolist())
                skip = observed.copy()
                skip[list(aside)] = True
                near = {x for x in within(plain._moves, at, reach) if not skip[x]}
                beside = {int(b) for b in plain.neighbours(at) if not skip[b]}
                if plain._stay and not skip[at]:
                    beside.add(at)
                expected = near | beside or set(plain.candidates(at, observed, aside).tolist())
                found = wide.candidates(at, observed, aside)
                assert found.tolist() == sorted(expected)
                for goal in found.tolist():
                    route = wide.route(at, goal, observed, aside)
                    if goal == at and wide._stay:
                        assert route.cost == (0.0, 0.0)
                        continue
                    assert tuple(driven(wide, at, route.path)) == pytest.approx(tuple(route.cost))
                    if goal not in near and goal not in beside:
                        assert all(skip[p] for p in route.path[:-1])


def test_reachable_with_a_reach_misses_nothing() -> None:
    """Every decision that may follow, by brute force."""
    for seed in range(25):
        topology = random_graph(seed, n=8, reach=60.0)
        rng = np.random.default_rng(seed)
        at = int(rng.integers(topology.n))
        observed = rng.random(topology.n) < 0.3
        decisions, met = 3, set()
        states = {(at, frozenset(np.flatnonzero(observed).tolist()))}
        for _ in range(decisions):
            following = set()
            for place, seen in states:
                mask = np.zeros(topology.n, dtype=np.bool_)
                mask[list(seen)] = True
                for goal in topology.candidates(place, mask).tolist():
                    met.add(goal)
                    path = topology.route(place, goal, mask).path
                    following.add((goal, seen.union(path)))
            states = following
        mask = topology.reachable(at, observed, decisions)
        assert met <= set(np.flatnonzero(mask).tolist())
        assert not (mask & observed).any()


def test_a_reach_on_a_grid_goes_round_obstacles() -> None:
    wall = [[(1.4, -1.0), (1.6, 2.5)]]
    grid = make_grid(4, 4, 1.0, obstacles=wall, reach=3.0)
    assert isinstance(grid, GraphTopology)
    near = [grid.names[x] for x in grid.candidates(grid.names.index("c1r2"), np.zeros(16, bool))]
    assert "c2r2" in near, "three moves, round the wall"
    assert "c2r1" not in near
    assert "c1r0" in near
    assert make_line(5, 1.0, reach=2.0).candidates(0, np.zeros(5, bool)).tolist() == [0, 1, 2]
    # A reach of a whole number of steps holds them, whatever rounding says.
    assert make_line(9, 0.1, reach=0.3).candidates(0, np.zeros(9, bool)).tolist() == [0, 1, 2, 3]


def test_a_reach_in_the_configuration(tmp_path) -> None:
    file = str(write(tmp_path / "street.geojson", street()))
    roads = build_topology(MapConfig(kind="roads", file=file, reach=200.0))
    nothing = np.zeros(roads.n, dtype=np.bool_)
    ab = roads.names.index("ab")
    assert {roads.names[x] for x in roads.candidates(ab, nothing)} > {"bc", "bd", "dc"}
    grid = build_topology(MapConfig(kind="grid", columns=3, rows=3, reach=2.0))
    assert grid.candidates(0, np.zeros(9, dtype=np.bool_)).tolist() == [0, 1, 2, 3, 4, 6]
    line = build_topology(MapConfig(kind="line", count=5, reach=2.0))
    assert line.candidates(0, np.zeros(5, dtype=np.bool_)).tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="reach: has no meaning where any place is next"):
        MapConfig(kind="line", count=5, moves="free", reach=2.0)
    with pytest.raises(ConfigError, match="reach: must be 0 or more"):
        from_mapping(MapConfig, {"kind": "line", "count": 5, "reach": -1.0})


def test_a_way_is_one_line(tmp_path) -> None:
    roads = Roads(load_roads(write(tmp_path / "street.geojson", street())))
    path = tuple(roads.names.index(name) for name in ("bd", "dc"))
    line = route_geometry(roads, path)
    assert line.tolist() == [[100, 0], [100, 50], [200, 50], [200, 0]]
    assert route_geometry(roads, ()).shape == (0, 2)
    length = np.hypot(*np.diff(line, axis=0).T).sum()
    assert length == pytest.approx(sum(roads.segments[p].length for p in path))


def test_ways_from_a_place_are_the_cheapest_and_roads_go_round() -> None:
    for seed in range(12):
        for by in ("metres", "seconds"):
            topology = random_graph(seed)
            at = seed % topology.n
            graph = as_graph(topology)
            expected = nx.single_source_dijkstra_path_length(graph, at, weight=by)
            if not topology._stay:
                rounds = [
                    expected[a] + graph.edges[a, at][by] for a in expected if graph.has_edge(a, at)
                ]
                expected.pop(at)
                expected |= {at: min(rounds)} if rounds else {}
            ways = topology.ways_from(at, by)
            unread = np.random.default_rng(seed).random(topology.n) < 0.5
            reads = ways.reads(unread)
            for goal in range(topology.n):
                route = ways.route(goal)
                assert (route is None) == (goal not in expected)
                if route is None:
                    continue
                assert route.path[-1] == goal
                assert getattr(route.cost, by) == pytest.approx(expected[goal])
                if goal == at and topology._stay:
                    assert route == ((at,), (0.0, 0.0))
                else:
                    assert tuple(route.cost) == pytest.approx(
                        tuple(driven(topology, at, route.path))
                    )
                assert reads[goal] == unread[list(route.path)].sum()
