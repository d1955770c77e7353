"""⟨α,ε⟩-BAL with budgets, an end place and a reach, compared with exhaustive search.

networkx and plain sums, not `BudgetConstraint`, compute the affordable drives here.
"""

from __future__ import annotations

import dataclasses

import networkx as nx
import numpy as np
import pytest

from gp_active_sensing.planning.bal.policy import Bal
from gp_active_sensing.planning.entropy import mixture_entropy, reported_offset
from gp_active_sensing.topology import GraphTopology
from gp_active_sensing.types import Budget
from tests.cases import for_each

from .exhaustive import Exhaustive, WholeBelief
from .test_bal_exhaustive import plan, random_case

HAIR = 1e-9


class Affordable:
    """Drives that a budget allows on a small map."""

    def __init__(self, topology, end: int | None) -> None:
        self.topology, self.end = topology, end
        self.graph = nx.DiGraph()
        self.graph.add_nodes_from(range(topology.n))
        if topology.free:
            apart = np.linalg.norm(topology.positions[:, None] - topology.positions, axis=2)
            for a, b in np.ndindex(apart.shape):
                self.graph.add_edge(a, b, metres=float(apart[a, b]))
        else:
            for a, out in enumerate(topology._moves):
                for move in out:
                    self.graph.add_edge(a, move.to, metres=move.metres)

    def home(self, at: int) -> float:
        if self.end is None:
            return 0.0
        try:
            return nx.dijkstra_path_length(self.graph, at, self.end, weight="metres")
        except nx.NetworkXNoPath:
            return np.inf

    def drives(self, at, observed, left):
        """Return (place, metres, places read up to and at it) of each affordable drive."""
        topology = self.topology
        found = []
        for x in topology.candidates(at, observed).tolist():
            path = topology.route(at, x, observed).path
            if at is None or (at == x and topology._stay):
                metres = 0.0
            else:
                metres = nx.path_weight(self.graph, [at, *path], weight="metres")
            read = [p for p in path if not observed[p]]
            readings, most = left
            if len(read) <= readings and metres + self.home(x) <= most + HAIR:
                found.append((x, metres, read))
        return found


@dataclasses.dataclass
class Limited(Exhaustive):
    """Exhaustive search over affordable drives."""

    end: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.affordable = Affordable(self.topology, self.end)
        self.longest = 0

    def values(self, at, k, weights, left, visits=(), crossed=(), depth=0):
        observed = self.belief.observed.copy()
        observed[[x for x, _ in visits]] = True
        observed[list(crossed)] = True
        drives = self.affordable.drives(at, observed, left)
        if not drives:
            return np.zeros(1)
        self.longest = max(self.longest, depth + 1)
        where = np.array([x for x, _, _ in drives])
        mean, C = self.posterior(visits)
        variance = C[:, where, where] + self.noise[:, None]
        if k == 1:
            entropy = mixture_entropy(weights, mean[:, where].T, variance.T)
            return entropy - float(weights @ self.reference)
        found = self.branches(weights, mean, where, variance, observed, ())
        values = found.reward.copy()
        for a, (x, metres, read) in enumerate(drives):
            then = (left[0] - len(read), left[1] - metres)
            for i in range(self.samples):
                deeper = self.values(
                    x,
                    k - 1,
                    found.weights[a, i],
                    then,
                    (*visits, (x, float(found.values[a, i]))),
                    (*crossed, *read),
                    depth + 1,
                )
                values[a] += found.probability[a, i] * deeper.max()
        return values


def limited_case(seed: int):
    """Return a small decision; its budget mostly binds within the horizon."""
    belief, topology, at, horizon, samples = random_case(seed)
    rng = np.random.default_rng([9, seed])
    end = int(rng.integers(topology.n)) if rng.random() < 0.6 else None
    if isinstance(topology, GraphTopology) and rng.random() < 0.5:
        names, reach = topology.names, float(rng.uniform(2.0, 9.0))
        topology = GraphTopology(
            "ring", "map", names, topology.positions, topology._moves, reach=reach
        )
    far = float(np.ptp(topology.positions, axis=0).max())
    metres = float(rng.uniform(0.5, 1.5 + horizon)) * far
    readings = int(rng.integers(1, 6))
    return belief, topology, at, horizon, samples, Budget(readings, metres, None, end)


@for_each("search", ["gap", "published"])
@pytest.mark.seeds
def test_the_tree_is_worth_what_can_be_afforded(seed: int, search: str) -> None:
    belief, topology, at, horizon, samples, budget = limited_case(seed)
    limited = Limited(belief, topology, samples, end=budget.end)
    depth = min(horizon, budget.readings or 0)
    left = (budget.readings, budget.metres)
    limited.values(at, depth, belief.weights, left)
    cap = 2000 if seed % 2 else 1
    bal = WholeBelief(horizon=horizon, samples=samples, alpha=0.0, search=search, max_sequences=cap)
    found = plan(bal, belief, topology, at, left=budget)
    if not limited.longest:
        assert found.waypoint is None
        assert "budget" in found.reason or "observed" in found.reason
        return
    if cap > 1:  # the sequences were enumerated
        assert found.horizon == min(depth, limited.longest), "readings that can be afforded"
    truth = limited.values(at, found.horizon, belief.weights, left)
    offset = reported_offset(belief.noise_variance, found.horizon)
    assert found.lower - offset == pytest.approx(truth.max(), abs=1e-9)
    assert found.upper - offset == pytest.approx(truth.max(), abs=1e-9)
    chosen = [c.location for c in found.candidates].index(found.waypoint)
    assert truth[chosen] == pytest.approx(truth.max(), abs=1e-9)


@pytest.mark.seeds
def test_what_is_previewed_can_be_afforded(seed: int) -> None:
    belief, topology, at, horizon, samples, budget = limited_case(seed)
    affordable = Affordable(topology, budget.end)
    bal = Bal(horizon=horizon, samples=samples, alpha=0.0)
    found = plan(bal, belief, topology, at, left=budget)
    observed, left = belief.observed.copy(), (budget.readings, budget.metres)
    for x in found.waypoints:
        drives = {
            place: (metres, read) for place, metres, read in affordable.drives(at, observed, left)
        }
        assert x in drives
        metres, read = drives[x]
        observed[read] = True
        left = (left[0] - len(read), left[1] - metres)
        at = x


@pytest.mark.seeds(0.5)
def test_a_budget_that_never_binds_changes_nothing(seed: int) -> None:
    belief, topology, at, horizon, samples = random_case(seed)
    bal = Bal(horizon=horizon, samples=samples, alpha=0.0)
    plans = [
        plan(bal, belief, topology, at, left=remaining)
        for remaining in (Budget(), Budget(100, 1e9, 1e9), Budget(100, 1e9, 1e9, end=0))
    ]
    # On a directed ring with chords there is a way from each place to each.
    first, *others = (dataclasses.replace(found, seconds=0.0) for found in plans)
    assert all(found == first for found in others)
