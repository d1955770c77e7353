"""Missions in the traffic of a running SUMO."""

from __future__ import annotations

import os
import shutil
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from bench_support.sumo import flow, parked_at, ring, write_cars
from gp_active_sensing.cli import cli
from gp_active_sensing.errors import ConfigError, MapError, MissingDependencyError, RunError
from gp_active_sensing.records.metrics import rmspe
from gp_active_sensing.records.run_directory import RunDirectory
from gp_active_sensing.report.reconstruction import replay
from gp_active_sensing.report.source import load_run
from gp_active_sensing.sim import build_world, run_scenario, scenario_from_mapping
from gp_active_sensing.sim.runner import SimulationRunner
from gp_active_sensing_bench.traffic import session
from gp_active_sensing_bench.traffic.live import LiveTraffic
from tests.journals import write_events
from tests.unit.sim.scenarios import mapping
from tests.unit.sim.test_resume import without_times

ALL_ROUND = "ab bc cd da ab bc cd da ab bc cd da"


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A mission among two streams of cars, one stuck at times, and its run directory."""
    folder = tmp_path_factory.mktemp("busy")
    cars = write_cars(
        folder / "cars.rou.xml",
        flow(ALL_ROUND, name="a", period=9.0),
        flow("eb ba ad dc cb be eb ba", name="b", period=14.0),
    )
    what = ring(
        routes=[cars],
        begin=120.0,
        window=60.0,
        readings=7,
        options=["--device.rerouting.probability", "0.5"],
    )
    return what, folder


@pytest.fixture
def run(busy: Any, sumo: None) -> Any:
    what, folder = busy
    out = folder / "run"
    if not out.exists():
        run_scenario(what, out)
    return what, out


def final(out: Path) -> tuple[Any, ...]:
    run = RunDirectory.open(out)
    return tuple(map(without_times, (run.records(), run.events(), run.truth(), run.summary())))


def test_the_same_seed_gives_the_same_run(run: Any, tmp_path: Path) -> None:
    what, out = run
    run_scenario(what, tmp_path / "again")
    assert final(tmp_path / "again") == final(out)


def test_errors_are_against_the_speeds_of_that_time(run: Any) -> None:
    _, out = run
    directory = RunDirectory.open(out)
    truths, records = directory.truth(), directory.records()
    assert [t["seconds"] for t in truths] == [r["truth_seconds"] for r in records]
    assert truths[0]["values"] != truths[-1]["values"]
    data = load_run(out)
    assert data.truth is not None
    assert data.notes == ()
    found = replay(data)
    for step in found.steps[1:]:
        mean = found.mean[found.shown.index(step.number)]
        seen = np.zeros(mean.size, dtype=bool)
        for earlier in found.steps[: step.number + 1]:
            seen[[place for place, _, _ in earlier.readings]] = True
        now = data.truth.at(step.record["truth_seconds"])
        assert step.record["rmspe"] == pytest.approx(rmspe(mean, now, seen), abs=0.002)
    assert directory.summary()["errors_against"].startswith("the noise-free truth as it was")


def test_killed_anywhere_it_goes_on_to_the_same_end(run: Any, tmp_path: Path) -> None:
    what, out = run
    data = (out / "journal.jsonl").read_bytes()
    ends = [i + 1 for i, byte in enumerate(data) if byte == ord("\n")]
    for number, size in enumerate((ends[2], ends[len(ends) // 2], ends[-2] - 7, ends[-1])):
        target = tmp_path / str(number)
        shutil.copytree(out, target)
        (target / "journal.jsonl").write_bytes(data[:size])
        (target / "summary.json").unlink()
        run_scenario(what, target, resume=True)
        assert final(target) == final(out), f"cut at byte {size}"


def test_the_truth_is_that_of_the_end_of_a_drive(sumo: None, tmp_path: Path) -> None:
    """Not that of the end of a decision, which takes time here."""
    runner = SimulationRunner(ring(readings=2, planning_time=40.0))
    traffic = runner.world.traffic
    assert traffic is not None
    kept: list[tuple[float, float]] = []
    add = traffic.truth.add

    def note(seconds: float, values: Any) -> None:
        kept.append((seconds, runner.clock()))
        add(seconds, values)

    traffic.truth.add = note  # type: ignore[method-assign]
    try:
        assert runner.run(1e4)
    finally:
        runner.close()
    assert len(kept) == 2
    assert [of for of, _ in kept] == [when for _, when in kept]


def test_a_run_that_cannot_begin_ends_its_traffic(
    sumo: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[Any] = []
    close = LiveTraffic.close

    def note(traffic: LiveTraffic) -> None:
        ended.append(traffic._session is not None)
        close(traffic)

    monkeypatch.setattr(LiveTraffic, "close", note)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "mine").write_text("", "utf-8")
    with pytest.raises(RunError, match="is not empty"):
        run_scenario(ring(), tmp_path / "run")
    assert ended[-1]


def test_traffic_that_does_not_repeat_itself_is_refused(run: Any, tmp_path: Path) -> None:
    what, out = run
    target = tmp_path / "run"
    shutil.copytree(out, target)
    journal = target / "journal.jsonl"
    events = RunDirectory.open(out).events()
    reading = next(event for event in events if event["event"] == "reading")
    reading["value"] += 0.001
    write_events(journal, events)
    with pytest.raises(RunError, match="does not follow from the ones before it"):
        run_scenario(what, target, resume=True)


def test_a_stuck_mission_comes_to_its_end(
    sumo: None, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A road is blocked for ever: its places are set aside, and nothing raises."""
    cars = write_cars(tmp_path / "cars.xml", parked_at("bc"))
    what = ring(routes=[cars], begin=60.0, patience=100.0, readings=9)
    summary = run_scenario(what, tmp_path / "run")
    assert summary.status == "finished"
    assert "bc" in summary.set_aside
    assert summary.observed >= 5
    assert summary.dropouts
    assert "the probe was put at its waypoint, without a reading" in caplog.text


