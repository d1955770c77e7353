"""Information gain of readings, its greedy choice, and the bound on the regret."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from gp_active_sensing.belief import BeliefConfig, build_belief
from gp_active_sensing.planning import build_policy
from gp_active_sensing.planning.bandits.gp_ucb import regret_bound
from gp_active_sensing.planning.bandits.information_gain import SHARE, GreedyGain, largest_gain
from gp_active_sensing.topology import make_line
from tests.requesting import believing


def gain_of(K: np.ndarray, noise: float, places: tuple[int, ...]) -> float:
    block = K[np.ix_(places, places)]
    return float(0.5 * np.linalg.slogdet(np.eye(len(places)) + block / noise)[1])


@pytest.mark.seeds
def test_the_greedy_choice_bounds_the_best(seed: int) -> None:
    """Also where the best reads a place twice."""
    rng = np.random.default_rng(seed)
    keys = {"signal_std": (float(rng.uniform(0.7, 1.7)),), "noise_std": ((0.2, 0.7)[seed % 2],)}
    x = rng.uniform(0, 4, 5)[:, None]
    belief = build_belief(BeliefConfig(length_scales=(1.0,), mean_std=0.0, **keys), x)
    K = keys["signal_std"][0] ** 2 * np.exp(-0.5 * (x - x.T) ** 2)
    noise = keys["noise_std"][0] ** 2
    sets = itertools.combinations_with_replacement(range(5), 4)
    best = max(gain_of(K, noise, places) for places in sets)
    greedy = GreedyGain(belief.covariance, belief.mean).gain(4)
    assert SHARE * best <= greedy <= best + 1e-12
    assert best <= largest_gain(belief, 4) == pytest.approx(greedy / SHARE)


def test_greedy_choices_are_those_of_the_largest_variance() -> None:
    features = np.random.default_rng(3).uniform(0, 5, (9, 2))
    config = BeliefConfig(
        length_scales=(1.5,), signal_std=(2.0,), noise_std=(0.5,), mean_value=4.0, mean_std=3.0
    )
    belief = build_belief(config, features)
    gain = GreedyGain(belief.covariance, belief.mean)
    read = belief.copy()
    places = []
    for _ in range(12):
        place = int(np.argmax(read.marginals()[1][0]))
        places.append(place)
        read.observe(place, 0.0)
    gain.gain(12)
    assert gain.places == places
    squares = ((features[:, None] - features) ** 2).sum(axis=2)
    K = 4.0 * np.exp(-0.5 * squares / 1.5**2) + 9.0  # what is not known of the mean is field
    for number in (0, 1, 5, 12):
        assert gain.gain(number) == pytest.approx(gain_of(K, 0.25, tuple(places[:number])))
    assert gain.largest_variance == pytest.approx(13.0)
    assert largest_gain(belief, 12) == pytest.approx(gain.gain(12) / SHARE)


def test_the_gain_of_a_belief_averages_over_its_candidates() -> None:
    known = {"length_scales": (0.5, 5.0), "signal_std": (1.0,), "noise_std": (0.5,)}
    belief = believing(make_line(20, 1.0), (3.0, 1.0), **known)
    gains = [GreedyGain(belief.covariance, belief.mean, which).gain(6) for which in (0, 1)]
    assert largest_gain(belief, 6) == pytest.approx((0.75 * gains[0] + 0.25 * gains[1]) / SHARE)


def test_the_bound_of_a_mission_and_where_there_is_none() -> None:
    features = np.linspace(0, 1, 40)[:, None]
    keys = {"length_scales": (0.2,), "signal_std": (0.7,), "noise_std": (0.2,), "mean_std": 0.0}
    belief = build_belief(BeliefConfig(**keys), features)
    policy = build_policy({"name": "gp_ucb"})
    gain = largest_gain(belief, 30)
    beta = 2 * math.log(40 * 30**2 * math.pi**2 / 0.6)
    c1 = 8 * 0.49 / math.log(1 + 0.49 / 0.04)
    assert regret_bound(policy, belief, 30) == pytest.approx(math.sqrt(c1 * 30 * beta * gain))
    compact = {"schedule": "compact", "dimension": 1, "extent": 1.0, "a": 1.0, "b": 5.0}
    assert regret_bound(build_policy({"name": "gp_ucb", **compact}), belief, 30) > 2.0
    for mapping in (
        {"name": "gp_ucb", "scale": 5.0},
        {"name": "gp_ucb", "schedule": "constant"},
        {"name": "ei"},
        {"name": "random"},
        {"name": "gp_bucb"},
        {"name": "sw_gp_ucb"},
    ):
        assert regret_bound(build_policy(mapping), belief, 30) is None
    for other in (
        {"length_scales": (0.1, 0.2)},
        {"transform": "log"},
        {"signal_std": None, "noise_std": None, "mean_std": None},
    ):
        unknown = build_belief(BeliefConfig(**(keys | other)), features)
        assert regret_bound(policy, unknown, 30) is None
    assert regret_bound(policy, belief, 0) is None
