"""Random directed graphs: walks are legal, never stuck, and stay within what is reachable."""

from __future__ import annotations

import itertools

import networkx as nx
import numpy as np
import pytest

pytest.importorskip("hypothesis")

from hypothesis import given
from hypothesis import strategies as st

from gp_active_sensing.errors import PlanningError
from gp_active_sensing.topology import GraphTopology
from tests.random_maps import directed_graph


@st.composite
def graphs(draw: st.DrawFn, largest: int = 30) -> GraphTopology:
    """Places on a plane; the cost of a move is that of the place it leads to, as on roads."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.sampled_from([size for size in (12, 30, 9, 20, 5, 3, 2, 1) if size <= largest]))
    degree = draw(st.sampled_from((2, 3, 4, 1, 0)))
    return directed_graph(rng, n, degree)


def crossable_graph(topology: GraphTopology, crossable: np.ndarray) -> nx.DiGraph[str]:
    """Return a graph in which unobserved places can be entered and not left."""
    graph: nx.DiGraph[str] = nx.DiGraph()
    for a in range(topology.n):
        for move in topology._moves[a]:
            graph.add_edge(f"start {a}", f"{move.to}", seconds=move.seconds)
            if crossable[a]:
                graph.add_edge(f"{a}", f"{move.to}", seconds=move.seconds)
    return graph


def targets(topology: GraphTopology, graph: nx.DiGraph[str], at: int) -> dict[int, float]:
    """Return the seconds to each place that can be entered from `at`."""
    start = f"start {at}"
    if start not in graph:
        return {}
    found = nx.single_source_dijkstra_path_length(graph, start, weight="seconds")
    return {int(place): cost for place, cost in found.items() if place != start}


@given(graphs(), st.integers(0, 2**32 - 1))
def test_random_walks(topology: GraphTopology, seed: int) -> None:
    rng = np.random.default_rng(seed)
    at = int(rng.integers(topology.n))
    observed = rng.random(topology.n) < 0.2
    aside = {int(i) for i in np.flatnonzero(rng.random(topology.n) < 0.1)}
    while True:
        crossable = observed.copy()
        crossable[list(aside)] = True
        reach = targets(topology, crossable_graph(topology, crossable), at)
        can = {b for b in reach if not crossable[b]}
        if topology._stay and not crossable[at]:
            can.add(at)
        found = topology.candidates(at, observed, aside)
        assert found.tolist() == sorted(set(found.tolist()))
        assert set(found.tolist()) <= can
        assert bool(found.size) == bool(can)  # never stuck while something is reachable
        neighbours = {int(b) for b in topology.neighbours(at)} & can
        if neighbours:
            assert neighbours <= set(found.tolist())
        if not found.size:
            return
        for goal in found.tolist():
            route = topology.route(at, goal, observed, aside)
            if goal == at and topology._stay:
                assert route.cost == (0.0, 0.0)
                continue
            place, seconds = at, 0.0
            for b in route.path:
                move = next(m for m in topology._moves[place] if m.to == b)
                seconds += move.seconds
                place = b
            assert place == goal
            assert all(crossable[b] for b in route.path[:-1])
            assert route.cost.seconds == pytest.approx(seconds)
            assert route.cost.seconds == pytest.approx(reach[goal])
        at = int(rng.choice(found))
        observed[at] = True


@given(graphs(largest=12), st.integers(0, 2**32 - 1))
def test_what_cannot_be_reached_is_refused(topology: GraphTopology, seed: int) -> None:
    rng = np.random.default_rng(seed)
    observed = rng.random(topology.n) < 0.5
    at, goal = (int(i) for i in rng.integers(0, topology.n, 2))
    reach = targets(topology, crossable_graph(topology, observed), at)
    if goal in reach or (goal == at and topology._stay):
        assert topology.route(at, goal, observed).path[-1] == goal
    else:
        with pytest.raises(PlanningError, match="cannot be reached"):
            topology.route(at, goal, observed)


@given(graphs(largest=15), st.integers(0, 2**32 - 1), st.integers(0, 5))
def test_reachable_is_not_wider_than_it_need_be(
    topology: GraphTopology, seed: int, readings: int
) -> None:
    """Equal to the fewest unobserved places on any way, by networkx; those set aside are free."""
    rng = np.random.default_rng(seed)
    at = int(rng.integers(topology.n))
    observed = rng.random(topology.n) < 0.4
    aside = {int(i) for i in np.flatnonzero(rng.random(topology.n) < 0.15)}
    free = observed.copy()
    free[list(aside)] = True
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_node("start")
    for b in topology.neighbours(at).tolist():
        graph.add_edge("start", str(b), cost=int(not free[b]))
    for a, b in itertools.product(range(topology.n), repeat=2):
        if b in topology.neighbours(a):
            graph.add_edge(str(a), str(b), cost=int(not free[b]))
    if topology._stay:
        graph.add_edge("start", str(at), cost=int(not free[at]))
    lengths = nx.single_source_dijkstra_path_length(graph, "start", weight="cost")
    expected = {
        int(b) for b, k in lengths.items() if b != "start" and k <= readings and not free[int(b)]
    }
    found = topology.reachable(at, observed, readings, aside)
    assert set(np.flatnonzero(found).tolist()) == expected
