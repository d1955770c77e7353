"""What costs much is worked out seldom enough, and in the end it is up to date."""

from __future__ import annotations

from gp_active_sensing.web.view import Paced


class Work:
    """A clock, and work that takes time by it."""

    def __init__(self, seconds: float) -> None:
        self.now, self.seconds, self.done = 0.0, seconds, 0

    def clock(self) -> float:
        return self.now

    def work(self) -> int:
        self.now += self.seconds
        self.done += 1
        return self.done


def test_what_waits_becomes_due_and_the_last_one_does_not_wait() -> None:
    work = Work(1.0)
    paced: Paced[int] = Paced(work.clock, share=0.1)
    assert not paced.due
    assert paced.get(1, work.work) == 1
    assert paced.get(2, work.work) == 1, "as it was"
    assert not paced.due
    work.now += 8.9
    assert not paced.due
    work.now += 0.2
    assert paced.due
    assert paced.get(2, work.work) == 2
    assert paced.get(3, work.work) == 2
    assert paced.get(3, work.work, last=True) == 3
    assert not paced.due
