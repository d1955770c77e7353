from __future__ import annotations

import numpy as np

from gp_active_sensing.report.map_frame import MOST_LAYERS, layers_of
from gp_active_sensing.report.payload import places_of
from gp_active_sensing.topology import make_grid
from gp_active_sensing.topology.base import FreeTopology

COLUMN = make_grid(4, 3, 10.0, heights=[0, -2, -5, -10])


def test_layers_lie_side_by_side_the_highest_first() -> None:
    found = layers_of(COLUMN, 10.0)
    assert found is not None
    assert found["labels"] == ["z 0 m", "z −2 m", "z −5 m", "z −10 m"]
    layer = np.array(found["of"])
    assert [int((layer == k).sum()) for k in range(4)] == [12] * 4
    assert COLUMN.heights is not None
    np.testing.assert_array_equal(COLUMN.heights[layer == 2], -5.0)
    drawn = COLUMN.positions + np.array(found["shifts"])[layer]
    assert len(np.unique(drawn, axis=0)) == COLUMN.n  # no place hides another
    low, high = np.array(found["low"]), np.array(found["high"])
    assert (drawn >= low - 1e-9).all()
    assert (drawn <= high + 1e-9).all()


def test_many_heights_share_layers() -> None:
    rng = np.random.default_rng(0)
    heights = rng.uniform(-30.0, 0.0, 50)
    hills = FreeTopology(
        "hills", "map", [str(i) for i in range(50)], rng.random((50, 2)), heights=heights
    )
    found = layers_of(hills, 0.1)
    assert found is not None
    assert len(found["labels"]) == MOST_LAYERS
    means = [heights[np.array(found["of"]) == k].mean() for k in range(MOST_LAYERS)]
    assert means == sorted(means, reverse=True)


def test_the_payload_of_a_map_with_heights() -> None:
    found = places_of(COLUMN)
    assert (found["shape"], found["side"]) == ("cells", 10.0)
    assert found["layers"]["labels"][0] == "z 0 m"
    assert COLUMN.heights is not None
    assert found["z"] == COLUMN.heights.tolist()
    wall = make_grid(4, 1, 10.0, heights=[0, -2])
    assert places_of(wall)["shape"] == "cells"
    assert layers_of(make_grid(4, 3, 10.0), 10.0) is None
    assert "layers" not in places_of(make_grid(4, 3, 10.0))
