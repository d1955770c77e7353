"""`gp-active-sensing init` beside a robot: what fits, what does not, and what it writes."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from nav_msgs.msg import OccupancyGrid, Odometry
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import NavSatFix, Temperature
from std_msgs.msg import Float64MultiArray

from gp_active_sensing.commands.mission_draft import MissionDraft
from gp_active_sensing.mission.stream_config import PoseConfig
from gp_active_sensing.records.run_map import GridMap
from gp_active_sensing.replay.options import parameters_of
from gp_active_sensing.ros import qos, running_system
from gp_active_sensing.ros.parameter_files import check_parameter_file
from gp_active_sensing.ros.received import TopicSample
from gp_active_sensing.ros.running_system import pose_misfits, roads_note, tf_problem, waypoint_note
from gp_active_sensing.topology import MapConfig, Topology, build_topology
from tests.commanding import ran
from tests.ros.conftest import Ros, domain_id
from tests.ros.probe import grid_message
from tests.unit.mission.grids import house

COMMAND = [sys.executable, "-m", "gp_active_sensing.cli", "init"]
WHERE = (52.5, 13.4)


class Boat:
    """Publishes what a robot does, from a sensor that is best effort."""

    def __init__(
        self,
        ros: Ros,
        *,
        frame: str = "odom",
        period: float = 0.05,
        reading_period: float = 0.1,
        at: float = 0.0,
    ) -> None:
        node = ros.node("boat")
        self.odometry = node.create_publisher(Odometry, "/odom", 10)
        self.fixes = node.create_publisher(NavSatFix, "/fix", qos_profile_sensor_data)
        self.readings = node.create_publisher(
            Temperature, "/ctd/temperature", qos_profile_sensor_data
        )
        self.levels = node.create_publisher(Float64MultiArray, "/ctd/levels", 10)
        self.frame, self.at, self.value = frame, at, 17.2
        node.create_timer(period, self.pose)
        node.create_timer(reading_period, self.read)
        self.node = node

    def pose(self) -> None:
        stamp = self.node.get_clock().now().to_msg()
        message = Odometry(child_frame_id="base_link")
        message.header.frame_id, message.header.stamp = self.frame, stamp
        message.pose.pose.position.x = self.at
        self.odometry.publish(message)
        fix = NavSatFix(latitude=WHERE[0], longitude=WHERE[1])
        fix.header.frame_id, fix.header.stamp = "gps", stamp
        self.fixes.publish(fix)

    def read(self) -> None:
        message = Temperature(temperature=self.value)
        message.header.stamp = self.node.get_clock().now().to_msg()
        self.readings.publish(message)
        self.levels.publish(Float64MultiArray(data=[1.0, 2.0]))


def init(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return ran(*COMMAND, *words, cwd=folder, stdin=subprocess.DEVNULL)


def written(folder: Path, name: str = "mission.yaml") -> dict[str, Any]:
    check_parameter_file(folder / name)
    return parameters_of(folder / name)


def content(folder: Path) -> list[str]:
    lines = (folder / "mission.yaml").read_text().splitlines()
    return [line for line in lines if line.strip() and not line.strip().startswith("#")]


BOAT = ("--reading", "/ctd/temperature", "--pose", "/odom", "--budget", "20")


MISFITS = (
    (("--pose", "/odm"), "pose: nobody publishes /odm. Did you mean '/odom'?"),
    (("--pose", "/fix", "--pose-type", "nav_msgs/msg/Odometry"), "--pose-type sensor_msgs/msg"),
    (("--reading-type", "sensor_msgs/msg/Imu", "--field", "x"), "/ctd/temperature is of type"),
    (("--field", "temprature"), "'temperature'"),
    (("--reading", "/ctd/levels", "--field", "data[7]"), "data[7] of /ctd/levels is nan"),
    (("--frame", "map"), "pose: /odom is in frame 'odom', the map in 'map': give --frame odom"),
    (("--map", "town", "--pose", "/fix"), "give --datum LATITUDE,LONGITUDE of its origin"),
    (("--pose", "/fix", "--datum", "40,-70"), "m from the nearest place of the map"),
)


@pytest.mark.parametrize("some", [MISFITS[:1], pytest.param(MISFITS[1:], marks=pytest.mark.long)])
def test_what_does_not_fit_is_reported(ros: Ros, tmp_path: Path, some: Any) -> None:
    Boat(ros)
    for number, (words, problem) in enumerate(some):
        folder = tmp_path / str(number)
        folder.mkdir()
        done = init(folder, "--map", "60x40", *BOAT, *words)
        assert done.returncode == 1, done.stdout
        assert problem in done.stdout
        assert (folder / "mission.yaml").exists(), "it is written all the same"


class Still:
    """A running system of which it is known what comes."""

    def __init__(self, **times: list[float]) -> None:
        self.received = {
            f"/{name}": TopicSample(f"/{name}", [], found) for name, found in times.items()
        }

    def topics(self, wanted: Any) -> dict[str, tuple[str, ...]]:
        kinds = {"odom": "nav_msgs/msg/Odometry", "temperature": "sensor_msgs/msg/Temperature"}
        return {name: (kinds[name.split("/")[-1]],) for name in self.received}

    def listeners(self, wanted: Any) -> dict[str, tuple[str, ...]]:
        return dict.fromkeys(wanted, ("geometry_msgs/msg/PoseStamped",))

    def receive(self, types: dict[str, str], slow: Any) -> dict[str, TopicSample]:
        for topic, received in self.received.items():
            pose = Odometry()
            pose.header.frame_id = "odom"
            received.messages = [pose if topic.endswith("odom") else Temperature()]
        return self.received


def drafted(
    system: Still, *, asking: bool = False, **more: str
) -> tuple[MissionDraft, dict[str, Any]]:
    words = dict.fromkeys(("datum", "probes", "map_topic", "frame", "waypoint", "field"), "")
    words |= {"reading_type": "", "pose_type": "", "run_dir": "auto", "map": "60x40"}
    words |= {"reading": "temperature", "pose": "odom", "budget": "20", **more}
    words |= dict.fromkeys(("sortie", "unit", "settle", "export", "name"), "")
    given = {**dict.fromkeys(("spacing", "radius", "speed", "delay", "return_home")), **words}
    draft = MissionDraft(given, system, asking=asking)  # type: ignore[arg-type]
    draft.answer()
    (found,) = yaml.safe_load(draft.text("it")).values()
    return draft, found["ros__parameters"]


@pytest.mark.ros
def test_without_a_running_system_it_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROS_DOMAIN_ID", str(domain_id("nobody")))
    done = init(tmp_path, "--map", "60x40", *BOAT)
    assert done.returncode == 0, done.stdout
    assert "no ROS system is running here" in done.stdout
    again = init(tmp_path, "--map", "60x40", *BOAT, "--field", "heat", "--force")
    assert again.returncode == 1
    assert "Numbers in sensor_msgs/msg/Temperature: temperature, variance" in again.stdout


@pytest.mark.ros
def test_a_few_questions(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    first = ["60 by 40", "60x40", "/temperature", "temperature", "/odom", "a lot", "20, 500 m"]
    answers = iter([*first, "", "yes", "degC", "0", "csv", "runs"])
    asked = []

    def prompt(question: str, *, value_proc: Any, **_: Any) -> Any:
        asked.append(question)
        while True:
            with contextlib.suppress(click.UsageError):
                return value_proc(next(answers))

    monkeypatch.setattr(click, "prompt", prompt)
    blank = dict.fromkeys(("map", "reading", "pose", "budget", "run_dir"), "")
    often = [0.1 * i for i in range(20)]
    _, found = drafted(Still(odom=often, temperature=often), asking=True, **blank)
    assert len(asked) == 11, asked
    assert (found["budget.readings"], found["budget.metres"]) == (20, 500.0)
    assert (found["run_dir"], found["probe.end"]) == ("runs", "start")
    shown = capsys.readouterr().out
    for text in ("425 places, 60 × 40 m", "/temperature (sensor_msgs/msg/Temperature)"):
        assert text in shown


ROOM = house((-1.0, -1.0, 7.0, 3.0))


def publish_map(ros: Ros, found: GridMap = ROOM, latched: bool = True) -> None:
    profile = qos.latched() if latched else qos.reliable()
    publisher = ros.node("map_server").create_publisher(OccupancyGrid, "/map", profile)
    publisher.publish(grid_message(found))


@pytest.mark.long
def test_a_map_by_topic_that_does_not_fit(ros: Ros, tmp_path: Path) -> None:
    publish_map(ros)
    Boat(ros)
    for words, problem in (
        (("--map-topic", "mapp"), "map: nobody publishes /mapp. Did you mean '/map'?"),
        (("--map", "/odom"), "map: /odom is of type nav_msgs/msg/Odometry, not nav_msgs/msg/Occu"),
        (("--map", "/map", "--frame", "world"), "the map is in frame 'map', and the mission in"),
        (("--map", "map"), "/odom is in frame 'odom', the map in 'map'"),
        (("--map", "map", "--pose", "tf"), "pose: nobody publishes /tf or /tf_static"),
        (("--map", "map", "--pose", "/fix"), "give --datum LATITUDE,LONGITUDE of its origin"),
    ):
        done = init(tmp_path, *BOAT, *words, "--force")
        assert done.returncode == 1, done.stdout
        assert problem in done.stdout
        assert written(tmp_path)["map"]["topic"]


def cannot(target: str, source: str) -> str:
    return "there is no tf"


def test_poses_that_can_be_transformed_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    places = build_topology(MapConfig("grid", columns=3, rows=3, frame="map"))
    pose = Odometry()
    pose.header.frame_id = "odom"
    received = TopicSample("/odom", [pose], [0.0, 0.1])
    (said,) = pose_misfits(PoseConfig(), received, places, lambda target, source: "of the rain")
    assert "is in frame 'odom', the map in 'map'" in said
    assert said.endswith("They are not transformed, since of the rain")
    assert pose_misfits(PoseConfig(), received, places, lambda target, source: "") == []
    assert pose_misfits(PoseConfig(), received, None, cannot) == [], "the map has not come"
    for installed in (True, False):
        found = "a spec" if installed else None
        monkeypatch.setattr(running_system, "find_spec", {"tf2_ros": found}.get)
        why = tf_problem({"/tf": ("tf2_msgs/msg/TFMessage",)})
        assert bool(why) is not installed
        assert installed or "tf2_ros is not installed" in why
        assert "nobody publishes /tf" in tf_problem({"/odom": ("nav_msgs/msg/Odometry",)})
    lost = TopicSample("/fix", [NavSatFix(latitude=float("nan"))], [0.0, 0.1])
    fix = PoseConfig(type="sensor_msgs/msg/NavSatFix", datum=(52.5, 13.4))
    assert pose_misfits(fix, lost, places, cannot) == ["pose: /fix has no position yet (no fix?)"]


def test_how_seldom_poses_may_come() -> None:
    places = build_topology(MapConfig("grid", columns=3, rows=3, frame="odom"))
    roads = build_topology(MapConfig(file="town", frame="odom"))
    pose = Odometry()
    pose.header.frame_id = "odom"

    def said(times: list[float], silent: float = 0.0, where: Topology = places) -> str:
        received = TopicSample("/odom", [pose], times, silent)
        misfits = pose_misfits(PoseConfig(), received, where, cannot)
        return " ".join(text for text in misfits if "too slowly" in text)

    assert said([0.0, 4.5, 9.0], 3.0) == ""
    assert said([0.0, 5.2]) == "", "nearly often enough"
    assert "comes every 5 s, too slowly" in said([0.0, 5.2], where=roads), "a visit ends before"
    assert "comes every 8 s, too slowly" in said([0.0, 8.0])
    assert "comes every 11 s, too slowly" in said([0.0, 0.1, 0.2], 11.0), "it fell silent"
    assert "came once in 12 s, too slowly" in said([0.0], 11.0)


def test_poses_are_counted_by_road() -> None:
    roads = build_topology(MapConfig(file="town"))
    places = build_topology(MapConfig("grid", columns=3, rows=3))
    assert roads_note(TopicSample("/odom", [], [0.0, 6.9]), roads) == ""
    slow = TopicSample("/odom", [], [0.0, 7.1])
    assert "driven in less than 14.0 s" in roads_note(slow, roads)
    assert roads_note(slow, places) == roads_note(slow, None) == ""
    assert roads_note(TopicSample("/odom", [], [0.0]), roads) == "", "said among what does not fit"


def test_notes_on_the_waypoints() -> None:
    stamped, other = ("geometry_msgs/msg/PoseStamped",), ("std_msgs/msg/String",)

    def note(listeners: dict[str, tuple[str, ...]], topics: dict[str, tuple[str, ...]]) -> str:
        return waypoint_note("/go", listeners, topics, ["/pose"])

    assert note({"/go": stamped}, {"/go": stamped}) == ""
    assert note({"/pose": stamped}, {}).endswith("start what drives it, or give --waypoint")
    assert note({"/goal": stamped, "/pose": stamped}, {}).endswith("somebody listens to /goal")
    assert "/go is of type std_msgs/msg/String; waypoints are" in note({}, {"/go": other})
    assert "std_msgs/msg/String, too; what listens" in note({"/go": stamped + other}, {})
