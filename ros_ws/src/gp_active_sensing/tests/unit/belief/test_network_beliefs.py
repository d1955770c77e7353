"""Beliefs over maps: relational features, graph kernels, linear means of a map's columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gp_active_sensing.belief import Belief, BeliefConfig, belief_on, build_belief
from gp_active_sensing.config import from_mapping
from gp_active_sensing.errors import ConfigError
from gp_active_sensing.topology import MapConfig, Topology, build_topology, make_grid

GRAPH = {"kernel": "graph_matern32"}
KNOWN = {"length_scales": [30.0, 90.0], "signal_std": [2.0], "noise_std": [0.3]}


def belief(topology: Topology, **settings: Any) -> Belief:
    return belief_on(from_mapping(BeliefConfig, settings), topology)


@pytest.fixture(scope="module")
def town() -> Topology:
    return build_topology(MapConfig(kind="roads", file="town", features=("relational",)))


def test_the_grid_of_a_graph_is_in_metres() -> None:
    grid = make_grid(12, 8, 25.0)
    scales = belief(grid, **GRAPH).grid.kernels[0].scales
    assert scales.points[0] == pytest.approx(0.7 * 25.0)
    assert scales.points[-1] == pytest.approx(18 * 25.0)  # corner to corner
    assert scales.shape == ()


def test_length_scales_of_another_map_are_said(
    town: Topology, caplog: pytest.LogCaptureFixture
) -> None:
    metres: dict[str, Any] = {**KNOWN, "length_scales": [80.0, 1300.0]}
    belief(town, **GRAPH, **metres)
    belief(town, **KNOWN | {"length_scales": [2.0, 500.0]})
    assert not caplog.records
    belief(town, **metres)
    belief(town, **GRAPH, **KNOWN | {"length_scales": [1.0, 3.0]})
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING"]


def test_a_graph_kernel_needs_moves() -> None:
    with pytest.raises(ConfigError, match="'graph_matern32' needs a map with moves"):
        belief(make_grid(3, 3, 1.0, moves="free"), **GRAPH)
    with pytest.raises(ConfigError, match="needs a map with moves"):
        build_belief(BeliefConfig(kernel="graph_matern32"), np.zeros((3, 1)))


def test_a_linear_mean_of_a_map_s_columns(town: Topology) -> None:
    """A few readings determine the effect of speed limits, with any covariance."""
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
