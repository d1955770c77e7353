from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gp_active_sensing.errors import RunError
from gp_active_sensing.mission import changes
from gp_active_sensing.records.event_lines import to_line
from gp_active_sensing.records.events import (
    AnswerUnused,
    BudgetChanged,
    JournalGap,
    PlaceBlocked,
    StateChanged,
)
from gp_active_sensing.records.run_directory import JOURNAL, RECORDS, RunDirectory
from tests.cases import for_each
from tests.journals import change_events, events_of
from tests.unit.mission.missions import SECOND, Drive, Killed, same


def told(run_dir: Path) -> Counter[tuple[int, float]]:
    return Counter((event["location"], event["value"]) for event in events_of(run_dir, "reading"))


def straight(tmp_path: Path, **config: Any) -> Drive:
    drive = Drive(tmp_path / "straight", **config).start()
    drive.run()
    return drive


@pytest.mark.slow
@pytest.mark.seeds
def test_a_mission_killed_at_any_moment_goes_on_as_if_it_had_not_been(
    tmp_path: Path, seed: int
) -> None:
    rng = np.random.default_rng([1, seed])
    options: dict[str, Any] = {"dropout": 0.3 if seed % 2 else 0.0}
    if seed % 4 > 1:
        options["policy"] = {"name": "ie"}
    if seed % 5 == 4:
        options["reading"] = {"gate": 6.0, "window": 0.25}
    if seed % 8 == 7:
        options["policy"] = {"name": "gp_ucb", "scale": 5.0}  # comes back to observed places
    if seed % 3 == 2:
        options |= {"waypoint": {"ahead": 3}, "lag": 0.35}  # is sent on before readings come
    plain = straight(tmp_path, **options)
    drive = Drive(tmp_path / "killed", **options).start()
    for _ in range(3):
        for _ in range(int(rng.integers(1, 60))):
            if drive.built.mission.state != "ended":
                drive.step()
        if drive.built.mission.state == "ended":
            break
        drive.start_again()
    if drive.built.mission.state != "ended":
        drive.run()
    same(plain, drive)
    assert told(tmp_path / "killed") == told(tmp_path / "straight")
    assert drive.built.mission.driven.metres == pytest.approx(plain.built.mission.driven.metres)
    stages = [r["stage"] for r in drive.built.recorder.stages.figures]
    assert stages == sorted(set(stages))


def state_of(drive: Drive) -> dict[str, Any]:
    mission = drive.built.mission
    loop, probe = mission.loop, mission.probe
    belief, open_now = loop.belief, mission.decisions.open
    return {
        "mission": [mission.state, mission.reason, mission.decisions.stage],
        "budget": [loop.remaining, loop.spent, probe.remaining, probe.own_budget, loop.decisions],
        "counts": [dict(loop.counts), loop.visits, loop.policy_state],
        "places": [loop.blocked, loop.set_aside, probe.at, probe.target, probe.plan],
        "kept": loop.reservations.kept(loop.observed_of, ()),
        "probe": [probe.home, probe.resting, probe.sent_ns, list(probe.sensor.silent)],
        "asked": open_now and [open_now.stamp_ns, open_now.pending],
        "belief": [belief.readings.tolist(), belief.weights.tolist()],
        "driven": mission.driven.metres,
        "gated": mission.rejected["gated"],
    }


COMMANDS = {
    9: lambda mission: mission.pause("a look"),
    12: lambda mission: mission.resume(),
    20: lambda mission: mission.unreachable("", "a fence"),
    31: lambda mission: changes.set_budget(
        mission, replace(mission.budget, readings=14, metres=None, seconds=390.0)
    ),
    38: lambda mission: mission.accept_gated(),
}
LIMITS = {"readings": 9, "metres": 400.0, "seconds": 400.0}


