"""The map comes by a topic, latched, as SLAM publishes it, and grows while a mission goes on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from nav_msgs.msg import OccupancyGrid

from gp_active_sensing.report.reconstruction import replay
from gp_active_sensing.report.source import load_run
from gp_active_sensing.ros import qos
from gp_active_sensing.ros.active_sensing_node import ActiveSensingNode
from tests.ros.conftest import Ros, wait_active, wait_until
from tests.ros.probe import Probe, grid_message, sensing
from tests.unit.mission.grids import NOTHING_FREE, house

PARAMETERS = (
    "map.kind:=grid",
    "map.topic:=map",
    "map.spacing:=2.0",
    "map.patience:=60.0",
    "belief.length_scales:=[4.0, 12.0]",
    "belief.signal_std:=[1.0]",
    "belief.noise_std:=[0.1]",
    "belief.mean_std:=10.0",
    "policy.name:=ie",
    "mission.wait_for_reading:=false",
    "pose.max_age:=100.0",
)
ROOM = house((-1.0, -1.0, 7.0, 3.0))
LARGER = house((-1.0, -1.0, 11.0, 3.0))
LARGEST = house((-5.0, -1.0, 11.0, 7.0))


def places(node: ActiveSensingNode) -> int:
    return 0 if node.mission is None else node.mission.loop.topology.n


def observed(node: ActiveSensingNode) -> int:
    assert node.mission is not None
    return int(node.mission.loop.belief.observed.sum())


def test_it_waits_for_the_first_map_and_the_map_grows_twice(ros: Ros, tmp_path: Path) -> None:
    run = tmp_path / "run"
    node = sensing(ros, f"run_dir:={run}", "budget.readings:=30", given=PARAMETERS)
    probe = Probe(ros)
    probe.wait_value("state", "waiting")
    assert "waiting for a map on topic /map: nobody publishes it" in probe.values["reason"]
    assert node.mission is None
    assert not run.exists()
    slam = ros.node("slam").create_publisher(OccupancyGrid, "/map", qos.latched())
    slam.publish(grid_message(NOTHING_FREE))
    wait_until(lambda: probe.values.get("maps_refused") == "1", "the first map to be refused")
    assert "has no cell for a place" in probe.values["reason"]
    assert node.mission is None, "the next one is waited for"
    slam.publish(grid_message(ROOM))
    wait_active(node)
    assert node.mission is not None
    assert places(node) == 8
    names = node.mission.loop.topology.names
    probe.connect()
    probe.obedient = True
    probe.pose(0.0)
    wait_until(lambda: observed(node) >= 3, "three places to be read")
    bad = grid_message(ROOM)
    bad.data = bad.data[:2]
    slam.publish(bad)
    wait_until(lambda: "got 2" in probe.values.get("map_problem", ""), "the problem of the map")
    slam.publish(grid_message(LARGER))
    wait_until(lambda: places(node) == 12, "the map to grow")
    wait_until(lambda: observed(node) == 12, "all of it to be read")
    wait_until(lambda: node.mission and node.mission.reason.endswith("the map may grow"), "a wait")
    assert node.mission.state == "running"
    slam.publish(grid_message(LARGEST))
    wait_until(lambda: places(node) == 32, "the map to grow again")
    assert node.mission.loop.topology.names[:8] == names
    probe.wait_value("state", "ended")
    wait_until((run / "report.html").exists, "the report")
    assert observed(node) == 30
    wait_until(lambda: len(probe.heard["field"]) and probe.heard["field"][-1].width == 32, "a map")
    data = load_run(run)
    again = replay(data)
    assert again.unused == 0
    mean = node.mission.loop.belief.predict()[0]
    np.testing.assert_allclose(again.belief.predict()[0], mean, rtol=1e-9)
    assert sorted(path.name for path in run.glob("map-*.yaml")) == [
        "map-1.yaml", "map-2.yaml", "map-3.yaml",
    ]  # fmt: skip
