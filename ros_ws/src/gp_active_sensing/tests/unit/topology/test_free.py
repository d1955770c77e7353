"""Candidates drawn in a box: keyed by their seed, inside it, even where that was asked for."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from gp_active_sensing.config import from_mapping
from gp_active_sensing.errors import ConfigError
from gp_active_sensing.topology import MapConfig, Topology, build_topology
from gp_active_sensing.topology.free import DESIGNS, make_points

LOW, HIGH = (-5.0, 0.0, 2.0), (10.0, 15.0, 2.5)


@pytest.mark.parametrize("design", DESIGNS)
def test_points_lie_in_the_box_and_are_keyed_by_the_seed(design: str) -> None:
    points = make_points(50, LOW, HIGH, design=design, seed=3)
    assert isinstance(points, Topology)
    assert points.features.shape == (50, 3)
    assert points.feature_names == ("x1", "x2", "x3")
    assert points.free
    assert (points.features >= LOW).all()
    assert (points.features <= HIGH).all()
    np.testing.assert_array_equal(points.positions, points.features[:, :2])
    again = make_points(50, LOW, HIGH, design=design, seed=3)
    np.testing.assert_array_equal(points.features, again.features)
    other = make_points(50, LOW, HIGH, design=design, seed=4)
    assert not np.isin(points.features[:, 0], other.features[:, 0]).any()


def test_a_latin_hypercube_has_a_point_in_every_slice() -> None:
    points = make_points(20, (0, 0), (20, 20), design="latin").features
    assert np.sort(np.floor(points), axis=0).tolist() == [[i, i] for i in range(20)]


def test_a_sobol_sequence_is_balanced() -> None:
    points = make_points(64, (0, 0), (8, 8), design="sobol").features
    counts = np.histogram2d(*points.T, bins=8, range=[[0, 8], [0, 8]])[0]
    assert (counts == 1).all()


def test_one_dimension_lies_on_a_line() -> None:
    points = make_points(10, (0.0,), (1.0,), design="uniform")
    assert points.features.shape == (10, 1)
    assert (points.positions[:, 1] == 0.0).all()


def test_one_point_is_a_map() -> None:
    for design in DESIGNS:
        assert make_points(1, (0.0,), (1.0,), design=design).n == 1


def build(**keys: Any) -> Topology:
    mapping = {"kind": "points", "count": 5, "low": [0, 0], "high": [1, 2], **keys}
    return build_topology(from_mapping(MapConfig, mapping, path="map"))


def test_from_configuration() -> None:
    found = build(design="uniform", seed=9, name="box", frame="world", speed=2.0)
    expected = make_points(5, (0, 0), (1, 2), design="uniform", seed=9)
    np.testing.assert_array_equal(found.features, expected.features)
    assert (found.name, found.frame) == ("box", "world")


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"count": 0}, "map.count: is required for kind 'points'"),
        ({"low": []}, "map.low: is required for kind 'points'"),
        ({"high": [1]}, r"map.high: expected 2 entries as in low, got 1"),
        ({"high": [1, 0]}, r"map.high\[1\]: must be more than low\[1\], 0, got 0"),
        ({"design": "halton"}, "map.design: expected one of uniform, latin, sobol"),
        ({"reach": 3.0}, "map.reach: has no meaning for kind 'points'"),
        ({"spacing": 3.0}, "map.spacing: has no meaning for kind 'points'"),
        ({"low": [0, ".nan"]}, r"map.low\[1\]: expected a number"),
        ({"kind": "line"}, "map.low: has no meaning for kind 'line'"),
    ],
)
def test_wrong_keys_are_said(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        build(**keys)


def test_the_map_loads_no_statistics_unless_it_needs_them() -> None:
    code = (
        "import sys; from gp_active_sensing.topology.free import make_points; "
        "make_points(3, (0,), (1,), design='uniform'); assert 'scipy.stats' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
