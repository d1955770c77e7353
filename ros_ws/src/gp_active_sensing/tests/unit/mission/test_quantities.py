from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gp_active_sensing.config import from_mapping, to_mapping
from gp_active_sensing.errors import ConfigError
from gp_active_sensing.mission.config import ActiveSensingConfig
from gp_active_sensing.mission.inbox import RawReading
from gp_active_sensing.mission.poses import Pose
from gp_active_sensing.records.run_directory import JOURNAL
from tests.cases import for_each
from tests.journals import events_of
from tests.unit.mission.grids import LARGER, drive_on, take
from tests.unit.mission.missions import CONFIG, SECOND, Drive, same

BELIEF = {"length_scales": [10.0, 40.0], "signal_std": [1.0], "noise_std": [0.1], "mean_std": 9.0}
SONDE: dict[str, Any] = {
    "policy": {"name": "tour"},
    "readings": {
        "heat": {"topic": "sonde", "unit": "degC"},
        "ph": {"topic": "sonde", "field": "ph", "belief": BELIEF, "weight": 2.0},
        "depth": {"topic": "depth", "belief": BELIEF, "gate": 3.0, "gate_places": 3},
    },
}


def readings_of(run_dir: Path) -> Counter[tuple[str, int, float]]:
    used = events_of(run_dir, "reading")
    return Counter((line.get("quantity", ""), line["location"], line["value"]) for line in used)


def known(drive: Drive) -> dict[str, Any]:
    mission = drive.built.mission
    loop = mission.loop
    return {
        "mission": [mission.state, mission.decisions.stage, loop.remaining],
        "gated": [mission.rejected["gated"], mission.rejected["depth.gated"]],
        "counts": {key: count for key, count in loop.counts.items() if count},
        "alarms": mission.alarms,
        "readings": {q: each.belief.readings.tolist() for q, each in loop.quantities.items()},
    }


@pytest.mark.slow
@for_each("options", [{}, {"dropout": 0.3}])
def test_a_mission_killed_at_every_event_loses_and_doubles_no_reading(
    tmp_path: Path, options: Any
) -> None:
    plain = Drive(tmp_path / "plain", **SONDE, **options).start()
    plain.run()
    drive = Drive(tmp_path / "killed", **SONDE, **options).start()
    journal, seen = tmp_path / "killed" / JOURNAL, 0
    for _ in range(3000):
        drive.step()
        if drive.built.mission.state == "ended":
            break
        lines = journal.read_text().splitlines()
        # A probe that is killed every second never waits for long enough at a place.
        if any('"status"' not in line and '"resumed"' not in line for line in lines[seen:]):
            before = known(drive)
            drive.start_again()
            assert known(drive) == before
        seen = len(lines)
    same(plain, drive)
    used = readings_of(tmp_path / "killed")
    assert used == readings_of(tmp_path / "plain")
    assert {quantity for quantity, *_ in used} == {"", "ph", "depth"}
    loop = drive.built.mission.loop
    assert loop.counts["accepted"] == sum(n for (q, *_), n in used.items() if not q)
    assert loop.counts["accepted_ph"] == sum(n for (q, *_), n in used.items() if q == "ph")
    assert loop.belief.observed.sum() == 12


def test_summary_records_and_map_have_every_quantity(tmp_path: Path) -> None:
    drive = Drive(tmp_path / "run", **SONDE, mission={"export": ["csv"]}).start()
    drive.run()
    drive.built.recorder.conclude(drive.built.mission)
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert list(summary["quantities"]) == ["ph", "depth"]
    assert summary["quantities"]["ph"]["readings"] == 12
    assert summary["quantities"]["ph"]["promised_error"] < 1.0
    header = (tmp_path / "run" / "map.csv").read_text().splitlines()[0].split(",")
    assert header[-6:] == ["ph", "ph_std", "ph_read", "depth", "depth_std", "depth_read"]


def test_readings_of_what_is_not_measured_and_a_sensor_that_is_dead_are_reported() -> None:
    drive = Drive(None, **{**SONDE, "readings": dict(SONDE["readings"])}).start()
    mission = drive.built.mission
    mission.inbox.put(RawReading(drive.now_ns, 1.0, None, quantity="oxygen"), 0.0)
    drive.steps(1)
    assert mission.rejected["unknown_quantity"] == 1
    del drive.config["readings"]["ph"]  # the probe reads no ph any more
    drive.decide(5)
    assert [alarm for alarm in mission.alarms if "ph" in alarm]
    assert not [alarm for alarm in mission.alarms if "depth" in alarm]
    drive.run()
    assert mission.loop.belief.observed.sum() == 12, "it never stalls"


