"""The searches that forget: what their parameters are in seconds, and what they do."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gp_active_sensing.belief import BeliefConfig, belief_on
from gp_active_sensing.belief.drift import DriftConfig
from gp_active_sensing.errors import ConfigError
from gp_active_sensing.loop import SensingLoop
from gp_active_sensing.planning import build_policy
from gp_active_sensing.planning.capabilities import drift_of
from gp_active_sensing.planning.nonstationary.forgetting import (
    TvGpUcb,
    recommended_share,
    recommended_window,
)
from gp_active_sensing.topology import MapConfig, build_topology
from gp_active_sensing.types import Reading

FORGETTING = {
    "tv_gp_ucb": ({"epsilon": 0.19}, "kernel", -2.0 / math.log(0.81)),
    "r_gp_ucb": ({"window": 12}, "restart", 12.0),
    "sw_gp_ucb": ({"window": 12}, "window", 12.0),
    "w_gp_ucb": ({"gamma": 0.9}, "weights", -1.0 / math.log(0.9)),
}
LINE = build_topology(MapConfig(kind="line", count=21, spacing=1.0, moves="free"))


def belief_for(policy, **options):
    config = BeliefConfig(length_scales=(3.0,), signal_std=(1.0,), noise_std=(0.1,), **options)
    return belief_on(config, LINE, drift_of(policy))


@pytest.mark.parametrize("name", FORGETTING)
def test_parameters_are_steps_of_so_many_seconds(name: str) -> None:
    given, kind, constant = FORGETTING[name]
    for step in (None, 1.0, 7.5):
        drift = drift_of(build_policy({"name": name, **given, "step": step}))
        assert drift is not None
        assert drift.kind == kind
        found = drift.time_scale if drift.window is None else drift.window
        assert found == pytest.approx(constant * (step or 1.0), rel=1e-12)


@pytest.mark.parametrize("step", [1.0, 0.1, 7.3])
@pytest.mark.parametrize("window", [1, 3, 8])
@pytest.mark.parametrize("begin", [0, 1_700_000_000])
def test_a_window_of_w_steps_holds_the_latest_w_readings(
    step: float, window: int, begin: int
) -> None:
    """After reading t those of the steps t - W + 1 … t, as GP-UCB on them alone. [Zhou2021]."""
    belief = belief_for(build_policy({"name": "sw_gp_ucb", "window": window, "step": step}))
    loop = SensingLoop(LINE, belief, build_policy({"name": "random"}))
    readings = []
    for t in range(1, 13):
        stamp = begin * 10**9 + round(1e9 * step * t)
        readings.append(Reading(stamp, t, 0.1 * t))
        loop.tell(readings[-1:])
        assert np.flatnonzero(belief.observed).tolist() == list(
            range(max(t - window, 0) + 1, t + 1)
        )
    latest = belief_on(
        BeliefConfig(length_scales=(3.0,), signal_std=(1.0,), noise_std=(0.1,)), LINE
    )
    SensingLoop(LINE, latest, build_policy({"name": "random"})).tell(readings[-window:])
    for a, b in zip(belief.predict(), latest.predict(), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9)


def test_the_forgetting_kernel_is_that_of_the_paper() -> None:
    """Correlation (1 - ε)^(|t - t'| / 2) of the field at one place, steps apart."""
    policy = TvGpUcb(epsilon=0.1, step=5.0)
    belief = belief_for(policy, mean_std=0.0)
    belief.observe(3, 1.0, 1e-12, seconds=0.0)
    for steps in (0, 1, 4, 10):
        belief.advance(5.0 * steps)
        assert belief.predict(np.array([3]))[0][0] == pytest.approx(0.9 ** (steps / 2), rel=1e-9)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"name": "tv_gp_ucb", "epsilon": 0}, r"policy\.epsilon: must be more than 0"),
        ({"name": "tv_gp_ucb", "epsilon": 1}, r"policy\.epsilon: must be 0\.999999 or less"),
        ({"name": "w_gp_ucb", "gamma": 1.0}, r"policy\.gamma: must be 0\.999999 or less"),
        ({"name": "sw_gp_ucb", "window": -3}, r"policy\.window: must be more than 0"),
        ({"name": "r_gp_ucb", "step": 0}, r"policy\.step: must be more than 0 \[s\]"),
        ({"name": "sparq_gp_ucb", "delta": 0}, r"policy\.delta: must be more than 0"),
        ({"name": "sparq_gp_ucb", "norm": -1}, r"policy\.norm: must be 0 or more"),
        ({"name": "sw_gp_ucb", "windw": 3}, r"Did you mean 'window'"),
    ],
)
def test_bad_parameters(bad: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        build_policy(bad)


def test_other_policies_bring_no_drift() -> None:
    for name in ("gp_ucb", "bal", "ie", "random", "ei"):
        assert drift_of(build_policy({"name": name})) is None


def test_a_policy_with_a_drift_of_its_own_refuses_another() -> None:
    policy = build_policy({"name": "sw_gp_ucb", "window": 12})
    with pytest.raises(ConfigError, match=r"belief\.drift: is kind injection"):
        belief_for(policy, drift=DriftConfig(kind="injection", rate=0.1))
    assert belief_for(policy, drift=DriftConfig(kind="window", window=12.0)).drift.window == 12.0


def test_recommended_parameters() -> None:
    assert recommended_window(400, 1.0, 16.0) == pytest.approx(2.0 * 20.0)
    assert recommended_window(400, 100.0, 16.0) == pytest.approx(2.0 * 2.0)
    assert recommended_window(400, 1e9, 16.0) == 1.0
    assert recommended_window(4, 0.01, 16.0) == 4.0
    assert recommended_share(400, 1.0, 16.0) == pytest.approx(1.0 - 1.0 / 40.0)
    assert 0.0 < recommended_share(10, 1e9, 1.0) < 1.0


@pytest.mark.parametrize("name", [*FORGETTING, "sparq_gp_ucb"])
def test_a_peak_that_moves_is_found_again(name: str) -> None:
    """High on the left for 40 s, then on the right; gp_ucb sticks to what it knew."""

    def regret(policy) -> float:
        belief = belief_for(policy, mean_value=0.0, mean_std=0.0)
        loop = SensingLoop(LINE, belief, policy, seed=1)
        rng = np.random.default_rng(5)
        at, lost = 10, 0.0
        for second in range(80):
            field = np.exp(-0.5 * ((np.arange(21) - (5 if second < 40 else 15)) / 2.0) ** 2)
            stamp = second * 10**9
            loop.tell([Reading(stamp, at, float(field[at] + 0.1 * rng.normal()))])
            loop.inform(
                Reading(stamp, place, float(field[place] + 0.1 * rng.normal()), 0.01, "expert")
                for place in loop.queries()
            )
            at = int(loop.ask(at, now_ns=stamp).waypoint)
            lost += 1.0 - field[at] if second >= 55 else 0.0
        return lost / 25.0

    given = FORGETTING[name][0] if name in FORGETTING else {}
    given = {**given, "scale": 5.0} if name in FORGETTING else {**given, "norm": 0.0}
    if name == "tv_gp_ucb":
        given["epsilon"] = 0.05
    standing = regret(build_policy({"name": "gp_ucb", "scale": 5.0}))
    assert regret(build_policy({"name": name, **given})) < 0.8 * standing
