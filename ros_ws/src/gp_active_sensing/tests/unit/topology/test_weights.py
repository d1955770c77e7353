"""Weights of places: regions of interest, columns of the map, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gp_active_sensing.config import from_mapping, to_mapping
from gp_active_sensing.errors import ConfigError, MapError
from gp_active_sensing.topology import MapConfig, build_topology, make_grid
from tests.unit.topology.road_maps import segment, street, write

POND = {"kind": "grid", "columns": 3, "rows": 2, "spacing": 10}


def weights(**given: Any) -> list[float]:
    whole = {**POND, "weights": given}
    config = from_mapping(MapConfig, whole)
    assert from_mapping(MapConfig, to_mapping(config)) == config
    return build_topology(config).weights.tolist()


def test_without_any_all_places_count_the_same() -> None:
    grid = make_grid(3, 2, 10.0)
    assert grid.weights.tolist() == [1.0] * 6
    assert not grid.weights.flags.writeable
    assert weights() == [1.0] * 6


def test_areas_with_their_edges_the_later_one_counts() -> None:
    left = {"outline": [[0, 0], [10, 20]], "weight": 5}
    corner = {"outline": [[-1, -1], [1, -1], [0, 1]], "weight": 0.5}
    assert weights(areas=[left]) == [5, 5, 1, 5, 5, 1]
    assert weights(areas=[left], elsewhere=0) == [5, 5, 0, 5, 5, 0]
    assert weights(areas=[left, corner]) == [0.5, 5, 1, 5, 5, 1]
    assert weights(areas=[corner, left]) == [5, 5, 1, 5, 5, 1]
    # As a parameter file of ROS holds it.
    text = "[{outline: [[0, 0], [10, 20]], weight: 5}]"
    assert weights(areas=text, elsewhere=0) == [5, 5, 0, 5, 5, 0]
    assert weights(areas=[{"outline": [[0, 0], [10, 20]]}], elsewhere=0) == [1, 1, 0, 1, 1, 0]


def test_a_column_of_the_map_times_the_areas(tmp_path: Path) -> None:
    write(tmp_path / "street.geojson", street())
    config = {"kind": "roads", "file": "street.geojson"}

    def of(**given: Any) -> dict[str, float]:
        whole = from_mapping(MapConfig, {**config, "weights": given})
        roads = build_topology(whole, base_dir=tmp_path)
        return dict(zip(roads.names, roads.weights.tolist(), strict=True))

    by_length = of(column="length")
    assert (by_length["ab"], by_length["bd"], by_length["dc"]) == (100.0, 50.0, 150.0)
    both = of(column="length", areas=[{"outline": [[90, 10], [110, 40]], "weight": 3}])
    assert (both["ab"], both["bd"]) == (100.0, 150.0)


def test_the_map_itself_stays_as_it_is() -> None:
    grid = make_grid(3, 1, 1.0)
    other = grid.weighted([0, 2, 1])
    assert (grid.weights.tolist(), other.weights.tolist()) == ([1, 1, 1], [0, 2, 1])
    assert type(other) is type(grid)
    assert other.neighbours(1).tolist() == grid.neighbours(1).tolist()
    with pytest.raises(ValueError, match="read-only"):
        other.weights[0] = 1.0


@pytest.mark.parametrize("wrong", [[1, 1], [1, np.nan, 1], [1, -1, 1], [0, 0, 0], [1, np.inf, 1]])
def test_weights_that_are_none(wrong: list[float]) -> None:
    with pytest.raises(ValueError, match="weight"):
        make_grid(3, 1, 1.0).weighted(wrong)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"column": "depth"}, r"weights\.column: expected some of x, y, got 'depth'"),
        ({"areas": [{"weight": 2}]}, r"weights\.areas\[0\]\.outline: is required"),
        (
            {"areas": [{"outline": [[0, 0], [5, 5]], "weight": -1}]},
            r"weights\.areas\[0\]\.weight: must be 0 or more, got -1",
        ),
        (
            {"areas": [{"outline": [[0, 0], [5, 5]], "weight": float("nan")}]},
            r"weight: expected a finite number",
        ),
        (
            {"areas": [{"outline": [[100, 100], [200, 200]]}]},
            r"weights\.areas\[0\]\.outline: holds no place of map 'grid' \(its places are at x 0",
        ),
        (
            {"areas": [{"outline": [[0, 0], [9, 9], [9, 0], [0, 9]]}]},
            r"weights\.areas\[0\]\.outline: is not a simple polygon",
        ),
        ({"areas": [{"outline": [[0, 0]]}]}, r"weights\.areas\[0\]\.outline: expected 2 corners"),
        ({"areas": [{"outline": [[0, 0], [50, 50]], "weight": 0}]}, "all weights are 0"),
        ({"areas": [{"outlin": [[0, 0], [50, 50]]}]}, r"outlin: unknown key. Did you mean"),
        ({"elsewhere": 0}, r"weights\.elsewhere: is the weight outside of the areas"),
        ({"areas": "everywhere"}, r"weights\.areas: expected a list, got str 'everywhere'"),
        ({"areas": ["everywhere"]}, r"weights\.areas\[0\]: expected a mapping"),
    ],
)
def test_what_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        weights(**given)


def test_columns_that_cannot_be_weights(tmp_path: Path) -> None:
    features = [
        segment("a", "p", "q", [(0, 0), (9, 0)], grade=-1.0),
        segment("b", "q", "p", [(9, 0), (0, 5)], grade=2.0, rare=1.0),
    ]
    write(tmp_path / "hill.geojson", features)

    def build(column: str) -> None:
        whole = {"kind": "roads", "file": "hill.geojson", "weights": {"column": column}}
        build_topology(from_mapping(MapConfig, whole), base_dir=tmp_path)

    with pytest.raises(ConfigError, match=r"weights\.column: must be 0 … 1e\+12, but 'grade' of"):
        build("grade")
    with pytest.raises(ConfigError, match=r"'direction' is no single number"):
        build("direction")
    with pytest.raises(MapError, match="'rare' was asked for, but segment 'a' has none"):
        build("rare")
