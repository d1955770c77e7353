"""The arguments of every launch: namespace, level of the log, frame of the map; and the file's."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from nav_msgs.msg import Odometry
from sensor_msgs.msg import Temperature

from gp_active_sensing.errors import ConfigError
from gp_active_sensing.ros.runner import launch_names, read_launch, show_arguments
from tests.ros.conftest import Ros, wait_until
from tests.ros.launched import launched, parameters, processes, runner

NEEDED = {"replay": {"bag": "some"}}
MISSION = """\
/**:
  ros__parameters:
    use_sim_time: true
    map: {{kind: grid, columns: 4, rows: 2, spacing: 10.0, frame: lake}}
    reading.topic: {0}ctd/temperature
    pose.topic: {0}odometry/filtered
    waypoint: {{topic: goal_pose}}
"""


@pytest.fixture
def mission(tmp_path: Path) -> str:
    path = tmp_path / "mission.yaml"
    path.write_text(MISSION.format("/"), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("name", launch_names())
def test_every_launch_has_them(name: str) -> None:
    shown = show_arguments(read_launch(name))
    assert "  namespace: namespace of the nodes" in shown
    assert "  map_frame: frame of the map" in shown
    assert "  log_level: what the nodes log (optional)\n      one of: debug, info, warn" in shown


@pytest.mark.parametrize("name", launch_names())
def test_they_reach_every_node(name: str) -> None:
    given = {"namespace": "/lake/boat", "log_level": "warn", "map_frame": "odom", "rviz": "true"}
    found = processes(name, **NEEDED.get(name, {}), **given)
    assert len(found) >= 2
    for process in found.values():
        assert process.namespace == "/lake/boat"
        assert process.ros_arguments == ["--log-level", "warn"]
    sensing = found["active_sensing"]
    assert parameters(sensing)["map.frame"] == "odom"
    words = " ".join(sensing.command())
    assert "--ros-args -r __node:=active_sensing --log-level warn -r __ns:=/lake/boat" in words
    if name == "traffic_sim":
        assert parameters(found["simulator"])["map_frame"] == "odom", "its poses are in that frame"
    view = found["rviz2"]
    assert view.arguments[-2:] == ["-f", "odom"]
    moved = dict(view.remappings)
    assert moved["/active_sensing/field"] == "active_sensing/field", "below the namespace"
    assert moved["/next_waypoint"] == "next_waypoint"


def test_without_them_nothing_is_said() -> None:
    for process in processes("probe", rviz="true").values():
        assert not {"namespace", "ros_arguments"} & set(vars(process))
        assert "-f" not in getattr(process, "arguments", ())


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"namespace": "my boat"}, "launch: namespace: 'my boat' cannot be a namespace"),
        ({"log_level": "loud"}, "launch: log_level: expected one of debug, info"),
    ],
)
def test_what_they_cannot_be_is_refused(given: dict[str, str], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        processes("probe", **given)


def test_the_file_says_what_no_argument_says(mission: str) -> None:
    sensing, view = processes("probe", params_file=mission, rviz="true").values()
    assert parameters(sensing) == {}
    assert view.arguments[-2:] == ["-f", "lake"]
    assert dict(view.remappings) == {"/next_waypoint": "goal_pose"}
    assert view.parameters == [{"use_sim_time": True}]
    (other,) = processes("probe", params_file=mission, pose_topic="odom").values()
    assert parameters(other) == {"pose.topic": "odom"}
    player = processes("replay", bag="some", params_file=mission)["bag_player"]
    assert parameters(player)["wait_for"] == ["/ctd/temperature", "/odometry/filtered"]


@pytest.mark.parametrize("name", ["active_sensing", "/active_sensing", "/other/active_sensing"])
def test_a_file_for_a_node_that_is_elsewhere_is_refused(tmp_path: Path, name: str) -> None:
    """ROS would pass over the section without a word."""
    path = tmp_path / "mine.yaml"
    path.write_text(f"{name}:\n  ros__parameters:\n    map: {{file: town}}\n")
    with pytest.raises(ConfigError, match=r"mine.yaml: line 3: .*write /boat/active_sensing"):
        processes("probe", params_file=str(path), namespace="boat")
    for fitting in ("/boat/active_sensing", "/**/active_sensing", "/**"):
        path.write_text(f"{fitting}:\n  ros__parameters:\n    map: {{file: town}}\n")
        assert processes("probe", params_file=str(path), namespace="boat")
    path.write_text(f"{name}:\n  ros__parameters:\n    map: {{file: town}}\n")
    assert processes("probe", params_file=str(path))


@pytest.mark.ros
def test_a_node_hears_the_topics_of_its_file_in_its_namespace(ros: Ros, tmp_path: Path) -> None:
    path = tmp_path / "mission.yaml"
    path.write_text(MISSION.format(""), encoding="utf-8")
    node = ros.node()
    poses = node.create_publisher(Odometry, "/boat/odometry/filtered", 10)
    readings = node.create_publisher(Temperature, "/boat/ctd/temperature", 10)
    words = [f"params_file:={path}", "namespace:=boat", "log_level:=debug"]
    log = tmp_path / "log"
    with launched(log, *runner("probe", *words)):
        wait_until(poses.get_subscription_count, f"a subscriber of the poses; {log}")
        wait_until(readings.get_subscription_count, f"a subscriber of the readings; {log}")
        wait_until(lambda: node.count_publishers("/boat/goal_pose"), f"its waypoints; {log}")
        wait_until(  # which node has what is said after it is there
            lambda: ("active_sensing", "/boat") in node.get_node_names_and_namespaces(),
            f"its name; {log}",
        )
        wait_until(lambda: "[DEBUG]" in log.read_text(), f"what is said for debugging; {log}")
