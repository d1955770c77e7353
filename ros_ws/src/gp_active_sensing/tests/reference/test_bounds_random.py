"""Bounds of the planner, compared with brute force on thousands of small random states.

A state consists of random arrays (means, covariances, weights). It thus includes extreme beliefs:
weights of zero, a single candidate with all weight, noises with a ratio of a thousand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.special import xlogy

from gp_active_sensing.planning.bal.bounds import chain_rule, children_chain_rule, initial_bounds
from gp_active_sensing.planning.bal.branching import EqualProbabilityCells, last_stage_bounds
from gp_active_sensing.planning.bal.covariance_state import CovarianceState, DecisionProblem
from gp_active_sensing.planning.bal.discretise import Successors, by_cells
from gp_active_sensing.planning.bal.state_block import StateBlock
from gp_active_sensing.planning.bal.tree import Tree
from gp_active_sensing.planning.entropy import noise_entropy
from gp_active_sensing.topology import FreeTopology, GraphTopology
from gp_active_sensing.topology.base import Topology
from gp_active_sensing.topology.search import Move

BATCH = 16
"""Number of states in a case; a quarter each has 1, 2, 3 and 4 future readings."""
SAMPLES = 3
ROUNDING = 1e-9
QUADRATURE = 1e-3
"""Largest error of the planner's mixture entropies [nat]."""


