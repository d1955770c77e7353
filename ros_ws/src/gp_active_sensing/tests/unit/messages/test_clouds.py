from __future__ import annotations

import math
import struct
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gp_active_sensing.errors import MapError
from gp_active_sensing.messages.occupancy import check_size, read_map
from gp_active_sensing.messages.point_cloud import (
    FIELDS,
    Points,
    answer_points,
    answers_of,
    layout,
    points_of,
    query_points,
)
from gp_active_sensing.topology import make_grid
from gp_active_sensing.types import Reading
from tests.cases import case

GRID = make_grid(3, 2, 10.0)


def cloud(points: Points, **more: Any) -> Any:
    """Return a message of points, as `ros.to_messages` makes it."""
    columns, data = layout(points)
    step = len(data) // max(1, len(points))
    message = SimpleNamespace(
        header=SimpleNamespace(stamp=SimpleNamespace(sec=3, nanosec=5), frame_id="map"),
        height=1,
        width=len(points),
        fields=[
            SimpleNamespace(name=c.name, offset=c.offset, datatype=c.code, count=1) for c in columns
        ],
        is_bigendian=False,
        point_step=step,
        row_step=len(data),
        data=data,
    )
    for name, value in more.items():
        setattr(message, name, value)
    return message


def some(k: int = 2) -> Points:
    places = range(k)
    return answer_points(GRID, [Reading(0, p, 20.0 + p, 0.25 + p, "expert") for p in places])


def test_a_question_and_its_answer() -> None:
    question = points_of(cloud(query_points(GRID, [4, 1])))
    assert question["x"].tolist() == [10.0, 10.0]
    assert question["y"].tolist() == [10.0, 0.0]
    assert np.isnan(question["value"]).all()
    assert np.isnan(question["variance"]).all()
    question["value"], question["variance"] = [1.0, 2.0], 0.5
    first, second = answers_of(cloud(question))
    assert (first.x, first.y, first.value, first.noise_variance) == (10.0, 10.0, 1.0, 0.5)
    assert (second.stamp_ns, second.frame, second.value) == (3_000_000_005, "map", 2.0)


def test_values_keep_every_digit() -> None:
    points = some(1)
    points["value"] = 101_325.123456789
    assert points_of(cloud(points))["value"][0] == 101_325.123456789


def test_positions_are_float32_where_that_will_do() -> None:
    assert [c.code for c in layout(some())[0]] == [7, 7, 7, 8, 8]
    far = some()
    far["x"] += 5_432_101.37
    assert [c.code for c in layout(far)[0]] == [8, 8, 8, 8, 8]
    assert points_of(cloud(far))["x"].tolist() == far["x"].tolist()


def test_no_points() -> None:
    empty = query_points(GRID, [])
    assert points_of(cloud(empty)).size == 0
    assert answers_of(cloud(empty)) == []


def test_any_byte_order_and_number_types() -> None:
    for kinds in ["ffffd", "ddddd", "hhhff", "iibHf"]:
        for order in ["<", ">"]:
            with case(kinds, order):
                columns = zip(("intensity", *FIELDS), "f" + kinds, strict=True)
                offset, fields = 0, []
                for name, kind in columns:
                    code = 1 + "bBhHiIfd".index(kind)
                    fields.append(SimpleNamespace(name=name, offset=offset, datatype=code, count=1))
                    offset += struct.calcsize(kind)
                values = [(10, 20, 0, 7, 2), (30, 40, 0, 8, 4)]
                rows = [struct.pack(f"{order}f{kinds}", 1.0, *row) + b"\xff" * 3 for row in values]
                wide = {"point_step": offset + 3, "row_step": 2 * offset + 6}
                layout = {"fields": fields, "data": b"".join(rows), "is_bigendian": order == ">"}
                message = cloud(some(), **wide, **layout)
                assert points_of(message).tolist() == values


def test_several_rows_with_padding() -> None:
    points = some(4)
    _, data = layout(points)
    step = len(data) // 4
    padded = data[: 2 * step] + b"pad!" + data[2 * step :]
    message = cloud(points, height=2, width=2, row_step=2 * step + 4, data=padded)
    assert points_of(message).tolist() == points.tolist()


def test_sizes_that_contradict_each_other() -> None:
    for more, message in [
        ({"data": b""}, "got 0 bytes"),
        ({"width": 3}, "rows of 3 points"),
        ({"width": 2**32 - 1, "height": 2**32 - 1}, "rows of 4294967295 points"),
        ({"point_step": 0}, "points of 0 bytes"),
        ({"point_step": 8, "row_step": 16}, "of a point of 8 bytes"),
        ({"row_step": 5}, r"\(5 a row\)"),
        ({"fields": []}, "x, y, z, value, variance missing, got none"),
    ]:
        with case(more, message):
            with pytest.raises(ValueError, match=message):
                points_of(cloud(some(), **more))


def test_fields_that_cannot_be() -> None:
    for name, more, message in [
        ("variance", {"name": "var"}, "variance missing, got x, y, z, value, var"),
        ("value", {"datatype": 9}, "field value: expected one number"),
        ("value", {"datatype": 0}, "field value: expected one number"),
        ("x", {"count": 3}, "got 3 of type 7"),
        ("y", {"offset": 2**31}, "field y: at byte 2147483648"),
        ("variance", {"offset": 21}, "field variance: at byte 21 of a point of 28"),
    ]:
        with case(name, more, message):
            wrong = cloud(some())
            (field,) = (f for f in wrong.fields if f.name == name)
            vars(field).update(more)
            with pytest.raises(ValueError, match=message):
                points_of(wrong)


def test_more_points_than_places() -> None:
    with pytest.raises(ValueError, match="at most 2 points, one a place of the map, got 3"):
        answers_of(cloud(some(3)), most=2)
    with pytest.raises(ValueError, match="at most 2 points"):
        answers_of(cloud(some(2), width=2**32 - 1), most=2)


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


def test_an_origin_of_any_length_is_normalised() -> None:
    for by in (1.0, 0.3, -5.0):
        turned = message("map")
        values = (0.0, 0.0, by * math.sin(0.2), by * math.cos(0.2))
        turned.info.origin.orientation = SimpleNamespace(**dict(zip("xyzw", values, strict=True)))
        assert read_map(turned).grid.yaw == pytest.approx(0.4)
    tilted = message("map")
    tilted.info.origin.orientation = SimpleNamespace(x=5e-4, y=0.0, z=0.0, w=0.1)
    with pytest.raises(MapError, match="turned about z only"):
        read_map(tilted)


def test_a_map_is_refused_by_its_declared_size_before_its_cells_are_looked_at() -> None:
    class Huge:
        def __init__(self, size: int) -> None:
            self.size = size

        def __len__(self) -> int:
            return self.size

    for columns, rows in ((10_000, 10_000), (2**31, 1), (25_000_001, 1)):
        large = message("map")
        large.info.width, large.info.height = columns, rows
        del large.data
        with pytest.raises(MapError, match="more than 25000000"):
            read_map(large)
    check_size(Huge(25_000_000))  # type: ignore[arg-type]
    with pytest.raises(MapError, match="25000000 cells"):
        check_size(Huge(100_000_000))  # type: ignore[arg-type]
