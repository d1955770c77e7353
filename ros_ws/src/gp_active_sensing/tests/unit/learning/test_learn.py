"""Hyper-parameters from prior readings: the same optimum as the belief's own evidence has."""

from __future__ import annotations

import math
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from gp_active_sensing.belief import Belief, BeliefConfig, HyperParameters
from gp_active_sensing.belief.build import covariance_family
from gp_active_sensing.belief.mean import PriorMean
from gp_active_sensing.errors import ConfigError, MissingDependencyError, ReadingError
from gp_active_sensing.learning import PriorReadings, learn
from gp_active_sensing.learning.problem import LEARNABLE, NOISE_SHARE, SPREAD, VAGUE, pose
from gp_active_sensing.sim.field import FieldConfig
from gp_active_sensing.sim.truth import build_truth
from gp_active_sensing.topology import MapConfig, Topology, build_topology, make_grid

needs_gpytorch = pytest.mark.heavy("learn")


@pytest.fixture(scope="module")
def grid() -> Topology:
    return make_grid(12, 10, 10.0)


def drawn(
    topology: Topology, seed: int, *, count: int = 70, noise: float = 0.5, **field: Any
) -> PriorReadings:
    """Return readings of a drawn field at some places, a few of them read twice."""
    truth = build_truth(
        FieldConfig(kind="gp", mean=40.0, signal_std=3.0, **field), topology, seed
    ).at(0.0)
    rng = np.random.default_rng(seed)
    places = rng.permutation(topology.n)[:count]
    places = np.concatenate([places, places[:5]])
    return PriorReadings(places, truth[places] + noise * rng.normal(size=len(places)), "a draw")


def evidence(config: BeliefConfig, topology: Topology, readings: PriorReadings, at: Any) -> float:
    """Return log p(readings) + log prior by the belief that missions use."""
    problem = pose(config, topology, readings)
    k = problem.scales
    scales = problem.median * np.exp(at[:k]) * problem.shape
    signal, noise = problem.unit * np.exp(at[k]), problem.unit * np.exp(at[k + 1])
    family, _ = covariance_family(
        config, config.kernel, topology.features, topology.feature_names, topology.links
    )
    std = VAGUE * problem.unit
    mean = (
        PriorMean.linear(topology.columns(config.mean_features)[0], problem.centre, std)
        if config.mean == "linear"
        else PriorMean.constant(topology.n, problem.centre, std)
    )
    candidate = HyperParameters(tuple(np.atleast_1d(scales).tolist()), signal, noise)
    belief = Belief(family([candidate]), mean)
    for place, value in zip(readings.places.tolist(), readings.values.tolist(), strict=True):
        belief.observe(place, value)
    prior = -0.5 * (at[:k] ** 2).sum() / problem.spread**2
    prior -= 0.5 * (at[k] / SPREAD) ** 2
    prior -= 0.5 * ((at[k + 1] - math.log(NOISE_SHARE)) / SPREAD) ** 2
    return float(belief.log_evidence[0] + prior)


CASES = [
    {"kernel": "se"},
    {"kernel": "matern12"},
    {"kernel": "matern32", "mean": "linear"},
    {"kernel": "matern52"},
    {"kernel": "graph_matern"},
    {"kernel": "graph_matern", "smoothness": 0.5, "mean": "linear", "mean_features": ("x",)},
]


@needs_gpytorch
@pytest.mark.parametrize("case", CASES, ids=lambda c: "-".join(str(v) for v in c.values()))
def test_the_optimum_is_that_of_the_belief_s_evidence(grid: Topology, case: dict[str, Any]) -> None:
    config = BeliefConfig(**case)
    readings = drawn(grid, 1, kernel="matern32", length_scale=30.0)
    found = learn(config, grid, readings)
    problem = pose(config, grid, readings)
    at = np.log(
        [
            found.length_scales[0] / problem.median / problem.shape[0],
            found.signal_std / problem.unit,
            found.noise_std / problem.unit,
        ]
    )
    best = minimize(
        lambda p: -evidence(config, grid, readings, p),
        at + 0.02,
        method="Nelder-Mead",
        options={"xatol": 1e-4, "fatol": 1e-7},
    )
    np.testing.assert_allclose(at, best.x, atol=2e-3)
    assert evidence(config, grid, readings, at) == pytest.approx(-best.fun, abs=1e-5)
    assert found.agreeing >= 1
    assert (found.readings, found.places) == (75, 70)


@needs_gpytorch
@pytest.mark.parametrize("kernel", LEARNABLE)
def test_the_gradient(grid: Topology, kernel: str) -> None:
    from gp_active_sensing.learning.model import Model

    readings = drawn(grid, 2, kernel="se", length_scale=20.0)
    model = Model(pose(BeliefConfig(kernel=kernel), grid, readings))
    at = np.array([0.3, -0.2, -1.5])
    value, gradient = model.negative(at)
    for k in range(3):
        step = 1e-5 * np.eye(3)[k]
        slope = (model.negative(at + step)[0] - model.negative(at - step)[0]) / 2e-5
        assert gradient[k] == pytest.approx(slope, rel=3e-3, abs=1e-3)
    assert model.negative(at)[0] == pytest.approx(value, abs=1e-9)


@needs_gpytorch
@pytest.mark.parametrize(
    ("field", "belief"),
    [
        ({"kernel": "se"}, {"kernel": "se"}),
        ({"kernel": "graph_matern"}, {"kernel": "graph_matern"}),
    ],
)
def test_what_the_field_was_drawn_with_is_found(
    grid: Topology, field: dict[str, Any], belief: dict[str, Any]
) -> None:
    """On average over fields, within the standard errors that are reported."""
    scores = []
    for seed in range(8):
        readings = drawn(grid, seed, count=110, noise=0.6, length_scale=25.0, **field)
        found = learn(BeliefConfig(**belief), grid, readings, starts=2)
        truth = np.log([25.0, 3.0, 0.6])
        learned = np.log([found.length_scales[0], found.signal_std, found.noise_std])
        scores.append((learned - truth) / np.array(found.errors))
    assert np.abs(np.mean(scores, axis=0)).max() < 1.2
    assert 0.3 < np.sqrt(np.mean(np.square(scores))) < 2.0


