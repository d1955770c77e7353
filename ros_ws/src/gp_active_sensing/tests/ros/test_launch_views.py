"""The RViz and Foxglove views: valid files, and every topic in them is one the nodes have."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml
from rclpy.qos import DurabilityPolicy

from gp_active_sensing.ros.publishers import PROBE_TOPICS, TOPICS
from gp_active_sensing.ros.to_messages import type_name
from gp_active_sensing.util.resources import find_resource

PUBLISHED = {
    f"/{topic.replace('~', 'active_sensing')}": (kind, profile)
    for topic, kind, profile in (*TOPICS, *PROBE_TOPICS)
}
GRIDS = {f"/active_sensing/{name}" for name in ("mean_grid", "std_grid", "grid_limits")}
"""For costmaps; the views show the field itself, from which these are made."""
KNOWN = {*PUBLISHED, "/diagnostics"} - GRIDS - {"/next_path"}  # ~/plan leads farther
SHOWS = {
    "rviz_default_plugins/MarkerArray": "visualization_msgs/msg/MarkerArray",
    "rviz_default_plugins/PointCloud2": "sensor_msgs/msg/PointCloud2",
    "rviz_default_plugins/Path": "nav_msgs/msg/Path",
    "rviz_default_plugins/Pose": "geometry_msgs/msg/PoseStamped",
}


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
    ours = {f"/active_sensing/{name}" for name in ("map", "field", "plan", "probes")}
    assert shown == {*ours, "/next_waypoint"}
    field = displays["Field (mean)"]
    assert field["Class"] == "rviz_default_plugins/PointCloud2"
    assert (field["Color Transformer"], field["Channel Name"]) == ("Intensity", "mean")
    assert field["Enabled"] is True


def test_rviz_shows_each_topic_as_it_is_published(displays: dict[str, dict[str, Any]]) -> None:
    for display in displays.values():
        kind, profile = PUBLISHED[display["Topic"]["Value"]]
        latched = profile.durability == DurabilityPolicy.TRANSIENT_LOCAL
        assert SHOWS[display["Class"]] == type_name(kind)
        assert display["Topic"]["Reliability Policy"] == "Reliable"
        assert display["Topic"]["Durability Policy"] == (
            "Transient Local" if latched else "Volatile"
        )


def test_foxglove_shows_panels_that_it_defines_with_topics_that_exist() -> None:
    layout = json.loads(find_resource("foxglove", "layout.json").read_text())
    placed = set(re.findall(r'"([A-Za-z0-9]+![a-z]+)"', json.dumps(layout["layout"])))
    assert placed == set(layout["configById"])
    named = set(re.findall(r'"(/[a-z_/]+)', json.dumps(layout["configById"])))
    assert named == KNOWN
    scene = next(v for k, v in layout["configById"].items() if k.startswith("3D!"))
    assert scene["topics"]["/active_sensing/field"]["colorField"] == "mean"
    assert scene["followTf"] == "map"
