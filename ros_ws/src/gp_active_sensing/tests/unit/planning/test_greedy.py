"""Mutual information against determinants, its local approximation, and degenerate beliefs."""

from __future__ import annotations

import numpy as np
import pytest

from gp_active_sensing.belief import Belief, BeliefConfig, build_belief
from gp_active_sensing.planning.greedy import MutualInformation
from gp_active_sensing.topology import MapConfig, Topology, build_topology, make_line
from tests.cases import for_each
from tests.requesting import believing


def world(count: int = 9, **options) -> tuple[Topology, Belief]:
    topology = make_line(count, 1.0, moves="free")
    settings = {
        "length_scales": (0.7, 2.0, 6.0),
        "signal_std": (3.0,),
        "noise_std": (0.4, 0.8),
        "mean_std": 0.0,
    }
    return topology, believing(topology, **(settings | options))


def prior_of_readings(belief: Belief, index: int) -> np.ndarray:
    """Covariance of one reading of every place under λ number `index`."""
    every = np.arange(belief.n)
    basis = belief.mean.basis * belief.mean.std
    latent = belief.covariance.between(every, every)[index] + basis @ basis.T
    return np.asarray(latent + belief.noise_variance[index] * np.eye(belief.n))


def information(C: np.ndarray, A: list[int]) -> float:
    """I(Z_A; Z_rest) from determinants."""
    rest = [i for i in range(len(C)) if i not in A]
    if not A or not rest:
        return 0.0

    def log_det(where: list[int]) -> float:
        return float(np.linalg.slogdet(C[np.ix_(where, where)])[1])

    return 0.5 * (log_det(A) + log_det(rest) - log_det(list(range(len(C)))))


@for_each("mean_std", [0.0, 50.0])
def test_value_is_what_a_reading_adds_to_the_mutual_information(mean_std: float) -> None:
    """F(A ∪ x) - F(A) with F(A) = I(Z_A; Z_rest), averaged over λ. [Krause2008]."""
    _, belief = world(mean_std=mean_std)
    rng = np.random.default_rng(0)
    observed = [1, 6]
    for place in observed:
        belief.observe(place, float(rng.normal(0, 3)))
    for pending in ((), (4,)):  # they count as read
        read = [*observed, *pending]
        candidates = np.setdiff1d(np.arange(belief.n), read)
        expected = np.zeros(len(candidates))
        for index, weight in enumerate(belief.weights):
            C = prior_of_readings(belief, index)
            for row, x in enumerate(candidates.tolist()):
                expected[row] += weight * (information(C, [*read, x]) - information(C, read))
        for neighbourhood in (None, 64, 100):
            found = among(neighbourhood).scores(belief, candidates, pending, None)
            np.testing.assert_allclose(found, expected, atol=1e-6)


def among(neighbourhood: int | None) -> MutualInformation:
    """Return the policy that compares a candidate with so many places."""
    return type("Among", (MutualInformation,), {"neighbourhood": neighbourhood})()


def test_neighbourhood_approximates_from_below(monkeypatch: pytest.MonkeyPatch) -> None:
    topology = build_topology(MapConfig(kind="roads", file="town.geojson"))
    config = BeliefConfig(
        length_scales=(100.0, 300.0, 900.0), signal_std=(11.0,), noise_std=(6.0,), kernel="matern32"
    )
    belief = build_belief(config, topology.features)
    rng = np.random.default_rng(1)
    for place in rng.choice(topology.n, 30, replace=False):
        belief.observe(int(place), float(rng.normal(40, 10)))
    candidates = np.flatnonzero(~belief.observed)[::40]
    exact = among(None).scores(belief, candidates, (), None)
    errors = []
    for k in (4, 16, 64):
        found = among(k).scores(belief, candidates, (), None)
        assert (found <= exact + 1e-9).all(), "fewer conditions leave more entropy"
        errors.append(float((exact - found).max()))
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 0.01
    # In parts, as where memory is short, it is the same.
    monkeypatch.setattr("gp_active_sensing.planning.greedy._NUMBERS", 1)
    again = among(64).scores(belief, candidates, (), None)
    np.testing.assert_allclose(again, found, atol=1e-12)
