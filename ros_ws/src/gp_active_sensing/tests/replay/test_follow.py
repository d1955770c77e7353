"""Bags of somebody else: the map reading by reading, and where the planner would have gone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gp_active_sensing.belief import belief_on
from gp_active_sensing.commands.console import summary_lines
from gp_active_sensing.errors import ConfigError, ReplayError
from gp_active_sensing.loop import SensingLoop
from gp_active_sensing.planning import build_policy
from gp_active_sensing.records.run_directory import RunDirectory
from gp_active_sensing.replay.options import ReplayOptions, settled
from gp_active_sensing.replay.run import replay_bag
from gp_active_sensing.replay.stages import information
from gp_active_sensing.report import write_report
from gp_active_sensing.report.reconstruction import map_of_run
from gp_active_sensing.topology import build_topology
from gp_active_sensing.types import PlanLimit, Reading
from tests.replay.bags import write_bag
from tests.replay.missions import odometry, temperature

START = 1_700_000_000_000_000_000
SECOND = 1_000_000_000
GRID = (
    "map.kind=grid",
    "map.columns=6",
    "map.rows=3",
    "map.spacing=10",
    "belief.length_scales=[10, 30]",
    "belief.signal_std=[2.0]",
    "belief.noise_std=[0.2]",
    "belief.mean_std=20",
)
GIVEN = ReplayOptions(
    overrides=(*GRID, "policy.name=ie", "reading.window=0"),
    reading_topic="/boat/temp",
    pose_topic="/boat/odom",
    expansions=50,
)
WAY = [0, 1, 2, 8, 7, 6, 12, 13, 14, 15]


@pytest.fixture(scope="module")
def bag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A boat that reads ten places of a grid, two readings each."""
    messages: list[tuple[str, int, Any]] = []
    for step, place in enumerate(WAY):
        x, y = 10.0 * (place % 6), 10.0 * (place // 6)
        for tick in range(5):
            stamp = START + step * SECOND + tick * SECOND // 5
            messages.append(("/boat/odom", stamp, odometry(stamp, x, y)))
            if tick in (1, 3):
                value = 15.0 + np.sin(0.1 * x) + 0.05 * y
                messages.append(("/boat/temp", stamp + 1, temperature(stamp, float(value))))
    return write_bag(tmp_path_factory.mktemp("boat") / "bag", messages)


def test_the_decisions_are_those_of_the_same_engine_asked_by_hand(
    tmp_path: Path, bag: Path
) -> None:
    done = replay_bag(bag, tmp_path / "run", GIVEN)
    config, _ = settled(GIVEN, None, {}, follow=True)
    topology = build_topology(config.map)
    loop = SensingLoop(
        topology,
        belief_on(config.belief, topology),
        build_policy(config.policy),
        limit=PlanLimit(expansions=50),
    )
    records = RunDirectory.open(tmp_path / "run").records()
    assert len(records) == len(WAY)
    at, late, told_at = WAY[0], None, list[int]()
    for record, place in zip(records, WAY, strict=True):
        plan = loop.ask(at)
        told = information(loop.belief, [plan.waypoints[0], place])
        assert record["location"] == plan.waypoint
        assert record["went"] == place
        assert record["information"] == {"planned": told[0], "went": told[1]}
        x, y = topology.positions[place].tolist()
        value = 15.0 + np.sin(0.1 * x) + 0.05 * y
        assert record["value"] == pytest.approx(value)
        if late is not None:  # the second reading of a place comes when the decision is taken
            loop.tell([late])
        stamp_ns = 10_000_000_000 * len(told_at)
        told_at.append(stamp_ns)
        loop.tell([Reading(stamp_ns, place, value)])
        # Equal to the last digit and soon after: it counts once.
        at, late = place, Reading(stamp_ns + 500_000_000, place, value)
    found = done.summary["replay"]["information"]
    assert found["stages"] == len(WAY)
    assert found["planned"] > found["went"] > 0.0
    assert found["planned"] == pytest.approx(sum(r["information"]["planned"] for r in records))
    assert found["agreed"] == sum(r["location"] == r["went"] for r in records)


def test_only_the_belief(tmp_path: Path, bag: Path) -> None:
    done = replay_bag(bag, tmp_path / "run", GIVEN, belief_only=True)
    run = RunDirectory.open(tmp_path / "run")
    assert not [event for event in run.events() if event["event"] in ("asked", "decision")]
    assert run.records() == []
    used = [event["location"] for event in run.events() if event["event"] == "reading"]
    assert list(dict.fromkeys(used)) == WAY
    assert (done.summary["readings"], done.summary["stages"]) == (2 * len(WAY), 0)
    assert done.summary["metres"] == pytest.approx(90.0, rel=0.05)
    page = write_report(tmp_path / "run").read_text("utf-8")
    assert "nothing was planned in this run" in page
    assert "<h1>mission · readings only" in page
    assert summary_lines(done.summary)[0].startswith("mission, seed 0: ")
    rows = (tmp_path / "run" / "map.csv").read_text().splitlines()
    assert (rows[0], len(rows)) == ("place,x,y,mean,std,observed", 1 + 18)
    assert sum(row.endswith(",1") for row in rows) == len(WAY)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"reading_topic": "/boat/salt"}, r"no topic /boat/salt \(reading\); it holds /boat/odom"),
        ({"reading_field": "temprature"}, "no field 'temprature'. Did you mean 'temperature'"),
        ({"overrides": (*GRID, "pose.type=nav_msgs/msg/Path")}, "pose.type: expected one of"),
        ({"overrides": (*GRID, "pose.type=tf")}, "tf cannot be replayed"),
    ],
)
def test_what_does_not_fit_is_said(
    tmp_path: Path, bag: Path, changes: dict[str, Any], said: str
) -> None:

    if "overrides" in changes:
        changes = {**changes, "pose_topic": ""}
    with pytest.raises((ConfigError, ReplayError), match=said):
        replay_bag(bag, tmp_path / "run", replace(GIVEN, **changes))


