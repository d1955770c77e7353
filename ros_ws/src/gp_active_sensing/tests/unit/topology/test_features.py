"""What a covariance or a mean of a road map may be a function of."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gp_active_sensing.errors import ConfigError, MapError
from gp_active_sensing.topology import RoadMap, Roads, load_roads
from gp_active_sensing.topology.segments import available
from tests.unit.topology.road_maps import street, write


@pytest.fixture
def road_map(tmp_path: Path) -> RoadMap:
    """Six segments; each has a slope of its own and a grip that is the same everywhere."""
    found = load_roads(write(tmp_path / "street.geojson", street()))
    segments = [
        replace(s, extra={"slope": 0.01 * k, "grip": 0.8}) for k, s in enumerate(found.segments)
    ]
    return replace(found, segments=tuple(segments))


def without(road_map: RoadMap, **changes: Any) -> RoadMap:
    """Return the map with something else at its third segment."""
    segments = list(road_map.segments)
    segments[2] = replace(segments[2], **changes)
    return replace(road_map, segments=tuple(segments))


def test_columns_by_name(road_map: RoadMap) -> None:
    roads = Roads(road_map, features=("slope", "x", "lanes"))
    assert roads.feature_names == ("slope", "x", "lanes")
    np.testing.assert_allclose(roads.features[:, 0], 0.01 * np.arange(6))
    values, titles = roads.columns(["speed_limit", "direction"])
    assert titles == ("speed_limit", "direction_cos", "direction_sin")
    assert values.shape == (6, 3)
    np.testing.assert_array_equal(roads.columns()[0], roads.features)


def test_what_a_map_has(road_map: RoadMap) -> None:
    everything = ("x", "y", "direction", "length", "lanes", "speed_limit", "slope", "grip")
    assert available(road_map) == everything
    assert "lanes" not in available(without(road_map, lanes=None))
    assert "slope" not in available(without(road_map, extra={"slope": float("nan")}))


def test_a_feature_that_a_segment_lacks(road_map: RoadMap) -> None:
    third = road_map.segments[2].id
    message = rf"feature 'lanes' was asked for, but segment '{third}' has none \(1 of 6 segments"
    with pytest.raises(MapError, match=message):
        Roads(without(road_map, lanes=None), features=("x", "lanes"))
    with pytest.raises(MapError, match=rf"'slope' was asked for, but segment '{third}' has none"):
        Roads(without(road_map, extra={"slope": float("nan")}), features=("slope",))


def test_names_that_are_no_features(road_map: RoadMap) -> None:
    with pytest.raises(
        ConfigError, match=r"features: expected some of x, .*, slope, grip, got 'sl"
    ):
        Roads(road_map, features=("slop",))
    with pytest.raises(ConfigError, match="relational stands alone, got x, relational"):
        Roads(road_map, features=("x", "relational"))


def test_where_the_value_of_a_segment_belongs(road_map: RoadMap) -> None:
    middle, end = Roads(road_map), Roads(road_map, anchor=1.0)
    np.testing.assert_allclose(end.features, [s.line[-1] for s in road_map.segments])
    np.testing.assert_array_equal(end.positions, middle.positions)
    assert end.links.metres.min() < middle.links.metres.min()


def test_relational_features(road_map: RoadMap, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO"):
        roads = Roads(road_map, features=("relational",))
    d = roads.features.shape[1]
    assert roads.feature_names == tuple(f"mds_{k + 1}" for k in range(d))
    assert "relational features made of length, lanes, speed_limit, direction: 6" in caplog.text
    fewer = Roads(without(road_map, lanes=None), features=("relational",))
    assert "lanes" not in fewer.columns()[1]
    # A linear mean is of what they are made of.
    assert roads.columns()[1] == (
        "length", "lanes", "speed_limit", "direction_cos", "direction_sin"
    )  # fmt: skip
