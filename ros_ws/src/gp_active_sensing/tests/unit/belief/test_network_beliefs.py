"""Beliefs over maps: relational features, graph kernels, linear means of a map's columns."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gp_active_sensing.belief import (
    Belief,
    BeliefConfig,
    GraphCovariance,
    belief_on,
    build_belief,
)
from gp_active_sensing.belief.place_covariance import smooth_part
from gp_active_sensing.config import from_mapping
from gp_active_sensing.errors import ConfigError
from gp_active_sensing.topology import MapConfig, Topology, build_topology, make_grid

GRAPH = {"kernel": "graph_matern"}
KNOWN = {"length_scales": [30.0, 90.0], "signal_std": [2.0], "noise_std": [0.3]}


def belief(topology: Topology, **settings: Any) -> Belief:
    return belief_on(from_mapping(BeliefConfig, settings), topology)


@pytest.fixture(scope="module")
def town() -> Topology:
    return build_topology(MapConfig(kind="roads", file="town", features=("relational",)))


def test_the_same_as_bayes_rule(town: Topology) -> None:
    """Posterior of a graph kernel against a full inversion."""
    made = belief(town, **GRAPH, **KNOWN, mean_value=5.0, mean_std=0.0)
    rng = np.random.default_rng(1)
    places, values = rng.permutation(town.n)[:25], rng.normal(5.0, 2.0, 25)
    for place, value in zip(places.tolist(), values.tolist(), strict=True):
        made.observe(place, value)
    mean, variance = made.marginals()
    everything = np.arange(town.n)
    K = made.covariance.between(everything, everything)
    for k in range(2):
        gain = K[k][:, places] @ np.linalg.inv(K[k][np.ix_(places, places)] + 0.09 * np.eye(25))
        np.testing.assert_allclose(mean[k], 5.0 + gain @ (values - 5.0), atol=1e-8)
        expected = np.diag(K[k] - gain @ K[k][places])
        np.testing.assert_allclose(variance[k], expected, atol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{"kernel": "se"}, {"kernel": "matern12"}, GRAPH])
def test_nothing_configured(town: Topology, settings: dict[str, Any]) -> None:
    """Length-scales come from the map and follow the readings; the scale is integrated out."""
    made = belief(town, **settings)
    assert len(made.hyperparameters) == 24
    truth = belief(
        town, **settings, **(KNOWN | {"length_scales": [made.grid.kernels[0].scales.median]})
    )
    everything = np.arange(town.n)
    K = truth.covariance.between(everything, everything)[0]
    values, vectors = np.linalg.eigh(K)
    field = vectors @ (
        np.sqrt(np.maximum(values, 0.0)) * np.random.default_rng(3).normal(size=town.n)
    )
    rng = np.random.default_rng(4)
    median = made.grid.kernels[0].scales.median
    for place in rng.permutation(town.n)[:150].tolist():
        made.observe(place, 40.0 + float(field[place]) + 0.3 * float(rng.normal()))
        made.adapt()
    mean, _ = made.predict()
    left = ~made.observed
    error = np.sqrt(np.mean((mean[left] - 40.0 - field[left]) ** 2))
    assert error < 0.85 * field[left].std()
    best = made.hyperparameters[int(made.weights.argmax())]
    assert best.length_scales[0] == pytest.approx(median, rel=1.5)


@pytest.mark.slow
def test_length_scales_of_a_graph_follow_the_readings(town: Topology) -> None:
    made = belief(town, **GRAPH)
    first = made.grid.kernels[0].scales.points
    rng = np.random.default_rng(6)
    for place in rng.permutation(town.n)[:90].tolist():
        made.observe(place, float(rng.normal()) + (50.0 if town.positions[place, 0] < 900 else 0.0))
        made.adapt()
    assert made.grid.kernels[0].scales.points != first
    assert isinstance(smooth_part(made.covariance), GraphCovariance)
    assert len(made.hyperparameters) == 24


def test_the_grid_of_a_graph_is_in_metres() -> None:
    grid = make_grid(12, 8, 25.0)
    scales = belief(grid, **GRAPH).grid.kernels[0].scales
    assert scales.points[0] == pytest.approx(0.7 * 25.0)
    assert scales.points[-1] == pytest.approx(18 * 25.0)  # corner to corner
    assert scales.shape == ()


def test_an_embedding_has_one_length_scale(town: Topology) -> None:
    assert belief(town).grid.kernels[0].scales.shape == ()
    assert all(len(h.length_scales) == 1 for h in belief(town).hyperparameters)


def test_twins_that_coincide_but_for_rounding_are_no_spacing() -> None:
    """By road, the middles of a segment and of its reverse are one place."""
    roads = MapConfig(
        kind="roads", file="town", features=("relational",), relational=("road_distance",)
    )
    scales = belief(build_topology(roads)).grid.kernels[0].scales
    assert 50.0 < scales.points[0] < 300.0  # m; segments are 70 to 286 m long
    assert scales.points[-1] > 2000.0


def test_length_scales_of_another_map_are_said(
    town: Topology, caplog: pytest.LogCaptureFixture
) -> None:
    metres: dict[str, Any] = {**KNOWN, "length_scales": [80.0, 1300.0]}
    belief(town, **GRAPH, **metres)
    belief(town, **KNOWN | {"length_scales": [2.0, 500.0]})
    assert not caplog.records
    belief(town, **metres)
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert "80 … 1.3e+03 are much farther than the whole map reaches" in record.getMessage()
    belief(town, **GRAPH, **KNOWN | {"length_scales": [1.0, 3.0]})
    assert "1 … 3 are much less than from place to place" in caplog.messages[-1]


def test_smoothness() -> None:
    grid = make_grid(6, 6, 10.0)
    rough, smooth = (belief(grid, **GRAPH, **KNOWN, smoothness=nu) for nu in (0.5, 2.5))
    near = rough.covariance.between(np.array([0]), np.array([1]))
    assert (near < smooth.covariance.between(np.array([0]), np.array([1]))).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kernel": "graph_matérn"}, "kernel: unknown kernel.*Did you mean 'graph_matern'"),
        ({"kernel": "se", "smoothness": 0.5}, "smoothness: is for graph_matern"),
        ({"smoothness": 0.0}, "smoothness: must be more than 0"),
        ({**GRAPH, "length_scales": [[1.0, 2.0]]}, r"graph_matern has one length-scale \[m\]"),
        ({"mean_features": ["lanes"]}, "mean_features: are for mean: linear"),
    ],
)
def test_configurations_that_cannot_be(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        from_mapping(BeliefConfig, settings)


def test_a_graph_kernel_needs_moves() -> None:
    with pytest.raises(ConfigError, match="'graph_matern' needs a map with moves"):
        belief(make_grid(3, 3, 1.0, moves="free"), **GRAPH)
    with pytest.raises(ConfigError, match="needs a map with moves"):
        build_belief(BeliefConfig(kernel="graph_matern"), np.zeros((3, 1)))


def test_a_linear_mean_of_a_map_s_columns(town: Topology) -> None:
    """What limits explain is learned from few readings, whatever the covariance is of."""
    limit = town.columns(["speed_limit"])[0][:, 0]
    rng = np.random.default_rng(5)
    places = rng.permutation(town.n)[:30]
    error = {}
    for name, more in (
        ("constant", {}),
        ("linear", {"mean": "linear", "mean_features": ["speed_limit"]}),
    ):
        made = belief(town, **GRAPH, **KNOWN, **more)
        for place in places.tolist():
            made.observe(place, 2.0 * float(limit[place]) + 0.3 * float(rng.normal()))
        error[name] = np.sqrt(np.mean((made.predict()[0] - 2.0 * limit) ** 2))
    assert error["linear"] < 0.2 < 1.0 < error["constant"]


def test_the_columns_of_a_linear_mean(town: Topology) -> None:
    made = belief(town, mean="linear", **KNOWN)
    assert made.mean.basis.shape[1] == 1 + 5  # length, lanes, limit, direction as two
    assert belief(town, mean="linear", mean_features=["x"], **KNOWN).mean.basis.shape[1] == 2
    with pytest.raises(ConfigError, match=r"belief\.mean_features: expected some of .*got 'lane'"):
        belief(town, mean="linear", mean_features=["lane"], **KNOWN)
    plane = make_grid(3, 3, 1.0)
    assert belief(plane, mean="linear", **KNOWN).mean.basis.shape[1] == 3


def test_a_copy_shares_the_covariance(town: Topology) -> None:
    made = belief(town, **GRAPH, **KNOWN)
    made.observe(3, 1.0)
    assert made.copy().covariance is made.covariance
    assert isinstance(made.covariance, GraphCovariance)


def test_parts_that_nothing_joins_tell_nothing_about_each_other() -> None:
    grid = make_grid(4, 2, 10.0)
    links = grid.links
    assert links is not None
    kept = np.flatnonzero(~((links.first % 4 == 1) & (links.second % 4 == 2)))
    cut = replace(
        links,
        first=links.first[kept],
        second=links.second[kept],
        metres=links.metres[kept],
        conductance=links.conductance[kept],
    )
    config = from_mapping(BeliefConfig, {**GRAPH, **KNOWN, "mean_std": 0.0})
    made = build_belief(config, grid.features, links=cut)
    made.observe(0, 5.0)
    mean, _ = made.predict()
    np.testing.assert_allclose(mean.reshape(2, 4)[:, 2:], 0.0, atol=1e-10)
    assert mean[1] > 1.0