def test_the_truth_is_the_speed_of_sumo_s_own_edgedata(sumo: None, tmp_path: Path) -> None:
    """Ours over a window, and SUMO's over the same interval, on the edges that had cars."""
    add = tmp_path / "add.xml"
    add.write_text(
        f'<additional><edgeData id="e" file="{tmp_path}/e.xml" begin="200" end="300" '
        'freq="100"/></additional>'
    )
    cars = write_cars(
        tmp_path / "cars.xml", flow(ALL_ROUND, period=40.0), flow("eb bc cd", name="b", period=20.0)
    )
    what = ring(routes=[cars], options=["--additional-files", str(add)], begin=300.0, window=100.0)
    world = build_world(what)
    assert world.traffic is not None
    world.traffic.start()
    ours = dict(zip(world.topology.names, world.truth.at(0.0), strict=True))
    world.traffic.step()
    world.traffic.close()
    theirs = {
        edge.get("id"): 3.6 * float(edge.get("speed", "nan"))
        for edge in ET.parse(tmp_path / "e.xml").iter("edge")
        if float(edge.get("sampledSeconds", "0")) > 20.0
    }
    assert {"ab", "bc", "cd", "da", "eb"} <= set(theirs)
    for name, speed in theirs.items():
        # Where cars begin, SUMO counts the moment of their insertion as well.
        assert ours[str(name)] == pytest.approx(speed, rel=0.1 if name in ("eb", "ab") else 0.03), (
            name
        )
    assert min(theirs.values()) > 10.0, "cars that stand still would agree too easily"
    assert ours["ad"] == 36.0, "no car was there: the free speed"
    assert ours["be"] == 72.0


def test_an_edge_without_cars_keeps_its_last_speed(sumo: None, tmp_path: Path) -> None:
    one = '<vehicle id="slow" depart="0" departSpeed="0"><route edges="ad dc"/></vehicle>'
    what = ring(routes=[write_cars(tmp_path / "c.xml", one)], begin=400.0, window=20.0)
    world = build_world(what)
    assert world.traffic is not None
    world.traffic.start()
    now = dict(zip(world.topology.names, world.truth.at(0.0), strict=True))
    assert 10.0 < now["ad"] < 30.0, "of the car that was there long ago"
    assert now["da"] == 36.0


def test_starting_leaves_the_environment_of_others_alone(
    sumo: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """libsumo points PROJ, which map loaders use, to data of its own."""
    import sys

    monkeypatch.delenv("PROJ_DATA", raising=False)
    monkeypatch.delenv("PROJ_LIB", raising=False)
    monkeypatch.delitem(sys.modules, "libsumo", raising=False)
    session._load()
    assert "PROJ_DATA" not in os.environ
    assert "PROJ_LIB" not in os.environ


def test_one_simulation_at_a_time(sumo: None) -> None:
    first, second = build_world(ring()).traffic, build_world(ring()).traffic
    assert first is not None
    assert second is not None
    first.start()
    second.start()
    with pytest.raises(RunError, match="was ended by another one"):
        first.step()
    second.step()
    second.close()
    second.close()


def test_a_map_of_another_network(sumo: None) -> None:
    what = mapping(ring().to_mapping(), map={"file": "town.geojson"}, probe={"start": None})
    traffic = build_world(scenario_from_mapping(what)).traffic
    assert traffic is not None
    with pytest.raises(MapError, match=r"map 'town' and traffic.net do not fit: 705 are no edge"):
        traffic.start()


def test_a_file_that_sumo_refuses(sumo: None, tmp_path: Path) -> None:
    (tmp_path / "bad.net.xml").write_text("<net")
    what = mapping(ring().to_mapping(), traffic={"net": str(tmp_path / "bad.net.xml")})
    traffic = build_world(scenario_from_mapping(what)).traffic
    assert traffic is not None
    with pytest.raises(RunError, match="SUMO does not start") as caught:
        traffic.start()
    assert "\n" not in str(caught.value)


def test_configurations_that_make_no_sense() -> None:
    for change, message in (
        ({"traffic": {"net": None}}, r"traffic.net: is required for a field of kind sumo"),
        ({"traffic": {"net": "no.net.xml"}}, r"traffic.net: maps: no file 'no.net.xml'"),
        ({"traffic": {"config": "x.sumocfg"}}, r"traffic.config: was removed"),
        ({"field": {"kind": "gp", "length_scale": 1}}, r"traffic: is for a field of kind sumo"),
        ({"probe": {"speed": 9.0}}, r"probe.speed: has no meaning in traffic"),
        ({"map": {"kind": "line", "count": 3, "file": ""}, "probe": {"start": None}}, "kind roads"),
    ):
        with pytest.raises(ConfigError, match=message):
            build_world(scenario_from_mapping(mapping(ring().to_mapping(), **change)))


def test_without_sumo_one_line_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(session, "has_sumo", lambda: False)
    with pytest.raises(MissingDependencyError, match=r"pip install '.*gp_active_sensing\[sumo\]'"):
        build_world(ring())
    result = CliRunner().invoke(cli, ["run", "town_live", "--out", str(tmp_path / "run")])
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: ")
    assert not (tmp_path / "run").exists()
