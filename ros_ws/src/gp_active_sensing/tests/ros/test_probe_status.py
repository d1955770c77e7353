from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any

from gp_active_sensing.mission import changes
from gp_active_sensing.ros.diagnostics import probe_state, probe_status
from gp_active_sensing.ros.qos import TopicMonitor, pose_problems
from tests.unit.mission.teams import Team

OK, WARN = 0, 1


def streams(*heard: str) -> dict[str, TopicMonitor]:
    """Return the topics of probe a; those that were heard have had a message."""
    found = {}
    for topic in ("pose", "reading"):
        stream = TopicMonitor("a type", lambda message, received: None)
        stream.subscription = SimpleNamespace(topic_name=f"/a/{topic}")
        if topic in heard:
            stream.on_message(None)
        found[f"a/{topic}"] = stream
    return found


def status(team: Team, *heard: str, refused: Any = ()) -> tuple[int, str, dict[str, object]]:
    return probe_status(team.probe("a"), streams(*heard), Counter(refused))


def test_one_that_has_not_been_heard() -> None:
    level, _, values = status(Team(["a", "b"]))
    assert (level, values["state"]) == (WARN, "absent")
    assert values["missing_topics"] == "/a/pose, /a/reading"
    assert values["waypoint"] == ""


def test_from_driving_to_leaving() -> None:
    team = Team(["a", "b"], budget={"readings": 9, "metres": 100.0})
    team.here("a", "b")
    team.step(plan=False)
    assert probe_state(team.probe("a")) == "deciding"
    team.plan()
    name = team.loop.topology.names[team.target("a")]
    level, summary, values = status(team, "pose", "reading")
    assert (level, summary) == (OK, f"driving to {name}")
    assert values["waypoint"] == name
    assert values["metres_left"] == 100.0
    assert values["seconds_left"] == "unlimited"
    changes.leave(team.mission, "a")
    level, summary, values = status(team, "pose")
    assert (level, summary) == (OK, "left (asked to leave)")
    assert values["waypoint"] == ""


def test_readings_that_have_to_settle_are_no_problem() -> None:
    team = Team(["a", "b"])
    team.here("a", "b")
    team.step()
    team.probe("a").ingestion.rejected["settling"] = 40
    level, summary, values = status(team, "pose", "reading")
    assert (level, values["rejected_settling"]) == (OK, 40)
    assert "rejected" not in summary
    level, summary, values = status(team, "pose", "reading", refused={"too_large": 2})
    assert level == WARN
    assert summary.endswith("; 2 rejected")


def test_resting_and_going_home() -> None:
    team = Team(["a", "b"], budget={"readings": 1})
    team.here("a", "b")
    team.step()
    (idle,) = (name for name in "ab" if team.probe(name).plan is None)
    assert probe_state(team.probe(idle)) == "resting"
    assert team.probe(idle).resting == "the budget of readings is spent"
    team = Team(["a", "b"], budget={"readings": 1, "metres": 99.0}, probe={"end": 12})
    team.here("a")
    team.step()
    team.obey("a")
    assert probe_state(team.probe("a")) == "going home"
    team.put("b", 0, read=False)
    team.step()
    team.put("a", 12, read=False)
    team.step()
    assert probe_state(team.probe("a")) == "home"


def test_poses_of_more_than_one_publisher_are_reported() -> None:
    found = streams("pose")
    found["a/pose"].subscription.get_publisher_count = lambda: 2
    found["a/reading"].subscription.get_publisher_count = lambda: 3
    assert pose_problems(found, 0) == ["2 publishers of topic a/pose"]
    assert pose_problems({}, 4) == ["4 jumps of a pose"]
