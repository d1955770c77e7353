from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gp_active_sensing.errors import ReplayError, RunError
from gp_active_sensing.records.run_directory import RunDirectory
from gp_active_sensing.replay.options import ReplayOptions
from gp_active_sensing.replay.run import replay_bag
from gp_active_sensing.report.source import load_run
from gp_active_sensing.topology import grids, live
from tests.replay.bags import write_bag
from tests.replay.missions import CONFIG, Recorder, occupancy, odometry, temperature
from tests.replay.test_again import check_equal, compared
from tests.unit.mission.grids import NOTHING_FREE, house

MAP = {"kind": "grid", "topic": "map", "spacing": 2.0}
ROOM = house((-1.0, -1.0, 9.0, 5.0))
SHELF = house((-1.0, -1.0, 15.0, 5.0), taken=((3.0, 1.0, 7.0, 5.0),))
LARGEST = house((-7.0, -1.0, 15.0, 9.0))
MAPS = {0.0: ROOM, 4.0: NOTHING_FREE, 6.0: SHELF, 12.0: LARGEST}


def recorded() -> Recorder:
    config = {"map": MAP, "policy": {"name": "ie"}}
    return Recorder(3, config=config, maps=dict(MAPS), seconds=20.0).run()


def test_the_decisions_come_out_again_on_the_maps_that_came(tmp_path: Path) -> None:
    played = recorded()
    assert played.mission.map is not None
    assert played.mission.map.places.number == 3
    bag = played.bag(tmp_path / "bag")
    comparison = compared(bag, tmp_path / "run")
    check_equal(comparison, least=15)
    assert load_run(tmp_path / "run").topology.names == played.mission.loop.topology.names
    assert sum(e["event"] == "map" for e in RunDirectory.open(tmp_path / "run").events()) == 2


def test_places_that_were_worked_out_come_out_again_whatever_the_rule_is_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unstated = {key: value for key, value in MAP.items() if key != "spacing"}
    config = {"map": unstated, "policy": {"name": "ie"}}
    played = Recorder(3, config=config, maps={0.0: ROOM}, seconds=10.0).run()
    bag = played.bag(tmp_path / "bag")
    monkeypatch.setattr(grids, "USUAL_PLACES", 20)
    comparison = compared(bag, tmp_path / "run")
    check_equal(comparison, least=5)
    assert load_run(tmp_path / "run").topology.names == played.mission.loop.topology.names


def test_a_bag_whose_map_gives_other_places_now_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    played = Recorder(3, config={"map": MAP}, maps={0.0: ROOM}, seconds=5.0).run()
    bag = played.bag(tmp_path / "bag")
    made = live.make_occupancy_map

    def otherwise(*args: Any, **more: Any) -> Any:
        return made(*args, **{**more, "anchor": (0.5, 0.5)})

    monkeypatch.setattr(live, "make_occupancy_map", otherwise)
    said = r"bag .*: map 'map': it does not give the places that the run began with: expected \d+"
    with pytest.raises(RunError, match=said):
        replay_bag(bag, tmp_path / "run")


def test_a_bag_without_the_maps_is_refused(tmp_path: Path) -> None:
    played = recorded()
    kept = [entry for entry in played.messages if entry[0] != "/map"]
    bag = write_bag(tmp_path / "bag", sorted(kept, key=lambda entry: entry[1]))
    with pytest.raises(ReplayError, match=r"has no topic /map, from which the map comes"):
        replay_bag(bag, tmp_path / "run")
    some = [e for e in played.messages if e[0] != "/map"] + [("/map", 10**11, occupancy(ROOM))]
    bag = write_bag(tmp_path / "some", sorted(some, key=lambda entry: entry[1]))
    with pytest.raises(ReplayError, match=r"2 of the 3 maps that the mission used are not in"):
        replay_bag(bag, tmp_path / "run")


def followed(folder: Path, maps: dict[int, object]) -> Path:
    """A robot that drove to and fro and recorded its map, its poses and its readings."""
    second = 10**9
    messages = [("/map", at * second, found) for at, found in maps.items()]
    for i in range(120):
        x, stamp = 7.0 * (1.0 - np.cos(0.1 * i)), (100 + i) * second
        messages.append(("/pose", stamp, odometry(stamp, float(x), 0.0)))
        messages.append(("/reading", stamp, temperature(stamp - 1, 10.0 + 0.1 * float(x))))
    return write_bag(folder, sorted(messages, key=lambda entry: entry[1]))


def options(folder: Path) -> ReplayOptions:
    config = {**CONFIG, "map": MAP, "pose": {"topic": "/pose"}}
    path = folder / "params.yaml"
    path.write_text(json.dumps({"/**": {"ros__parameters": config}}), encoding="utf-8")
    return ReplayOptions(params=path)


def test_a_robots_own_bag_is_followed_on_its_own_map(tmp_path: Path) -> None:
    maps = {99: occupancy(NOTHING_FREE), 100: occupancy(ROOM), 110: occupancy(LARGEST)}
    bag = followed(tmp_path / "bag", maps)
    found = replay_bag(bag, tmp_path / "run", options(tmp_path))
    assert found.summary["places"] == load_run(tmp_path / "run").topology.n
    events = RunDirectory.open(tmp_path / "run").events()
    assert [e["number"] for e in events if e["event"] == "map"] == [2]
    assert found.summary["observed"] >= 7, "also where the first map did not reach"
