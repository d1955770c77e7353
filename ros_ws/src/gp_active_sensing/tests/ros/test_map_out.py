from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from nav_msgs.msg import OccupancyGrid
from sensor_msgs.msg import PointField
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import Trigger

from gp_active_sensing.errors import RunError
from gp_active_sensing.export import export_map
from gp_active_sensing.report.reconstruction import map_of_run
from gp_active_sensing.ros import qos
from tests.journals import events_of
from tests.ros.conftest import Ros, wait_until
from tests.ros.probe import Probe, sensing
from tests.unit.report.runs import data_of, unpack

TALL = ("map.rows:=3", "map.origin:=[5.0, -20.0]")


def read_one(ros: Ros, *parameters: str, value: float = 12.0) -> tuple[Any, Probe]:
    """A mission that has read one place and was sent on."""
    node = sensing(ros, *parameters)
    probe = Probe(ros).connect()
    probe.pose(5.0, -20.0 if TALL[1] in parameters else 0.0)
    wait_until(lambda: probe.waypoints, "the first waypoint")
    place, t = probe.waypoints[0].pose.position, probe.now_ns()
    probe.pose(place.x, place.y, t=t)
    probe.reading(value, t=t)
    wait_until(lambda: len(probe.waypoints) == 2, "the second waypoint")
    return node, probe


def grids(ros: Ros) -> dict[str, list[Any]]:
    kinds = {"mean_grid": OccupancyGrid, "std_grid": OccupancyGrid}
    return {
        name: ros.hear(kind, f"/active_sensing/{name}", qos.latched())
        for name, kind in (kinds | {"grid_limits": Float64MultiArray}).items()
    }


def test_a_costmap_gets_levels_of_mean_and_deviation(ros: Ros) -> None:
    _, probe = read_one(ros, *TALL, "map.obstacles:='[[[14, -11], [16, -9]]]'")
    heard = grids(ros)  # comes late: the topics are latched

    def level(name: str, x: float, y: float) -> int:
        message = heard[name][-1]
        info = message.info
        column = int((x - info.origin.position.x) / info.resolution)
        row = int((y - info.origin.position.y) / info.resolution)
        return int(message.data[row * info.width + column])

    first = probe.waypoints[0].pose.position
    wait_until(lambda: all(heard.values()), "both grids and their limits")
    wait_until(lambda: level("std_grid", first.x, first.y) < 50, "the grids after the reading")
    for name in ("mean_grid", "std_grid"):
        message = heard[name][-1]
        assert message.header.frame_id == "map"
        assert (message.info.width, message.info.height) == (4, 3)
        assert message.info.resolution == 10.0
        origin = message.info.origin
        assert (origin.position.x, origin.position.y) == (0.0, -25.0)  # a corner, not a centre
        assert origin.orientation.w == 1.0
        assert level(name, 15.0, -10.0) == -1  # the obstacle
        assert all(0 <= v <= 100 for v in message.data if v != -1)
        assert list(message.data).count(-1) == 1
    cloud = probe.heard["field"][-1]
    limits = heard["grid_limits"][-1]
    said = dict(zip((dim.label for dim in limits.layout.dim), limits.data, strict=True))
    assert said["std_low"] == 0.0
    import numpy as np

    found = [(field.name, field.offset, field.datatype) for field in cloud.fields]
    names = ("x", "y", "z", "mean", "std")
    assert found == [(name, 4 * i, PointField.FLOAT32) for i, name in enumerate(names)]
    assert (cloud.point_step, cloud.row_step) == (20, 20 * cloud.width)
    table = np.frombuffer(bytes(cloud.data), dtype="<f4").reshape(cloud.width, 5)
    for column, name in ((3, "mean"), (4, "std")):
        low, high = said[f"{name}_low"], said[f"{name}_high"]
        assert table[:, column].max() == pytest.approx(high, rel=1e-5)
        for row in table:
            value = low + (high - low) * level(f"{name}_grid", row[0], row[1]) / 100
            assert value == pytest.approx(row[column], abs=0.006 * (high - low) + 1e-5)


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def test_save_writes_the_map_as_it_is_and_the_end_once_more(ros: Ros, tmp_path: Path) -> None:
    run = tmp_path / "run"
    formats = "mission.export:=['csv', 'geojson']"
    _, probe = read_one(ros, f"run_dir:={run}", "budget.readings:=3", formats)
    client = ros.node("operator").create_client(Trigger, "/active_sensing/save")
    answer = ros.call(client, Trigger.Request())
    assert answer.success
    assert answer.message == f"summary and map.csv and map.geojson written to {run}"
    rows = rows_of(run / "map.csv")
    assert [row["place"] for row in rows] == ["c0r0", "c1r0", "c2r0", "c3r0"]
    assert sorted(row["readings"] for row in rows) == ["0", "0", "0", "1"]
    assert [float(row["value"]) for row in rows if row["value"]] == [12.0]
    probe.obedient = True
    probe.hear(probe.waypoints[-1])
    probe.wait_value("state", "ended")
    wait_until((run / "report.html").exists, "the report")
    rows = rows_of(run / "map.csv")
    assert sum(row["readings"] != "0" for row in rows) == 3
    found = map_of_run(run)  # the journal gives the same map
    assert [float(row["mean"]) for row in rows] == pytest.approx(found.mean.tolist(), rel=1e-9)
    assert [float(row["std"]) for row in rows] == pytest.approx(found.std.tolist(), rel=1e-9)
    assert len(json.loads((run / "map.geojson").read_text())["features"]) == 4
    page = data_of(run / "report.html")
    [track] = page["tracks"]  # of the poses that were published
    driven = unpack(track["x"])[:, 0]
    assert driven[0] == pytest.approx(5.0, abs=0.01)
    assert len(driven) >= 3
    read = [event["location"] for event in events_of(run, "reading")]
    assert page["quality"]["places"] == list(dict.fromkeys(read))
    with pytest.raises(RunError, match="there already"):
        export_map(found, run / "map.csv", "csv")


def test_a_mission_that_is_shut_down_leaves_its_map(ros: Ros, tmp_path: Path) -> None:
    run = tmp_path / "run"
    node, _ = read_one(ros, f"run_dir:={run}")
    assert not (run / "map.csv").exists()
    node.release()
    assert sum(row["readings"] != "0" for row in rows_of(run / "map.csv")) == 1
    assert json.loads((run / "summary.json").read_text())["status"] == "interrupted"