@pytest.mark.slow
@for_each(
    "options",
    [
        {"dropout": 0.3, "reading": {"gate": 2.0, "gate_places": 2}},
        {"budget": LIMITS, "dropout": 0.2, "mission": {"reading_timeout": 0.5, "retries": 1}},
        {"policy": {"name": "gp_ucb", "scale": 5.0}, "reading": {"window": 0.25}},
        {"policy": {"name": "tour"}, "budget": LIMITS, "probe": {"end": "c0r0"}},
    ],
)
def test_after_a_restart_a_mission_knows_what_it_knew(tmp_path: Path, options: Any) -> None:
    """State for state, wherever it is killed; commands among what is done."""
    drive = Drive(tmp_path / "run", **options).start()
    for step in range(60):
        drive.step()
        if drive.built.mission.state == "ended":
            break
        if (command := COMMANDS.get(step)) is not None:
            command(drive.built.mission)
        if step % 2 or step in COMMANDS:
            before = state_of(drive)
            drive.start_again()
            after = state_of(drive)
            for key, value in before.items():
                assert after[key] == value, (step, key)


@pytest.mark.slow
@pytest.mark.seeds(0.75)
def test_a_journal_cut_anywhere_by_a_power_cut_restarts_cleanly(tmp_path: Path, seed: int) -> None:
    rng = np.random.default_rng([2, seed])
    drive = Drive(tmp_path / "run").start()
    for _ in range(int(rng.integers(5, 60))):
        drive.step()
    drive.kill()
    journal = tmp_path / "run" / JOURNAL
    whole = journal.read_bytes()
    cut = int(rng.integers(0, len(whole) + 1))
    zeros = bytes(int(rng.integers(1, 4096))) if seed % 3 == 0 else b""
    journal.write_bytes(whole[:cut] + zeros)
    records = tmp_path / "run" / RECORDS
    if records.exists():
        kept = records.read_bytes()
        records.write_bytes(kept[: int(rng.integers(0, len(kept) + 1))])
    complete = whole[:cut].count(b"\n")
    before = [json.loads(line) for line in whole[:cut].splitlines()[:complete]]
    drive.start()
    mission = drive.built.mission
    assert mission.loop.counts["accepted"] == sum(e["event"] == "reading" for e in before)
    assert mission.decisions.stage == sum(e["event"] == "decision" for e in before)
    drive.obeyed = None  # what was sent last may be lost
    drive.run()
    assert mission.loop.belief.observed.sum() == 12
    numbers = [record["stage"] for record in drive.built.recorder.stages.figures]
    assert numbers == list(range(1, len(numbers) + 1))


@for_each("number", [0, 11])
def test_a_decision_that_was_being_computed_is_computed_from_the_same_readings(
    tmp_path: Path, number: int
) -> None:
    plain = straight(tmp_path)
    drive = Drive(tmp_path / "killed")
    drive.die_at = number
    drive.start()
    with pytest.raises(Killed):
        drive.run()
    # A reading of somewhere else comes before the decision is asked for again.
    drive.start_again()
    assert events_of(tmp_path / "killed")[-2]["event"] == "asked"
    drive.run()
    same(plain, drive)


def test_after_an_orderly_end_of_the_process_it_goes_on(tmp_path: Path) -> None:
    drive = Drive(tmp_path / "run").start()
    drive.steps(10)
    drive.built.mission.stop("the node was shut down", over=False)
    observed = drive.built.mission.loop.belief.observed.sum()
    drive.start_again()
    assert drive.built.mission.state == "running"
    assert drive.built.mission.loop.belief.observed.sum() == observed
    drive.run()
    assert drive.built.mission.loop.belief.observed.sum() == 12


def test_a_mission_that_does_not_go_on_is_refused(tmp_path: Path) -> None:
    for change, reason in (
        ({"budget": {"readings": 13}}, "another configuration; different: budget.readings"),
        ({"resume": False}, "is not empty"),
    ):
        drive = Drive(tmp_path / str(len(reason)))
        drive.start()
        drive.step()
        drive.kill()
        drive.config |= change
        with pytest.raises(RunError, match=reason):
            drive.start()


