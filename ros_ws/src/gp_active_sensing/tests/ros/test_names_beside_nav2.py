"""The node beside Nav2, whose topics have names that a sensing mission would like, too."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from nav_msgs.msg import OccupancyGrid, Path
from sensor_msgs.msg import PointCloud2
from std_msgs.msg import Float64MultiArray
from visualization_msgs.msg import MarkerArray

from gp_active_sensing.ros import qos
from tests.ros.conftest import Ros, wait_active, wait_until
from tests.ros.probe import Probe, sensing

pytestmark = pytest.mark.ros
NAV2: dict[str, Any] = {"/map": OccupancyGrid, "/plan": Path}
"""Of its map server and its planner."""


def types_of(node: Any) -> dict[str, list[str]]:
    return dict(node.get_topic_names_and_types())


def test_no_topic_of_nav2_has_two_types(ros: Ros) -> None:
    nav2 = ros.node("nav2")
    for topic, kind in NAV2.items():
        nav2.create_publisher(kind, topic, qos.latched())
    node = sensing(ros)
    wait_active(node)
    wait_until(lambda: "/active_sensing/map" in types_of(nav2), "our own map in the graph")
    own = {publisher.topic_name for publisher in node.publishers}
    assert {"/active_sensing/map", "/active_sensing/field"} <= own
    assert "/active_sensing/plan" in own
    assert not own & set(NAV2)
    found = types_of(nav2)
    assert found["/map"] == ["nav_msgs/msg/OccupancyGrid"]
    assert found["/plan"] == ["nav_msgs/msg/Path"]
    assert found["/active_sensing/map"] == ["visualization_msgs/msg/MarkerArray"]
    assert all(len(kinds) == 1 for kinds in found.values()), found


def test_who_comes_after_the_mission_still_sees_it(ros: Ros) -> None:
    sensing(ros, "budget.readings:=2")
    probe = Probe(ros).connect()
    probe.obedient = True
    probe.pose(0.0)
    probe.wait_value("state", "ended")
    kinds = {
        "field": PointCloud2,
        "map": MarkerArray,
        "plan": Path,
        "length_scale_belief": Float64MultiArray,
    }
    heard: dict[str, Any] = {}
    late = ros.node("late")
    for topic, kind in kinds.items():
        name = f"/active_sensing/{topic}"
        late.create_subscription(
            kind, name, lambda said, topic=topic: heard.update({topic: said}), qos.latched()
        )
    wait_until(lambda: set(heard) == set(kinds), "the last of each")
    assert heard["field"] == probe.heard["field"][-1]
    assert heard["length_scale_belief"] == probe.heard["length_scale_belief"][-1]
    visited = [m for m in heard["map"].markers if m.ns == "visited"]
    assert len(visited[0].points) == 2
