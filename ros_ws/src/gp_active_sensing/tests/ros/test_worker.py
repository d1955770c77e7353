"""The two threads of a mission: what goes wrong in one step must not stop the next."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from gp_active_sensing.ros import worker as worker_module
from gp_active_sensing.ros.worker import Worker
from tests.ros.conftest import wait_until
from tests.ros.worlds import SECOND, Rig, grid


class Said:
    """Outputs that note what they were asked for, and fail where told to."""

    def __init__(self, *failing: str) -> None:
        self.calls: list[str] = []
        self._failing = failing

    def __getattr__(self, name: str) -> Callable[..., None]:
        def call(*_: Any) -> None:
            self.calls.append(name)
            if name in self._failing:
                msg = f"{name} failed"
                raise RuntimeError(msg)

        return call


Start = Callable[..., Worker]


@pytest.fixture
def start() -> Iterator[Start]:
    workers: list[Worker] = []

    def begin(rig: Rig, outputs: Said) -> Worker:
        worker = Worker(rig.mission, outputs, lambda: SECOND)
        workers.append(worker)
        worker.start()
        return worker

    yield begin
    for worker in workers:
        worker.stop()


def at_place_0(budget: int | None = None) -> Rig:
    rig = Rig(grid(), budget=budget)
    rig.mission.start()
    rig.pose(1.0, 0.0)
    return rig


def test_the_end_is_said_even_when_the_results_cannot_be_shown(start: Start) -> None:
    said = Said("send_waypoint", "send_results")
    rig = at_place_0(budget=1)
    worker = start(rig, said)
    wait_until(lambda: rig.mission.target is not None, "a waypoint")
    x, y = rig.topology.positions[rig.mission.target]
    rig.pose(1.1, float(x), float(y))
    rig.reading(1.1)
    wait_until(lambda: "mission_ended" in said.calls, "the end to be said")
    assert rig.mission.state == "ended"
    assert worker.errors["results"] == 3


def test_planning_that_fails_pauses_and_the_planner_lives(start: Start) -> None:
    rig = at_place_0()
    good = rig.loop.policy

    class Bad:
        def plan(self, *_: Any, **__: Any) -> Any:
            msg = "no idea"
            raise RuntimeError(msg)

    rig.loop.policy = Bad()  # type: ignore[assignment]
    worker = start(rig, Said())
    wait_until(lambda: rig.mission.state == "paused", "the pause")
    assert rig.mission.reason == "planning failed: no idea"
    assert worker.errors["planner"] == 1
    rig.loop.policy = good
    assert rig.mission.resume() == ""
    wait_until(lambda: rig.mission.target is not None, "a waypoint")


def test_a_decision_that_cannot_be_written_down_pauses(start: Start) -> None:
    rig = at_place_0()

    def full(_: Any) -> None:
        msg = "no space"
        raise OSError(msg)

    rig.mission._journal = full
    start(rig, Said())
    wait_until(lambda: rig.mission.state == "paused", "the pause")
    assert rig.mission.reason == "planning failed: no space"


def test_stop_does_not_wait_for_a_plan_for_long(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_module, "JOIN_SECONDS", 0.2)
    rig, hold = at_place_0(), threading.Event()
    good = rig.loop.policy

    class Slow:
        def plan(self, *args: Any, **options: Any) -> Any:
            hold.wait(20.0)
            return good.plan(*args, **options)

    rig.loop.policy = Slow()  # type: ignore[assignment]
    said = Said()
    worker = start(rig, said)
    wait_until(lambda: rig.mission.job_running, "a plan being computed")
    rig.mission.pause("shut down")
    begun = time.monotonic()
    assert not worker.stop()
    assert time.monotonic() - begun < 5.0
    hold.set()
    assert worker.stop(), "it ends once the plan is there"
    assert "send_waypoint" not in said.calls, "a plan that was given up is not used"


def test_only_one_look_at_a_time_is_asked_for(start: Start) -> None:
    rig, hold = Rig(grid()), threading.Event()

    class Slow(Said):
        def send_results(self, *_: Any) -> None:
            self.calls.append("send_results")
            hold.wait(20.0)

    said = Slow()
    start(rig, said)
    for second in range(1, 6):
        rig.seconds = 10.0 * second
        rig.pose(second, 0.0)
        rig.reading(second)
        wait_until(lambda n=second: rig.accepted == n, "the reading")
    assert said.calls == ["send_results"]
    hold.set()
    rig.seconds = 100.0
    wait_until(lambda: len(said.calls) == 2, "the news since then")