def test_an_event_that_does_not_follow_is_refused(tmp_path: Path) -> None:
    drive = Drive(tmp_path / "run").start()
    drive.steps(8)
    drive.kill()
    journal = tmp_path / "run" / JOURNAL
    whole = journal.read_bytes()
    events = events_of(tmp_path / "run")
    moved = next(event for event in events if event["event"] == "moved")
    first = next(event for event in events if event["event"] == "decision")
    assert drive.decided[1:], "another decision came after it"
    for damage in (
        {"event": "decision", "stage": 3},
        {k: v for k, v in first.items() if k not in ("n", "crc")},
        {"event": "moved", "stamp_ns": 5, "odometer": 1.0, "pose": None},
        {"event": "reading", "stamp_ns": 5, "location": 999, "value": 1.0},
        {"event": "reading", "stamp_ns": 5, "location": 0, "value": "nan"},
        {"event": "asked", "probe": "nobody", "at": 0, "pending": [], "stamp_ns": 1},
        {"event": "miss", "location": -1, "again": True, "stamp_ns": 1},
        {k: v for k, v in moved.items() if k not in ("n", "crc", "odometer", "pose")},
        {**moved, "seconds": "inf"},
    ):
        journal.write_bytes(whole)
        change_events(journal, lambda events, last=damage: events.append(last))
        with pytest.raises(RunError, match="journal"):
            drive.start()


@for_each("kind", ["decision", "moved", "miss"])
def test_an_event_that_is_there_twice_is_refused(tmp_path: Path, kind: str) -> None:
    drive = Drive(tmp_path / "run", dropout=0.4).start()
    while kind not in {event["event"] for event in events_of(tmp_path / "run")}:
        drive.step()
    drive.kill()

    def double(events: list[dict[str, Any]]) -> None:
        at = next(i for i, event in enumerate(events) if event["event"] == kind)
        del events[at + 1 :]
        events.append(events[at])

    change_events(tmp_path / "run" / JOURNAL, double)
    with pytest.raises(RunError, match="twice"):
        drive.start()


def test_a_question_is_open_after_a_restart_unless_it_may_have_been_answered(
    tmp_path: Path,
) -> None:
    for name, after in (
        ("nothing", ()),
        ("budget", [BudgetChanged(readings=12, metres=None, seconds=None)]),
        ("gap", [JournalGap(failures=1, readings=0)]),
        ("pause", [StateChanged(stamp_ns=0, state=to, reason="") for to in ("paused", "running")]),
    ):
        drive = Drive(tmp_path / name)
        drive.die_at = 3
        drive.start()
        with pytest.raises(Killed):
            drive.run()
        drive.kill()
        now = {"stamp_ns": drive.now_ns} if name == "pause" else {}
        lines = [to_line(event) | now for event in after]
        change_events(tmp_path / name / JOURNAL, lambda events, new=lines: events.extend(new))
        drive.start()
        open_now = drive.built.mission.decisions.open
        assert (open_now is not None) == (not after), name
        drive.run()
        assert drive.built.mission.loop.belief.observed.sum() == 12, name
        drive.kill()


def test_what_a_probe_waits_for_is_as_it_was_after_a_restart(tmp_path: Path) -> None:
    def waits(drive: Drive) -> tuple[int, list[int]]:
        probe = drive.built.mission.probe
        return probe.sent_ns, list(probe.sensor.silent)

    drive = Drive(tmp_path / "run", dropout=1.0, mission={"reading_timeout": 1.0}).start()
    for missed in (1, 4):  # a visit that is repeated, then a place that is set aside
        while drive.built.mission.loop.counts["missed"] < missed:
            drive.step()
        before = waits(drive)
        drive.start_again()
        assert waits(drive) == before
    assert len(before[1]) == 1
    drive.built.mission.pause("a look at the sensor")
    assert drive.built.mission.resume() == ""
    before = waits(drive)
    drive.start_again()
    assert waits(drive) == before
    assert before[1] == [], "silent places count from there on"


