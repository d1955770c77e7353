"""Maps out of messages nav_msgs/OccupancyGrid: their frame."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest

from gp_active_sensing.errors import MapError
from gp_active_sensing.messages.occupancy import read_map
from tests.cases import case


def message(frame: str) -> SimpleNamespace:
    origin = SimpleNamespace(
        position=SimpleNamespace(x=0.0, y=0.0),
        orientation=SimpleNamespace(x=0.0, y=0.0, z=0.0, w=1.0),
    )
    return SimpleNamespace(
        header=SimpleNamespace(frame_id=frame, stamp=SimpleNamespace(sec=1, nanosec=0)),
        info=SimpleNamespace(height=2, width=2, resolution=0.5, origin=origin),
        data=[0, 0, 0, 0],
    )


def test_a_slash_before_the_frame_is_left_out_as_it_is_of_poses() -> None:
    assert read_map(message("/map")).frame == read_map(message("map")).frame == "map"


def test_a_map_without_a_frame_is_refused() -> None:
    for frame in ["", "/"]:
        with case(frame):
            with pytest.raises(MapError, match=r"frame_id is empty, expected the frame that poses"):
                read_map(message(frame))


def test_an_origin_that_is_no_number_is_refused() -> None:
    for turn in [(math.nan, 0.0, 0.0, 1.0), (0.0, 0.0, 0.0, math.inf)]:
        with case(turn):
            bad = message("map")
            bad.info.origin.orientation = SimpleNamespace(**dict(zip("xyzw", turn, strict=True)))
            with pytest.raises(MapError, match="turned about z only"):
                read_map(bad)
