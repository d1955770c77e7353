"""Rows from the sources that a user names: tables, scenarios, runs and bags."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gp_active_sensing.errors import ConfigError, ReadingError
from gp_active_sensing.sim import load_scenario
from gp_active_sensing.topology import build_topology
from gp_active_sensing_learning.data.request import RowRequest
from gp_active_sensing_learning.data.sources import load_rows
from tests.cases import for_each


def table(tmp_path: Path, header: str, lines: list[str]) -> str:
    path = tmp_path / "log.csv"
    path.write_text("\n".join([header, *lines]), encoding="utf-8")
    return str(path)


def test_columns_of_a_table(tmp_path: Path) -> None:
    log = table(tmp_path, "x,hours,temp", [f"{k},{k / 2},{10 + k % 4}" for k in range(12)])
    found = load_rows(RowRequest(log, inputs=("x", "hours"), value="temp"))
    assert found.input_names == ("x", "hours")
    log_transform = ("belief.transform=log",)
    logged = load_rows(RowRequest(log, inputs=("x",), overrides=log_transform, value="temp"))
    assert logged.outputs == pytest.approx(np.log(found.outputs))


def test_places_of_a_map(tmp_path: Path) -> None:
    town = build_topology(load_scenario("town").map)
    log = table(tmp_path, "id,speed", [f"{name},{k % 7}" for k, name in enumerate(town.names[:30])])
    found = load_rows(RowRequest(log, map_file="town", scale=3.6))
    assert found.input_names == ("x", "y")
    assert (found.inputs == town.features[:30]).all()
    assert found.outputs[:3] == pytest.approx([0.0, 3.6, 7.2])
    assert found.recipe["map"] == "town"
    assert found.recipe["scale"] == 3.6
    embedded = load_rows(RowRequest(log, map_file="town", overrides=("map.features=[relational]",)))
    assert embedded.input_names[0] == "mds_1"
    assert len(load_rows(RowRequest("town"))) == town.n


@pytest.fixture
def wide(tmp_path: Path) -> tuple[str, Any]:
    """Write a table of six places at four times, with an empty cell and a column of no place."""
    town = build_topology(load_scenario("town").map)
    names = [town.names[k] for k in (7, 3, 40, 41, 2, 9)]
    lines = []
    for t in range(4):
        cells = [f"{10 * t + k}" for k in range(6)]
        if t == 2:
            cells[1] = ""
        lines.append(f"2024-03-01T{6 + t:02}:30:00Z,{','.join(cells)},cloudy")
    return table(tmp_path, f"time,{','.join(names)},sky", lines), town


def test_a_wide_table(wide: tuple[str, Any]) -> None:
    log, town = wide
    found = load_rows(RowRequest(log, map_file="town", scale=2.0))
    places = [7, 3, 40, 41, 2, 9]
    cells = [(t, k) for t in range(4) for k in range(6) if (t, k) != (2, 1)]
    assert found.input_names == ("x", "y")
    assert (found.inputs == town.features[[places[k] for _, k in cells]]).all()
    assert found.outputs.tolist() == [2.0 * (10 * t + k) for t, k in cells]
    assert found.notes[:3] == (
        "a wide table: 4 times of 6 places",
        "1 of 24 cells are empty and are left out",
        "1 column is no place of map 'town' and is left out: sky.",
    )
    assert (found.recipe["kind"], found.recipe["scale"]) == ("map", 2.0)


def test_a_wide_table_with_hours(wide: tuple[str, Any], tmp_path: Path) -> None:
    log, _ = wide
    found = load_rows(RowRequest(log, scenario="town", inputs=("hours", "y")))
    assert found.input_names == ("hours", "y")
    assert found.inputs[:, 0].tolist() == [0.0] * 6 + [1.0] * 6 + [2.0] * 5 + [3.0] * 6
    origin = "2024-03-01T06:30:00+00:00"
    assert found.recipe["times"] == {"hours": origin}
    later = {"hours": "2024-03-01T00:00:00+00:00"}
    again = load_rows(RowRequest(log, scenario="town", inputs=("hours",)), None, later)
    assert again.inputs[0, 0] == 6.5
    names, cells = (line.split(",", 1)[1] for line in Path(log).read_text().splitlines()[:2])
    for head, first, hours in (("time", "7200", 2.0), ("hours", "7", 7.0)):
        plain = table(tmp_path, f"{head},{names}", [f"{first},{cells}"] * 2)
        found = load_rows(RowRequest(plain, map_file="town", inputs=("hours",)))
        assert found.inputs[0, 0] == hours


def test_wide_tables_that_cannot_be_used(wide: tuple[str, Any], tmp_path: Path) -> None:
    log, town = wide
    with pytest.raises(ConfigError, match=r"have x, y, hours, not 'hour'\. Did you mean 'hours'"):
        load_rows(RowRequest(log, map_file="town", inputs=("hour",)))
    with pytest.raises(ConfigError, match="each once; got 'x,x'"):
        load_rows(RowRequest(log, map_file="town", inputs=("x", "x")))
    timeless = table(tmp_path, ",".join(town.names[:8]), [",".join("12345678")])
    with pytest.raises(ReadingError, match="expected a column hours or time"):
        load_rows(RowRequest(timeless, map_file="town", inputs=("hours",)))
    assert len(load_rows(RowRequest(timeless, map_file="town"))) == 8
    bad = table(tmp_path, ",".join(town.names[:3]), ["1,2,x"])
    with pytest.raises(ReadingError, match=r"line 2, column .*: expected a finite number"):
        load_rows(RowRequest(bad, map_file="town"))


@for_each(
    ("asked", "message"),
    [
        ({}, "say which columns are the inputs"),
        ({"inputs": ("x",), "map_file": "town"}, "give one or the other"),
        ({"inputs": ("x",), "place": "id"}, "--place is for a map"),
        ({"inputs": ("x",), "overrides": ("map.anchor=1",)}, "map.anchor: without a map only"),
        ({"inputs": ("x",), "reading_topic": "/t"}, "--reading-topic is for a bag"),
    ],
)
def test_what_does_not_go_together(tmp_path: Path, asked: dict[str, Any], message: str) -> None:
    log = table(tmp_path, "x,temp", [f"{k},{k % 4}" for k in range(12)])
    with pytest.raises(ConfigError, match=message):
        load_rows(RowRequest(log, **asked))
    for data in ("town", str(tmp_path)):
        with pytest.raises(ConfigError, match="--snap is for a table"):
            load_rows(RowRequest(data, snap=1.0))


START = 1_700_000_000_000_000_000
SECOND = 1_000_000_000


@pytest.fixture(scope="module")
def boat(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Write a bag of a boat that goes east at 1 m/s; the last of its readings has no pose."""
    pytest.importorskip("rosbags", reason="the extra [bag] is not installed")
    from tests.replay.bags import write_bag
    from tests.replay.missions import odometry, temperature

    messages: list[tuple[str, int, Any]] = []
    for step in range(20):
        stamp = START + step * SECOND
        messages.append(("/boat/odom", stamp, odometry(stamp, float(step), 2.0)))
        value = math.nan if step == 7 else 10.0 + step % 5
        later = stamp + SECOND // 4 + 7  # a stamp of a recipe is in microseconds
        messages.append(("/boat/temp", later, temperature(later, value)))
    later = START + 60 * SECOND
    messages.append(("/boat/temp", later, temperature(later, 3.0)))
    return str(write_bag(tmp_path_factory.mktemp("boat") / "bag", messages))


TOPICS = {"reading_topic": "/boat/temp", "pose_topic": "/boat/odom"}


def test_a_bag_on_a_map(boat: str, tmp_path: Path) -> None:
    grid = ("map.kind=grid", "map.columns=20", "map.rows=3", "map.spacing=1")
    found = load_rows(RowRequest(boat, overrides=grid, **TOPICS), tmp_path)
    assert found.input_names == ("x", "y")
    # Places, not positions: the reading at 0.25 m belongs to the place at 0 m.
    assert set(found.inputs[:, 0].tolist()) <= {float(k) for k in range(20)}
    assert set(found.inputs[:, 1].tolist()) == {2.0}
    assert found.source == f"bag {boat} on map 'grid'"
    assert list(tmp_path.iterdir()) == []


def test_bags_that_cannot_be_used(boat: str) -> None:
    for asked, message in (
        ({"inputs": ("x",)}, "of a bag name the map"),
        ({}, "no map: "),
        ({"value": "temp"}, "--value is for a table"),
    ):
        with pytest.raises(ConfigError, match=message):
            load_rows(RowRequest(boat, **asked, **TOPICS))