def test_after_an_answer_without_a_place_no_readings_are_kept_for_its_way(tmp_path: Path) -> None:
    def kept(drive: Drive) -> set[int]:
        loop = drive.built.mission.loop
        return loop.reservations.kept(loop.observed_of, ())

    drive = Drive(tmp_path / "run").start()
    while not kept(drive):
        drive.step()
    drive.kill()
    line = to_line(AnswerUnused(waypoint=None, reason="nothing is in reach"))
    change_events(tmp_path / "run" / JOURNAL, lambda events: events.append(line))
    drive.start()
    assert kept(drive) == set()


def test_a_blocked_place_stays_blocked_until_its_time(tmp_path: Path) -> None:
    drive = Drive(tmp_path / "run", mission={"block_seconds": 5.0, "retries": 1}).start()
    drive.step()
    mission = drive.built.mission
    target = mission.probe.target
    assert target is not None
    assert mission.unreachable() == ""
    drive.step()
    drive.start_again()
    assert drive.built.mission.loop.blocked == {target}
    drive.now_ns += 10 * SECOND
    drive.step()
    mission = drive.built.mission
    assert mission.loop.blocked == set()
    again = PlaceBlocked(location=target, until_ns=drive.now_ns + SECOND, set_aside=True)
    mission.blocked.replay(again)
    assert mission.loop.set_aside == {target}, "the second time counts as the second"


def test_what_was_rejected_is_still_counted(tmp_path: Path) -> None:
    drive = Drive(tmp_path / "run", budget={"readings": 25}).start()
    drive.built.mission.inbox.put(drive.sent[0].__class__(1, "odom", 0.0, 0.0, 0.0), 0.0)
    drive.steps(15)
    assert drive.built.mission.rejected["wrong_frame"] == 1
    drive.start_again()
    assert drive.built.mission.rejected["wrong_frame"] == 1


def test_a_mission_that_cannot_be_restored_does_not_stop_a_node_that_starts_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("ROS_HOME", str(tmp_path))
    drive = Drive(Path("auto")).start()
    drive.decide(3)
    drive.kill()
    (old,) = (tmp_path / "gp_active_sensing").iterdir()
    journal = old / JOURNAL

    def change(events: list[dict[str, Any]]) -> None:
        next(event for event in events if event["event"] == "moved")["seconds"] = "soon"

    change_events(journal, change)
    before = journal.read_bytes()
    for _ in range(2):
        drive.start()
        assert drive.built.mission.state == "running"
        drive.kill()
    assert journal.read_bytes() == before
    assert len(list((tmp_path / "gp_active_sensing").iterdir())) == 2, "the new one goes on"
    said = [r.message for r in caplog.records if "cannot be continued" in r.message]
    assert len(said) == 1
    assert str(old) in said[0]


def full(*_: Any) -> None:
    msg = "no space"
    raise RunError(msg)


def test_events_that_could_not_be_written_are_when_writing_works_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drive = Drive(tmp_path / "run").start()
    with monkeypatch.context() as patch:
        patch.setattr("gp_active_sensing.records.run_directory.RunDirectory.append_event", full)
        drive.decide(5)
    assert drive.built.recorder.failures > 0
    drive.decide(8)
    drive.kill()
    kinds = [event["event"] for event in events_of(tmp_path / "run")]
    assert "gap" not in kinds
    assert kinds.count("decision") == 8
    drive.start()
    drive.run()
    same(straight(tmp_path), drive)
    assert told(tmp_path / "run") == told(tmp_path / "straight")


