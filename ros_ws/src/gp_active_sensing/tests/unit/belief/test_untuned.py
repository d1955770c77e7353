"""Belief without tuning: its scale, its grid of length-scales, and its limits."""

from __future__ import annotations

import logging

import numpy as np
import pytest
from scipy import integrate, stats

from gp_active_sensing.belief import (
    Belief,
    BeliefConfig,
    FeatureCovariance,
    HyperParameters,
    belief_on,
    build_belief,
)
from gp_active_sensing.belief.config import (
    NOISE_SHARES,
    NONE_SHARES,
    NONE_WEIGHT,
    PLANE_KERNELS,
    SHARES,
)
from gp_active_sensing.belief.grid import LengthScaleGrid, default_grid
from gp_active_sensing.belief.prior import unit_scale
from gp_active_sensing.config import from_mapping
from gp_active_sensing.kernels import build_kernel
from gp_active_sensing.topology import MapConfig, build_topology
from tests.cases import for_each

GRID = np.stack(np.meshgrid(np.arange(20.0), np.arange(20.0), indexing="ij"), -1).reshape(-1, 2)


def draw(ell: float, seed: int, scale: float = 1.0, mean: float = 0.0) -> np.ndarray:
    square = ((GRID[:, None] - GRID[None]) ** 2).sum(-1)
    values, vectors = np.linalg.eigh(np.exp(-0.5 * square / ell**2))
    white = np.random.default_rng([3, seed]).standard_normal(len(GRID))
    # The symmetric root: the vectors are the library's, the field is not.
    return mean + scale * vectors @ (np.sqrt(np.maximum(values, 0.0)) * (vectors.T @ white))


def told(
    field: np.ndarray, count: int, noise: float = 0.1, config: BeliefConfig | None = None
) -> Belief:
    rng = np.random.default_rng([4, 0])
    belief = build_belief(config or BeliefConfig(), GRID, ("x", "y"))
    for place in rng.choice(len(GRID), size=count, replace=False):
        belief.observe(int(place), float(field[place] + noise * rng.standard_normal()))
        belief.adapt()
    return belief


def test_nothing_has_to_be_said() -> None:
    assert from_mapping(BeliefConfig, {}) == BeliefConfig()
    belief = build_belief(BeliefConfig(), GRID, ("x", "y"))
    assert len(belief.weights) == 3 * 2 * 4 * len(SHARES) + len(NONE_SHARES)
    assert {h.kernel for h in belief.hyperparameters} == set(PLANE_KERNELS)
    names = np.array([h.kernel for h in belief.hyperparameters])
    each = [belief.weights[names == kernel].sum() for kernel in PLANE_KERNELS]
    shares = np.array([1.0, 1.0, 1.0, NONE_WEIGHT])
    assert each == pytest.approx(shares / shares.sum()), "each kernel that correlates alike"
    scales = sorted({h.length_scales[0] for h in belief.hyperparameters})
    assert scales[0] < 1.0, "below the spacing"
    assert scales[-1] >= 19.0, "the extent"
    assert belief.weights.sum() == pytest.approx(1.0)


@for_each("unit", [1e-4, 1.0, 1e5])
@for_each("offset", [0.0, 101325.0])
def test_the_unit_and_the_offset_make_no_difference(unit: float, offset: float) -> None:
    field = draw(3.0, 1)
    plain = told(field, 40)
    other = told(unit * (field + offset), 40, noise=0.1 * unit)
    np.testing.assert_allclose(other.weights, plain.weights, atol=1e-6)
    mean, variance = plain.predict()
    moved, scaled = other.predict()
    np.testing.assert_allclose(moved / unit - offset, mean, atol=1e-5)
    np.testing.assert_allclose(scaled / unit**2, variance, rtol=1e-5)


def test_the_scale_is_integrated_out() -> None:
    """The weights equal those of a numerical integral over the scale with p(c) ∝ 1/c."""
    config = BeliefConfig(length_scales=(1.0, 3.0, 9.0), mean_std=0.0)
    belief = build_belief(config, GRID)
    places = [0, 1, 22, 45, 210, 212, 399]
    values = 3.0 * draw(3.0, 5)[places]
    for place, value in zip(places, values, strict=True):
        belief.observe(place, float(value))
    logs = []
    for ell in config.length_scales:
        for part in config.parts():
            square = ((GRID[places][:, None] - GRID[places][None]) ** 2).sum(-1)
            K = part.signal_std**2 * np.exp(-0.5 * square / ell**2)
            K += (part.place_std**2 + part.noise_std**2) * np.eye(len(places))

            def density(log_c: float, K: np.ndarray = K) -> float:
                return float(
                    np.exp(stats.multivariate_normal.logpdf(values, cov=np.exp(log_c) * K))
                )

            logs.append(np.log(integrate.quad(density, -12, 18, epsabs=0, limit=400)[0]))
    expected = np.exp(np.array(logs) - max(logs))
    np.testing.assert_allclose(belief.weights, expected / expected.sum(), rtol=1e-4)


@for_each("ell", [1.0, 3.0, 6.0, 12.0])
def test_it_finds_the_hyper_parameters(ell: float) -> None:
    field = draw(ell, 7, scale=5.0, mean=40.0)
    config = BeliefConfig(kernel="se", transform="identity")
    belief = told(field, 120, noise=0.5, config=config)
    weights = belief.weights
    log_ell = sum(
        w * np.log(h.length_scales[0]) for w, h in zip(weights, belief.hyperparameters, strict=True)
    )
    assert abs(log_ell - np.log(ell)) < np.log(1.35)
    noise = sum(w * h.noise_std for w, h in zip(weights, belief.hyperparameters, strict=True))
    assert 0.15 < noise < 2.0
    mean, variance = belief.predict()
    left = ~belief.observed
    inside = np.abs(mean - field)[left] < 2 * np.sqrt(variance[left])
    assert inside.mean() > 0.85


