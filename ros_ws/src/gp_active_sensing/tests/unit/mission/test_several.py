from __future__ import annotations

from pathlib import Path

import pytest

from gp_active_sensing.config import from_mapping
from gp_active_sensing.errors import ConfigError
from gp_active_sensing.mission import changes
from gp_active_sensing.mission.config import ActiveSensingConfig
from gp_active_sensing.mission.factory import build_parts
from gp_active_sensing.mission.inbox import RawReading
from gp_active_sensing.mission.names import LONGEST_NAME, MOST_PROBES, numbered, probe_names
from gp_active_sensing.mission.poses import Pose
from tests.cases import for_each
from tests.journals import events_of
from tests.unit.mission.teams import SECOND, Team


def begun(**parameters: object) -> Team:
    team = Team(**parameters)  # type: ignore[arg-type]
    team.here("a", "b", "c")
    team.step()
    return team


@for_each(
    ("text", "names"),
    [
        ("3", ("probe_1", "probe_2", "probe_3")),
        ("boat", ("boat",)),
        ("boat, rover_2,fleet/car", ("boat", "rover_2", "fleet/car")),
    ],
)
def test_a_number_or_names(text: str, names: tuple[str, ...]) -> None:
    assert numbered(text) == names


@for_each("text", ["0", "-1", "1a", "a b", "/a", "a/", "a,,b", "é"])
def test_a_name_that_cannot_be_a_namespace_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"probes: .* cannot be a namespace"):
        numbered(text)


def test_each_joins_with_its_first_pose_and_is_sent_elsewhere() -> None:
    team = Team()
    team.step()
    assert team.sent == {}
    team.put("b", 5, read=False)
    team.step()
    assert set(team.sent) == {"b"}
    team.here("a")
    team.put("c", 10, read=False)
    team.step()
    assert set(team.sent) == {"a", "b", "c"}
    assert len(set(team.pending)) == 3
    assert [p.gone for p in team.mission.probes.values()] == ["", "", ""]


def test_messages_of_a_probe_that_is_not_on_the_list_are_counted() -> None:
    team = Team(["a", "b"])
    team.put("c", 0)
    team.step()
    assert team.mission.rejected["unknown_probe"] == 2
    assert team.observed == []


def test_a_place_that_another_reads_is_done_and_planning_begins_where_it_stands() -> None:
    team = begun()
    goal = team.target("a")
    team.put("b", goal)
    team.step(plan=False)
    stage = team.probe("a").finished
    assert stage.value is None
    while team.asked is not None and team.asked.probe != "a":
        team.plan()
        team.step(plan=False)
    assert team.asked.at == 0, "not at the waypoint, where it has never been"
    team.plan()
    assert goal not in team.pending


def test_readings_of_a_probe_that_has_left_are_used() -> None:
    team = begun()
    assert changes.leave(team.mission, "b") == ""
    team.put("b", 17)
    team.step()
    assert 17 in team.observed
    assert team.probe("b").gone == "left: asked to leave"


def test_the_waypoint_of_one_that_leaves_is_free_for_the_others() -> None:
    team = Team(["a", "b"], map={"columns": 3, "rows": 1})
    team.put("a", 0)
    team.put("b", 2)
    team.step()
    assert team.pending == [1], "the only place that is left"
    (first,) = (name for name in "ab" if team.probe(name).target is not None)
    other = "b" if first == "a" else "a"
    changes.leave(team.mission, first)
    team.step()
    assert team.target(other) == 1


def test_one_whose_poses_stop_is_given_up_and_comes_back_by_itself() -> None:
    team = begun(mission={"lost_after": 5.0})
    lost = team.target("b")
    for _ in range(7):
        team.here("a")
        team.put("c", 10, read=False)
        team.put("b", 5, pose=False)  # its sensor is still heard
        team.step()
    assert team.probe("b").gone == "silent for 5 s"
    assert lost not in team.pending
    assert len(team.pending) == 2
    team.put("b", 5, read=False)
    team.step()
    assert team.probe("b").gone == ""
    assert len(set(team.pending)) == 3


