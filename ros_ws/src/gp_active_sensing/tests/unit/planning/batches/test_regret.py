"""The published bound on the regret of batches, on fields that are drawn from the prior."""

from __future__ import annotations

import numpy as np
import pytest

from gp_active_sensing.belief import BeliefConfig, belief_on, build_belief
from gp_active_sensing.experiments import run_trial
from gp_active_sensing.planning.bandits.information_gain import largest_gain
from gp_active_sensing.planning.bandits.regret_bound import batch_ucb_bound, constant
from gp_active_sensing.sim import Scenario, build_world, scenario_from_mapping

ROUNDS, BATCH, DELTA = 12, 4, 0.2


def scenario_of(name: str, seed: int, **policy: float) -> Scenario:
    known = {"length_scales": [0.2], "signal_std": [1.0], "noise_std": [0.2], "mean_std": 0.0}
    return scenario_from_mapping(
        {
            "map": {"kind": "points", "count": 80, "low": [0, 0], "high": [1, 1]},
            "field": {"kind": "gp", "length_scale": 0.2, "signal_std": 1.0},
            "sensor": {"noise_std": 0.2},
            "belief": known,
            "policy": {"name": name, **policy},
            "seek": "maximise",
            "probes": BATCH,
            "budget": {"readings": ROUNDS * BATCH},
            "seed": seed,
        }
    )


def regret_of(scenario: Scenario) -> float:
    return float(run_trial(scenario).records[-1]["cumulative_regret"])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ucb_dpp_max", "ucb_dpp_sample"])
def test_regret_is_below_the_bound(name: str) -> None:
    """With probability 1 - δ; the bound is loose, so that in no run it should fail."""
    scenarios = [scenario_of(name, seed, delta=DELTA) for seed in range(8)]
    found = [regret_of(scenario) for scenario in scenarios]
    prior = belief_on(scenarios[0].belief, build_world(scenarios[0]).topology)
    beta = scenarios[0].build_policy().unscaled(ROUNDS, 80, prior)  # type: ignore[attr-defined]
    gain = largest_gain(prior, ROUNDS * BATCH)
    assert max(found) < batch_ucb_bound(ROUNDS, BATCH, beta, gain, constant(1.0, 0.04, 36.0))
    blind = [regret_of(scenario_of("random", seed)) for seed in range(8)]
    assert np.mean(found) < np.mean(blind)


def test_a_bound_needs_no_more_than_the_prior() -> None:
    belief = build_belief(
        BeliefConfig(length_scales=(0.2,), signal_std=(1.0,), noise_std=(0.2,), mean_std=0.0),
        np.linspace(0.0, 1.0, 30)[:, None],
    )
    gains = [largest_gain(belief, n) for n in (5, 10, 20)]
    bounds = [
        batch_ucb_bound(t, 5, 10.0, gain, constant(1.0, 0.04, 36.0))
        for t, gain in zip((1, 2, 4), gains, strict=True)
    ]
    averages = [bound / (5 * t) for bound, t in zip(bounds, (1, 2, 4), strict=True)]
    assert averages == sorted(averages, reverse=True)  # the average regret has to fall
