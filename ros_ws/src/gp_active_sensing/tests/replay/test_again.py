"""A recorded mission once more: the same readings, the same decisions, the same files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from gp_active_sensing.mission import changes
from gp_active_sensing.records.run_directory import RunDirectory
from gp_active_sensing.replay.options import ReplayOptions
from gp_active_sensing.replay.run import replay_bag
from gp_active_sensing.util.resources import find_resource
from tests.replay.bags import message
from tests.replay.missions import CONFIG, Recorder

FLOW = {
    "waypoint": {"ahead": 3},
    "mission": {**CONFIG["mission"], "arrival_radius": 2.0, "silent_places": 0},
}


def compared(bag: Path, out: Path, **options: Any) -> dict[str, Any]:
    """Replay a bag; return what the comparison says."""
    found: dict[str, Any] = replay_bag(bag, out, **options).summary["replay"]
    assert found["mode"] == "again"
    return dict(found["comparison"])


def check_equal(comparison: dict[str, Any], *, least: int) -> None:
    """Played and replayed by one process: equal to the bit."""
    assert comparison["differences"] == []
    assert comparison["decisions"] == comparison["decisions_equal"] >= least
    assert comparison["decisions_to_the_bit"] == comparison["decisions"]
    assert comparison["readings"] == comparison["readings_equal"] >= least - 2
    assert comparison["readings_extra"] == 0


SEEDS = [(0, 1), pytest.param(range(2, 6), marks=pytest.mark.long)]


@pytest.mark.parametrize("seeds", SEEDS)
@pytest.mark.parametrize("config", [{}, FLOW], ids=["on_arrival", "flow"])
def test_whatever_happened_the_decisions_come_out_again(
    tmp_path: Path, seeds: Sequence[int], config: dict[str, Any]
) -> None:
    for seed in seeds:
        played = Recorder(seed, config=config, dropout=0.2).run()
        run = tmp_path / f"run{seed}"
        check_equal(compared(played.bag(tmp_path / f"bag{seed}"), run), least=15)
        events = RunDirectory.open(run).events()
        passed = [e for e in events if e["event"] == "moved" and e.get("passed")]
        assert (len(passed) > 10) == (config == FLOW)


@pytest.mark.parametrize("seeds", SEEDS)
def test_a_busy_machine_and_several_probes(tmp_path: Path, seeds: Sequence[int]) -> None:
    """Readings are put where the mission put them, however long it took to look at its messages."""
    names = ("boat", "car")
    commands = {
        4.0: lambda mission: changes.leave(mission, "car", "a flat tyre"),
        8.0: lambda mission: changes.join(mission, "car"),
    }
    for seed in seeds:
        slow = Recorder(seed, slowness=0.01).run()
        check_equal(compared(slow.bag(tmp_path / f"a{seed}"), tmp_path / f"ra{seed}"), least=10)
        two = Recorder(seed, config=FLOW, probes=names, commands=commands).run()
        run = tmp_path / f"rb{seed}"
        check_equal(compared(two.bag(tmp_path / f"b{seed}"), run), least=15)
        assert {e.get("probe") for e in RunDirectory.open(run).events()} >= set(names)


def test_commands_are_done_again(tmp_path: Path) -> None:
    commands = {
        2.0: lambda mission: mission.pause("lunch"),
        4.0: lambda mission: mission.resume(),
        6.5: lambda mission: mission.unreachable("", "a fence"),
        14.0: lambda mission: mission.stop("enough"),
    }
    played = Recorder(5, commands=commands).run()
    comparison = compared(played.bag(tmp_path / "bag"), tmp_path / "run")
    check_equal(comparison, least=5)
    run = RunDirectory.open(tmp_path / "run")
    assert {"blocked", "state", "end"} <= {event["event"] for event in run.events()}
    summary = run.summary()
    assert (summary["status"], summary["reason"]) == ("finished", "enough")


def test_a_clock_that_was_set_forward(tmp_path: Path) -> None:
    played = Recorder(6)
    day_ns = 86_400 * 10**9

    def step(mission: Any) -> None:
        played.ahead_ns += day_ns
        changes.clock_stepped(mission, day_ns, mission.until_ns + day_ns)

    played.commands = {4.0: step, 6.0: lambda mission: mission.resume()}
    comparison = compared(played.run().bag(tmp_path / "bag"), tmp_path / "run")
    check_equal(comparison, least=15)
    run = RunDirectory.open(tmp_path / "run")
    assert [e["step_ns"] for e in run.events() if e["event"] == "clock"] == [day_ns]
    assert played.mission.driven.seconds < 100.0
    moved = [event for event in run.events() if event["event"] == "moved"]
    seconds = sum(event["seconds"] for event in moved)
    assert seconds == pytest.approx(played.mission.driven.seconds)


def test_gated_and_averaged_readings(tmp_path: Path) -> None:
    reading = {**CONFIG["reading"], "gate": 4.0, "gate_places": 3, "window": 0.5}
    commands = {9.0: lambda mission: mission.accept_gated()}
    played = Recorder(2, config={"reading": reading}, commands=commands, outliers=0.3).run()
    comparison = compared(played.bag(tmp_path / "bag"), tmp_path / "run")
    check_equal(comparison, least=8)
    events = RunDirectory.open(tmp_path / "run").events()
    assert any(event["event"] == "gated" for event in events)
    assert any(event.get("taken_back") for event in events)


def test_parameters_that_are_changed_on_the_way(tmp_path: Path) -> None:
    played = Recorder(3, config={"budget": {"readings": 30}})
    played.commands = {5.0: lambda mission: played.change({"budget": {"readings": 9}})}
    comparison = compared(played.run().bag(tmp_path / "bag"), tmp_path / "run")
    check_equal(comparison, least=9)
    assert RunDirectory.open(tmp_path / "run").summary()["observed"] == 9


def test_parts_of_the_journal_that_are_lost_are_counted(tmp_path: Path) -> None:
    played = Recorder(7).run()
    journal = [i for i, m in enumerate(played.messages) if m[0] == "/active_sensing/journal"]
    del played.messages[journal[40]]
    comparison = compared(played.bag(tmp_path / "bag"), tmp_path / "run")
    assert comparison["frames_lost"] == 1


def test_with_another_policy_it_is_followed_instead(tmp_path: Path) -> None:
    bag = Recorder(8).run().bag(tmp_path / "bag")
    done = replay_bag(bag, tmp_path / "run", ReplayOptions(policy="random", seed=3))
    assert done.summary["replay"]["mode"] == "decisions"
    told = done.summary["replay"]["information"]
    assert told["stages"] == done.summary["observed"] == 20
    assert told["agreed"] < 20
    assert done.summary["policy"] == "random"


def test_the_shipped_bag_gives_the_same_decisions(tmp_path: Path) -> None:
    bag = find_resource("bags", "town_sample/town_sample.mcap").parent
    assert sum(file.stat().st_size for file in bag.iterdir()) < 1_000_000
    done = replay_bag("town_sample", tmp_path / "run")
    found = done.summary["replay"]["comparison"]
    assert found["differences"] == []  # on any processor; to the bit on that of the recording
    assert found["decisions"] == found["decisions_equal"] == 12
    assert found["readings"] == found["readings_equal"] == 12
    assert found["frames_lost"] == 0
    assert done.summary["rmspe"] < 13.0


def test_the_shipped_bag_as_anybody_s_bag(tmp_path: Path) -> None:
    """Without its journal, the readings alone: the same map."""
    given = ReplayOptions(
        scenario="town",
        policy="random",
        overrides=(
            "reading.variance_field=variance",
            "belief.kernel=matern32",
            "belief.length_scales=[80, 130, 200, 320, 500, 800, 1300]",
            "belief.signal_std=[11]",
            "belief.noise_std=[6]",
            "belief.mean_std=100",
        ),  # as in the bag; the scenario has none
    )
    plain = replay_bag("town_sample", tmp_path / "plain", given, belief_only=True)
    again = replay_bag("town_sample", tmp_path / "again", belief_only=True)
    for key in ("observed", "readings", "rmspe", "nlpd", "length_scales"):
        assert plain.summary[key] == again.summary[key]
    assert plain.summary["observed"] == 12
    assert (tmp_path / "plain" / "map.csv").read_text() == (
        tmp_path / "again" / "map.csv"
    ).read_text()


def test_what_differs_is_said_and_the_rest_is_still_compared(tmp_path: Path) -> None:
    played = Recorder(4).run()
    for index, (topic, stamp, content) in enumerate(played.messages):
        if not topic.endswith("/journal"):
            continue
        frames = json.loads(content.data)
        for event in (event for frame in frames for event in frame.get("events", ())):
            if event["event"] == "decision" and event["stage"] == 5:
                event["upper"] *= 1.0 + 1e-6
        text = message("std_msgs/msg/String", data=json.dumps(frames))
        played.messages[index] = (topic, stamp, text)
    comparison = compared(played.bag(tmp_path / "bag"), tmp_path / "run")
    assert comparison["decisions_equal"] == comparison["decisions"] - 1 > 10
    (difference,) = comparison["differences"]
    assert difference.startswith("decision 5: upper: recorded ")


def test_decisions_that_an_earlier_version_planned_ahead_are_counted(tmp_path: Path) -> None:
    """Its node took such a decision within the step in which the reading came."""
    played = Recorder(4)
    played._some = lambda most: 0.0
    played.run()
    step: tuple[int, dict[str, Any]] = (0, {})
    for index, (topic, _, content) in enumerate(played.messages):
        if not topic.endswith("/journal"):
            continue
        (frame,) = json.loads(content.data)
        events = frame.get("events", [])
        if "now" in frame:
            step = index, frame
        elif events and events[0]["event"] == "decision" and events[0]["stage"] % 3 == 0:
            step[1].setdefault("events", []).append({**events.pop(), "foreseen": True})
            for at, changed in (step, (index, frame)):
                text = message("std_msgs/msg/String", data=json.dumps([changed]))
                played.messages[at] = (topic, played.messages[at][1], text)
    comparison = compared(played.bag(tmp_path / "bag"), tmp_path / "run")
    check_equal(comparison, least=12)
    assert (comparison["decisions"], comparison["planned_ahead"]) == (14, 6)
