"""The inbox: order, room, counts."""

from __future__ import annotations

from gp_active_sensing.mission.inbox import Envelope, Inbox, RawReading
from gp_active_sensing.mission.poses import Pose


def reading(i: int) -> RawReading:
    return RawReading(i, float(i), None)


def pose(i: int) -> Pose:
    return Pose(i, "map", 0.0, 0.0, 0.0)


def stamps(arrivals: list[Envelope]) -> list[int]:
    return [arrival.what.stamp_ns for arrival in arrivals]


def test_messages_of_all_streams_come_out_in_the_order_they_came() -> None:
    inbox = Inbox()
    for i in range(12):
        inbox.put(reading(i) if i % 3 else pose(i), 0.0, ("", "a", "b")[i % 2])
    assert len(inbox) == 12
    assert stamps(inbox.take(5)) == [0, 1, 2, 3, 4]
    assert stamps(inbox.take()) == [5, 6, 7, 8, 9, 10, 11]
    assert (len(inbox), inbox.take()) == (0, [])


def test_one_stream_that_floods_pushes_nothing_of_the_others_out() -> None:
    inbox = Inbox(3)
    inbox.put(pose(1), 0.0)
    inbox.put(reading(2), 0.0, "other")
    for i in range(1000):
        inbox.put(reading(10 + i), 0.0)
    assert stamps(inbox.take()) == [1, 2, 1007, 1008, 1009]
    assert inbox.dropped == {"readings": 997}
    assert inbox.received == {"poses": 1, "readings": 1001}


def test_what_was_taken_too_early_comes_first_again() -> None:
    inbox = Inbox()
    for i in range(4):
        inbox.put(reading(i), 0.0)
    taken = inbox.take(3)
    inbox.put_back(taken[1:])
    assert len(inbox) == 3
    assert stamps(inbox.take()) == [1, 2, 3]


def test_what_is_refused_is_counted_by_probe_and_reason() -> None:
    inbox = Inbox()
    assert [inbox.refuse("readings", "too_large", "a") for _ in range(2)] == [1, 2]
    inbox.refuse("poses", "pose_too_fast", "b")
    assert inbox.refused == {"too_large": 2, "pose_too_fast": 1}
    assert inbox.refused_of("a") == {"too_large": 2}
    assert inbox.refused_of("nobody") == {}
    assert inbox.received == {"readings": 2, "poses": 1}
    assert len(inbox) == 0
