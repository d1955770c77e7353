"""A probe that chooses at random: only legal moves, never stuck, never beyond its budget, home.

What is legal and what it costs is looked up in the maps' moves; distances home are scipy's.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from gp_active_sensing.planning.budget import BudgetConstraint
from gp_active_sensing.sim import load_scenario
from gp_active_sensing.topology import (
    FreeTopology,
    GraphTopology,
    MapConfig,
    Topology,
    build_topology,
)
from gp_active_sensing.types import Budget, Cost
from gp_active_sensing.util.resources import find_resource
from tests.cases import for_each
from tests.random_maps import directed_graph

_SCENARIOS = sorted(path.stem for path in find_resource("sim", "town.yaml").parent.glob("*.yaml"))
SHIPPED = list({str(load_scenario(n).map): n for n in _SCENARIOS if "live" not in n}.values())
"""Scenarios of which every one has another map."""
SHARED = (
    "sumo/town.net.xml",
    "sumo/tampines.net.xml.gz",
    "sumo/monaco.net.xml.gz",
    "roads/tampines_segments.csv",
    "pems_sanjose/edges.csv",
)
HAIR = 1e-6


class Moves:
    """The moves of a map, and distances along them."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self.free = isinstance(topology, FreeTopology)
        if not self.free:
            assert isinstance(topology, GraphTopology)
            self.cost = [{m.to: (m.metres, m.seconds) for m in out} for out in topology._moves]
        self.home = functools.lru_cache(maxsize=16)(self._home)

    def of(self, at: int | None, path: tuple[int, ...]) -> Cost:
        """Return what a path costs, every step of it a legal move (a KeyError otherwise)."""
        topology = self.topology
        if self.free or at is None or (path == (at,) and topology._stay):  # type: ignore[attr-defined]
            assert len(path) == 1
            return topology.route(at, path[0], np.zeros(topology.n, dtype=np.bool_)).cost
        metres = seconds = 0.0
        for b in path:
            m, s = self.cost[at][b]
            metres, seconds, at = metres + m, seconds + s, b
        return Cost(metres, seconds)

    def _home(self, end: int, by: int) -> np.ndarray:
        """(n,) the least metres (0) or seconds (1) from each place to the end place."""
        n = self.topology.n
        if self.free:
            route = functools.partial(self.topology.route, goal=end, observed=np.zeros(n, bool))
            return np.array([0.0 if a == end else route(a).cost[by] for a in range(n)])
        rows = [(b, a, costs[by]) for a, out in enumerate(self.cost) for b, costs in out.items()]
        to, start, cost = map(np.array, zip(*rows, strict=True)) if rows else ([], [], [])
        where = tuple(np.asarray(ends, dtype=np.intc) for ends in (to, start))
        return np.asarray(dijkstra(csr_array((cost, where), shape=(n, n)), indices=end))

    def reachable(self, at: int) -> set[int]:
        """Return every place that some way leads to."""
        if self.free:
            return set(range(self.topology.n))
        found = {at} if self.topology._stay else set()  # type: ignore[attr-defined]
        stack = [at]
        while stack:
            for b in self.cost[stack.pop()]:
                if b not in found:
                    found.add(b)
                    stack.append(b)
        return found


def mission(moves: Moves, rng: np.random.Generator, budget: Budget, most: int) -> int:
    """Drive at random until nothing more is allowed, then home; return the number of decisions."""
    topology = moves.topology
    constraint = BudgetConstraint(topology, budget)
    at: int | None = int(rng.integers(topology.n))
    if rng.random() < 0.1:
        at = None
    elif budget.end is not None and not constraint.allows(at, Cost(0.0, 0.0), reads=0):
        return 0  # refused before it begins, see `check_end`
    observed = np.zeros(topology.n, dtype=np.bool_)
    left, spent, decisions = budget, Cost(0.0, 0.0), 0
    while decisions < most:
        drives = constraint.drives(at, observed, (), left)
        if not drives:
            break
        drive = drives[int(rng.integers(len(drives)))]
        path = drive.route.path
        assert path[-1] == drive.place
        assert not observed[drive.place]
        cost = moves.of(at, path)
        assert math.isclose(cost.metres, drive.route.cost.metres, abs_tol=HAIR)
        assert math.isclose(cost.seconds, drive.route.cost.seconds, abs_tol=HAIR)
        new = {p for p in path if not observed[p]}
        assert new == set(drive.reads)
        observed[list(path)] = True
        spent, left, at = spent.plus(cost), drive.remaining(left), drive.place
        decisions += 1
        assert budget.readings is None or observed.sum() <= budget.readings
        assert budget.metres is None or spent.metres <= budget.metres + HAIR
        assert budget.seconds is None or spent.seconds <= budget.seconds + HAIR
    if decisions < most:
        check_that_nothing_was_left(moves, at, observed, left)
    if budget.end is not None and at is not None:
        home = constraint.way_home(at, left)
        assert home is not None, "there is always a way to the end place"
        if at == budget.end:
            assert home.path == ()
        else:
            assert home.path[-1] == budget.end
            spent = spent.plus(moves.of(at, home.path))
        assert budget.metres is None or spent.metres <= budget.metres + HAIR
        assert budget.seconds is None or spent.seconds <= budget.seconds + HAIR
    return decisions


