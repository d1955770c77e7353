from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gp_active_sensing.errors import MapError, RunError
from gp_active_sensing.mission.live_map import NoMapYet
from gp_active_sensing.mission.mission import GROWS
from gp_active_sensing.records.run_map import (
    keep_map,
    kept_map,
    mark_of_places,
    other_places,
    run_topology,
)
from gp_active_sensing.report.source import load_run
from gp_active_sensing.topology import MapConfig, build_topology, grids
from gp_active_sensing.topology.live import mark_of
from gp_active_sensing.web.follow import RunFollower
from tests.cases import for_each
from tests.journals import events_of
from tests.unit.mission.grids import (
    LARGER,
    LARGEST,
    LIVE,
    NOTHING_FREE,
    ROOM,
    drive_on,
    house,
    take,
)
from tests.unit.mission.missions import Drive

SHELF = house((-1.0, -1.0, 15.0, 7.0), taken=((1.0, 1.0, 3.0, 7.0),))


def test_the_map_grows_twice_while_the_mission_goes_on(tmp_path: Path) -> None:
    drive = drive_on(tmp_path / "run", budget={"readings": 60}).start()
    loop = drive.built.mission.loop
    names = loop.topology.names
    assert len(names) == 16
    drive.steps(20)
    read = loop.belief.readings.copy()
    left = loop.remaining.readings
    assert take(drive, LARGER)
    assert loop.topology.names[:16] == names
    assert loop.topology.n == loop.belief.n == 32
    np.testing.assert_array_equal(loop.belief.readings[:16], read)
    assert loop.remaining.readings == left
    drive.steps(20)
    assert take(drive, LARGEST)
    assert loop.topology.names[:16] == names
    drive.run()
    assert drive.built.mission.reason == "the budget of readings is spent"
    assert loop.belief.observed.sum() == 60
    assert loop.belief.observed[32:].any(), "it goes where the map has grown"
    assert len(events_of(tmp_path / "run", "map")) == 2


def test_occupied_places_are_left_out_and_come_back() -> None:
    drive = drive_on(None, LARGER).start()
    mission, loop = drive.built.mission, drive.built.mission.loop
    drive.steps(3)
    before = loop.belief.observed
    assert take(drive, SHELF)
    closed = {loop.topology.names[place] for place in loop.closed}
    assert closed == {"c1r1", "c1r2", "c1r3"}
    assert not loop.topology.weights[sorted(loop.closed)].any()
    plan = mission.probe.plan
    assert plan is None or not loop.closed.intersection(plan.path)
    drive.run()
    assert not (loop.belief.observed & ~before)[sorted(loop.closed)].any()
    read = int(loop.belief.observed.sum())
    assert read >= 28, "all that can be reached is read"
    again = drive_on(None, SHELF).start()
    assert take(again, LARGER)
    assert not again.built.mission.loop.closed
    assert again.built.mission.loop.topology.n == 32


def test_a_probe_under_way_to_a_place_that_becomes_occupied_is_sent_elsewhere() -> None:
    drive = drive_on(None, LARGER).start()
    mission = drive.built.mission
    while mission.probe.target is None:
        for step in mission.step(drive.now_ns):
            mission.decided(step.job, step.job.ask())  # type: ignore[arg-type, union-attr]
        drive.now_ns += 100_000_000
    target = mission.probe.target
    x, y = mission.loop.topology.positions[target].tolist()
    spot = (x - 0.6, y - 0.6, x + 0.6, y + 0.6)
    assert take(drive, house((-1.0, -1.0, 15.0, 7.0), taken=(spot,)))
    assert mission.loop.closed == {target}
    assert mission.probe.plan is None
    assert mission.state == "running"
    drive.steps(5)
    assert mission.probe.target != target


def test_a_map_without_free_cells_is_refused_and_the_mission_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    drive = drive_on(None).start()
    mission = drive.built.mission
    assert mission.map is not None
    drive.steps(5)
    assert not take(drive, NOTHING_FREE)
    assert mission.map.refused == {"no_places": 1}
    assert "has no cell for a place" in mission.map.problem
    assert "0 free, 0 occupied, 400 unknown" in caplog.text
    assert take(drive, LARGER)
    assert not mission.map.problem
    drive.run()
    assert mission.loop.belief.observed.sum() == 30


