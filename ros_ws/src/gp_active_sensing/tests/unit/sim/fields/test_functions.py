"""Test functions: known maxima, domains, and the candidates they are looked for among."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from gp_active_sensing.errors import ConfigError
from gp_active_sensing.sim import FieldConfig, build_truth
from gp_active_sensing.sim.fields import functions as module
from gp_active_sensing.sim.fields.functions import FUNCTIONS
from gp_active_sensing.topology import make_grid
from gp_active_sensing.topology.free import make_points

NAMES = sorted(FUNCTIONS)


@pytest.mark.parametrize("name", NAMES)
def test_the_maximum_is_where_the_table_says(name: str) -> None:
    function = FUNCTIONS[name]
    values = function.value(np.array(function.at))
    np.testing.assert_allclose(values, function.maximum, atol=2e-6)
    box = list(zip(function.low, function.high, strict=True))
    starts = make_points(20, function.low, function.high).features
    best = max(
        -minimize(lambda z: -float(function.value(z[None])[0]), start, bounds=box).fun
        for start in starts
    )
    assert best == pytest.approx(function.maximum, abs=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_the_documented_table_is_right(name: str) -> None:
    row = next(line for line in (module.__doc__ or "").splitlines() if f"`{name}`" in line)
    assert float(row.split("|")[3]) == pytest.approx(FUNCTIONS[name].maximum, abs=1e-6)


def test_values_that_are_published() -> None:
    assert FUNCTIONS["branin"].value(np.array([[0.0, 0.0]]))[0] == pytest.approx(-55.602112642)
    assert FUNCTIONS["cosines"].value(np.array([[0.3125, 0.3125]]))[0] == pytest.approx(1.6)
    middle = np.full((1, 6), 0.5)
    assert FUNCTIONS["hartmann6"].value(middle)[0] == pytest.approx(0.5053149, abs=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_a_field_of_candidates(name: str) -> None:
    function = FUNCTIONS[name]
    points = make_points(64, function.low, function.high)
    config = FieldConfig(kind="function", function=name, scale=-2.0, offset=1.0)
    found = build_truth(config, points, 0)
    np.testing.assert_allclose(found.at(0.0), 1.0 - 2.0 * function.value(points.features))
    assert not found.changes


def test_a_map_is_stretched_to_the_domain_when_asked() -> None:
    grid = make_grid(4, 3, 100.0)
    with pytest.raises(ConfigError, match=r"branin has the domain \[-5, 10\] × \["):
        build_truth(FieldConfig(kind="function", function="branin"), grid, 0)
    stretched = FieldConfig(kind="function", function="branin", fit=True)
    found = build_truth(stretched, grid, 0).at(0.0)
    corners = FUNCTIONS["branin"].value(np.array([[-5.0, 0.0], [10.0, 15.0]]))
    assert found[[0, -1]] == pytest.approx(corners)


def test_another_number_of_features_is_refused() -> None:
    grid = make_grid(4, 3, 1.0)
    with pytest.raises(ConfigError, match=r"hartmann6 is a function of 6 variables, .*has 2 feat"):
        build_truth(FieldConfig(kind="function", function="hartmann6"), grid, 0)
    with pytest.raises(ConfigError, match=r"function: is required for a field of kind function"):
        FieldConfig(kind="function")