@pytest.mark.parametrize("fits", [False, True], ids=["nothing fits", "a short line fits"])
def test_what_a_disk_has_no_room_for_until_the_end_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, *, fits: bool
) -> None:
    append = RunDirectory.append_event

    def short(run: RunDirectory, event: Mapping[str, Any]) -> None:
        if not fits or event["event"] != "gap":
            full()
        append(run, event)

    drive = Drive(tmp_path / "run").start()
    recorder, mission = drive.built.recorder, drive.built.mission
    kept = RunDirectory.open(tmp_path / "run")
    before = len(kept.events())
    said: list[Mapping[str, Any]] = []
    recorder.listener = lambda event: said.append(to_line(event))
    monkeypatch.setattr("gp_active_sensing.records.run_directory.RunDirectory.append_event", short)
    while mission.decisions.stage < 5:
        drive.step()
    problem = f"{len(said)} events could not be written to {tmp_path / 'run'}"
    assert recorder.missing == problem
    caplog.clear()
    recorder.close()
    assert problem in caplog.text
    left = kept.events()[before:]
    readings = sum(event["event"] == "reading" for event in said)
    assert left == ([to_line(JournalGap(failures=len(said), readings=readings))] if fits else [])
    recorder.close()
    assert kept.events()[before:] == left


@for_each("days", [1, -1])
def test_a_mission_whose_clock_was_set_goes_on_after_a_restart_and_uses_nothing_twice(
    tmp_path: Path, days: int
) -> None:
    drive = Drive(tmp_path / "run")
    drive.now_ns += 100 * 86_400 * SECOND
    drive.start()
    drive.decide(4)
    drive.now_ns += days * 86_400 * SECOND
    drive.step()
    if drive.built.mission.state == "paused":
        assert drive.built.mission.resume() == ""
    drive.obeyed = None
    drive.decide(7)
    drive.start_again()
    for _ in range(5):
        drive.step()
        assert drive.built.mission.state == "running"
    drive.run()
    assert max(told(tmp_path / "run").values()) == 1


@for_each("gap", [False, True])
def test_records_that_are_ahead_of_a_cut_journal_are_not_kept_twice(
    tmp_path: Path, *, gap: bool
) -> None:
    """Stage 4 is under way; the gap has the end of stage 3, whose record is kept all the same."""
    drive = Drive(tmp_path / "run").start()
    drive.decide(8)
    drive.kill()

    def cut(events: list[dict[str, Any]]) -> None:
        del events[[event.get("stage") for event in events].index(4) + 1 :]
        if gap:
            end = max(i for i, event in enumerate(events) if event["event"] == "moved")
            events[end] = to_line(JournalGap(failures=1))

    change_events(tmp_path / "run" / JOURNAL, cut)
    records = tmp_path / "run" / RECORDS
    named = [{"stage": number} for number in range(1, 8)]
    records.write_text("".join(json.dumps(record) + "\n" for record in named))
    drive.start()
    assert [record["stage"] for record in drive.built.recorder.stages.figures] == [1, 2, 3]
    kept = [json.loads(line)["stage"] for line in records.read_text().splitlines()]
    assert kept == [1, 2, 3]
    drive.kill()


@for_each("after_a_gap", [False, True])
def test_a_reading_of_the_wrong_shape_is_one_more_missing_event_after_a_gap(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, *, after_a_gap: bool
) -> None:
    drive = Drive(tmp_path / "run").start()
    drive.decide(2)
    drive.kill()

    def spoil(events: list[dict[str, Any]]) -> None:
        if after_a_gap:
            events.append({"event": "gap", "failures": 1})
        events.append({"event": "reading", "location": 1})

    change_events(tmp_path / "run" / JOURNAL, spoil)
    if not after_a_gap:
        with pytest.raises(RunError, match=r"expected an event 'reading'"):
            drive.start()
        return
    drive.start()
    assert "(reading) is not used: journal: expected an event 'reading'" in caplog.text
    assert caplog.text.count("1 events are not in the journal") == 2
    drive.kill()


def test_retries_that_were_changed_on_the_way_are_as_they_were(tmp_path: Path) -> None:
    drive = Drive(tmp_path / "run", dropout=0.6).start()
    mission = drive.built.mission
    changes.set_config(mission, replace(mission.config, retries=0, reading_timeout=1.0))
    while not mission.loop.set_aside:
        drive.step()
    aside = set(mission.loop.set_aside)
    drive.start_again()
    assert drive.built.mission.loop.set_aside == aside
