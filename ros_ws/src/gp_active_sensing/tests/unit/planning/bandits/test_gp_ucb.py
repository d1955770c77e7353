"""β_t against the formulas of the theorems, and the bound on the regret of batches."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gp_active_sensing.belief import BeliefConfig, build_belief
from gp_active_sensing.planning import build_policy
from gp_active_sensing.planning.bandits.base import view_of
from gp_active_sensing.planning.bandits.gp_ucb import compact_beta, finite_beta, rkhs_beta
from gp_active_sensing.planning.bandits.information_gain import largest_gain
from tests.cases import for_each

STAGES = (1, 2, 10, 1000)


@for_each("t", STAGES)
@for_each("delta", [0.01, 0.1, 0.5])
def test_betas_are_those_of_the_theorems(t: int, delta: float) -> None:
    log = math.log
    expected = 2 * (log(1000) + 2 * log(t) + 2 * log(math.pi) - log(6) - log(delta))
    assert finite_beta(t, 1000, delta) == pytest.approx(expected)
    d, r, a, b = 3, 2.5, 1.5, 0.7
    expected = 2 * log(2 * t**2 * math.pi**2 / (3 * delta))
    expected += 2 * d * log(t**2 * d * b * r * math.sqrt(log(4 * d * a / delta)))
    assert compact_beta(t, delta, dimension=d, extent=r, a=a, b=b) == pytest.approx(expected)
    expected = 2 * 1.5**2 + 300 * 4.2 * log(t / delta) ** 3
    assert rkhs_beta(t, delta, norm=1.5, gain=4.2) == pytest.approx(expected)


@for_each("stage", STAGES)
def test_the_policy_adds_as_many_deviations_as_its_schedule_says(stage: int) -> None:
    belief = build_belief(
        BeliefConfig(length_scales=(0.2,), signal_std=(1.3,), noise_std=(0.4,), mean_std=0.0),
        np.linspace(0, 1, 15)[:, None],
    )
    belief.observe(4, 1.0)
    view = view_of(belief, np.array([1, 4, 9]), stage=stage)
    rng = np.random.default_rng(0)
    schedules = {
        "finite": ({}, finite_beta(stage, 15, 0.1)),
        "constant": ({"beta": 9.0}, 9.0),
        "compact": (
            {"dimension": 1, "extent": 1.0, "a": 2.0, "b": 5.0},
            compact_beta(stage, 0.1, dimension=1, extent=1.0, a=2.0, b=5.0),
        ),
    }
    if stage <= 10:
        gain = largest_gain(belief, stage)
        schedules["rkhs"] = ({"norm": 2.0}, rkhs_beta(stage, 0.1, norm=2.0, gain=gain))
    for name, (keys, beta) in schedules.items():
        policy = build_policy({"name": "gp_ucb", "schedule": name, "scale": 5.0, **keys})
        scores = policy.scores(view, belief, rng)
        np.testing.assert_allclose(scores, view.mean + math.sqrt(beta / 5.0) * view.std)


def test_a_negative_beta_is_none_at_all() -> None:
    keys = {"schedule": "compact", "dimension": 9, "extent": 1e-3, "a": 1.0, "b": 1e-3}
    policy = build_policy({"name": "gp_ucb", **keys})
    belief = build_belief(BeliefConfig(length_scales=(1.0,)), np.arange(3.0)[:, None])
    assert policy.unscaled(1, 3, belief) < 0
    assert policy.width(1, 3, belief) == 0.0
