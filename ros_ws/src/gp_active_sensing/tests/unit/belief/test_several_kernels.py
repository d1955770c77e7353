"""A belief with several kernels is the mixture of beliefs with one kernel each."""

from __future__ import annotations

import logging

import numpy as np
import pytest

from gp_active_sensing.belief import Belief, BeliefConfig, build_belief
from gp_active_sensing.config import from_mapping
from gp_active_sensing.errors import ConfigError
from tests.cases import for_each

GRID = np.stack(np.meshgrid(np.arange(9.0), np.arange(9.0)), -1).reshape(-1, 2)
KNOWN = {"length_scales": (1.5, 4.0), "signal_std": (2.0,), "noise_std": (0.3,), "mean_std": 0.0}
BOTH = ("matern12", "se")


def told(belief: Belief, seed: int = 1, count: int = 25) -> Belief:
    rng = np.random.default_rng(seed)
    field = 2.0 * np.sin(GRID[:, 0] / 2.0) * np.cos(GRID[:, 1] / 3.0)
    for place in rng.choice(len(GRID), count, replace=False).tolist():
        belief.observe(place, float(field[place] + 0.3 * rng.standard_normal()))
    return belief


@for_each("own", [None, (0.0, 1.0)])
def test_it_is_the_mixture_of_one_kernel_each(own: tuple[float, ...] | None) -> None:
    def made(kernel: str | tuple[str, ...]) -> Belief:
        return told(build_belief(BeliefConfig(kernel=kernel, place_std=own, **KNOWN), GRID))

    both, single = made(BOTH), [made(kernel) for kernel in BOTH]
    assert [h.kernel for h in both.hyperparameters] == [
        kernel for kernel, one in zip(BOTH, single, strict=True) for _ in one.hyperparameters
    ]
    evidence = np.concatenate([belief.log_evidence for belief in single])
    assert both.log_evidence == pytest.approx(evidence, rel=1e-12)
    mean = np.concatenate([belief.marginals()[0] for belief in single])
    weights = np.exp(evidence - evidence.max())
    assert both.predict()[0] == pytest.approx(weights / weights.sum() @ mean, abs=1e-10)


def test_the_length_scales_of_a_kernel_follow_where_it_is_believed_in(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.INFO):
        belief = build_belief(BeliefConfig(kernel=BOTH), GRID)
    assert caplog.text.count("length-scales from the map") == 1, "the same for both: said once"
    before = {kernel.kernel: kernel.scales.points for kernel in belief.grid.kernels}
    told(belief, count=60)
    whys = []
    for _ in range(20):
        if why := belief.adapt():
            whys.append(why)
    after = {kernel.kernel: kernel.scales.points for kernel in belief.grid.kernels}
    moved = [name for name in BOTH if before[name] != after[name]]
    assert moved
    assert all(why.startswith(tuple(f"{name}: " for name in moved)) for why in whys)
    assert belief.prior_weights.sum() == pytest.approx(1.0)
    level = np.array([not h.amplitude_slopes for h in belief.hyperparameters])
    first = np.array([h.kernel == BOTH[0] for h in belief.hyperparameters])
    prior = belief.prior_weights[level]
    assert prior[first[level]].sum() / prior.sum() == pytest.approx(0.5, abs=0.1)


def test_removed_keys_name_what_replaces_them() -> None:
    with pytest.raises(ConfigError, match="graph_matern12"):
        from_mapping(BeliefConfig, {"smoothness": 0.5}, path="belief")
