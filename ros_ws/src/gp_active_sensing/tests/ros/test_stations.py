"""A mission with nodes on a table of stations: named columns, depths, ways between them."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from gp_active_sensing.errors import ConfigError
from gp_active_sensing.ros.active_sensing_node import ActiveSensingNode
from gp_active_sensing.ros.parameter_files import check_parameter_file
from tests.ros.conftest import Ros, wait_until
from tests.ros.probe import Probe

pytestmark = pytest.mark.ros

STATIONS = {
    "pier": (0.0, 0.0, -2.0),
    "buoy": (60.0, 5.0, -2.0),
    "wreck": (60.0, 5.0, -18.0),
    "reef": (110.0, 80.0, -9.0),
    "mouth": (-40.0, 90.0, -4.0),
}
WAYS = "from,to,metres\npier,buoy,70\nbuoy,wreck,20\nbuoy,reef,130\npier,mouth,120\n"
PARAMETERS = """\
active_sensing:
  ros__parameters:
    map:
      file: {table}
      distances: {ways}
      columns_of: {{name: Station, x: E, y: {north}, depth: Tiefe}}
      speed: 1.5
    belief: {{length_scales: [40.0], axis_ratio: [0.2], signal_std: [2.0], noise_std: [0.1]}}
    policy.name: tour
    budget.readings: 4
    mission: {{wait_for_reading: false, reading_timeout: 1000.0}}
    pose.max_age: 100.0
    run_dir: {run}
"""


def written(folder: Path, north: str = '"N"') -> Path:
    """Write the map of the stations and the mission on it; return the file of the mission."""
    table, ways = folder / "stations.csv", folder / "ways.csv"
    rows = [f"{name};{x};{y};{-z};{k}" for k, (name, (x, y, z)) in enumerate(STATIONS.items())]
    table.write_text("\n".join(["Station;E;N;Tiefe;Nr", *rows]) + "\n", encoding="utf-8")
    ways.write_text(WAYS, encoding="utf-8")
    file = folder / "mission.yaml"
    what = PARAMETERS.format(table=table, ways=ways, north=north, run=folder / "run")
    file.write_text(what, encoding="utf-8")
    check_parameter_file(file)
    return file


def test_a_mission_from_station_to_station(ros: Ros, tmp_path: Path) -> None:
    arguments = ["--ros-args", "--params-file", str(written(tmp_path))]
    node: ActiveSensingNode = ros.add(ActiveSensingNode(cli_args=arguments))
    probe = Probe(ros).connect()
    probe.field = lambda x, y: 12.0 + 0.05 * x - 0.02 * y
    probe.pose(*STATIONS["pier"][:2], z=STATIONS["pier"][2])
    wait_until(lambda: probe.waypoints, "the first waypoint")
    assert node.mission.loop.topology.names == tuple(STATIONS)
    probe.obedient = True
    probe.go()
    probe.wait_value("state", "ended")
    run = tmp_path / "run"
    wait_until((run / "map.csv").exists, "the map of the mission")
    places = {position: name for name, position in STATIONS.items()}
    sent = [
        places[w.pose.position.x, w.pose.position.y, w.pose.position.z] for w in probe.waypoints
    ]
    with (run / "map.csv").open(encoding="utf-8", newline="") as stream:
        rows = {row["place"]: row for row in csv.DictReader(stream)}
    assert list(rows) == list(STATIONS)
    for name, (x, y, z) in STATIONS.items():
        assert [float(rows[name][key]) for key in "xyz"] == [x, y, z]
    read = [name for name in STATIONS if int(rows[name]["readings"])]
    assert sorted(read) == sorted(sent)
    assert len(read) == 4
    for name in read:
        x, y, _ = STATIONS[name]
        assert float(rows[name]["value"]) == pytest.approx(12.0 + 0.05 * x - 0.02 * y)
    summary = json.loads((run / "summary.json").read_text())
    assert (summary["status"], summary["observed"]) == ("finished", 4)


def test_a_column_called_n_needs_quotes(ros: Ros, tmp_path: Path) -> None:
    """ROS takes a bare N for "no"; the refusal says so."""
    arguments = ["--ros-args", "--params-file", str(written(tmp_path, north="N"))]
    node = ActiveSensingNode(cli_args=arguments)
    try:
        with pytest.raises(ConfigError, match=r"map\.columns_of\.y: .*, got bool False \(quote it"):
            node.configure()  # nobody spins it
    finally:
        node.stop_forwarding_logs()
        node.destroy_node()