def test_the_grid_follows_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    grid = LengthScaleGrid((1.0, 2.0, 4.0, 8.0), 3.0, 1.0, 0.1, 12.0)
    low, why = grid.adapted(np.array([0.6, 0.3, 0.09, 0.01]))
    assert low.points == (0.5, 1.0, 2.0, 4.0)
    assert why.startswith("60 % on the smallest, 1: 1, 2, 4, 8 → 0.5, 1, 2, 4")
    high, _ = grid.adapted(np.array([0.0, 0.1, 0.3, 0.6]))
    assert high.points == (2.0, 4.0, 8.0, 12.0), "no farther than the hard limit"
    again, why = high.adapted(np.array([0.0, 0.1, 0.2, 0.7]))
    assert why == "" or max(again.points) <= 12.0
    fine, why = grid.adapted(np.array([0.01, 0.8, 0.15, 0.04]))
    assert 2.0 in fine.points
    assert any(1.0 < p < 2.0 for p in fine.points)
    assert len(fine.points) == 4
    same, why = grid.adapted(np.array([0.1, 0.4, 0.4, 0.1]))
    assert (same, why) == (grid, "")
    same, why = grid.adapted(np.array([0.6, 0.2, 0.1, 0.1]))
    assert (same, why) == (grid, ""), "what holds more than a little does not go"
    with caplog.at_level(logging.INFO):
        build_belief(BeliefConfig(), GRID, ("x", "y"))
    assert "length-scales from the map: 0.7" in caplog.text


@for_each("kind", ["equal", "steps", "spikes", "white"])
def test_a_length_scale_that_runs_away_is_impossible(kind: str) -> None:
    rng = np.random.default_rng(0)
    field = {
        "equal": np.full(400, 7.0),
        "steps": np.where(GRID[:, 0] < 10, 0.0, 100.0),
        "spikes": np.where(rng.random(400) < 0.02, 1e6, 0.0),
        "white": rng.standard_normal(400),
    }[kind]
    belief = told(field, 150, noise=0.0)
    scales = [h.length_scales[0] for h in belief.hyperparameters]
    assert 0.25 <= min(scales)
    assert max(scales) <= 4.0 * 19.0
    mean, variance = belief.predict()
    assert np.isfinite(mean).all()
    assert np.isfinite(variance).all()
    assert (variance >= 0).all()
    assert np.isfinite(belief.noise_variance).all()
    assert (belief.noise_variance > 0).all()


def test_the_unit_of_a_field_that_hardly_varies_over_the_map_is_bounded() -> None:
    flat = FeatureCovariance(build_kernel("se"), GRID, [HyperParameters((1e7,), 1.0, 0.1)])
    places, averages = np.arange(0, 400, 10), np.random.default_rng(0).standard_normal(40)
    unit = unit_scale(flat, np.zeros((400, 0)), places, averages)
    assert unit is not None
    assert 10.0 < unit[0] < 200.0


def test_what_is_given_is_kept() -> None:
    known = build_belief(BeliefConfig(signal_std=(2.0,), noise_std=(0.1,)), GRID, ("x", "y"))
    assert {h.signal_std for h in known.hyperparameters} == {2.0}
    assert known.scale_known
    noise = build_belief(BeliefConfig(noise_std=(0.1,)), GRID, ("x", "y"))
    assert {h.noise_std for h in noise.hyperparameters} == {0.1}
    fields = {round(h.variance - h.long_std**2, 9) for h in noise.hyperparameters}
    assert fields == {round((0.1 / share) ** 2, 9) for share in NOISE_SHARES}
    signal = build_belief(BeliefConfig(signal_std=(2.0,)), GRID, ("x", "y"))
    assert all(h.variance == pytest.approx(4.0) for h in signal.hyperparameters)
    scales = build_belief(BeliefConfig(length_scales=(2.0, 4.0)), GRID, ("x", "y"))
    assert {h.length_scales for h in scales.hyperparameters} == {(2.0,), (4.0,)}
    for place in range(40):
        scales.observe(place, float(place % 7))
        assert scales.adapt() == "", "what the user gave does not move"


def test_features_in_different_units_have_length_scales_in_proportion() -> None:
    features = np.column_stack([GRID[:, 0], 1000.0 * GRID[:, 1]])
    grid = default_grid(features, ("length", "speed_limit"), 8)
    first, second = grid.length_scales()[0]
    assert second / first == pytest.approx(1000.0)


def test_the_opposite_direction_does_not_set_the_spacing_of_a_road() -> None:
    """The spacing is the distance to the next segment, not to the opposite direction."""
    roads = build_topology(MapConfig(kind="roads", file="town.geojson"))
    nearest = default_grid(roads.features, ("x", "y"), 24)
    linked = default_grid(roads.features, ("x", "y"), 24, roads.links)
    assert nearest.points[0] < 10.0
    assert 50.0 < linked.points[0] < 150.0
    assert linked.points[-1] == pytest.approx(nearest.points[-1])
    belief = belief_on(BeliefConfig(), roads)
    assert belief.hyperparameters[0].length_scales[0] == pytest.approx(linked.points[0], rel=0.5)
