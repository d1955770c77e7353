"""`gp-active-sensing init` without a running ROS system: flags, refusals, the file."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gp_active_sensing.cli import cli
from gp_active_sensing.config import from_mapping
from gp_active_sensing.mission.config import ActiveSensingConfig
from gp_active_sensing.replay.options import parameters_of
from tests.unit.topology.road_maps import segment, write

ALL = {"map": "60x40", "reading": "temperature", "pose": "odom", "budget": "300 m"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def init(*more: str, **given: str) -> Result:
    words = [word for key, value in given.items() for word in (f"--{key}", value)]
    return CliRunner().invoke(cli, ["init", "--offline", *words, *more])


def test_flags_alone_make_a_mission(folder: Path) -> None:
    done = init(**ALL)
    assert done.exit_code == 0, done.output
    assert "425 places" in done.output
    found = parameters_of(folder / "mission.yaml")
    config = from_mapping(ActiveSensingConfig, found)
    assert config.topics[:2] == ("temperature", "odom")
    assert (config.budget.metres, config.run_dir) == (300.0, "auto")


def test_all_that_can_be_said(folder: Path) -> None:
    more = ["--spacing", "10", "--frame", "lake", "--field", "data[1]", "--delay", "1.5"]
    more += ["--reading-type", "std_msgs/msg/Float64MultiArray", "--datum", "52.5,13.4"]
    more += ["--pose-type", "sensor_msgs/msg/NavSatFix", "--probes", "2", "--run-dir", "runs/a"]
    more += ["--settle", "0.00", "--speed", ".5"]
    done = init(*more, "--waypoint", "goal_pose", "--out", "mine.yaml", **ALL)
    assert done.exit_code == 0, done.output
    config = from_mapping(ActiveSensingConfig, parameters_of(folder / "mine.yaml"))
    assert (config.map.spacing, config.map.frame, config.map.speed) == (10.0, "lake", 0.5)
    assert (config.reading.field, config.reading.delay) == ("data[1]", 1.5)
    assert config.reading.type == "std_msgs/msg/Float64MultiArray"
    assert config.pose.datum == (52.5, 13.4)
    assert config.probes == ("probe_1", "probe_2")
    assert config.waypoint.topic == "goal_pose"


def test_a_file_is_not_replaced(folder: Path) -> None:
    (folder / "mission.yaml").write_text("mine")
    done = init(**ALL)
    assert done.exit_code == 2
    assert (folder / "mission.yaml").read_text() == "mine"
    assert init("--force", **ALL).exit_code == 0


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"map": "no_such.kml"}, "no file 'no_such.kml'"),
        ({"reading": "", "budget": ""}, "no terminal to ask on; give --reading, --budget"),
        ({"speed": "1,5"}, "write a decimal number with a point"),
        ({"budget": "a lot"}, "expected such as 40 (places)"),
        ({"speed": "3 furlongs"}, "speed: expected a number above 0"),
        ({"settle": "5 km"}, "settle: expected a time"),
        ({"datum": "here"}, "datum: expected LATITUDE,LONGITUDE"),
        ({"probes": "a,b", "pose": "/odom"}, "several probes cannot share a topic"),
        ({"pose-type": "sensor_msgs/msg/Imu"}, "pose.type: expected one of"),
    ],
)
def test_what_cannot_be_is_refused(folder: Path, given: dict[str, str], problem: str) -> None:
    done = init(**{**ALL, **given})
    assert done.exit_code in (1, 2)
    assert problem in " ".join(done.output.split())
    assert not (folder / "mission.yaml").exists()


def test_a_map_by_topic_without_a_system(folder: Path) -> None:
    rest = {key: ALL[key] for key in ("reading", "pose", "budget")}
    done = init("--map-topic", "/map", "--radius", "0.3", **rest)
    assert done.exit_code == 0, done.output
    config = from_mapping(ActiveSensingConfig, parameters_of(folder / "mission.yaml"))
    assert (config.map.topic, config.map.inflation, config.map.spacing) == ("/map", 0.3, 0.0)
    assert init("--map-topic", "/map", "--force", **ALL).exit_code == 2


def lane(folder: Path, *limits: float | None) -> str:
    """Write a road map, a segment for each speed limit; return its name."""
    features = [
        segment(f"s{i}", f"j{i}", f"j{i + 1}", [(100 * i, 0), (100 * i + 100, 0)], oneway=False)
        for i in range(len(limits))
    ]
    for feature, limit in zip(features, limits, strict=True):
        if limit is not None:
            feature["properties"]["speed_limit_mps"] = limit
    write(folder / "lane.geojson", features)
    return "lane.geojson"


def test_a_budget_in_time_goes_by_a_speed(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    given = {**ALL, "map": lane(folder, None, 10.0, None), "budget": "30 min"}
    done = init(**given)
    assert done.exit_code == 0, done.output
    assert "note: 4 of 6 roads" in done.output
    done = init("--force", "--speed", "18 km/h", **given)
    assert "note:" not in done.output
    assert "taking 5 m/s" in caplog.text
    config = from_mapping(ActiveSensingConfig, parameters_of(folder / "mission.yaml"))
    assert config.map.speed == pytest.approx(5.0)


def test_the_speed_is_asked_where_it_counts(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = importlib.import_module("gp_active_sensing.commands.init")
    monkeypatch.setattr(command, "has_terminal", lambda: True)
    words = ["init", "--offline", "--map", lane(folder, None), "--reading", "temperature"]
    answers = "\n".join(["", "odom", "20 min", "fast", "-1", "4 m/s", *[""] * 6]) + "\n"
    done = CliRunner().invoke(cli, words, input=answers)
    assert done.exit_code == 0, done.output
    assert done.output.count("speed: expected a number above 0") == 2
    config = from_mapping(ActiveSensingConfig, parameters_of(folder / "mission.yaml"))
    assert config.map.speed == 4.0
    assert config.budget.seconds == 1200.0


@pytest.mark.parametrize(
    ("pose", "type", "hint"),
    [
        ("fix", "sensor_msgs/msg/NavSatFix", False),
        ("/boat/gps", "sensor_msgs/msg/NavSatFix", False),
        ("amcl_pose", "geometry_msgs/msg/PoseWithCovarianceStamped", False),
        ("odometry/filtered", "nav_msgs/msg/Odometry", False),
        ("where", "nav_msgs/msg/Odometry", True),
    ],
)
def test_types_go_by_the_names_of_topics(folder: Path, pose: str, type: str, hint: bool) -> None:
    done = init("--datum", "52.5,13.4", **{**ALL, "pose": pose})
    assert done.exit_code == 0, done.output
    config = from_mapping(ActiveSensingConfig, parameters_of(folder / "mission.yaml"))
    assert config.pose.type == type
    assert ("--pose-type" in done.output) == hint
    assert config.map.spacing == 2.5, "the places stay where they are"


def test_position_on_earth_needs_an_origin(folder: Path) -> None:
    assert init(**{**ALL, "pose": "fix"}).exit_code == 1
    for datum, problem in (("47,8", ""), ("8,47", "latitude comes first"), ("47,8.1", "lies 7 km")):
        done = init("--force", "--datum", datum, **{**ALL, "map": "lake.kml"})
        assert problem in done.output
        assert done.exit_code == bool(problem)


def test_habits_are_taken_and_asked(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["--return-home", "--sortie", "1 km, 20 min", "--unit", "degC"]
    words += ["--settle", "3", "--export", "csv,geojson"]
    assert init(*words, "--name", "North bay", **ALL).exit_code == 0
    taken = parameters_of(folder / "mission.yaml")
    config = from_mapping(ActiveSensingConfig, taken)
    assert (config.probe.end, config.reading.unit, config.mission.settle) == ("start", "degC", 3.0)
    assert (config.probe.sortie.metres, config.probe.sortie.seconds) == (1000.0, 1200.0)
    assert (config.mission.export, config.name) == (("csv", "geojson"), "North bay")
    command = importlib.import_module("gp_active_sensing.commands.init")
    monkeypatch.setattr(command, "has_terminal", lambda: True)
    answers = "300 m\n1 km, 20 places\n1 km, 20 min\nperhaps\nyes\ndegC\n3 s\npng\ncsv,geojson\n"
    asked = [word for key in ("map", "reading", "pose") for word in (f"--{key}", ALL[key])]
    more = ["--field", "temperature", "--name", "North bay", "--force"]
    done = CliRunner().invoke(cli, ["init", "--offline", *asked, *more], input=answers + "\n")
    assert done.exit_code == 0, done.output
    assert parameters_of(folder / "mission.yaml") == taken
    assert init("--force", "--export", "png", **ALL).exit_code == 1


def test_several_quantities(folder: Path) -> None:
    more = ("--further", "chl=/sonde/chl,std_msgs/msg/Float64,data", "--further", "depth=sonar")
    given = {**ALL, "reading": "heat=/sonde/temperature", "unit": "degC"}
    assert init(*more, **given).exit_code == 0
    config = from_mapping(ActiveSensingConfig, parameters_of(folder / "mission.yaml"))
    assert (config.main, list(config.further)) == ("heat", ["chl", "depth"])
    assert (config.reading.topic, config.reading.unit) == ("/sonde/temperature", "degC")
    assert config.readings["chl"].field == "data"
    assert config.readings["depth"].type == "sensor_msgs/msg/Range"
    wrong = ({"further": "chl"}, {"further": "Chl=topic"}, {"further": "=topic"})
    assert all(init("--force", **{**ALL, **each}).exit_code for each in wrong)
