from __future__ import annotations

import logging
import math
from pathlib import Path

import pytest

from gp_active_sensing.config import from_mapping
from gp_active_sensing.mission.config import ActiveSensingConfig
from gp_active_sensing.mission.factory import build_parts
from gp_active_sensing.mission.inbox import RawReading
from gp_active_sensing.mission.poses import Pose
from gp_active_sensing.mission.requests import DecisionRequest
from gp_active_sensing.types import Budget
from tests.unit.mission.missions import CONFIG, SECOND
from tests.unit.mission.worlds import Rig, begun, drive_to, grid


def under_way(rig: Rig) -> int:
    """Start a mission at the origin, which has been read; return the place it is sent to."""
    rig.read(1.0, 0.0)
    rig.mission.start()
    rig.step(1.0)
    return rig.sent[-1]


def stand(rig: Rig, begin: float, end: float, x: float, y: float = 0.0) -> None:
    """Leave the probe where it is; a pose and a step each second."""
    t = begin
    while t <= end:
        rig.pose(t, x, y)
        rig.step(t)
        t += 1.0


def test_a_waypoint_that_comes_no_nearer_is_blocked_and_another_is_chosen() -> None:
    rig = Rig(grid(3), drive_timeout=30.0, block_seconds=100.0)
    first = under_way(rig)
    stand(rig, 2.0, 31.0, 0.0)
    assert rig.sent == [first]
    stand(rig, 32.0, 32.0, 0.0)
    assert rig.loop.blocked == {first}
    assert len(rig.sent) == 2
    assert rig.sent[1] != first
    (blocked,) = [e for e in rig.events if e["event"] == "blocked"]
    assert (blocked["location"], blocked["why"]) == (first, "no nearer for 30 s")
    assert blocked["until_ns"] == 132 * 10**9


def test_a_blocked_place_may_be_chosen_again_when_its_time_is_over() -> None:
    rig = Rig(grid(2), drive_timeout=10.0, block_seconds=50.0)
    first = under_way(rig)
    stand(rig, 2.0, 12.0, 0.0)
    assert rig.loop.blocked == {first}
    assert rig.mission.state == "running", "the only place that is left may be free again"
    assert rig.mission.reason.endswith("blocked places are tried again")
    stand(rig, 13.0, 61.0, 0.0)
    assert rig.sent == [first]
    stand(rig, 62.0, 62.0, 0.0)
    assert rig.sent == [first, first]
    assert rig.mission.reason == ""
    drive_to(rig, 63.0, first)
    assert rig.mission.state == "ended"


def test_a_place_that_is_blocked_again_and_again_is_set_aside() -> None:
    rig = Rig(grid(2), drive_timeout=10.0, block_seconds=10.0, retries=1)
    first = under_way(rig)
    stand(rig, 2.0, 60.0, 0.0)
    assert rig.loop.set_aside == {first}
    assert rig.loop.blocked == set()
    assert rig.mission.state == "ended"
    assert rig.sent == [first, first]


def test_what_was_driven_in_vain_is_taken_off_the_budget() -> None:
    rig = Rig(grid(4), budget=Budget(metres=200.0), drive_timeout=10.0)
    first = under_way(rig)
    target = rig.topology.positions[first][0]
    rig.pose(2.0, 0.4 * target)
    rig.step(2.0)
    stand(rig, 3.0, 13.0, 0.4 * target)
    assert rig.loop.blocked == {first}
    assert rig.mission.driven.metres == pytest.approx(0.4 * target)
    assert rig.probe.own_budget.metres == pytest.approx(200.0 - 0.4 * target)


def test_a_probe_that_waits_for_a_reading_is_not_blocked() -> None:
    rig = Rig(grid(3), drive_timeout=5.0, reading_timeout=100.0)
    target = under_way(rig)
    x, y = rig.topology.positions[target]
    stand(rig, 2.0, 60.0, float(x), float(y))
    assert rig.loop.blocked == set()
    assert rig.sent == [target]


def test_a_detour_leads_away_at_first_and_is_not_blocked() -> None:
    rig = Rig(grid(3, 3, spacing=100.0), drive_timeout=20.0, snap_distance=1000.0)
    target = under_way(rig)
    goal_x, goal_y = (float(c) for c in rig.topology.positions[target])
    t = 1.0
    way = [(0.0, 0.0), (-400.0, 0.0), (-400.0, 500.0), (goal_x + 30.0, goal_y)]
    x, y = way[0]
    for to_x, to_y in way[1:]:
        steps = int(max(abs(to_x - x), abs(to_y - y)))
        for i in range(steps):  # a metre a second and more
            t += 1.0
            f = (i + 1) / steps
            rig.pose(t, x + f * (to_x - x), y + f * (to_y - y))
            rig.step(t)
        x, y = to_x, to_y
    assert t > 1000.0
    assert rig.loop.blocked == set()
    assert rig.sent == [target]


