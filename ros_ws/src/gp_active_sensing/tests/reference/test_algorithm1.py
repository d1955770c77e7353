"""The planner's published mode makes the decisions of a plain Algorithm 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from gp_active_sensing.belief import Belief, FeatureCovariance, HyperParameters, PriorMean
from gp_active_sensing.kernels import build_kernel
from gp_active_sensing.planning.bal import policy
from gp_active_sensing.planning.bal.state_block import StateBlock
from gp_active_sensing.planning.bal.tree import Tree
from gp_active_sensing.topology import FreeTopology
from gp_active_sensing.types import Plan, PlanLimit
from tests.cases import for_each
from tests.requesting import asked

from .algorithm1 import Algorithm1, State
from .exhaustive import WholeBelief

KEYED_BY = 5
LIMITS = (1, 2, 6, 30)
NO_NOISE_ENTROPY = float(np.sqrt(0.5 / (np.pi * np.e)))
"""Standard deviation of a noise with entropy zero, so that values equal the paper's."""


@dataclass
class Problem:
    positions: np.ndarray
    hyper: tuple[HyperParameters, ...]
    prior: np.ndarray
    readings: list[tuple[int, float]]
    horizon: int
    samples: int

    def belief(self) -> Belief:
        covariance = FeatureCovariance(build_kernel("se"), self.positions, self.hyper)
        belief = Belief(covariance, PriorMean.known(len(self.positions), 0.0), self.prior)
        for place, value in self.readings:
            belief.observe(place, value)
        return belief

    def topology(self) -> FreeTopology:
        names = [str(i) for i in range(len(self.positions))]
        return FreeTopology("free", "map", names, self.positions)

    def plain(self, alpha: float, tau: float, limit: float) -> Algorithm1:
        return Algorithm1(
            self.positions,
            [h.length_scales[0] for h in self.hyper],
            [h.signal_std for h in self.hyper],
            [h.noise_std for h in self.hyper],
            self.prior,
            self.readings,
            self.horizon,
            self.samples,
            alpha,
            tau,
            int(np.random.default_rng(KEYED_BY).integers(2**63)),
            limit=limit,
        )


def random_problem(
    seed: int,
    *,
    noise: tuple[float, ...] | None = None,
    places: tuple[int, int] = (5, 13),
    least: int = 0,
    spread: float = 2.0,
) -> Problem:
    """Return a free choice among 5 to 12 places, with 2 to 4 candidates and up to 3 readings."""
    rng = np.random.default_rng([17, seed])
    n = int(rng.integers(*places))
    L = int(rng.integers(2, 5))
    noises = noise if noise is not None else tuple(rng.uniform(0.1, 0.8, size=L))
    hyper = tuple(
        HyperParameters(
            (float(rng.uniform(0.4, 6.0)),),
            float(rng.uniform(0.7, 3.0)),
            float(noises[i % len(noises)]),
        )
        for i in range(L)
    )
    readings = [
        (int(x), float(rng.normal(0, spread)))
        for x in rng.permutation(n)[: int(rng.integers(least, min(4, n - 2)))]
    ]
    horizon = int(rng.integers(2, 4))
    samples = int(rng.integers(2, 6)) if horizon == 2 or n < 8 else 2
    positions = rng.uniform(0, 6, size=(n, 2))
    return Problem(positions, hyper, rng.dirichlet(np.ones(L)), readings, horizon, samples)


