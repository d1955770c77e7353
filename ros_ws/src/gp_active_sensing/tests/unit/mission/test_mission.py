from __future__ import annotations

import logging
from dataclasses import replace

import pytest

from gp_active_sensing.errors import PlanningError
from gp_active_sensing.mission import changes
from gp_active_sensing.mission.requests import DecisionRequest
from gp_active_sensing.types import Budget
from tests.unit.mission.worlds import Rig, begun, chain, drive_to, grid, job_of, place


def drive_home(rig: Rig) -> float:
    """Read where it is sent, until it is sent home; return the time."""
    t = 1.0
    while rig.mission.probe.stages.home is None:
        t += 1.0
        drive_to(rig, t)
    return t


def asking() -> tuple[Rig, DecisionRequest]:
    """Return a mission whose probe stands at place 0, and its first question to the planner."""
    rig = Rig(grid(5))
    rig.mission.start()
    rig.pose(1.0, 0.0)
    job = job_of(rig.mission.step(10**9))
    assert job is not None
    return rig, job


def test_a_mission_observes_until_the_budget_is_spent() -> None:
    rig = begun(Rig(grid(5), budget=3))
    t = 1.0
    while rig.mission.state == "running":
        t += 1.0
        drive_to(rig, t)
    assert rig.mission.state == "ended"
    assert rig.mission.reason == "the budget of readings is spent"
    assert rig.mission.probe.stages.number == len(rig.sent) == 3
    assert len(rig.observed) == 3
    kinds = [e["event"] for e in rig.events]
    assert kinds.count("decision") == kinds.count("moved") == kinds.count("reading") == 3
    assert kinds[-1] == "end"


def test_no_decision_before_the_first_pose_and_the_first_time() -> None:
    rig = Rig(grid())
    rig.mission.start()
    rig.step(1.0)
    assert rig.sent == []
    rig.pose(1.0, 0.0)
    rig.step(0.0)
    assert rig.sent == []
    rig.step(1.0)
    assert len(rig.sent) == 1


def test_readings_after_the_end_are_counted_not_used() -> None:
    rig = begun(Rig(grid(), budget=1))
    drive_to(rig, 2.0)
    assert rig.mission.state == "ended"
    rig.reading(2.0)
    rig.step(3.0)
    assert rig.accepted == 1
    assert rig.ingestion.rejected == {"mission_over": 1}


def test_arrival_without_a_reading_is_repeated_then_set_aside() -> None:
    rig = begun(Rig(grid(2), reading_timeout=5.0, retries=1))
    first = rig.sent[0]
    for t in range(2, 30):
        if first in rig.loop.set_aside:
            break
        drive_to(rig, float(t), first, None)
    assert rig.loop.set_aside == {first}
    # Sent, sent again after the first wait; after the second wait another place is chosen.
    assert rig.sent[:2] == [first, first]
    assert rig.sent[2] != first
    misses = [e for e in rig.events if e["event"] == "miss"]
    assert [m["again"] for m in misses] == [True, False]


def test_passing_by_is_not_arriving() -> None:
    rig = begun(Rig(grid(3), reading_timeout=2.0))
    target = rig.sent[0]
    drive_to(rig, 2.0, target, None)
    rig.pose(3.0, 1000.0)
    rig.step(3.0)
    drive_to(rig, 9.0, target, None)
    assert rig.loop.counts["missed"] == 0


def test_on_roads_the_next_waypoint_comes_before_the_end_of_the_segment() -> None:
    rig = begun(Rig(chain()), 100.0)
    assert rig.sent == [place(rig.topology, "a2")]
    for t, x in ((2, 120.0), (3, 140.0), (4, 155.0)):
        rig.pose(t, x)
    rig.reading(4.0)
    rig.step(4.0)
    assert rig.observed == ["a2"]
    assert rig.sent[1:] == [place(rig.topology, "a3")]


def test_what_is_driven_while_a_plan_is_computed_is_charged_too() -> None:
    rig = begun(Rig(chain()), 100.0)
    for t, x in ((2, 120.0), (3, 140.0), (5, 160.0)):
        rig.pose(t, x)
    rig.reading(5.0)
    rig.step(5.0, plan=False)  # the planner is still at work while the probe drives on
    assert rig.mission.probe.stages.driven.metres == pytest.approx(60.0)
    for t, x in ((6, 180.0), (7, 200.0)):
        rig.pose(t, x)
        rig.step(t, plan=False)
    rig.plan()
    for t, x in ((8, 230.0), (9, 260.0)):
        rig.pose(t, x)
    rig.reading(9.0)
    rig.step(9.0, plan=False)
    assert rig.mission.probe.stages.driven.metres == pytest.approx(160.0)
    assert rig.mission.probe.stages.driven.seconds == pytest.approx(8.0)


