"""From draws to guarantees and back: the formulas of the paper, derived again by other means."""

from __future__ import annotations

import doctest
import math

import numpy as np
import pytest

from gp_active_sensing.belief import BeliefConfig, build_belief
from gp_active_sensing.config import from_mapping
from gp_active_sensing.planning.bal import sample_size
from gp_active_sensing.planning.bal.sample_size import (
    Planning,
    guarantee,
    samples_needed,
)
from gp_active_sensing.planning.bal.summand import measured_range, planning_of
from gp_active_sensing.topology import MapConfig, build_topology

EXPERIMENT_1 = Planning(horizon=2, places=100, candidates=7, noise_ratio=40.0)

SETTINGS = [
    EXPERIMENT_1,
    Planning(1, 100, 7, 40.0),
    Planning(3, 50, 2, 5.0, kappa=1.0),
    Planning(2, 10, 1, 1.5, tau=3.0),
    Planning(4, 705, 7, 3.0, summand=12.0),
    Planning(1, 1, 1, 1.01, summand=0.01),
    Planning(20, 100, 7, 40.0),
]


def failure(planning: Planning, samples: float, gamma: float, T: float) -> float:
    """Logarithm of the probability of Lemma 3 that some error exceeds γ."""
    N = planning.horizon
    return math.log(2) + N * math.log(samples * planning.places) - 2 * samples * (gamma / T) ** 2


def test_the_example_of_the_page_runs() -> None:
    outcome = doctest.testmod(sample_size)
    assert outcome.attempted >= 4
    assert outcome.failed == 0


def test_the_figures_of_experiment_1() -> None:
    """With a constant of 1, ε = 1 takes about 6·10⁹ draws, and 10 draws give nothing."""
    needed = samples_needed(EXPERIMENT_1, 1.0)
    assert 5.5e9 < needed.samples < 6.5e9
    assert not needed.vacuous
    ten = guarantee(EXPERIMENT_1, 10)
    assert ten.vacuous
    assert "vacuous" in str(ten)
    assert ten.loss > ten.most == pytest.approx(2 * math.log(40) + math.log(7))


@pytest.mark.parametrize("planning", SETTINGS)
@pytest.mark.parametrize("epsilon", [0.05, 0.5, 1.0, 3.0])
def test_needed_samples_satisfy_lemma_3_and_one_fewer_does_not(
    planning: Planning, epsilon: float
) -> None:
    N, log_L = planning.horizon, math.log(planning.candidates)
    found = samples_needed(planning, epsilon)
    most = N * math.log(planning.noise_ratio) + log_L
    assert found.gamma == pytest.approx(epsilon / (4 * N**2))
    delta = epsilon / (2 * N * most)
    tau = planning.tau if planning.tau is not None else math.sqrt(max(0, math.log(1 / found.gamma)))
    T = planning.summand
    if T is None:
        T = N**2 * planning.kappa ** (2 * N) * tau**2 + N * math.log(planning.noise_ratio) + log_L
    assert found.summand == pytest.approx(T)
    assert found.delta == pytest.approx(min(delta, 1.0))
    assert failure(planning, found.samples * (1 + 1e-9), found.gamma, T) <= math.log(delta) + 1e-6
    if found.samples > 1:
        fewer = (found.samples - 1) * (1 - 1e-9)
        assert failure(planning, fewer, found.gamma, T) >= math.log(delta) - 1e-6


@pytest.mark.parametrize("planning", SETTINGS)
@pytest.mark.parametrize("delta", [None, 0.05])
def test_there_and_back(planning: Planning, delta: float | None) -> None:
    for samples in (1, 10, 10**4, 10**9):
        bought = guarantee(planning, samples, delta)
        back = samples_needed(planning, bought.epsilon * (1 + 1e-9), delta)
        assert back.samples <= samples
        # The least ε: a hair less takes more draws (many more, where κ to the 2N is enormous).
        less = samples_needed(planning, bought.epsilon * (1 - 1e-6), delta)
        assert less.samples > 0.999 * samples
        if planning.horizon < 20:
            assert back.samples > 0.999 * samples


@pytest.mark.parametrize("planning", SETTINGS)
def test_more_draws_never_guarantee_less(planning: Planning) -> None:
    losses = [guarantee(planning, s).loss for s in (1, 2, 5, 10, 100, 10**4, 10**7, 10**10)]
    assert losses == sorted(losses, reverse=True)
    needed = [samples_needed(planning, e).samples for e in (0.01, 0.1, 1.0, 10.0)]
    assert needed == sorted(needed, reverse=True)


def test_longer_and_larger_problems_take_more() -> None:
    def needed(**change: float) -> int:
        whole = {"horizon": 2, "places": 100, "candidates": 7, "noise_ratio": 40.0} | change
        return samples_needed(Planning(**whole), 1.0).samples  # type: ignore[arg-type]

    base = needed()
    for change in ({"horizon": 3}, {"places": 700}, {"candidates": 20}, {"noise_ratio": 80.0}):
        assert needed(**change) > base
    assert needed(kappa=1.0) < base
    assert needed(summand=13.0) < base


