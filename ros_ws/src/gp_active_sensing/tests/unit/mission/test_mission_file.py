from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from gp_active_sensing.errors import ConfigError
from gp_active_sensing.mission.mission_file import (
    in_words,
    live_map,
    mission_text,
    read_budget,
    read_map,
    read_position,
)
from gp_active_sensing.replay.options import parameters_of
from gp_active_sensing.ros.parameter_files import check_parameter_file
from tests.cases import for_each
from tests.unit.mission.grids import house
from tests.unit.topology.road_maps import segment, write
from tests.unit.util.hostile import HOSTILE


@for_each(
    ("text", "low", "high"),
    [
        ("60x40", (0, 0), (60, 40)),
        (" 60 x 40 m ", (0, 0), (60, 40)),
        ("60×40", (0, 0), (60, 40)),
        ("-30,-20,30,20", (-30, -20), (30, 20)),
        ("30, 20, -30, -20", (-30, -20), (30, 20)),
    ],
)
def test_a_rectangle(text: str, low: tuple[int, int], high: tuple[int, int]) -> None:
    found = read_map(text)
    assert not found.from_file
    assert found.section == {"kind": "grid", "outline": [[*low], [*high]], "spacing": 2.5}
    assert tuple(found.places.positions.min(axis=0)) == low
    assert tuple(found.places.positions.max(axis=0)) == high
    assert in_words(found.places) == f"{25 * 17} places, 60 × 40 m, frame map"


@for_each("text", ["0x40", "5,5,5,9", "60x-40"])
def test_a_rectangle_without_an_area_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"map: a rectangle with an area .*60x40"):
        read_map(text)


@for_each(
    ("text", "found"),
    [
        ("40", {"readings": 40}),
        ("40 places", {"readings": 40}),
        ("2 km", {"metres": 2000.0}),
        ("1.5 h", {"seconds": 5400.0}),
        ("40, 2500 m, 30 min", {"readings": 40, "metres": 2500.0, "seconds": 1800.0}),
    ],
)
def test_a_budget(text: str, found: dict[str, float]) -> None:
    assert read_budget(text) == found


@for_each("text", ["", "many", "2 miles", "2.5", "0", "-3 km", "40, 50", "1,5 km"])
def test_what_is_no_budget_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="budget: "):
        read_budget(text)


def test_a_position() -> None:
    assert read_position("52.5, -13.4") == (52.5, -13.4)
    for text in ("52.5", "91,0", "0,181", "a,b", "1,2,3", "52,x"):
        with pytest.raises(ConfigError, match="datum: expected LATITUDE,LONGITUDE in degrees"):
            read_position(text)


def test_the_file_is_read_as_it_is_meant(tmp_path: Path) -> None:
    given = {
        "map.kind": "grid",
        "map.outline": [[0.0, 0.0], [60.0, 40.0]],
        "map.spacing": 2.5,
        "reading.topic": "/ctd/temperature",
        "reading.type": "sensor_msgs/msg/Temperature",
        "reading.field": "temperature",
        "pose.topic": "y",
        "pose.datum": [52.5, 13.0],
        "budget.readings": 40,
        "run_dir": "auto",
        "use_sim_time": True,
    }
    text = mission_text(given, {"map.kind": "425 places"}, start="launch it")
    lines = text.splitlines()
    assert "#   launch it" in lines
    assert any(line.split("#")[0].strip() == "map.kind: grid" for line in lines)
    assert "    # reading.type: sensor_msgs/msg/Temperature" in lines, "the default is a comment"
    content = [line for line in lines if line.strip() and not line.strip().startswith("#")]
    assert len(content) == 2 + len(given) - 2
    path = tmp_path / "mission.yaml"
    path.write_text(text, encoding="utf-8")
    check_parameter_file(path)
    found = parameters_of(path)
    assert found["pose"]["topic"] == "y", "no truth value"
    assert json.loads(found["map"]["outline"]) == given["map.outline"]
    assert found["use_sim_time"] is True
    assert yaml.safe_load(text)["/**"]["ros__parameters"]["budget.readings"] == 40


def test_no_name_writes_a_parameter(tmp_path: Path) -> None:
    """A frame, a topic, a unit or a folder with a line break must not start a program."""
    path = tmp_path / "mission.yaml"
    for hostile in HOSTILE:
        given = {
            "map.kind": "grid",
            "map.outline": [[0.0, 0.0], [60.0, 40.0]],
            "map.frame": hostile,
            "reading.topic": f"a{hostile}",
            "reading.type": f"{hostile}/msg/A",
            "reading.unit": hostile,
            "pose.topic": f"b{hostile}",
            "waypoint.topic": f"c{hostile}",
            "budget.readings": 4,
            "run_dir": hostile,
        }
        notes = {key: f"{hostile}; {key}" for key in given}
        text = mission_text(given, notes, start=f"launch {hostile}")
        path.write_text(text, encoding="utf-8", newline="")
        check_parameter_file(path)
        assert list(yaml.safe_load(text)) == ["/**"]
        found = yaml.safe_load(text)["/**"]["ros__parameters"]
        assert found.pop("map.outline") == json.dumps(given.pop("map.outline"))
        assert found == given, ascii(hostile)


def test_the_frame_in_words_writes_no_parameter(tmp_path: Path) -> None:
    """A robot's parameter file once got `policy.command` from the frame of a map."""
    roads = [segment("a", "n", "m", [(0, 0), (9, 0)]), segment("b", "m", "n", [(9, 0), (0, 0)])]
    for hostile in HOSTILE:
        file = write(tmp_path / "roads.geojson", roads, {"frame": hostile})
        grid = house((-1.0, -1.0, 7.0, 7.0), frame=hostile)
        for found in (read_map(str(file)), live_map("map", grid)):
            assert found.places is not None
            given = {f"map.{key}": value for key, value in found.section.items()}
            given["budget.readings"] = 4
            text = mission_text(given, dict.fromkeys(given, in_words(found.places)), start="")
            assert yaml.safe_load(text)["/**"]["ros__parameters"] == given, ascii(hostile)