def test_paused_it_takes_readings_and_decides_nothing() -> None:
    rig = begun(Rig(grid(5)))
    assert rig.mission.pause() == ""
    drive_to(rig, 2.0)
    assert rig.accepted == 1
    assert len(rig.sent) == 1
    assert rig.mission.resume() == ""
    rig.step(3.0)
    assert len(rig.sent) == 2


def test_an_answer_to_a_question_from_before_the_pause_is_not_used() -> None:
    rig, job = asking()
    answer = job.loop.ask(job.at)
    rig.mission.pause()
    rig.mission.resume()
    assert not rig.mission.decided(job, answer)
    assert rig.mission.probe.stages.number == 0
    rig.step(2.0)
    assert rig.mission.probe.stages.number == 1


def test_planning_does_not_change_the_belief_that_takes_readings() -> None:
    rig, job = asking()
    rig.reading(1.0, 7.0)
    rig.step(1.5, plan=False)
    assert bool(rig.loop.belief.observed[0])
    assert not bool(job.loop.belief.observed[0])


def test_a_waypoint_observed_while_it_was_chosen_is_chosen_again() -> None:
    rig, job = asking()
    answer = job.loop.ask(job.at)
    drive_to(rig, 2.0, answer.waypoints[0])
    assert not rig.mission.decided(job, answer)
    rig.step(3.0)
    assert rig.sent[-1] != answer.waypoint
    assert rig.mission.probe.stages.number == 1


def test_failed_planning_pauses_and_says_why() -> None:
    rig, job = asking()
    rig.mission.failed(job, ValueError("no such place"))
    assert rig.mission.state == "paused"
    assert "no such place" in rig.mission.reason
    rig.mission.resume()
    rig.step(2.0)
    assert len(rig.sent) == 1


def test_commands_out_of_turn_are_refused() -> None:
    mission = Rig(grid()).mission
    assert mission.pause() != ""
    assert mission.resume() != ""


def test_a_clock_that_goes_back_pauses_the_mission() -> None:
    rig = begun(Rig(grid(5)), t=100.0)
    rig.step(100.1)
    rig.step(50.0)
    assert rig.mission.state == "paused"
    assert "went back by 50.1" in rig.mission.reason
    drive_to(rig, 51.0)
    assert rig.accepted == 1, "poses of the new time are used"
    assert rig.mission.resume() == ""
    rig.step(52.0)
    assert rig.mission.state == "running"
    assert len(rig.sent) == 2


def test_the_waypoint_is_sent_again_when_it_goes_on() -> None:
    rig = begun(Rig(grid(5)))
    rig.mission.pause()
    rig.mission.resume()
    rig.step(2.0)
    rig.step(3.0)
    assert rig.sent == [rig.sent[0]] * 2


def test_a_little_jitter_of_the_clock_is_no_reason() -> None:
    rig = Rig(grid(5))
    rig.mission.start()
    rig.step(100.0)
    rig.step(99.6)
    assert rig.mission.state == "running"


def test_what_is_known_is_shown_without_a_decision_too() -> None:
    rig = Rig(grid())
    rig.pose(1.0, 0.0)
    rig.reading(1.0)
    rig.seconds = 5.0
    job = job_of(rig.mission.step(10**9))
    assert not job.decide
    assert job_of(rig.mission.step(2 * 10**9)) is None, "once is enough until there is news"


def test_stopping_uses_or_counts_what_has_come_and_what_waits() -> None:
    rig = Rig(grid(5), pose_wait=10.0)
    rig.pose(1.0, 0.0)
    rig.step(1.0)
    rig.reading(1.2)  # waits for the pose after it
    rig.step(1.2)
    rig.reading(9.0)  # no pose of its time
    rig.reading(1.3)
    rig.step(9.0)
    rig.reading(1.4)  # still in the inbox
    assert rig.accepted == 0
    rig.mission.stop("asked to finish")
    assert rig.accepted == 3
    assert rig.ingestion.rejected == {"no_pose": 1}
    assert rig.ingestion.waiting == 0
    assert (rig.mission.state, rig.mission.reason) == ("ended", "asked to finish")
    rig.mission.stop("again")
    assert rig.mission.reason == "asked to finish"