def test_a_map_in_another_frame_is_refused_with_both_names() -> None:
    drive = drive_on(None).start()
    assert not take(drive, house((-1.0, -1.0, 15.0, 7.0), frame="odom"))
    assert drive.built.mission.map.refused == {"frame": 1}
    assert "in frame 'odom', and the mission in frame 'map'" in drive.built.mission.map.problem
    odd = house((0.0, 0.0, 9.0, 9.0), frame="odom")
    other = drive_on(None, odd, map={**LIVE, "frame": "map"})
    with pytest.raises(MapError, match="in frame 'odom', and the mission in frame 'map'"):
        other.start()


def test_without_a_map_there_is_no_mission_and_nothing_is_left_behind(tmp_path: Path) -> None:
    drive = drive_on(tmp_path / "run", None)
    with pytest.raises(NoMapYet, match="no map has come on topic map yet"):
        drive.start()
    assert not (tmp_path / "run").exists()
    drive.first = NOTHING_FREE
    with pytest.raises(MapError, match="has no cell for a place"):
        drive.start()
    assert not (tmp_path / "run").exists()
    drive.first = ROOM
    drive.start()
    assert mark_of(kept_map(tmp_path / "run").grid) == mark_of(ROOM.grid)
    file = MapConfig(kind="grid", file="house.yaml")
    assert run_topology(file, tmp_path / "run").n == build_topology(file).n, "a map of a file"


def test_the_mission_waits_for_a_map_that_may_grow() -> None:
    drive = drive_on(None, map={**LIVE, "patience": 2.0}).start()
    mission = drive.built.mission
    for _ in range(2000):
        drive.step()
        if mission.reason.endswith(GROWS):
            break
    assert mission.loop.belief.observed.all()
    assert mission.state == "running"
    assert take(drive, LARGER)
    drive.steps(5)
    assert mission.reason == ""
    assert mission.probe.target is not None
    for _ in range(2000):
        drive.step()
        if mission.loop.remaining.readings == 0:
            break
    drive.run()
    assert mission.reason == "the budget of readings is spent", "then nothing is waited for"


MAPS = {15: LARGER, 30: SHELF, 45: LARGEST, 60: LARGER}


def run_through(drive: Drive, kill_at: tuple[int, ...] = ()) -> None:
    """Drive to the end, with maps at fixed steps; killed and gone on with before others."""
    number = 0
    while drive.built.mission.state != "ended":
        number += 1
        if number in kill_at:
            drive.kill()
            drive.first = None  # nobody has published one since
            drive.start()
        if number in MAPS:
            take(drive, MAPS[number])
        drive.step()


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"policy": {"name": "tour"}},
        {"belief": {"noise_std": [0.3]}, "policy": {"name": "ie"}},
        {"policy": {"name": "integrated_variance"}, "probe": {"end": "c0r0"}},
    ],
    ids=["bal", "tour", "unknown-scale", "way-home"],
)
def test_a_mission_killed_between_maps_goes_on_as_if_it_had_not_been(
    tmp_path: Path, more: dict[str, Any]
) -> None:
    plain = drive_on(tmp_path / "plain", **more).start()
    run_through(plain)
    killed = drive_on(tmp_path / "killed", **more).start()
    run_through(killed, (16, 31, 44, 52, 70))
    assert killed.decided == plain.decided
    for one, other in zip(killed.outcome()[1:], plain.outcome()[1:], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9)
    mine, theirs = killed.built.mission, plain.built.mission
    assert mine.loop.topology.names == theirs.loop.topology.names
    assert mine.loop.closed == theirs.loop.closed
    assert mine.driven.metres == pytest.approx(theirs.driven.metres)
    assert mine.loop.remaining == theirs.loop.remaining


def test_a_run_directory_without_its_maps_is_not_gone_on_with(tmp_path: Path) -> None:
    drive = drive_on(tmp_path / "run").start()
    drive.steps(10)
    take(drive, LARGER)
    drive.steps(5)
    drive.kill()
    (tmp_path / "run" / "map-2.yaml").rename(tmp_path / "away.yaml")
    with pytest.raises(RunError, match=r"map-2.yaml: is missing"):
        drive.start()
    (tmp_path / "away.yaml").rename(tmp_path / "run" / "map-2.yaml")
    image = tmp_path / "run" / "map-2.pgm"
    data = bytearray(image.read_bytes())
    data[-1] = 100
    image.write_bytes(bytes(data))
    with pytest.raises(RunError, match=r"is not the map that the journal means"):
        drive.start()


HALL = house((-1.0, -1.0, 25.0, 17.0))
UNSTATED = {key: value for key, value in LIVE.items() if key != "spacing"}