def check_that_nothing_was_left(
    moves: Moves, at: int | None, observed: np.ndarray, left: Budget
) -> None:
    """Fail if a place could still have been observed within what is left."""
    topology = moves.topology
    candidates = topology.candidates(at, observed)
    if not candidates.size:
        open_places = set(np.flatnonzero(~observed).tolist())
        assert at is None or not moves.reachable(at) & open_places, "stuck"
        return
    for x in candidates.tolist():
        path = topology.route(at, x, observed).path
        cost = moves.of(at, path)
        fits = left.readings is None or sum(not observed[p] for p in path) <= left.readings
        if left.end is None:
            fits &= left.metres is None or cost.metres <= left.metres
            fits &= left.seconds is None or cost.seconds <= left.seconds
        else:  # with one limit the way home that is least by it decides
            home = [moves.home(left.end, by)[x] for by in (0, 1)]
            fits &= left.metres is None or cost.metres + home[0] <= left.metres - HAIR
            fits &= left.seconds is None or cost.seconds + home[1] <= left.seconds - HAIR
            fits &= math.isfinite(home[0])
            if left.metres is not None and left.seconds is not None:
                continue  # no single way may be within both
        assert not fits, f"{topology.names[x]} could still have been observed"


def budgets(rng: np.random.Generator, topology: Topology) -> Iterator[Budget]:
    """Yield budgets of all kinds, at the scale of the map."""
    far = float(np.ptp(topology.positions, axis=0).max()) or 1.0
    slow = 1.0 / float(rng.uniform(5.0, 15.0))
    ends = rng.integers(topology.n, size=8).tolist()
    while True:
        metres = far * float(rng.choice([0.1, 0.5, 1.0, 3.0]))
        kind = rng.random(3) < 0.5
        yield Budget(
            int(rng.integers(1, 80)) if kind[0] else None,
            metres if kind[1] else None,
            metres * slow * float(rng.uniform(0.5, 2.0)) if kind[2] else None,
            int(rng.choice(ends)) if rng.random() < 0.7 else None,
        )


def drive(topology: Topology, decisions: int, seed: int, most: int = 150) -> None:
    """Run missions until so many decisions have been taken."""
    rng = np.random.default_rng(seed)
    moves, done, begun = Moves(topology), 0, 0
    for budget in budgets(rng, topology):
        done += mission(moves, rng, budget, most)
        begun += 1
        if done >= decisions or begun >= 200 + decisions:
            break
    assert done >= min(decisions, 1), "not one decision was possible"


@functools.cache
def shipped(name: str, reach: float) -> Topology:
    config = load_scenario(name).map
    values = {"moves": "adjacent"} if config.kind != "roads" else {}
    return build_topology(MapConfig(**{**vars(config), **values, "reach": reach}))


@pytest.mark.seeds
def test_on_random_graphs(seed: int) -> None:
    rng = np.random.default_rng([4, seed])
    n, most, reach = int(rng.integers(1, 60)), int(rng.integers(0, 5)), rng.choice([0.0, 0.0, 80.0])
    topology = directed_graph(rng, n, most, 300.0, reach=float(reach))
    moves, every = Moves(topology), budgets(rng, topology)
    for _ in range(40):
        mission(moves, rng, next(every), 60)


@pytest.mark.slow
@for_each("name", SHIPPED)
def test_on_shipped_maps(name: str, dose: float) -> None:
    spacing = 80.0 if name.startswith("town") else load_scenario(name).map.spacing
    for reach in (0.0, 2.5):
        drive(shipped(name, reach * spacing), round(5_000 * dose), seed=1, most=400)


def test_where_any_place_is_next() -> None:
    drive(build_topology(load_scenario("line").map), 600, seed=2)


@pytest.mark.slow
@for_each("name", SHARED)
def test_on_shared_maps(shared_data: Path, name: str, dose: float) -> None:
    roads = build_topology(MapConfig(kind="roads", file=str(shared_data / name)))
    drive(roads, round(10_000 * dose), seed=3, most=400)