def mixture_entropies(weights: np.ndarray, mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """Return (K,) entropies of mixtures (K, L), on grids finer than the narrowest components."""
    live = weights > 1e-13
    b, m, std = weights[live], mean[:, live], np.sqrt(variance[:, live])
    low, high = (m - 9.0 * std).min(axis=1), (m + 9.0 * std).max(axis=1)
    n = int(np.ceil(((high - low) / (0.4 * std.min(axis=1))).max()))
    z = np.linspace(low, high, n + 1, axis=1)
    p = np.zeros_like(z)
    for i in range(len(b)):
        d = (z - m[:, i, None]) / std[:, i, None]
        p += b[i] / std[:, i, None] / np.sqrt(2.0 * np.pi) * np.exp(-0.5 * d * d)
    return np.asarray(-(high - low) / n * xlogy(p, p).sum(axis=1))


@dataclass
class RandomState:
    """Place of the probe, and moments of n places under each candidate."""

    topology: Topology
    at: int | None
    observed: np.ndarray
    weights: np.ndarray
    mean: np.ndarray
    covariance: np.ndarray
    noise: np.ndarray

    def __post_init__(self) -> None:
        self.known: dict[tuple[int, ...], float] = {}

    def candidates(self, at: int | None, visited: tuple[int, ...]) -> np.ndarray:
        observed = self.observed.copy()
        observed[list(visited)] = True
        return self.topology.candidates(at, observed)

    def walks(self, k: int, visited: tuple[int, ...] = ()) -> Iterator[tuple[int, ...]]:
        """Yield every feasible sequence of k visits after `visited`, or fewer at a dead end."""
        here = self.candidates(visited[-1] if visited else self.at, visited)
        if k == 0 or not here.size:
            yield ()
            return
        for x in here.tolist():
            for more in self.walks(k - 1, (*visited, x)):
                yield (x, *more)

    def joint_information(self, k: int) -> dict[frozenset[int], np.ndarray]:
        """Return (L,) ``H[Z_A | λ]`` less the noise's, for every feasible set A of k places."""
        found: dict[frozenset[int], np.ndarray] = {}
        for walk in self.walks(k):
            if frozenset(walk) not in found:
                block = self.covariance[np.ix_(range(len(self.noise)), walk, walk)]
                scaled = np.eye(len(walk)) + block / self.noise[:, None, None]
                found[frozenset(walk)] = 0.5 * np.linalg.slogdet(scaled)[1]
        return found

    def after(self, x: int, z: float, weights: np.ndarray) -> RandomState:
        """Return the state after a reading z at x, with the new belief `weights`."""
        column = self.covariance[:, :, x]
        gain = column / (column[:, x] + self.noise)[:, None]
        observed = self.observed.copy()
        observed[x] = True
        return RandomState(
            self.topology,
            x,
            observed,
            weights,
            self.mean + gain * (z - self.mean[:, x])[:, None],
            self.covariance - gain[:, :, None] * column[:, None, :],
            self.noise,
        )

    def branches(self, samples: int) -> tuple[np.ndarray, Successors]:
        """Return the candidates, and cells of possible readings there."""
        x = self.candidates(self.at, ())
        variance = self.covariance[:, x, x] + self.noise[:, None]
        entropy = 0.5 * np.log(variance / self.noise[:, None])
        return x, by_cells(self.weights, self.mean[:, x], variance, entropy, samples)

    def value(self, k: int, samples: int) -> float:
        """Return the best adaptive value of the tree of cells, by recursion."""
        x = self.candidates(self.at, ())
        if not x.size:
            return 0.0
        if k == 1:
            variance = self.covariance[:, x, x] + self.noise[:, None]
            entropies = mixture_entropies(self.weights, self.mean[:, x].T, variance.T)
            return float(entropies.max() - self.weights @ noise_entropy(self.noise))
        x, found = self.branches(samples)
        q = found.reward.copy()
        for a, i in np.ndindex(len(x), samples):
            state = self.after(int(x[a]), found.values[a, i], found.weights[a, i])
            q[a] += found.probability[a, i] * state.value(k - 1, samples)
        return float(q.max())

    def sequence(self, k: int, cap: int) -> CovarianceState:
        """Return the planner's view of the state; bounds are greedy above `cap` sequences."""
        reference = noise_entropy(self.noise)
        problem = DecisionProblem(
            self.topology, self.observed, (), self.noise, reference, cap, lambda: None
        )
        outlook = problem.outlook(self.at, frozenset(), k)
        where = np.array(sorted(outlook.places))
        candidates = np.searchsorted(where, self.candidates(self.at, ()))
        block = self.covariance[:, where[:, None], where[None, :]]
        return CovarianceState(problem, k, frozenset(), where, candidates, outlook.sequences, block)


def random_state(seed: int) -> RandomState:
    """Return a state with 1 to 4 candidates and 4 to 6 places, free or on a one-way map."""
    rng = np.random.default_rng([18, seed])
    n, L = int(rng.integers(4, 7)), int(rng.integers(1, 5))
    positions = rng.uniform(0, 6, size=(n, 2))
    names = [str(i) for i in range(n)]
    observed = np.zeros(n, dtype=bool)
    observed[0] = True
    at: int | None = 0
    topology: Topology
    if rng.random() < 0.5:
        topology, at = FreeTopology("free", "map", names, positions), None
    else:
        dense = rng.uniform(0.2, 0.9)
        moves = [
            [Move(b, 1.0, 1.0) for b in range(n) if b != a and rng.random() < dense]
            for a in range(n)
        ]
        moves[0] = moves[0] or [Move(1, 1.0, 1.0)]
        topology = GraphTopology("map", "map", names, positions, moves)
    squared = ((positions[:, None] - positions[None]) ** 2).sum(axis=2)
    ell = np.exp(rng.uniform(np.log(0.3), np.log(20.0), size=L))
    signal = rng.uniform(0.5, 3.0, size=L)
    prior = signal[:, None, None] ** 2 * np.exp(-0.5 * squared / ell[:, None, None] ** 2)
    noise = np.exp(rng.uniform(-3.0, 3.0, size=L)) * 0.1
    column = prior[:, :, 0] / (prior[:, 0, 0] + noise)[:, None]
    z = float(rng.normal(0, 2))
    weights = rng.dirichlet(np.full(L, float(rng.choice([0.1, 1.0, 10.0]))))
    if L > 1 and rng.random() < 0.2:
        weights[rng.integers(L)] = 0.0
        weights = weights / weights.sum() if weights.sum() else np.eye(L)[0]
    return RandomState(
        topology,
        at,
        observed,
        weights,
        column * z + rng.normal(0, 1, size=(L, n)),
        prior - column[:, :, None] * prior[:, None, 0, :],
        noise,
    )


def problems_of(state: RandomState, k: int, cap: int) -> list[str]:
    """Return the violations of bounds for a state with k future readings, and for its branches."""
    wrong = []
    sequence = state.sequence(k, cap)
    fixed, best = chain_rule(sequence)
    bounds = initial_bounds(fixed[None], best[None], state.weights[None, None])
    lower, upper = bounds[0].item(), bounds[1].item()
    table = np.array(list(state.joint_information(k).values()))
    most = table.max(axis=0)
    if (best < most - ROUNDING).any():
        wrong.append("some set has more information than `best`")
    if cap > 1 and (np.abs(best - most) > ROUNDING).any():
        wrong.append("`best` is not exact though all sequences were enumerated")
    if any(np.abs(table - row).max(axis=1).min() > ROUNDING for row in fixed):
        wrong.append("a walk of `fixed` is not feasible")
    if not lower <= (table @ state.weights).max() + ROUNDING:
        wrong.append("the lower bound is above that of all feasible sets")
    if k <= 2:
        value = known(state, (k,), lambda: state.value(k, SAMPLES))
        if not lower - ROUNDING <= value <= upper + ROUNDING:
            wrong.append(f"value {value} outside {lower} … {upper}")
    if k >= 2:
        wrong += problems_of_children(state, k, sequence)
    return wrong


def problems_of_children(state: RandomState, k: int, sequence: CovarianceState) -> list[str]:
    """Return the violations of bounds for the states after the branches."""
    wrong = []
    sequence.prepare()
    fixed, best = children_chain_rule(sequence)
    x, found = state.branches(SAMPLES)
    lower, upper = initial_bounds(fixed, best, found.weights)
    for a, place in enumerate(x.tolist()):
        first = state.after(place, found.values[a, 0], found.weights[a, 0])
        table = np.array(list(first.joint_information(k - 1).values()))
        if (best[a] < table.max(axis=0) - ROUNDING).any():
            wrong.append(f"after {place} some set has more information than `best`")
        if any(np.abs(table - row).max(axis=1).min() > ROUNDING for row in fixed[a]):
            wrong.append(f"after {place} a walk of `fixed` is not feasible")
    bounds = {"chain rule": (lower, upper)}
    if k == 3:
        root, _ = expanded(state, sequence)
        bounds["two stages"] = root.branch_lower[0], root.branch_upper[0]
    if k == 2:
        root, reference = expanded(state, sequence)
        bounds["what the tree has"] = root.branch_lower[0], root.branch_upper[0]
        low, high = last_stage_bounds(root, root.successors, reference)
        bounds["last stage"] = low[0], high[0]
    # Brute force: all branches with one future reading, a single branch with two.
    some = np.argwhere(found.probability > 0.0)
    for a, i in some if k == 2 else some[:: len(some)] if k == 3 else ():
        following = state.after(int(x[a]), found.values[a, i], found.weights[a, i])
        value = known(state, (k, a, i), lambda s=following: s.value(k - 1, SAMPLES))
        for name, (low, high) in bounds.items():
            off = QUADRATURE if name == "what the tree has" else ROUNDING
            if not low[a, i] - off <= value <= high[a, i] + off:
                wrong.append(f"{name}, branch {a}, {i}: {value} not {low[a, i]} … {high[a, i]}")
    return wrong


def known(state: RandomState, key: tuple[int, ...], compute: Callable[[], float]) -> float:
    """Return a cached value of brute force, which does not depend on the bounds."""
    if key not in state.known:
        state.known[key] = compute()
    return state.known[key]


def expanded(state: RandomState, sequence: CovarianceState) -> tuple[StateBlock, np.ndarray]:
    """Return the planner's expanded root, and the entropies of the noise."""
    reference = noise_entropy(state.noise)
    mean = state.mean[:, sequence.locations]
    return Tree(
        EqualProbabilityCells(SAMPLES, reference), sequence, mean, state.weights
    ).expand_root(), reference


@pytest.mark.slow
@pytest.mark.seeds
def test_bounds_are_never_violated(
    seed: int, record_testsuite_property: Callable[[str, object], None]
) -> None:
    """Check roots and children, enumeration and greedy walks, free choice and maps."""
    violations, checked = [], 0
    for number in range(seed * BATCH, (seed + 1) * BATCH):
        state = random_state(number)
        k = 1 + number % 4
        for cap in (2000, 1):
            checked += 1
            violations += [(number, k, cap, text) for text in problems_of(state, k, cap)]
    record_testsuite_property(f"bounds_violated_{seed}", f"{len(violations)} of {checked}")
    assert violations == []