def another_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a later version work out coarser places."""
    monkeypatch.setattr(grids, "USUAL_PLACES", 60)


def on_files(folder: Path) -> dict[str, dict[str, Any]]:
    """Return maps whose spacing nobody states, by the kind of their file."""
    keep_map(folder, 1, HALL)
    ring = [[-3.0, -2.0], [290.5, -2.0], [290.5, 70.0], [-3.0, 70.0], [-3.0, -2.0]]
    shore = {"type": "Polygon", "coordinates": [ring]}
    feature = {"type": "Feature", "properties": {}, "geometry": shore}
    areas = {"type": "FeatureCollection", "crs": "local", "features": [feature]}
    (folder / "shore.geojson").write_text(json.dumps(areas), encoding="utf-8")
    return {
        "map_server": {"kind": "grid", "file": str(folder / "map-1.yaml")},
        "areas": {"kind": "grid", "file": str(folder / "shore.geojson")},
    }


def cut_off(drive: Drive, count: int = 10) -> tuple[str, ...]:
    drive.start()
    drive.steps(count)
    names = drive.built.mission.loop.topology.names
    drive.kill()
    return names


def same_places(names: tuple[str, ...], run: Path) -> None:
    """Report and live page have the places of the run."""
    assert load_run(run).topology.names == names
    follower = RunFollower(run)
    follower.advance(60.0)
    assert follower.found is not None, follower.problem
    assert follower.found.data.topology.names == names


@for_each("kind", ["map_server", "areas"])
def test_places_of_a_file_stay_when_a_version_works_them_out_otherwise(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    section, run = on_files(tmp_path)[kind], tmp_path / "run"
    drive = Drive(run, map=section)
    names = cut_off(drive)
    another_rule(monkeypatch)
    assert build_topology(MapConfig(**section)).n < len(names), "it would be another map"
    same_places(names, run)
    drive.start()
    assert drive.built.mission.loop.topology.names == names
    drive.run()
    assert load_run(run).topology.names == names
    assert len(events_of(run, "reading")) >= 10


def test_places_of_a_topic_stay_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = tmp_path / "run"
    drive = drive_on(run, HALL, map=UNSTATED)
    names = cut_off(drive)
    another_rule(monkeypatch)
    same_places(names, run)
    drive.first = LARGER  # another one is published by now
    drive.start()
    assert drive.built.mission.loop.topology.names == names


def test_a_file_that_has_changed_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    section, run = on_files(tmp_path)["map_server"], tmp_path / "run"
    drive = Drive(run, map=section)
    count = len(cut_off(drive))
    keep_map(tmp_path, 1, house((-1.0, -1.0, 21.0, 17.0)))
    said = rf"run: map 'map-1': it does not give .*: expected {count} places from .* came \d+ from"
    with pytest.raises(RunError, match=said) as found:
        drive.start()
    assert "put it back as it was" in str(found.value)
    assert "begin a new run in another directory" in str(found.value)
    with pytest.raises(RunError, match=said):
        load_run(run)
    follower = RunFollower(run)
    follower.advance(60.0)
    assert follower.found is None
    assert "does not give the places" in follower.problem
    keep_map(tmp_path, 1, HALL)
    drive.start()
    assert drive.built.mission.loop.topology.n == count


def marked(change: Any = None, names: tuple[str, ...] | None = None) -> dict[str, Any]:
    """Return the mark of a grid whose positions were changed."""
    topology = build_topology(MapConfig("grid", columns=20, rows=15, spacing=5.0))
    points = topology.points.copy()
    if change is not None:
        change(points)

    class Changed:
        n = topology.n

    changed: Any = Changed()
    changed.names, changed.points = names or topology.names, points
    return json.loads(json.dumps(mark_of_places(changed)))  # as a journal has it


def test_a_mark_tells_other_places() -> None:
    mark = marked()
    assert other_places(None, mark) == ""
    assert other_places(mark, marked()) == ""

    def noise(points: np.ndarray) -> None:
        points += np.random.default_rng(0).normal(0.0, 1e-3, points.shape)

    def one(points: np.ndarray) -> None:
        points[123] += 2.0

    assert other_places(mark, marked(noise)) == "", "another machine may be a millimetre off"
    assert other_places(mark, marked(one))
    assert other_places(mark, marked(names=tuple(map(str, range(300)))))
    for unreadable in ({"count": 300}, "?"):
        assert other_places(unreadable, mark)
