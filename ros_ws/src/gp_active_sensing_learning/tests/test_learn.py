"""Hyper-parameters from prior readings have the optimum of the belief's evidence."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from gp_active_sensing.belief import Belief, BeliefConfig, HyperParameters
from gp_active_sensing.belief.build import covariance_family
from gp_active_sensing.belief.prior import PriorMean
from gp_active_sensing.errors import ConfigError, ReadingError
from gp_active_sensing.sim.fields.config import FieldConfig
from gp_active_sensing.sim.fields.truth import build_truth
from gp_active_sensing.topology import MapConfig, Topology, build_topology, make_grid
from gp_active_sensing_learning import PriorReadings, learn
from gp_active_sensing_learning.problem import (
    LEARNABLE,
    NOISE_SHARE,
    PLACE_SHARE,
    SPREAD,
    VAGUE,
    build_problem,
)
from tests.cases import for_each

needs_gpytorch = pytest.mark.heavy("learn")
SE = BeliefConfig(kernel="se")


@pytest.fixture(scope="module")
def grid() -> Topology:
    return make_grid(12, 10, 10.0)


def drawn(
    topology: Topology,
    seed: int,
    *,
    count: int = 70,
    again: int = 5,
    noise: float = 0.5,
    own: float = 0.0,
    **field: Any,
) -> PriorReadings:
    """Return readings of a drawn field at `count` places, `again` of them read twice."""
    truth = build_truth(
        FieldConfig(kind="gp", mean=40.0, signal_std=3.0, **field), topology, seed
    ).at(0.0)
    rng = np.random.default_rng(seed)
    places = rng.permutation(topology.n)[:count]
    places = np.concatenate([places, places[:again]])
    if own:
        truth = truth + own * rng.normal(size=topology.n)
    return PriorReadings(places, truth[places] + noise * rng.normal(size=len(places)), "a draw")


def evidence(
    config: BeliefConfig,
    topology: Topology,
    readings: PriorReadings,
    at: Any,
    noise: float | None = None,
) -> float:
    """Return log p(readings) + log prior by the belief that missions use, up to a constant."""
    problem = build_problem(config, topology, readings, noise=noise)
    k = problem.scales
    scales = problem.median * np.exp(at[:k]) * problem.shape
    signal, random, own = (problem.unit * std for std in problem.stds(at))
    family, _ = covariance_family(
        config.kernel, topology.features, topology.feature_names, topology.links
    )
    std = VAGUE * problem.unit
    mean = (
        PriorMean.linear(topology.columns(config.mean_features)[0], problem.centre, std)
        if config.mean == "linear"
        else PriorMean.constant(topology.n, problem.centre, std)
    )
    candidate = HyperParameters(tuple(np.atleast_1d(scales).tolist()), signal, random, "", own)
    belief = Belief(family([candidate]), mean)
    for place, value in zip(readings.places.tolist(), readings.values.tolist(), strict=True):
        belief.observe(place, value)
    prior = -0.5 * (at[:k] ** 2).sum() / problem.spread**2
    prior -= 0.5 * (at[k] / SPREAD) ** 2
    if noise is None:
        prior -= 0.5 * ((at[k + 1] - math.log(NOISE_SHARE)) / SPREAD) ** 2
    if problem.own:
        prior -= 0.5 * ((at[-1] - math.log(PLACE_SHARE)) / SPREAD) ** 2
    return float(belief.log_evidence[0] + prior)


def optimum(density: Callable[[Any], float], start: Any) -> Any:
    """Return the result of a search for the largest density."""
    options = {"xatol": 1e-4, "fatol": 1e-7}
    return minimize(lambda p: -density(p), start, method="Nelder-Mead", options=options)


@needs_gpytorch
@for_each(
    "case",
    [
        {"kernel": "se"},
        {"kernel": "matern32", "mean": "linear"},
        {"kernel": "matern52"},
        {"kernel": "graph_matern32"},
        {"kernel": "graph_matern12", "mean": "linear", "mean_features": ("x",)},
    ],
)
def test_the_optimum_is_that_of_the_belief_s_evidence(grid: Topology, case: dict[str, Any]) -> None:
    config = BeliefConfig(**case)
    readings = drawn(grid, 1, kernel="matern32", length_scale=30.0)
    found = learn(config, grid, readings)
    problem = build_problem(config, grid, readings)
    scale = found.length_scales[0] / problem.median / problem.shape[0]
    at = np.log([scale, found.signal_std / problem.unit, found.noise_std / problem.unit])
    best = optimum(lambda p: evidence(config, grid, readings, p), at + 0.02)
    np.testing.assert_allclose(at, best.x, atol=2e-3)
    assert evidence(config, grid, readings, at) == pytest.approx(-best.fun, abs=1e-5)
    assert found.agreeing >= 1
    assert (found.readings, found.places) == (75, 70)


@needs_gpytorch
@for_each(("noise", "again"), [(None, 30), (0.5, 0), (0.5, 30)])
def test_the_optimum_with_a_place_part_is_that_of_the_evidence(
    grid: Topology, noise: float | None, again: int
) -> None:
    config = BeliefConfig(kernel="matern32")
    readings = drawn(grid, 1, again=again, own=1.5, kernel="matern32", length_scale=30.0)
    found = learn(config, grid, readings, noise=noise)
    problem = build_problem(config, grid, readings, noise=noise)
    parts = [found.signal_std, *([found.noise_std] if noise is None else []), found.place_std]
    at = np.log([found.length_scales[0] / problem.median, *(np.array(parts) / problem.unit)])
    best = optimum(lambda p: evidence(config, grid, readings, p, noise), at + 0.02)
    np.testing.assert_allclose(at, best.x, atol=2e-3)
    # What is gained is the difference to the optimum that has no such part.
    none = 0.5 * (-16.0 - math.log(PLACE_SHARE)) ** 2
    alone = min(
        optimum(
            lambda p: evidence(config, grid, readings, np.append(p, -16.0), noise) + none, start
        ).fun
        for start in (at[:-1], at[:-1] - np.eye(len(at) - 1)[0], at[:-1] + 0.5)
    )
    own = -0.5 * (at[-1] - math.log(PLACE_SHARE)) ** 2
    assert found.place_gain == pytest.approx(alone - best.fun - own, abs=2e-3)
    assert found.errors[2] == 0.0 if noise else found.errors[2] > 0.0


@needs_gpytorch
@for_each("kernel", LEARNABLE)
@for_each(("noise", "again"), [(None, 5), (None, 30), (0.5, 5)])
def test_the_gradient(grid: Topology, kernel: str, noise: float | None, again: int) -> None:
    from gp_active_sensing_learning.model import Model

    readings = drawn(grid, 2, again=again, kernel="se", length_scale=20.0)
    model = Model(build_problem(BeliefConfig(kernel=kernel), grid, readings, noise=noise))
    at = np.array([0.3, -0.2, -1.5, -1.1])[: model.problem.size]
    value, gradient = model.negative(at)
    for k in range(len(at)):
        step = 1e-5 * np.eye(len(at))[k]
        slope = (model.negative(at + step)[0] - model.negative(at - step)[0]) / 2e-5
        assert gradient[k] == pytest.approx(slope, rel=3e-3, abs=1e-3)
    assert model.negative(at)[0] == pytest.approx(value, abs=1e-9)


@needs_gpytorch
@for_each("noise", [None, 0.6])
@pytest.mark.long
def test_what_is_each_place_s_own_is_found(grid: Topology, noise: float | None) -> None:
    """The estimates are correct on average over fields, within their standard errors."""
    kernel, scores, gains = "matern32", [], []
    again = 60 if noise is None else 0
    field = {"noise": 0.6, "own": 2.0, "kernel": kernel, "length_scale": 30.0}
    for seed in range(4):
        readings = drawn(grid, seed, count=100, again=again, **field)
        found = learn(BeliefConfig(kernel=kernel), grid, readings, starts=2, noise=noise)
        assert found.errors[3] < 1.0
        scores.append(math.log(found.place_std / 2.0) / found.errors[3])
        gains.append(found.place_gain)
        if noise is None:
            assert abs(math.log(found.noise_std / 0.6)) < 4.0 * found.errors[2]
        else:
            assert found.noise_std == pytest.approx(noise)
    assert abs(np.mean(scores)) < 1.2
    assert np.sqrt(np.mean(np.square(scores))) < 2.2
    assert np.median(gains) > 2.0


@needs_gpytorch
def test_a_length_scale_for_each_feature() -> None:
    town = build_topology(MapConfig(kind="roads", file="town", features=("x", "y", "speed_limit")))
    rng = np.random.default_rng(3)
    places = rng.permutation(town.n)[:150]
    # The field is of x only: the others' length-scales become long.
    values = np.sin(town.features[places, 0] / 300.0) + 0.1 * rng.normal(size=150)
    readings = PriorReadings(places, values, "x")
    found = learn(SE, town, readings, per_feature=True)
    assert len(found.length_scales) == 3
    span = np.ptp(town.features, axis=0)
    shares = np.array(found.length_scales) / span
    assert shares[1:].min() > 3.0 * shares[0]
    common = np.array(learn(SE, town, readings).length_scales) / span
    np.testing.assert_allclose(common, common[0])


@needs_gpytorch
def test_a_subset_is_drawn_by_the_seed(grid: Topology) -> None:
    readings = drawn(grid, 4, kernel="se", length_scale=25.0)
    whole = learn(SE, grid, readings, starts=1)
    first, again, other = (
        learn(SE, grid, readings, starts=1, subset=40, seed=seed) for seed in (0, 0, 1)
    )
    assert first == again
    assert first.places == other.places == 40
    assert len({whole.signal_std, first.signal_std, other.signal_std}) == 3


@needs_gpytorch
def test_a_transform_is_applied_first(grid: Topology) -> None:
    readings = drawn(grid, 7, kernel="se", length_scale=25.0)
    logs = PriorReadings(readings.places, np.exp(0.1 * readings.values), "exp")
    config = BeliefConfig(kernel="se", transform="log")
    found = learn(config, grid, logs)
    assert found.signal_std == pytest.approx(0.1 * learn(SE, grid, readings).signal_std, rel=1e-3)
    with pytest.raises(ReadingError, match="expected a value above 0"):
        learn(config, grid, PriorReadings(np.arange(9), -np.arange(9.0), ""))


def test_readings_that_nothing_can_be_learned_from() -> None:
    for places, values, message in (
        (np.array([0, 0, 1, 2, 3, 4, 5, 6]), np.arange(8.0), "of 8 places or more .* got 7"),
        (np.arange(9), np.full(9, 4.0), "all 9 values are 4"),
        (np.arange(0), np.zeros(0), "got 0"),
    ):
        with pytest.raises(ReadingError, match=message):
            PriorReadings(places, values, "table")


def test_kernels_that_cannot_be_learned(grid: Topology, monkeypatch: pytest.MonkeyPatch) -> None:
    from gp_active_sensing.kernels import kernels
    from gp_active_sensing.kernels.base import Matern12

    monkeypatch.setitem(kernels._factories, "own", Matern12)
    readings = PriorReadings(np.arange(9), np.arange(9.0), "table")
    free = make_grid(3, 3, 1.0, moves="free")
    for kernel, topology, per_feature, message in (
        ("own", grid, False, "length-scale of 'own' cannot be learned"),
        ("graph_matern32", free, False, "needs a map with moves"),
        ("graph_matern32", grid, True, "--per-feature: graph_matern32 is not a function"),
    ):
        with pytest.raises(ConfigError, match=message):
            build_problem(BeliefConfig(kernel=kernel), topology, readings, per_feature=per_feature)
