"""The nodes of replay.launch.py on a bag: belief as after the same readings told offline."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import yaml

pytest.importorskip("rclpy", reason="ROS 2 is not installed")
pytest.importorskip("rosbags", reason="the extra [bag] is not installed")

from sensor_msgs.msg import PointCloud2

from gp_active_sensing.records.event_lines import parse_events
from gp_active_sensing.records.events import ReadingUsed
from gp_active_sensing.records.run_directory import RunDirectory
from gp_active_sensing.report.steps import BeliefUpdater
from gp_active_sensing.sim import build_loop, build_world, load_scenario
from gp_active_sensing.types import Reading
from tests.commanding import ran
from tests.replay.bags import write_bag
from tests.replay.missions import odometry, temperature
from tests.ros.conftest import Ros
from tests.ros.launched import runner
from tests.ros.reports import check_command_reports

COLUMNS, ROWS, SPACING = 6, 5, 10.0
START = 1_700_000_000_000_000_000
SECOND = 1_000_000_000
SCENARIO = {
    "name": "field",
    "map": {"kind": "grid", "columns": COLUMNS, "rows": ROWS, "spacing": SPACING},
    "field": {"kind": "gp", "length_scale": 20.0, "signal_std": 3.0, "mean": 12.0},
    "sensor": {"noise_std": 0.5},
    "belief": {
        "length_scales": [5.0, 20.0, 60.0],
        "signal_std": [3.0],
        "noise_std": [0.5],
        "mean_value": 10.0,
        "mean_std": 10.0,
    },
    "policy": {"name": "random"},
}


class Drive(NamedTuple):
    bag: Path
    scenario: Path
    readings: list[Reading]


@pytest.fixture(scope="module")
def drive(tmp_path_factory: pytest.TempPathFactory) -> Drive:
    """A drive to and fro over half of a grid: ten poses a second, two readings a place."""
    folder = tmp_path_factory.mktemp("drive")
    scenario = folder / "field.yaml"
    scenario.write_text(yaml.safe_dump(SCENARIO))
    world = build_world(load_scenario(scenario))
    rng = np.random.default_rng([11])
    readings: list[Reading] = []
    messages: list[tuple[str, int, Any]] = []
    for step in range(18):
        row, column = divmod(step, COLUMNS)
        x = SPACING * (column if row % 2 == 0 else COLUMNS - 1 - column)
        y = SPACING * row
        place = world.topology.snap(x, y, 0.1)
        assert place is not None
        for tick in range(10):
            stamp = START + step * SECOND + tick * SECOND // 10
            messages.append(("/car/odom", stamp, odometry(stamp, x, y)))
            if tick in (3, 7):
                value = float(world.truth.at(0.0)[place] + 0.5 * rng.standard_normal())
                taken = stamp + 1_000_000
                readings.append(Reading(taken, place, value, 0.25))
                messages.append(("/car/temperature", taken, temperature(taken, value, 0.25)))
    bad = START + 5 * SECOND + SECOND // 2 + 2
    messages.append(("/car/temperature", bad, temperature(bad, float("nan"), 0.25)))
    messages.sort(key=lambda entry: entry[1])
    return Drive(write_bag(folder / "bag", messages), scenario, readings)


def replay(drive: Drive, run_dir: Path, word: str) -> subprocess.CompletedProcess[str]:
    topics = ("reading_topic:=/car/temperature", "pose_topic:=/car/odom")
    files = (f"bag:={drive.bag}", f"scenario:={drive.scenario}", f"run_dir:={run_dir}")
    return ran(*runner("replay", *files, *topics, "reading_variance_field:=variance", word))


@pytest.mark.parametrize("rate", ["0", pytest.param("20", marks=pytest.mark.long)])
def test_the_belief_equals_that_of_the_same_readings_told_offline(
    tmp_path: Path, drive: Drive, ros: Ros, rate: str
) -> None:
    heard = ros.hear(PointCloud2, "/active_sensing/field")
    done = replay(drive, tmp_path / "run", f"rate:={rate}")
    assert done.returncode == 0, done.stdout
    scenario = load_scenario(drive.scenario)
    world = build_world(scenario)
    offline = build_loop(scenario, world.topology)

    run = RunDirectory.open(tmp_path / "run")
    events = [event for event in parse_events(run.events()) if isinstance(event, ReadingUsed)]
    updater = BeliefUpdater(offline.belief, world.topology)
    used = list(filter(None, map(updater.add, events)))
    assert len(used) == len(drive.readings) == 36
    told = [event.reading for event in events]
    told.sort(key=lambda reading: reading.stamp_ns)
    assert [(r.stamp_ns, r.location, r.value, r.noise_variance) for r in told] == [
        (r.stamp_ns, r.location, r.value, r.noise_variance) for r in drive.readings
    ]
    summary = run.summary()
    assert summary["observed"] == 18
    assert summary["readings"] == 36
    assert summary["rejected_by_reason"] == {"not_finite": 1}
    weights = {tuple(e["length_scale"]): e["weight"] for e in summary["length_scales"]}
    expected = {
        tuple(h.length_scales): w
        for h, w in zip(offline.belief.hyperparameters, offline.belief.weights, strict=True)
    }
    assert weights == pytest.approx(expected, abs=1e-12)
    assert run.records() == []
    assert (summary["status"], summary["reason"]) == ("finished", "asked to finish")
    assert (run.path / "report.html").is_file(), "the node writes it by itself"
    check_command_reports(run.path)

    mean, variance = offline.belief.predict()
    cloud = heard[-1]
    table = np.frombuffer(cloud.data.tobytes(), dtype="<f4").reshape(-1, 5)
    np.testing.assert_allclose(table[:, :2], world.topology.positions)
    np.testing.assert_allclose(table[:, 3], mean, rtol=1e-5)
    np.testing.assert_allclose(table[:, 4], np.sqrt(variance), rtol=1e-4)
    assert "played 217 messages (/car/odom: 180, /car/temperature: 37)" in done.stdout


@pytest.mark.long
def test_a_long_bag_played_as_fast_as_it_is_taken_in_loses_nothing(
    tmp_path: Path, drive: Drive
) -> None:
    """Ten times what the transport can hold, in one burst, if nothing held it back."""
    poses, every = 6000, 5
    messages: list[tuple[str, int, Any]] = []
    for number in range(poses):
        stamp = START + number * SECOND // 50
        last = COLUMNS - 1  # to and fro
        x = SPACING * abs((number / 500 + last) % (2 * last) - last)
        column = round(x / SPACING)
        messages.append(("/car/odom", stamp, odometry(stamp, x, 0.0)))
        if number % every == 2:
            messages.append(("/car/temperature", stamp, temperature(stamp, 12.0 + column, 0.25)))
    long = drive._replace(bag=write_bag(tmp_path / "bag", messages))
    done = replay(long, tmp_path / "run", "rate:=0")
    assert done.returncode == 0, done.stdout
    assert "never reported" not in done.stdout
    summary = RunDirectory.open(tmp_path / "run").summary()
    assert summary["readings"] == poses // every
    assert summary["rejected"] == 0
    assert summary["dropped"] == {}
    assert summary["observed"] == COLUMNS
