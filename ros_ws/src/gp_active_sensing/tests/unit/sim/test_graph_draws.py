"""Fields drawn from a kernel of the road graph."""

from __future__ import annotations

import numpy as np
import pytest

from gp_active_sensing.belief import GraphCovariance, HyperParameters
from gp_active_sensing.belief.graph_covariance import laplacian_spectrum
from gp_active_sensing.config import from_mapping
from gp_active_sensing.errors import ConfigError
from gp_active_sensing.kernels import GraphMatern
from gp_active_sensing.sim.fields.config import FieldConfig
from gp_active_sensing.sim.fields.truth import build_truth
from gp_active_sensing.topology import make_grid

GRID = make_grid(6, 5, 10.0)
FIELD = {"kernel": "graph_matern32", "length_scale": 30.0, "signal_std": 2.0, "mean": 7.0}


def test_draws_have_the_covariance() -> None:
    """That the root is one of the covariance is tested exactly with the covariance itself."""
    config = from_mapping(FieldConfig, FIELD)
    draws = np.array([build_truth(config, GRID, seed).at(0.0) for seed in range(300)])
    one = [HyperParameters((30.0,), 2.0, 1.0)]
    everything = np.arange(GRID.n)
    expected = GraphCovariance(GraphMatern(), laplacian_spectrum(GRID.links), one).between(
        everything, everything
    )[0]
    links = GRID.links
    found = np.cov(draws.T)
    assert draws.mean() == pytest.approx(7.0, abs=0.3)
    assert np.diag(found).mean() == pytest.approx(4.0, rel=0.1)
    joined = (links.first, links.second)
    assert found[joined].mean() == pytest.approx(expected[joined].mean(), rel=0.1)


def test_a_draw_may_drift() -> None:
    drifting = build_truth(from_mapping(FieldConfig, FIELD | {"time_scale": 60.0}), GRID, 1)
    still = build_truth(from_mapping(FieldConfig, FIELD), GRID, 1)
    np.testing.assert_allclose(drifting.at(0.0), still.at(0.0))
    assert not np.allclose(drifting.at(60.0), drifting.at(0.0))


def test_what_does_not_fit() -> None:
    free = make_grid(3, 3, 1.0, moves="free")
    with pytest.raises(ConfigError, match=r"field\.kernel: graph_matern32 needs a map with moves"):
        build_truth(from_mapping(FieldConfig, FIELD), free, 1)
    several = from_mapping(FieldConfig, FIELD | {"length_scale": [1.0, 2.0]})
    with pytest.raises(ConfigError, match=r"graph_matern32 needs one length_scale \[m\]"):
        build_truth(several, GRID, 1)