def test_an_answer_for_one_that_left_meanwhile_is_not_used() -> None:
    team = Team()
    team.here("a", "b", "c")
    team.step(plan=False)
    job = team.asked
    changes.leave(team.mission, job.probe)
    changes.join(team.mission, job.probe)
    team.asked = job
    assert not team.plan()
    team.step()
    assert len(set(team.pending)) == 3


def test_metres_are_each_probes_own() -> None:
    team = begun(budget={"metres": 25.0, "readings": 9})
    for _ in range(3):
        if team.probe("a").target is None:
            break
        team.obey("a")
    assert team.probe("a").resting
    assert team.probe("a").remaining.metres is not None
    assert team.probe("a").remaining.metres < 10.0
    assert team.probe("b").remaining.metres == 25.0
    assert team.mission.state == "running"
    team.obey("b")
    assert team.probe("b").remaining.metres == pytest.approx(15.0)


def test_a_restart_keeps_who_takes_part_and_what_is_under_way(tmp_path: Path) -> None:
    team = Team(["a", "b"], run_dir=tmp_path / "run")
    team.here("a", "b")
    team.step()
    changes.add_probe(team.mission, "c")
    team.put("c", 10, read=False)
    team.step()
    team.obey("a")
    changes.leave(team.mission, "b", "battery")
    team.step()
    before = {name: team.probe(name).target for name in "abc"}
    observed = team.observed
    team.parts.recorder.close()
    team.begin()
    assert {name: team.probe(name).target for name in "abc"} == before
    assert team.probe("b").gone == "left: battery"
    assert team.probe("c").gone == ""
    assert team.observed == observed
    for name in "ac":
        team.put(name, team.target(name))
    team.step()
    assert len(team.observed) == len(observed) + 2
    assert len(set(team.pending)) == 2
    team.parts.recorder.close()


JOINT = {"policy": {"name": "ucb_dpp_max"}, "mission": {"together": True}}


def test_in_rounds_nobody_is_sent_on_before_all_have_read(tmp_path: Path) -> None:
    team = begun(run_dir=tmp_path / "run", **JOINT)
    first = [team.target(name) for name in "abc"]
    assert len(set(first)) == 3
    team.obey("a", "b")
    assert team.probe("a").plan is None
    assert team.probe("b").plan is None
    assert len(team.sent["a"]) == 1
    team.obey("c")
    assert [len(team.sent[name]) for name in "abc"] == [2, 2, 2]
    asked = events_of(tmp_path / "run", "asked")
    assert [len(event["waiting"]) for event in asked] == [2, 1, 0, 2, 1, 0]


@for_each("idle", [0, 9])
def test_the_first_round_waits_for_a_missing_probe_lost_after_at_most(idle: int) -> None:
    team = Team(policy=JOINT["policy"], mission={"together": True, "lost_after": 5.0})
    team.mission.state = "idle" if idle else "running"
    for _ in range(idle):
        team.here("a", "b")
        team.step()
    team.mission.start()
    sent = []
    for _ in range(8):
        team.here("a", "b")
        team.step()
        sent.append(sorted(team.sent))
    assert sent[5:7] == [[], ["a", "b"]]


def test_a_node_killed_in_the_middle_of_a_round_goes_on_with_it(tmp_path: Path) -> None:
    plain = begun(**JOINT)
    team = Team(run_dir=tmp_path / "run", **JOINT)
    team.here("a", "b", "c")
    team.step(plan=False)
    assert team.plan()
    asked = [step.job for step in team.mission.step(team.now_ns) if step.job is not None]
    assert len(asked) == 1, "the second decision of the round"
    team.parts.recorder.close()
    team.begin()
    team.here("a", "b", "c")
    team.step()
    assert [team.target(name) for name in "abc"] == [plain.target(name) for name in "abc"]


def test_number_and_length_of_names_are_bounded_before_there_are_any() -> None:
    names = [f"probe_{i}" for i in range(MOST_PROBES)]
    assert probe_names(names) == tuple(names)
    assert len(numbered(str(MOST_PROBES))) == len(numbered(f"00{MOST_PROBES}")) == MOST_PROBES
    longest = "a" * LONGEST_NAME
    assert probe_names([longest]) == (longest,)
    for wrong in ([*names, "one_more"], [f"{longest}a"]):
        with pytest.raises(ConfigError):
            probe_names(wrong)
    for number in (str(MOST_PROBES + 1), "3000000", "9" * 5000):
        with pytest.raises(ConfigError):
            numbered(number)