def test_messages_that_cannot_be_read_are_counted(tmp_path: Path, bag: Path) -> None:
    from rosbags.rosbag2 import StoragePlugin, Writer
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS2_JAZZY)
    path = tmp_path / "bag"
    with Writer(path, version=9, storage_plugin=StoragePlugin.MCAP) as writer:
        for topic, kind, content in (
            ("/boat/odom", "nav_msgs/msg/Odometry", odometry(START, 0.0, 0.0)),
            ("/boat/temp", "sensor_msgs/msg/Temperature", temperature(START, 3.0)),
        ):
            connection = writer.add_connection(topic, kind, typestore=store)
            data = bytes(store.serialize_cdr(content, kind))
            for i, some in enumerate((data, data[:9], b"", data)):
                writer.write(connection, START + i, some)
    found = replay_bag(path, tmp_path / "run", GIVEN, belief_only=True).summary
    assert found["replay"]["unreadable"] == {"/boat/odom": 2, "/boat/temp": 2}
    assert found["readings"] == 2


def test_a_bag_with_several_quantities(tmp_path: Path, bag: Path) -> None:
    from gp_active_sensing.replay.bag import Bag

    messages: list[tuple[str, int, Any]] = []
    with Bag(bag) as opened:
        for message in opened.messages(["/boat/odom", "/boat/temp"]):
            content = opened.decode(message)
            messages.append((message.topic, message.stamp_ns, content))
            if message.topic == "/boat/temp":
                deep = temperature(message.stamp_ns, 0.1 * content.temperature)
                messages.append(("/boat/depth", message.stamp_ns, deep))
    both = write_bag(tmp_path / "both", messages)
    further = ("readings.heat.topic=t", "readings.depth.topic=/boat/depth", "readings.ph.topic=ph")
    beliefs = tuple(f"readings.{q}.{one}" for q in ("depth", "ph") for one in GRID[4:])
    given = replace(GIVEN, overrides=(*GRID, "policy.name=tour", *further, *beliefs))
    found = replay_bag(both, tmp_path / "run", given)
    depth = found.summary["quantities"]["depth"]
    assert depth["readings"] == found.summary["readings"] == 2 * len(WAY)
    assert depth["observed"] == len(WAY)
    assert found.summary["quantities"]["ph"]["readings"] == 0, "the bag has none; that is logged"
    head, *_ = (tmp_path / "run" / "map.csv").read_text().splitlines()
    assert head.endswith("observed,depth,depth_std,depth_read,ph,ph_std,ph_read")
    field = map_of_run(tmp_path / "run")
    np.testing.assert_allclose(field.further["depth"].values, 0.1 * field.values, rtol=1e-6)
