from __future__ import annotations

import json
import math
from typing import Any

import pytest

from gp_active_sensing.mission.inbox import BATCH, Envelope, Inbox, RawAnswer, RawReading
from gp_active_sensing.mission.input_log import InputLog, parse_used
from gp_active_sensing.mission.poses import Pose
from gp_active_sensing.util.files import json_ready
from tests.cases import for_each
from tests.unit.mission.worlds import Rig, grid


def traced(rig: Rig) -> list[dict[str, Any]]:
    frames: list[dict[str, Any]] = []
    trace = InputLog(frames.append, lambda: rig.seconds)
    rig.mission.trace = trace
    keep = rig.events.append
    rig.mission.journal = lambda event: (keep(event), trace.event(event))[0]
    return frames


def test_a_step_is_a_frame_with_its_messages_and_events() -> None:
    rig = Rig(grid())
    frames = traced(rig)
    rig.seconds = 3.0
    rig.mission.start()
    rig.pose(1.0, 0.0)
    rig.reading(1.0, 2.5, variance=0.25)
    rig.seconds = 3.5
    rig.step(1.5)
    command, step = frames[:2]
    assert command["events"][0]["state"] == "running"
    assert "now" not in command
    assert (step["now"], step["clock"]) == (1_500_000_000, 3.5)
    pose, reading = (parse_used(entry) for entry in step["took"])
    assert pose == ("", Pose(1_000_000_000, "map", 0.0, 0.0, 0.0), 0.5)
    assert reading == ("", RawReading(1_000_000_000, 2.5, 0.25), 0.5)
    assert [frame["n"] for frame in frames] == list(range(1, len(frames) + 1))


def test_a_step_that_uses_what_was_kept_is_done_again_in_a_replay() -> None:
    rig = Rig(grid(), taking={"catch_up": True}, inbox=1000)
    for i in range(3 * BATCH):
        rig.pose(1.0 + 0.001 * i, 0.0)
    while len(rig.mission.inbox):
        rig.step(2.0)
    frames = traced(rig)
    rig.seconds = 2.0
    rig.step(2.0)
    rig.step(2.1)
    rig.step(2.2)
    assert rig.ingestion.poses == 3 * BATCH
    assert [frame["now"] for frame in frames] == [2_000_000_000, 2_100_000_000, 2_200_000_000]


def test_messages_survive_json() -> None:
    rig = Rig(grid())
    frames = traced(rig)
    rig.mission.inbox.put(Pose(5, "map", math.nan, 1e308, -0.0), 0.0, "")
    rig.mission.inbox.put(RawReading(6, math.inf, None, "a/b"), 0.0, "")
    rig.mission.inbox.put(RawAnswer(7, "map", 1.0, -0.0, math.nan, math.inf), 0.0, "")
    rig.step(1.0)
    again = json.loads(json.dumps(json_ready(frames), allow_nan=False))
    (_, pose, _), (_, reading, _), (_, answer, _) = map(parse_used, again[0]["took"])
    assert isinstance(pose, Pose)
    assert math.isnan(pose.x)
    assert (pose.y, math.copysign(1.0, pose.heading)) == (1e308, -1.0)
    assert reading == RawReading(6, math.inf, None, "a/b")
    assert isinstance(answer, RawAnswer)
    assert (answer.stamp_ns, answer.frame, answer.x) == (7, "map", 1.0)
    assert math.isnan(answer.value)
    assert answer.noise_variance == math.inf


@for_each("entry", [[], ["p", "", 1, 2], ["a", "", 1, 0, "map", 1.0, 2.0, "x", 1.0], "text"])
def test_what_is_no_message_is_refused(entry: Any) -> None:
    with pytest.raises(ValueError, match="not a message that was used"):
        parse_used(entry)


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
    assert stamps(inbox.pop(5)) == [0, 1, 2, 3, 4]
    assert stamps(inbox.pop()) == [5, 6, 7, 8, 9, 10, 11]
    assert (len(inbox), inbox.pop()) == (0, [])


def test_one_stream_that_floods_pushes_nothing_of_the_others_out() -> None:
    inbox = Inbox(3)
    inbox.put(pose(1), 0.0)
    inbox.put(reading(2), 0.0, "other")
    for i in range(1000):
        inbox.put(reading(10 + i), 0.0)
    assert stamps(inbox.pop()) == [1, 2, 1007, 1008, 1009]
    assert inbox.dropped == {"readings": 997}
    assert inbox.received == {"poses": 1, "readings": 1001}


def test_what_was_taken_too_early_comes_first_again() -> None:
    inbox = Inbox()
    for i in range(4):
        inbox.put(reading(i), 0.0)
    taken = inbox.pop(3)
    inbox.put_back(taken[1:])
    assert len(inbox) == 3
    assert stamps(inbox.pop()) == [1, 2, 3]


def test_what_is_refused_is_counted_by_probe_and_reason() -> None:
    inbox = Inbox()
    assert [inbox.refuse("readings", "too_large", "a") for _ in range(2)] == [1, 2]
    inbox.refuse("poses", "pose_too_fast", "b")
    assert inbox.refused == {"too_large": 2, "pose_too_fast": 1}
    assert inbox.refused_of("a") == {"too_large": 2}
    assert inbox.refused_of("nobody") == {}
    assert inbox.received == {"readings": 2, "poses": 1}
    assert len(inbox) == 0