def test_no_waypoint_goes_out_and_the_reason_names_both_positions(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING):
        rig = begun(Rig(grid(5)), 3000.0, 400.0)
    assert rig.sent == []
    assert rig.mission.state == "paused"
    reason = rig.mission.reason
    assert "from its pose (3000.0, 400.0) to c" in reason
    assert reason in caplog.text
    assert not [e for e in rig.events if e["event"] == "decision"]


def test_a_longer_first_leg_may_be_allowed_while_the_mission_is_paused() -> None:
    rig = begun(Rig(grid(5)), 3000.0, 400.0)
    changes.set_config(rig.mission, replace(rig.config, first_leg=4000.0))
    assert rig.mission.resume() == ""
    rig.step(2.0)
    assert rig.mission.state == "running"
    assert len(rig.sent) == 1


def test_only_the_first_leg_counts() -> None:
    rig = begun(Rig(grid(5), drive_timeout=0.0))
    assert len(rig.sent) == 1
    rig.pose(2.0, 3000.0)
    rig.mission.pause()
    rig.mission.resume()
    rig.mission.unreachable()
    rig.step(2.0)
    assert len(rig.sent) > 1
    assert rig.mission.state == "running"


def test_the_last_waypoint_is_the_end_place_and_arriving_there_ends_it() -> None:
    rig = begun(Rig(grid(5), budget=Budget(readings=3, end=0)))
    t = drive_home(rig)
    assert rig.mission.state == "running"
    assert rig.mission.reason.endswith("is spent; on the way to the end place")
    assert rig.sent[-1] == 0
    assert rig.mission.probe.stages.target == 0
    assert len(rig.observed) == 3
    drive_to(rig, t + 1, 1)
    assert rig.mission.state == "running"
    assert not rig.over
    drive_to(rig, t + 5, 0)
    assert rig.over
    assert (rig.mission.state, rig.mission.reason) == ("ended", "the budget of readings is spent")
    kinds = [event["event"] for event in rig.events]
    assert kinds[-2:] == ["moved", "end"]
    assert kinds.count("home") == 1
    assert kinds.count("decision") == rig.mission.probe.stages.number
    home = next(event for event in rig.events if event["event"] == "home")
    assert home["path"][-1] == 0
    driven = sum(event["metres"] for event in rig.events if event["event"] == "moved")
    assert driven == pytest.approx(rig.mission.probe.stages.driven.metres)


def test_where_it_stands_already_nothing_is_sent() -> None:
    rig = begun(Rig(grid(3), budget=Budget(readings=1, end=0)))
    assert rig.sent == [0]
    drive_to(rig, 2.0, 0)
    assert rig.mission.state == "ended"
    assert rig.sent == [0]


def test_back_to_where_it_began() -> None:
    rig = Rig(grid(5), budget=Budget(readings=2), back_to_start=True)
    rig.mission.start()
    rig.pose(0.5, 500.0)
    rig.step(0.5)
    assert rig.sent == [], "the start must be known: off the map it waits"
    rig.pose(1.0, 20.0)
    rig.step(1.0)
    assert rig.probe.own_budget.end == 2
    drive_home(rig)
    assert rig.sent[-1] == 2


def test_after_a_pause_the_way_home_goes_on() -> None:
    rig = begun(Rig(grid(5), budget=Budget(readings=2, end=0)))
    t = drive_home(rig)
    sent = len(rig.sent)
    before = rig.mission.probe.stages.driven.metres
    rig.mission.pause()
    rig.pose(t + 1, 40.0)  # carried away, free of charge
    rig.step(t + 1)
    assert rig.mission.resume() == ""
    rig.step(t + 2)
    assert rig.sent[sent:] == [0], "sent again"
    drive_to(rig, t + 3, 0)
    assert rig.mission.state == "ended"
    assert rig.mission.probe.stages.driven.metres == pytest.approx(before + 40.0)


def test_half_a_segment_is_still_to_be_driven_when_the_next_is_chosen() -> None:
    """a1 a2 a3 there and b3 b2 b1 back, 100 m each; decisions fall in the middle of a segment."""
    roads = chain()
    a2, b1 = (place(roads, name) for name in ("a2", "b1"))
    for metres, sent in ((589.0, []), (590.0, [a2])):
        rig = Rig(roads, budget=Budget(metres=metres, end=b1))
        rig.mission.start()
        rig.pose(1.0, 10.0)
        # 90 m to the end of a1, and 500 m back to b1: there is no turning before the dead end.
        if not sent:
            with pytest.raises(PlanningError, match="to 'b1' takes 500 m and 50 s, 499 m are left"):
                rig.step(1.0)
        else:
            rig.step(1.0)
        assert rig.sent == sent