@pytest.fixture
def explored(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """Return the paths of the states that the planner expands, in order."""
    order: list[tuple[int, ...]] = []

    class Recording(Tree):
        def expand_root(self) -> StateBlock:
            order.append(())
            return super().expand_root()

        def expand(self, *branches: Any) -> StateBlock:
            block = super().expand(*branches)
            order.extend(block.path(row) for row in range(len(block.row)))
            return block

    monkeypatch.setattr(policy, "Tree", Recording)
    return order


def plan(
    problem: Problem, alpha: float, tau: float | None, limit: int, **bounds: float | str
) -> Plan:
    bal = WholeBelief(
        horizon=problem.horizon,
        samples=problem.samples,
        alpha=alpha,
        tau=tau,
        discretisation="draws",
        search="published",
        max_sequences=1,  # greedy walks bound every state, as on maps of any size
        **bounds,
    )
    return answer(bal, problem, PlanLimit(expansions=limit))


def answer(bal: WholeBelief, problem: Problem, limit: PlanLimit = PlanLimit()) -> Plan:
    rng = np.random.default_rng(KEYED_BY)
    request = asked(problem.belief(), problem.topology(), None, limit=limit, rng=rng)
    return bal.plan(request)[0]


def assert_same(found: Plan, plain: Algorithm1, explored: list[tuple[int, ...]]) -> None:
    root = plain.search()
    assert explored == plain.explored
    lower, upper = root.q()
    best = max(range(len(lower)), key=lambda a: (lower[a], upper[a]))
    assert found.waypoint == root.candidates[best]
    assert found.expanded == len(plain.explored)
    assert found.lower == pytest.approx(lower.max(), abs=1e-8)
    assert found.upper == pytest.approx(upper.max(), abs=1e-8)
    for candidate, low, high in zip(found.candidates, lower, upper, strict=True):
        assert candidate.lower == pytest.approx(low, abs=1e-8)
        assert candidate.upper == pytest.approx(high, abs=1e-8)


@pytest.mark.slow
@pytest.mark.seeds
def test_same_draws_same_decisions(seed: int, explored: list[tuple[int, ...]]) -> None:
    """The noise has no entropy, and no draw exceeds τ, as in the paper."""
    problem = random_problem(seed, noise=(NO_NOISE_ENTROPY,))
    alpha = (0.0, 0.0, 0.2, 1.0)[seed % 4]
    for limit in LIMITS:
        explored.clear()
        found = plan(problem, alpha, 1e6, limit)
        plain = problem.plain(alpha, 1e6, limit)
        assert_same(found, plain, explored)
        assert plain.clipped == 0


@pytest.mark.slow
@for_each("tau", [None, 0.05])
@pytest.mark.seeds(0.5)
def test_same_decisions_where_truncation_binds_and_noises_differ(
    seed: int, tau: float | None, explored: list[tuple[int, ...]]
) -> None:
    """The plain algorithm includes the planner's two choices in docs/theory.md."""
    # Values near the mean, so that τ̂ is small; with none, clipped readings tie to the digit.
    problem = random_problem(10_000 + seed, least=1, spread=0.2)
    alpha = (0.0, 0.3)[seed % 2]
    for limit in LIMITS:
        explored.clear()
        found = plan(problem, alpha, tau, limit)
        plain = ours(problem.plain(alpha, 0.0, limit), tau)
        assert_same(found, plain, explored)
        if tau is not None:
            assert plain.clipped > 0


def ours(plain: Algorithm1, tau: float | None) -> Algorithm1:
    """Truncate about the mean of unobserved places, and subtract the noise's entropy."""
    where, values = [x for x, _ in plain.readings], [z for _, z in plain.readings]
    mean, latent = plain.posterior(where, values)
    left = plain.unread(where)
    plain.centre = float((plain.root().belief @ mean)[left].mean())
    plain.reference = 0.5 * np.log(2.0 * np.pi * np.e * plain.noise)
    largest = float(np.sqrt((latent[:, left] + plain.noise[:, None]).max()))
    plain.tau = 5.0 * largest if tau is None else tau
    return plain


@pytest.mark.slow
@for_each("loosening", [0.5, 2.0])
@pytest.mark.seeds(0.5)
def test_same_decisions_with_loosened_bounds(
    seed: int, loosening: float, explored: list[tuple[int, ...]]
) -> None:
    problem = random_problem(seed, noise=(NO_NOISE_ENTROPY,))
    for limit in LIMITS:
        explored.clear()
        found = plan(problem, 0.2, 1e6, limit, loosening=loosening)
        plain = problem.plain(0.2, 1e6, limit)
        plain.loosening = loosening
        assert_same(found, plain, explored)


@pytest.mark.slow
@pytest.mark.seeds(0.5)
def test_same_decisions_with_constant_bounds(seed: int, explored: list[tuple[int, ...]]) -> None:
    """The bounds of an unexplored state depend only on the number of future readings."""
    problem = random_problem(seed, noise=(NO_NOISE_ENTROPY,))
    for limit in LIMITS:
        explored.clear()
        found = plan(problem, 0.2, 1e6, limit, bounds="constant")
        plain = problem.plain(0.2, 1e6, limit)
        where = [x for x, _ in plain.readings]
        plain.most = float(plain.information(where)[:, plain.unread(where)].max())
        assert_same(found, plain, explored)


@pytest.mark.slow
@pytest.mark.seeds(0.5)
def test_searches_that_end_by_themselves(seed: int, explored: list[tuple[int, ...]]) -> None:
    """Search until the gap is closed or no state is left to explore."""
    problem = random_problem(1000 + seed, noise=(NO_NOISE_ENTROPY,), places=(5, 8))
    alpha = (0.0, 0.1)[seed % 2]
    found = plan(problem, alpha, 1e6, 10**6)
    plain = problem.plain(alpha, 1e6, np.inf)
    assert_same(found, plain, explored)
    assert len(explored) > 1


def test_the_transcription_recurses_as_eq_8_does() -> None:
    """Exploring every state, level by level, gives V of Eq. 8 at the root."""
    problem = random_problem(3, noise=(NO_NOISE_ENTROPY,), places=(5, 6))
    plain = problem.plain(0.0, 1e6, np.inf)

    def value(state: State) -> float:
        plain.explore(state, [], deeper=False)
        if not state.next:
            return float(state.reward.max())
        return max(
            float(r + np.mean([value(s) for s in row]))
            for r, row in zip(state.reward, state.next, strict=True)
        )

    truth = value(plain.root())
    whole = {"alpha": 0.0, "tau": 1e6, "discretisation": "draws", "search": "exhaustive"}
    bal = WholeBelief(horizon=problem.horizon, samples=problem.samples, **whole)
    assert answer(bal, problem).lower == pytest.approx(truth, abs=1e-8)