def test_an_own_delta_gives_theorem_1() -> None:
    found = samples_needed(EXPERIMENT_1, 1.0, delta=0.2)
    assert found.delta == 0.2
    assert found.loss == pytest.approx(0.5 + 0.2 * 2 * found.most)
    assert found.samples < samples_needed(EXPERIMENT_1, 1.0, delta=0.01).samples
    assert str(found).startswith("S = ")


def test_plain_words_say_what_is_guaranteed() -> None:
    text = str(samples_needed(EXPERIMENT_1, 1.0))
    assert "6.2e+09 draws per action: the expected loss is at most 1 nat of 9.32" in text
    assert "0.973" in text


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"horizon": 0}, "horizon must be 1 or more"),
        ({"places": 0}, "places must be"),
        ({"noise_ratio": 1.0}, "noise_ratio must be above 1"),
        ({"noise_ratio": math.nan}, "noise_ratio must be above 1"),
        ({"kappa": 0.5}, "kappa must be"),
        ({"tau": -1.0}, "tau must be"),
        ({"summand": math.nan}, "summand must be"),
    ],
)
def test_impossible_settings_are_refused(change: dict[str, float], message: str) -> None:
    whole = {"horizon": 2, "places": 100, "candidates": 7, "noise_ratio": 40.0} | change
    with pytest.raises(ValueError, match=message):
        Planning(**whole)  # type: ignore[arg-type]


def test_impossible_questions_are_refused() -> None:
    for epsilon in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match="epsilon must be"):
            samples_needed(EXPERIMENT_1, epsilon)
    with pytest.raises(ValueError, match="samples must be"):
        guarantee(EXPERIMENT_1, 0)
    with pytest.raises(ValueError, match="delta must be a probability"):
        guarantee(EXPERIMENT_1, 5, delta=1.0)


def world(count: int = 8, moves: str = "free"):
    topology = build_topology(
        from_mapping(MapConfig, {"kind": "line", "count": count, "spacing": 1.0, "moves": moves})
    )
    config = BeliefConfig(
        length_scales=(1.0, 4.0), signal_std=(3.0,), noise_std=(0.5,), mean_std=0.0
    )
    return topology, build_belief(config, topology.features)


def test_measured_range_of_one_stage_is_that_of_the_surprise() -> None:
    """Of one Gaussian, drawn 5 deviations far at most: ½ z² goes from 0 to 12.5."""
    topology, belief = world()
    found = measured_range(
        belief, topology, None, 1, rng=np.random.default_rng(0), draws=20000, tau=1e-9
    )
    assert found == pytest.approx(0.0, abs=1e-9)
    found = measured_range(belief, topology, None, 1, rng=np.random.default_rng(0), draws=20000)
    assert 0.5 * 4.0**2 < found <= 0.5 * 5.0**2


@pytest.mark.parametrize("moves", ["free", "adjacent"])
def test_measured_range_contains_that_of_simulated_missions(moves: str) -> None:
    """V after a reading, by exhaustive search, gives summands inside the measured range."""
    from gp_active_sensing.planning.entropy import mixture_entropy

    topology, belief = world(5, moves)
    at = None if moves == "free" else 2
    T = measured_range(belief, topology, at, 2, rng=np.random.default_rng(1), draws=2000)
    rng = np.random.default_rng(2)
    summands = []
    for x in topology.candidates(at, belief.observed):
        mean, variance = belief.marginals(np.array([x]))
        noisy = variance[:, 0] + belief.noise_variance
        for _ in range(60):
            k = rng.choice(2, p=belief.weights)
            z = float(rng.normal(mean[k, 0], math.sqrt(noisy[k])))
            density = belief.weights @ (
                np.exp(-0.5 * (z - mean[:, 0]) ** 2 / noisy) / np.sqrt(2 * math.pi * noisy)
            )
            after = belief.copy()
            after.observe(int(x), z)
            rest = topology.candidates(int(x), after.observed)
            m, v = after.marginals(rest)
            V = mixture_entropy(after.weights, m.T, v.T + after.noise_variance).max()
            summands.append(-math.log(density) + V)
    assert 0.5 * T < np.ptp(summands) <= T


def test_from_a_belief() -> None:
    topology, belief = world()
    planning = planning_of(belief, 2, summand=7.0)
    assert (planning.places, planning.candidates, planning.summand) == (8, 2, 7.0)
    assert planning.noise_ratio == pytest.approx(math.sqrt((9 + 0.25) / 0.25))
    for place in range(8):
        belief.observe(place, 0.0)
    with pytest.raises(ValueError, match="no place is left"):
        measured_range(belief, topology, None, 2, rng=np.random.default_rng(0))