def test_a_wild_reading_of_one_quantity_is_gated_alone() -> None:
    drive = Drive(None, **SONDE).start()
    drive.decide(7)
    drive._send(RawReading(drive.now_ns, 900.0, None, quantity="depth"))
    drive._send(RawReading(drive.now_ns, 7.0, None, quantity="ph"))
    drive.steps(1)
    mission = drive.built.mission
    assert mission.rejected["depth.gated"] == 1
    assert not mission.rejected["gated"]
    assert mission.accept_gated() == 1
    assert not mission.rejected["depth.gated"]


def test_without_further_quantities_a_named_one_is_as_one_without_a_name(tmp_path: Path) -> None:
    named = Drive(tmp_path / "named", readings={"heat": {"unit": "degC"}}).start()
    plain = Drive(tmp_path / "plain", reading={"unit": "degC"}).start()
    for drive in (named, plain):
        drive.run()
    same(named, plain)
    assert named.built.mission.loop.name == "heat"
    assert "quantities" not in named.built.recorder.summary(named.built.mission, "finished")


def configured(**changes: Any) -> ActiveSensingConfig:
    return from_mapping(ActiveSensingConfig, {**CONFIG, **changes})


def test_a_configuration_of_several_quantities_goes_there_and_back() -> None:
    config = configured(**{**SONDE, "belief": {}})
    assert (config.main, list(config.further)) == ("heat", ["ph", "depth"])
    assert config.reading.topic == "sonde"
    assert config.readings["ph"].reading().field == "ph"
    assert from_mapping(ActiveSensingConfig, to_mapping(config)) == config


@for_each(
    "changes",
    [
        {"readings": {"Ph": {}}},
        {"readings": {"ph": {}, "mean": {}}},
        {"readings": {"ph": {}, "pose": {"topic": "echo"}}},
        {"readings": {"ph": {}, "ph_std": {"topic": "echo"}}},
        {"readings": {"ph": {"link": "heat"}, "heat": {}}},
        {"readings": {"ph": {}}, "budget": {"error": {"heat": 1.0}}},
        {"readings": {f"q{i}": {} for i in range(9)}},
        {"readings": {"ph": {"sampled": True}}},
        {"readings": {"ph": {"weight": -1.0}}},
        {"readings": {"ph": {"topik": "ph"}}},
        {"readings": {"ph": {}, "heat": {"delay": 60.0}}},
        {"readings": {"ph": {}, "heat": {"probes": ["boat"]}}},
        {"readings": {"ph": {"belief": BELIEF}}},
        {"readings": {"ph": {"probes": ["one"]}}, "probes": ["one", "two"]},
        {"readings": {"ph": {}}, "reading": {"topic": "heat"}},
        {"readings": ["ph"]},
    ],
)
def test_quantities_that_cannot_be_used_are_refused(changes: Any) -> None:
    with pytest.raises(ConfigError):
        configured(**changes)


def test_a_map_that_grows_has_room_for_every_quantity(tmp_path: Path) -> None:
    drive = drive_on(tmp_path / "run", budget={"readings": 24}, **SONDE).start()
    drive.steps(12)
    assert take(drive, LARGER)
    drive.steps(12)
    before = known(drive)
    drive.start_again()
    assert known(drive) == before
    drive.run()
    loop = drive.built.mission.loop
    for each in loop.quantities.values():
        assert each.belief.n == loop.belief.n == 32
        assert each.belief.observed[16:].any()


def test_a_probe_that_lacks_a_sensor_is_no_reason_to_wait() -> None:
    readings = {name: dict(each) for name, each in SONDE["readings"].items()}
    readings["depth"]["probes"] = ["one"]
    drive = Drive(None, **{**SONDE, "readings": readings}, probes=["one", "two"]).start()
    one, two = drive.built.mission.probes.values()
    assert list(one.ingestion.further) == ["ph", "depth"]
    assert list(two.ingestion.further) == ["ph"]
    for place, name in enumerate(("one", "two")):
        x, y = drive.built.mission.loop.topology.positions[place].tolist()
        inbox = drive.built.mission.inbox
        inbox.put(Pose(drive.now_ns, "map", x, y, 0.0), 0.0, name)
        for quantity in ("", "ph", "depth"):
            inbox.put(RawReading(drive.now_ns, 1.0, None, quantity=quantity), 0.0, name)
    drive.now_ns += SECOND
    for _ in range(3):
        drive.built.mission.step(drive.now_ns)
    loop = drive.built.mission.loop
    assert loop.belief.observed.sum() == loop.quantities["ph"].belief.observed.sum() == 2
    assert loop.quantities["depth"].belief.observed.sum() == 1
    assert drive.built.mission.rejected["unknown_quantity"] == 1
    assert replace(configured(**SONDE), probes=("one",)).further
