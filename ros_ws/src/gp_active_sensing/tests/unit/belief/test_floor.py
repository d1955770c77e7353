"""What nobody can promise less than: no set of readings, however chosen, goes below it."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from gp_active_sensing.belief import Belief, BeliefConfig, belief_on, floor
from gp_active_sensing.belief.covariance import FeatureCovariance, HyperParameters
from gp_active_sensing.belief.floor import MOST_PLACES, floor_of
from gp_active_sensing.belief.mean import PriorMean
from gp_active_sensing.belief.transform import LOG
from gp_active_sensing.kernels import kernels
from gp_active_sensing.topology import Topology, make_grid, make_line
from gp_active_sensing.types import FloatArray


def believed(
    n: int,
    rng: np.random.Generator,
    *,
    mean_std: float = 0.0,
    known: bool = True,
    slope: bool = False,
) -> Belief:
    """Return a belief over n random places of a plane, of three length-scales."""
    places = rng.uniform(0, 4, (n, 2))
    candidates = [
        HyperParameters((ell,), signal, noise)
        for ell, signal, noise in ((0.5, 1.0, 0.3), (1.5, 2.0, 0.1), (4.0, 1.0, 0.5))
    ]
    covariance = FeatureCovariance(kernels.factory("matern32")(), places, candidates)
    mean = PriorMean.constant(n, 0.0, mean_std)
    if slope:
        mean = PriorMean.linear(places, 0.0, mean_std)
    return Belief(covariance, mean, scale_known=known)


def left(belief: Belief, weights: FloatArray) -> float:
    """Return what is promised but for what the candidates' means differ by."""
    _, variance = belief.marginals()
    return float(belief.weights @ variance @ weights / weights.sum()) ** 0.5


@pytest.mark.parametrize("mean_std", [0.0, 0.7, 100.0, 1e6])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("k", [1, 2, 4])
def test_no_set_of_readings_goes_below(mean_std: float, weighted: bool, k: int) -> None:
    n = 8
    rng = np.random.default_rng([k, weighted, int(mean_std)])
    belief = believed(n, rng, mean_std=mean_std, slope=weighted)
    weights = rng.uniform(0.2, 3, n) if weighted else np.ones(n)
    least = np.inf
    for chosen in combinations(range(n), k):
        told = belief.copy()
        for place in chosen:
            told.observe(place, float(rng.normal()))
        found = told.floor(weights)
        assert found is not None
        assert found.places == k
        assert found.error <= left(told, weights) * (1 + 1e-9)
        # The belief over the candidates depends on what was read: each with its own.
        least = min(least, left(told, weights) / found.error)
    assert 1.0 - 1e-9 <= least
    if k > belief.mean.basis.shape[1]:  # else a vague mean is not known yet
        assert least < 2.0


@pytest.mark.parametrize("seed", range(40))
def test_random_cases_all_ways_at_once(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 25))
    known = bool(rng.integers(2))
    belief = believed(
        n,
        rng,
        mean_std=float(rng.choice([0.3, 10.0, 1e6])),
        known=known,
        slope=bool(rng.integers(2)),
    )
    weights = rng.uniform(0, 2, n) * (rng.random(n) < 0.8)
    weights[0] = 1.0
    for _ in range(int(rng.integers(6, 20))):  # places are read again, with noise of their own
        variance = float(rng.uniform(0.001, 2)) if rng.random() < 0.4 else None
        belief.observe(int(rng.integers(n)), float(rng.normal()), variance)
    found = belief.floor(weights)
    assert found is not None
    assert found.error <= left(belief, weights) * (1 + 1e-9)
    promise = belief.promise(weights)
    assert promise is not None
    assert found.error <= promise.error <= promise.worst


def test_it_is_reached_where_places_are_independent() -> None:
    n, k = 6, 4
    covariance = FeatureCovariance(
        kernels.factory("se")(), 100.0 * np.arange(n)[:, None], [HyperParameters((1.0,), 2.0, 0.5)]
    )
    belief = Belief(covariance, PriorMean.known(n, 0.0))
    for place in range(k):
        belief.observe(place, 0.0)
    found = belief.floor(np.ones(n))
    assert found is not None
    exact = ((n - k) * 4.0 + k * 4.0 * 0.25 / 4.25) / n
    assert found.error == pytest.approx(exact**0.5)
    assert found.error == pytest.approx(left(belief, np.ones(n)))


def test_parts_of_a_map_bound_it_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    belief = believed(60, rng, mean_std=10.0)
    for place in range(0, 60, 10):
        belief.observe(place, float(rng.normal()))
    whole = floor_of(belief._updated, belief.weights, np.ones(60))
    monkeypatch.setattr(floor, "_NUMBERS", 3 * 20**2)
    parts = floor_of(belief._updated, belief.weights, np.ones(60))
    assert 0.5 * whole.error < parts.error < whole.error <= left(belief, np.ones(60))


def test_the_belief_of_a_mission_that_nobody_tuned() -> None:
    topology: Topology = make_grid(9, 8, 5.0)
    belief = belief_on(BeliefConfig(), topology)
    assert belief.floor(topology.weights) is None
    rng = np.random.default_rng(1)
    for place in rng.choice(topology.n, 15, replace=False).tolist():
        belief.observe(
            place, float(np.sin(0.2 * topology.positions[place, 0]) + rng.normal(0, 0.1))
        )
    found, promise = belief.floor(topology.weights), belief.promise(topology.weights)
    assert found is not None
    assert promise is not None
    assert found.places == 15
    assert 0.3 * promise.error < found.error < promise.error


def test_where_it_is_not_worked_out() -> None:
    weights = np.ones(MOST_PLACES + 1)
    large = belief_on(
        BeliefConfig(length_scales=(3.0,), signal_std=(1.0,), noise_std=(0.1,)),
        make_line(MOST_PLACES + 1, 1.0),
    )
    large.observe(0, 1.0)
    assert large.promise(weights) is not None
    assert large.floor(weights) is None
    rng = np.random.default_rng(0)
    plain = believed(5, rng)
    through_log = Belief(plain.covariance, plain.mean, transform=LOG)
    through_log.observe(1, 3.0)
    assert through_log.floor(np.ones(5)) is None
