"""Batches, compared with plain Algorithms 1 and 2 of [Kathuria2016], round by round.

The reference computes everything from the list of readings, with determinants of whole matrices. It
counts the t of β_t independently of the policy.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.stats import norm

from gp_active_sensing.belief import BeliefConfig, HyperParameters, build_belief
from gp_active_sensing.kernels import build_kernel
from gp_active_sensing.planning.bandits import dpp_batch
from gp_active_sensing.topology import FreeTopology
from tests.cases import for_each
from tests.reference.direct_bayes import DirectBelief
from tests.requesting import asked
from tests.unit.planning.bandits.worlds import batch

N, SIZE, ROUNDS = 36, 4, 5
NOISE, DELTA, SCALE = 0.3, 0.1, 5.0


def beta(t: int) -> float:
    """``β_t = 2 log(|X| t² π² / (6δ))``, divided by the scale."""
    return 2.0 * math.log(N * t**2 * math.pi**2 / (6.0 * DELTA)) / SCALE


def direct(positions: np.ndarray) -> DirectBelief:
    candidate = HyperParameters((1.5,), 1.0, NOISE)
    none = np.zeros(1)
    return DirectBelief(
        build_kernel("se"), positions, (candidate,), np.ones((N, 1)), none,
        np.zeros(N), np.ones(1),
    )  # fmt: skip


def moments(belief: DirectBelief) -> tuple[np.ndarray, np.ndarray]:
    mean, covariance, _ = belief.posterior(belief.hyperparameters[0], np.arange(N))
    return mean, covariance


def est_width(mean: np.ndarray, std: np.ndarray) -> float:
    """``min_x (m̂ - μ)/σ`` with ESTn on a fine grid, m₀ the largest posterior mean."""
    levels = np.linspace(mean.max(), (mean + 9.0 * std).max(), 40_001)
    exceeding = 1.0 - np.prod(norm.cdf((levels[:, None] - mean) / std), axis=1)
    area = float((0.5 * (exceeding[1:] + exceeding[:-1]) * np.diff(levels)).sum())
    return float(((mean.max() + area - mean) / std).min())


def algorithm2(belief: DirectBelief, t: int, *, est: bool) -> tuple[int, np.ndarray, np.ndarray]:
    """Return the first point of round t, the rest of R⁺_t, and K_{t,1} over this rest."""
    mean, covariance = moments(belief)
    std = np.sqrt(np.diagonal(covariance))
    width = est_width(mean, std) if est else math.sqrt(beta(t))
    after = width if est else math.sqrt(beta(t + 1))  # for EST, the width of t + 1 is unknown at t
    first = int(np.argmax(mean + width * std))
    y = (mean - width * std).max()
    region = np.flatnonzero(mean + 2.0 * after * std >= y)
    region = region[region != first]
    c = covariance[:, first]
    once_read = covariance - np.outer(c, c) / (c[first] + NOISE**2)
    K = np.eye(len(region)) + once_read[np.ix_(region, region)] / NOISE**2
    return first, region, K


def greedy_determinant(K: np.ndarray, size: int) -> list[int]:
    chosen: list[int] = []
    for _ in range(size):
        left = [i for i in range(len(K)) if i not in chosen]
        determinants = [np.linalg.det(K[np.ix_([*chosen, i], [*chosen, i])]) for i in left]
        chosen.append(left[int(np.argmax(determinants))])
    return chosen


def algorithm1(belief: DirectBelief, t: int, factor: float) -> list[int]:
    """Return a batch of GP-BUCB from reading t on, with the means of the last feedback."""
    mean, covariance = moments(belief)
    chosen: list[int] = []
    for number in range(t, t + SIZE):
        scores = mean + factor * math.sqrt(beta(number)) * np.sqrt(np.diagonal(covariance))
        scores[chosen] = -np.inf  # one place is for one probe
        x = int(np.argmax(scores))
        chosen.append(x)
        c = covariance[:, x]
        covariance = covariance - np.outer(c, c) / (c[x] + NOISE**2)
    return chosen


class Rounds:
    """A policy and the plain belief, with the same readings in every round."""

    def __init__(self, seed: int, name: str, **keys: object) -> None:
        self.rng = np.random.default_rng([seed, 21])
        positions = self.rng.uniform(0.0, 6.0, (N, 2))
        self.topology = FreeTopology("square", "map", [str(i) for i in range(N)], positions)
        self.field = self.rng.normal(0.0, 1.0, N)
        config = BeliefConfig(
            length_scales=(1.5,), signal_std=(1.0,), noise_std=(NOISE,), mean_std=0.0
        )
        self.belief = build_belief(config, positions)
        self.direct = direct(positions)
        self.policy = batch(name, **keys)
        self.state: object = None
        for place in self.rng.permutation(N)[:3].tolist():  # no two bounds are equal
            self.read(place)

    def read(self, place: int) -> None:
        value = float(self.field[place] + NOISE * self.rng.standard_normal())
        self.belief.observe(place, value)
        self.direct.observe(place, value)

    def goals(self) -> list[int]:
        request = asked(self.belief, self.topology, None, rng=self.rng)
        plans, self.state = self.policy.plan_batch(request, [0] * SIZE, self.state)
        return [int(plan.waypoint) for plan in plans]


@for_each("seed", range(3))
@for_each("name", ["ucb_dpp_max", "est_dpp_max"])
def test_dpp_max_is_algorithm_2_with_t_counting_rounds(name: str, seed: int) -> None:
    keys = {"scale": SCALE, "delta": DELTA} if name == "ucb_dpp_max" else {}
    rounds = Rounds(seed, name, **keys)
    cut = 0
    for t in range(1, ROUNDS + 1):
        first, region, K = algorithm2(rounds.direct, t, est=name == "est_dpp_max")
        cut += len(region) < N - 1
        if len(region) >= SIZE - 1:
            expected = [first, *region[greedy_determinant(K, SIZE - 1)].tolist()]
            assert sorted(rounds.goals()) == sorted(expected)
        else:
            assert first in rounds.goals()
            expected = [first]
        for place in expected:
            rounds.read(place)
    assert cut, "the region was never smaller than the map: nothing was tested of it"


@for_each("seed", range(3))
def test_dpp_sample_draws_from_that_region_and_kernel(seed: int, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    seen: list[tuple[np.ndarray, np.ndarray]] = []
    plain = dpp_batch.draw_kdpp

    def spy(entries, diagonal, size, rng):  # type: ignore[no-untyped-def]
        every = np.arange(diagonal.size)
        seen.append((diagonal.copy(), entries(every, every)))
        return plain(entries, diagonal, size, rng)

    monkeypatch.setattr(dpp_batch, "draw_kdpp", spy)
    rounds = Rounds(seed, "ucb_dpp_sample", scale=SCALE, delta=DELTA)
    for t in range(1, ROUNDS + 1):
        first, region, K = algorithm2(rounds.direct, t, est=False)
        goals = rounds.goals()
        assert first in goals
        assert set(goals) - {first} <= set(region.tolist())
        np.testing.assert_allclose(seen[-1][1], K, rtol=1e-7, atol=1e-7)
        np.testing.assert_allclose(seen[-1][0], np.diagonal(K), rtol=1e-7)
        for place in goals:
            rounds.read(place)
    assert len(seen) == ROUNDS


@for_each("seed", range(3))
@for_each(
    ("widening", "factor"), [(None, 1.0), ("exp_c", math.exp(0.5)), ("exp_2c", math.exp(1.0))]
)
def test_gp_bucb_is_algorithm_1_with_t_counting_readings(
    widening: str | None, factor: float, seed: int
) -> None:
    keys = {} if widening is None else {"information": 0.5, "widening": widening}
    rounds = Rounds(seed, "gp_bucb", scale=SCALE, delta=DELTA, **keys)
    for number in range(ROUNDS):
        expected = algorithm1(rounds.direct, number * SIZE + 1, factor)
        assert sorted(rounds.goals()) == sorted(expected)
        for place in expected:
            rounds.read(place)
