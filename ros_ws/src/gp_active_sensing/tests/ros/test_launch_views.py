"""The RViz and Foxglove views: valid files, and every topic in them is one the nodes have."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from rclpy.qos import DurabilityPolicy

from gp_active_sensing.resources import find_resource
from gp_active_sensing.ros import publishing

PUBLISHED = {
    f"/{topic}": profile for topic, _, profile in (*publishing._TOPICS, *publishing._PROBE_TOPICS)
}
TOPICS = {*PUBLISHED, "/pose", "/diagnostics"}


@pytest.fixture(scope="module")
def displays() -> dict[str, dict[str, Any]]:
    view = yaml.safe_load(find_resource("rviz", "gp_active_sensing.rviz").read_text())
    manager = view["Visualization Manager"]
    assert manager["Global Options"]["Fixed Frame"] == "map"
    return {display["Name"]: display for display in manager["Displays"]}


def test_rviz_shows_every_result_on_a_topic_that_exists(
    displays: dict[str, dict[str, Any]],
) -> None:
    shown = {display["Topic"]["Value"] for display in displays.values()}
    assert shown == {"/map", "/field", "/plan", "/next_waypoint", "/pose"}
    assert shown <= TOPICS
    field = displays["Field (mean)"]
    assert field["Class"] == "rviz_default_plugins/PointCloud2"
    assert (field["Color Transformer"], field["Channel Name"]) == ("Intensity", "mean")
    assert field["Enabled"] is True


def test_rviz_asks_for_the_last_message_where_one_is_kept(
    displays: dict[str, dict[str, Any]],
) -> None:
    for display in displays.values():
        profile = PUBLISHED.get(display["Topic"]["Value"])
        latched = profile is not None and profile.durability == DurabilityPolicy.TRANSIENT_LOCAL
        wanted = "Transient Local" if latched else "Volatile"
        assert display["Topic"]["Durability Policy"] == wanted


def test_foxglove_shows_panels_that_it_defines_with_topics_that_exist() -> None:
    layout = json.loads(find_resource("foxglove", "layout.json").read_text())
    placed = set(re.findall(r'"([A-Za-z0-9]+![a-z]+)"', json.dumps(layout["layout"])))
    assert placed == set(layout["configById"])
    named = set(re.findall(r'"(/[a-z_]+)', json.dumps(layout["configById"])))
    assert named <= TOPICS
    assert {"/field", "/map", "/plan", "/next_waypoint", "/pose", "/length_scale_belief"} <= named
    scene = next(v for k, v in layout["configById"].items() if k.startswith("3D!"))
    assert scene["topics"]["/field"]["colorField"] == "mean"
    assert scene["followTf"] == "map"