def pose(team: Team, name: str, t: float, x: float, y: float = 0.0) -> None:
    team.mission.inbox.put(Pose(round(t * SECOND), "map", x, y, 0.0), team.t, name)


def reading(team: Team, name: str, t: float, value: float = 5.0) -> None:
    team.mission.inbox.put(RawReading(round(t * SECOND), value, None), team.t, name)


def step(team: Team, t: float) -> None:
    team.t = t
    team.mission.step(round(t * SECOND))


def test_readings_of_the_same_moment_belong_where_their_own_probe_was() -> None:
    team = Team(("a", "b"), pose={"max_age": 1.0, "wait": 0.5})
    for name, y in (("a", 0.0), ("b", 20.0)):
        pose(team, name, 1.0, 0.0, y)
        reading(team, name, 1.6)
        pose(team, name, 2.0, 20.0, y)
    step(team, 2.0)
    # 12 m along, between the two poses: the place at 10 m of each row.
    assert team.observed == [1, 13]


def test_a_probe_off_the_map_is_counted_as_its_own() -> None:
    team = Team(("a", "b"), pose={"wait": 0.0})
    for name, x in (("a", 0.0), ("b", 500.0)):
        pose(team, name, 1.0, x)
        reading(team, name, 1.0)
    step(team, 1.0)
    assert team.probe("a").ingestion.rejected == {}
    assert team.probe("b").ingestion.rejected == {"pose_off_map": 1, "off_map": 1}
    assert team.mission.rejected == {"pose_off_map": 1, "off_map": 1}


def test_one_that_waits_for_its_pose_fills_its_own_buffer_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        "gp_active_sensing.mission.ingestion.intake.most_per_second", lambda reading: 5.0
    )
    team = Team(("a", "b"))
    for i in range(30):
        reading(team, "a", 1.0 + i)
    reading(team, "b", 1.0)
    step(team, 1.0)
    assert [team.probe(name).ingestion.waiting for name in "ab"] == [10, 1]
    assert team.mission.rejected == {"no_pose": 20}


def pair(**mission: float) -> Team:
    team = Team(("a", "b"), mission=mission, budget={"metres": 60.0})
    team.here("a", "b")
    team.step()
    return team


def until_over(team: Team, name: str, seconds: int) -> int:
    """Let one probe read what it is sent to; return after how long the mission is over [s]."""
    for second in range(seconds):
        if team.mission.state == "ended":
            return second
        target = team.probe(name).target
        team.put(name, 0 if target is None else target, read=target is not None)
        team.step()
    return seconds


@for_each("wait", [0.0, 60.0])
def test_a_mission_waits_for_one_that_is_away_with_budget_left(wait: float) -> None:
    team = pair(lost_after=15.0, wait_for_absent=wait)
    over = until_over(team, "a", 200)
    assert team.mission.state == "ended"
    assert over >= 60 if wait else over < 60
    again = pair(lost_after=15.0, wait_for_absent=60.0)
    until_over(again, "a", 14)
    assert again.mission.alarms == ("b is silent for 14 s",)
    until_over(again, "a", 30)
    assert again.mission.state == "running"
    assert again.mission.reason.endswith("b away, and waited for")
    left, read = again.probe("b").remaining, int(again.loop.belief.observed.sum())
    again.put("b", 17, read=False)
    again.step()
    assert again.probe("b").remaining == left
    assert again.mission.alarms == ()
    until_over(again, "b", 200)
    assert again.loop.belief.observed.sum() > read


def test_a_map_that_is_built_already_needs_no_file() -> None:
    team = begun()
    config = from_mapping(ActiveSensingConfig, team.config | {"map": {"file": "absent.geojson"}})
    parts = build_parts(config, None, topology=team.loop.topology, settled=config.map)
    assert parts.mission.loop.topology is team.loop.topology
