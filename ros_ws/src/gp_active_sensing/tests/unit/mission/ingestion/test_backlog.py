"""Messages that were missed before a start: they are used first, in the order of their stamps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gp_active_sensing.mission.inbox import BATCH, Envelope, RawReading
from gp_active_sensing.mission.ingestion.backlog import (
    CATCH_UP_SECONDS,
    MOST_SECONDS,
    Backlog,
    DuplicateFilter,
)
from gp_active_sensing.mission.poses import Pose
from gp_active_sensing.records.events import ReadingGated, ReadingUsed
from gp_active_sensing.types import Reading
from tests.unit.mission.teams import Team
from tests.unit.mission.worlds import SECOND, Rig, begun, grid

NOW = 6
"""The node's time when it begins to listen [ns]."""


class Time:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def pose(stamp_ns: int) -> Envelope:
    return Envelope(Pose(stamp_ns, "map", 0.0, 0.0, 0.0), 99.0)


def reading(stamp_ns: int) -> Envelope:
    return Envelope(RawReading(stamp_ns, 1.0, None), 99.0)


def test_streams_are_merged_by_their_stamps_when_all_may_have_come() -> None:
    time = Time()
    catch_up = Backlog(time, wanted=True)
    time.now += 60.0  # however long the publishers take to be found
    assert catch_up.pass_on([], NOW) == ()
    assert catch_up.pass_on([pose(1), pose(3), pose(5)], NOW) == ()
    assert catch_up.pass_on([reading(2), reading(4)], NOW) == ()
    assert catch_up.waiting == 5
    time.now += CATCH_UP_SECONDS
    found = catch_up.pass_on([pose(6)], NOW)
    assert (len(found), catch_up.active) == (1, True), "one for each that comes"
    found = [*found, *catch_up.pass_on([], NOW)]
    assert [message.what.stamp_ns for message in found] == [1, 2, 3, 4, 5, 6]
    assert {message.received for message in found} == {time.now}, "they wait from now on"
    assert not catch_up.active
    assert list(catch_up.pass_on([pose(2)], NOW)) == [pose(2)]


def test_however_slowly_they_come_they_are_waited_for() -> None:
    """On a busy machine poses came seconds after the readings of their time."""
    time = Time()
    catch_up = Backlog(time, wanted=True)
    for stamp_ns in range(1, NOW):
        assert catch_up.pass_on([reading(stamp_ns)], NOW + stamp_ns - 1) == ()
        time.now += 0.9 * CATCH_UP_SECONDS
    assert catch_up.pass_on([pose(0)], 2 * NOW) == ()
    time.now += 0.9 * CATCH_UP_SECONDS
    assert catch_up.pass_on([pose(NOW)], 2 * NOW) == (), "of now: it is not waited for more of them"
    time.now += 0.2 * CATCH_UP_SECONDS
    found = catch_up.pass_on([], 2 * NOW)
    assert [message.what.stamp_ns for message in found] == list(range(NOW + 1))


def test_stamps_that_stay_old_are_not_waited_for_for_ever() -> None:
    time = Time()
    catch_up = Backlog(time, wanted=True)
    begun = time.now
    while not (found := catch_up.pass_on([reading(1)], NOW)):
        time.now += 0.1
    assert MOST_SECONDS <= time.now - begun <= MOST_SECONDS + 0.2
    assert len(found) + catch_up.waiting >= 300


def test_when_no_more_can_be_kept_it_is_used_without_waiting_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("gp_active_sensing.mission.ingestion.backlog.MOST_WAITING", 10)
    catch_up = Backlog(Time(), wanted=True)
    most, used = 0, []
    for stamp_ns in range(30):
        used += catch_up.pass_on([reading(stamp_ns)], 100)
        most = max(most, catch_up.waiting)
    used += catch_up.release()
    assert most == 10 - 1
    assert [message.what.stamp_ns for message in used] == list(range(30)), "nothing is lost"
    assert [record.message[:19] for record in caplog.records] == ["the queue for messa"]


def event(stamp_ns: int, value: float, **more: Any) -> ReadingUsed:
    return ReadingUsed(reading=Reading(stamp_ns, 1, value), **more)


def test_what_came_during_a_window_is_known() -> None:
    """Averaged, or rejected then: whatever its value, it does not come to count now."""
    known = DuplicateFilter()
    known.note(event(20, 7.0, first_ns=10, count=3))
    assert not known.discard(9, 1.0)
    times = (10, 15, 15, 20, 21)
    assert [known.discard(t, float(t)) for t in times] == [True, True, True, True, False]


def test_a_gated_reading_is_known_and_not_twice_when_it_was_taken_back() -> None:
    known = DuplicateFilter()
    known.note(ReadingGated(reading=Reading(5, 1, 99.0), off=8.0))
    known.note(event(5, 99.0, taken_back="agreed"))
    assert [known.discard(5, 99.0), known.discard(5, 99.0)] == [True, False]


def begin_again(rig: Rig) -> None:
    """Listen as a node that was started again does."""
    rig.ingestion.track.clear()
    rig.ingestion.catch_up = Backlog(lambda: rig.seconds, wanted=True)
    rig.probe.arrival.forget()


def test_nothing_is_concluded_before_the_last_piece_is_used() -> None:
    """Its reading lies behind many poses from the place that it was sent to."""
    rig = begun(Rig(grid(), arrival_radius=2.0, reading_timeout=0.5, inbox=5000))
    (target,) = rig.sent
    begin_again(rig)
    for i in range(3 * BATCH):
        rig.pose(2.0 + 0.001 * i, 10.0 * target)
    rig.reading(2.6)
    while len(rig.mission.inbox):
        rig.step(10.0)
    rig.seconds = CATCH_UP_SECONDS
    for i in range(5):
        rig.seconds += 1.0
        rig.step(11.0 + i)
    assert not rig.ingestion.catch_up.active
    assert rig.observed == [rig.topology.names[target]]
    assert not [event for event in rig.events if event["event"] == "miss"]


def test_a_probe_whose_messages_are_kept_is_not_given_up(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its clock is behind, so that all it sends looks as if it was missed."""
    team = Team(
        ("a", "b"),
        tmp_path,
        reading={"catch_up": True},
        pose={"catch_up": True},
        mission={"lost_after": 5.0},
    )

    def send(seconds: int) -> None:
        for _ in range(seconds):
            for name, x in (("a", 0.0), ("b", 50.0)):
                stamp = team.now_ns - 8 * SECOND
                team.mission.inbox.put(Pose(stamp, "map", x, 0.0, 0.0), team.t, name)
                team.mission.inbox.put(RawReading(stamp, 5.0, None), team.t, name)
            team.step()

    team.t = 1000.0
    send(15)
    assert {team.probe(name).gone for name in "ab"} == {""}
    before = {name: team.target(name) for name in "ab"}
    team.parts.recorder.close()
    team.begin()
    team.mission.resume()
    send(8)
    assert team.probe("a").ingestion.catch_up.waiting, "kept for longer than a probe may be silent"
    send(5)
    assert not team.probe("a").ingestion.catch_up.active
    assert {team.probe(name).gone for name in "ab"} == {""}
    assert {name: team.target(name) for name in "ab"} == before
    assert "leaves the mission" not in caplog.text