def test_driving_to_and_fro_before_an_obstacle_is_not_getting_on() -> None:
    rig = Rig(grid(3), drive_timeout=20.0)
    target = under_way(rig)
    for t in range(2, 100):
        rig.pose(t, 1.5 * (t % 2))
        rig.step(t)
        if rig.loop.blocked:
            break
    assert rig.loop.blocked == {target}
    assert t < 60


def test_a_localisation_that_falls_silent_blocks_nothing() -> None:
    rig = Rig(grid(3), drive_timeout=10.0)
    under_way(rig)
    said = {}
    for t in range(2, 200):
        rig.step(float(t))
        said[t] = rig.mission.alarms
    assert said[8] == ()
    assert said[14] == ("the probe is silent for 13 s",)
    assert rig.loop.blocked == set()
    stand(rig, 200.0, 205.0, 2.0)
    assert rig.mission.alarms == ()
    assert rig.loop.blocked == set()


def test_an_answer_of_before_does_not_lead_to_the_blocked_place() -> None:
    """A place is blocked for one decision, and the next is already being computed."""
    rig = Rig(grid(5))
    first = under_way(rig)
    assert rig.mission.unreachable() == ""
    rig.step(2.0, plan=False)
    job = rig.asked
    assert first in job.loop.blocked
    rig.plan()
    assert rig.sent[-1] != first


def test_no_waypoint_before_a_reading_was_heard() -> None:
    rig = begun(Rig(grid(), wait_for_reading=True))
    rig.step(2.0)
    assert rig.sent == []
    assert rig.probe.needs_reading
    rig.reading(2.0)
    rig.step(2.1)
    assert len(rig.sent) == 1
    assert not rig.probe.needs_reading


def test_a_reading_that_cannot_be_placed_is_one_and_nan_is_none() -> None:
    rig = Rig(grid(), wait_for_reading=True)
    rig.mission.start()
    rig.reading(0.5, math.nan)
    rig.pose(10.0, 0.0)
    rig.step(10.0)
    assert rig.sent == []
    rig.reading(0.5)
    rig.step(10.1)
    assert rig.ingestion.rejected["no_pose"] == 1
    assert len(rig.sent) == 1


def test_a_node_that_is_started_again_knows_that_it_has_heard_one(tmp_path: Path) -> None:
    whole = {**CONFIG, "mission": {}, "run_dir": str(tmp_path / "run")}
    config = from_mapping(ActiveSensingConfig, whole)
    parts = build_parts(config, None)
    parts.mission.start()
    parts.mission.pause()
    parts.mission.inbox.put(Pose(SECOND, "map", 0.0, 0.0, 0.0), 0.0)
    parts.mission.inbox.put(RawReading(SECOND, 10.0, None), 0.0)
    parts.mission.step(SECOND)
    parts.recorder.close()
    again = build_parts(config, None).mission
    again.resume()
    again.inbox.put(Pose(2 * SECOND, "map", 0.0, 0.0, 0.0), 0.0)
    assert any(isinstance(step.job, DecisionRequest) for step in again.step(2 * SECOND))


def silent(columns: int = 8, **mission: object) -> Rig:
    """Return a mission whose sensor gave one reading, and its probe under way."""
    rig = Rig(grid(columns), reading_timeout=1.0, retries=0, **mission)  # type: ignore[arg-type]
    rig.mission.start()
    rig.pose(1.0, 0.0)
    rig.reading(1.0)
    for t in (1.0, 1.1):
        rig.step(t)
    return rig


def drive(rig: Rig, t: float, places: int, *, read: bool = False) -> float:
    """Drive to so many places, waiting at each for longer than it takes; return the time."""
    for _ in range(places):
        if rig.mission.state != "running":
            break
        x, y = rig.topology.positions[rig.sent[-1]].tolist()
        for wait in (0.0, 0.6, 1.2):
            rig.pose(t + wait, x, y)
            if read:
                rig.reading(t + wait)
            rig.step(t + wait)
        t += 2.0
    return t


def test_places_without_readings_in_a_row_pause_the_mission(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING):
        rig = silent()
        assert drive(rig, 2.0, 5) == pytest.approx(8.0), "three places, then it stops"
    mission = rig.mission
    assert mission.state == "paused"
    assert mission.reason in caplog.text
    assert len(rig.loop.set_aside) == 3
    assert mission.probe.plan is None


def test_one_reading_begins_the_count_anew() -> None:
    rig = silent()
    t = drive(rig, 2.0, 2)
    t = drive(rig, t, 1, read=True)
    drive(rig, t, 2)
    assert rig.mission.state == "running"
    assert len(rig.loop.set_aside) == 4
