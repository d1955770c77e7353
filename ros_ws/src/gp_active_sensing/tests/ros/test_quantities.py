from __future__ import annotations

import numpy as np
import pytest
from geometry_msgs.msg import PointStamped
from nav_msgs.msg import OccupancyGrid
from sensor_msgs.msg import PointCloud2, Range

from gp_active_sensing.errors import ConfigError
from gp_active_sensing.mission.config import ActiveSensingConfig
from gp_active_sensing.ros import qos
from gp_active_sensing.ros import to_messages as outputs
from gp_active_sensing.ros.subscriptions import _sensors
from tests.ros.conftest import Ros, wait_active, wait_until
from tests.ros.probe import GRID, Probe, sensing

POINT = "geometry_msgs/msg/PointStamped"
BELIEF = {"length_scales": "[20.0, 60.0]", "signal_std": "[1.0]", "noise_std": "[0.1]"}
SONDE = (
    *(one for one in GRID if not one.startswith(("reading.", "policy."))),
    "policy.name:=tour",
    "readings.heat.topic:=sonde",
    f"readings.heat.type:={POINT}",
    "readings.heat.field:=point.x",
    "readings.heat.unit:=degC",
    "readings.chl.topic:=sonde",
    f"readings.chl.type:={POINT}",
    "readings.chl.field:=point.y",
    "readings.chl.valid:=[0.0, 50.0]",
    "readings.depth.topic:=sounder",
    "readings.depth.type:=sensor_msgs/msg/Range",
    "readings.depth.field:=range",
    "mission.silent_places:=2",
    *(f"readings.{q}.belief.{k}:={v}" for q in ("chl", "depth") for k, v in BELIEF.items()),
)


def test_fields_of_one_message_and_topics_reach_their_beliefs(ros: Ros) -> None:
    node = sensing(ros, given=SONDE)
    probe = Probe(ros)
    fields = {
        name: ros.hear(PointCloud2, f"/active_sensing/{name}/field", qos.latched(10))
        for name in ("chl", "depth")
    }
    grids = ros.hear(OccupancyGrid, "/active_sensing/depth/mean_grid", qos.latched(10))
    sonde = probe.node.create_publisher(PointStamped, "sonde", qos.reliable(100))
    sounder = probe.node.create_publisher(Range, "sounder", qos.reliable(100))
    wait_active(node)
    ros.match(sonde, sounder)
    loop = node.mission.loop
    assert loop.name == "heat", "the first that was listed is the main one"
    assert list(loop.quantities) == ["chl", "depth"]

    def send(x: float, chl: float, depth: float | None) -> None:
        now = probe.now_ns()
        probe.pose(x, t=now)
        message = PointStamped()
        message.header.stamp = outputs.time_of(now)
        message.point.x, message.point.y = 18.0, chl
        sonde.publish(message)
        if depth is not None:
            ranged = Range(range=depth)
            ranged.header.stamp = message.header.stamp
            sounder.publish(ranged)

    send(0.0, 5.0, 3.0)
    counts = loop.counts
    wait_until(lambda: counts["accepted_chl"] == counts["accepted_depth"] == 1, "readings")
    assert counts["accepted"] == 1
    send(10.0, -9999.0, None)  # the message is decoded once, and one of its fields has no value
    wait_until(lambda: counts["accepted"] == 2, "the second temperature")
    assert node.mission.rejected["fill_value"] == 1
    assert counts["accepted_chl"] == 1
    send(20.0, 5.0, None)
    wait_until(lambda: any("depth" in a for a in node.mission.alarms), "an alarm of the sounder")
    assert node.mission.state == "running"
    probe.wait_value("chl_accepted", "2")
    wait_until(lambda: all(fields.values()) and bool(grids), "maps of all quantities")
    wait_until(lambda: abs(read_mean(fields["chl"][-1]) - 5.0) < 0.5, "that of the chlorophyll")
    assert abs(read_mean(fields["depth"][-1]) - 3.0) < 0.5


def test_a_probe_without_the_main_sensor_has_a_status(ros: Ros) -> None:
    more = ("probes:=[a, b]", "readings.heat.probes:=[a]", "readings.chl.probes:=[a]")
    node = sensing(ros, given=(*SONDE, *more))
    probe = Probe(ros)
    wait_active(node)
    wait_until(lambda: probe.values, "a status")
    assert not node.callback_errors


def read_mean(cloud: PointCloud2) -> float:
    names = [field.name for field in cloud.fields]
    offset = cloud.fields[names.index("mean")].offset
    return float(np.frombuffer(bytes(cloud.data[offset : offset + 4]), dtype=np.float32)[0])


def test_a_topic_that_is_described_in_two_ways_is_refused() -> None:
    from gp_active_sensing.config import from_mapping

    readings = {
        "heat": {"topic": "sonde", "type": POINT, "field": "point.x"},
        "depth": {"topic": "sonde", "type": "sensor_msgs/msg/Range", "field": "range"},
    }
    grid = {"kind": "grid", "columns": 4, "rows": 1, "spacing": 10.0}
    config = from_mapping(ActiveSensingConfig, {"map": grid, "readings": readings})
    with pytest.raises(ConfigError, match=r"readings\.depth\.type"):
        _sensors(config)