@needs_gpytorch
def test_a_length_scale_for_each_feature() -> None:
    town = build_topology(MapConfig(kind="roads", file="town", features=("x", "y", "speed_limit")))
    rng = np.random.default_rng(3)
    places = rng.permutation(town.n)[:150]
    # The field is of x only: the others' length-scales become long.
    values = np.sin(town.features[places, 0] / 300.0) + 0.1 * rng.normal(size=150)
    found = learn(BeliefConfig(), town, PriorReadings(places, values, "x"), per_feature=True)
    assert len(found.length_scales) == 3
    span = np.ptp(town.features, axis=0)
    shares = np.array(found.length_scales) / span
    assert shares[1:].min() > 3.0 * shares[0]
    common = learn(BeliefConfig(), town, PriorReadings(places, values, "x"))
    np.testing.assert_allclose(
        np.array(common.length_scales) / span, common.length_scales[0] / span[0]
    )


@needs_gpytorch
def test_a_subset_is_drawn_by_the_seed(grid: Topology) -> None:
    readings = drawn(grid, 4, kernel="se", length_scale=25.0)
    whole = learn(BeliefConfig(), grid, readings, starts=1)
    first, again, other = (
        learn(BeliefConfig(), grid, readings, starts=1, subset=40, seed=seed) for seed in (0, 0, 1)
    )
    assert first == again
    assert first.places == other.places == 40
    assert len({whole.signal_std, first.signal_std, other.signal_std}) == 3


@needs_gpytorch
def test_the_scale_of_the_values_does_not_matter(grid: Topology) -> None:
    readings = drawn(grid, 5, kernel="se", length_scale=25.0)
    large = PriorReadings(readings.places, 1e5 + 1e3 * readings.values, "large")
    one, other = (learn(BeliefConfig(), grid, r) for r in (readings, large))
    assert other.signal_std == pytest.approx(1e3 * one.signal_std, rel=1e-3)
    assert other.length_scales == pytest.approx(one.length_scales, rel=1e-3)
    assert other.mean[0] == pytest.approx(1e5 + 1e3 * one.mean[0], rel=1e-6)


@needs_gpytorch
def test_the_mean_s_coefficients(grid: Topology) -> None:
    rng = np.random.default_rng(6)
    places = np.arange(grid.n)
    values = 10.0 + 0.5 * grid.positions[:, 0] + 0.1 * rng.normal(size=grid.n)
    found = learn(BeliefConfig(mean="linear"), grid, PriorReadings(places, values, "slope"))
    x = grid.positions[:, 0]
    assert found.mean == pytest.approx((10.0 + 0.5 * x.mean(), 0.5 * x.std(), 0.0), abs=1.0)


@needs_gpytorch
def test_a_transform_is_applied_first(grid: Topology) -> None:
    readings = drawn(grid, 7, kernel="se", length_scale=25.0)
    logs = PriorReadings(readings.places, np.exp(0.1 * readings.values), "exp")
    found = learn(BeliefConfig(transform="log"), grid, logs)
    assert found.signal_std == pytest.approx(
        0.1 * learn(BeliefConfig(), grid, readings).signal_std, rel=1e-3
    )
    with pytest.raises(ReadingError, match="expected a value above 0"):
        learn(BeliefConfig(transform="log"), grid, PriorReadings(places_of(9), -np.arange(9.0), ""))


def places_of(count: int) -> np.ndarray:
    return np.arange(count)


def test_readings_that_nothing_can_be_learned_from() -> None:
    with pytest.raises(
        ReadingError, match=r"table: expected readings of 8 places or more .* got 7"
    ):
        PriorReadings(np.array([0, 0, 1, 2, 3, 4, 5, 6]), np.arange(8.0), "table")
    with pytest.raises(ReadingError, match="table: all 9 values are 4; a field that does not vary"):
        PriorReadings(places_of(9), np.full(9, 4.0), "table")
    with pytest.raises(ReadingError, match="got 0"):
        PriorReadings(places_of(0), np.zeros(0), "table")


def test_kernels_that_cannot_be_learned(grid: Topology, monkeypatch: pytest.MonkeyPatch) -> None:
    from gp_active_sensing.kernels import Matern12, kernels

    monkeypatch.setitem(kernels._factories, "own", Matern12)
    readings = PriorReadings(places_of(9), np.arange(9.0), "table")
    with pytest.raises(
        ConfigError, match="length-scale of 'own' cannot be learned; expected one of"
    ):
        pose(BeliefConfig(kernel="own"), grid, readings)
    with pytest.raises(ConfigError, match="needs a map with moves"):
        pose(BeliefConfig(kernel="graph_matern"), make_grid(3, 3, 1.0, moves="free"), readings)
    with pytest.raises(ConfigError, match="--per-feature: graph_matern is not a function"):
        pose(BeliefConfig(kernel="graph_matern"), grid, readings, per_feature=True)


def test_without_the_extra(grid: Topology, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gp_active_sensing.learning.model", None)
    readings = PriorReadings(places_of(9), np.arange(9.0), "table")
    with pytest.raises(MissingDependencyError, match=r"pip install 'gp_active_sensing\[learn\]'"):
        learn(BeliefConfig(), grid, readings)


def test_importing_it_loads_no_torch() -> None:
    code = "import sys, gp_active_sensing.learning; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
