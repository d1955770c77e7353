from __future__ import annotations

from gp_active_sensing.mission.catch_up import CATCH_UP_SECONDS, CatchUp
from gp_active_sensing.mission.inbox import Arrival, RawReading
from gp_active_sensing.mission.poses import Pose


class Time:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def pose(stamp_ns: int) -> Arrival:
    return Arrival(Pose(stamp_ns, "map", 0.0, 0.0, 0.0), 99.0)


def reading(stamp_ns: int) -> Arrival:
    return Arrival(RawReading(stamp_ns, 1.0, None), 99.0)


def test_where_nothing_is_asked_for_nothing_waits() -> None:
    catch_up = CatchUp(Time(), wanted=False)
    messages = [pose(3), reading(1)]
    assert catch_up.pass_on(messages) is messages
    assert not catch_up.going_on


def test_streams_are_merged_by_their_stamps_when_all_may_have_come() -> None:
    time = Time()
    catch_up = CatchUp(time, wanted=True)
    time.now += 60.0  # however long the publishers take to be found
    assert catch_up.pass_on([]) == ()
    assert catch_up.pass_on([pose(1), pose(3), pose(5)]) == ()
    assert catch_up.pass_on([reading(2), reading(4)]) == ()
    assert catch_up.waiting == 5
    time.now += CATCH_UP_SECONDS
    found = catch_up.pass_on([pose(6)])
    assert [message.what.stamp_ns for message in found] == [1, 2, 3, 4, 5, 6]
    assert {message.received for message in found} == {time.now}, "they wait from now on"
    assert not catch_up.going_on
    assert list(catch_up.pass_on([pose(2)])) == [pose(2)]


def test_a_pose_and_a_reading_of_one_moment_keep_their_order() -> None:
    catch_up = CatchUp(Time(), wanted=True)
    catch_up.pass_on([reading(5), pose(5), reading(5)])
    kinds = [type(message.what) for message in catch_up.release()]
    assert kinds == [RawReading, Pose, RawReading]
