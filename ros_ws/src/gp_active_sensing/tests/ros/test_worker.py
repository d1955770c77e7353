"""The two threads of a mission: what goes wrong in one step must not stop the next."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from gp_active_sensing.planning.request import PlanRequest
from gp_active_sensing.ros import worker as worker_module
from gp_active_sensing.ros.worker import Worker
from tests.ros.conftest import wait_until
from tests.unit.mission.worlds import SECOND, Rig, grid
from tests.waiting import LIMIT


class Said:
    """Outputs that note what they were asked for, and then do what they are told to."""

    def __init__(self, **then: Callable[[], object]) -> None:
        self.calls: list[str] = []
        self._then = then

    def __getattr__(self, name: str) -> Callable[..., None]:
        def call(*_: Any) -> None:
            self.calls.append(name)
            self._then.get(name, int)()

        return call


def hook(rig: Rig, before: Callable[[int, PlanRequest], object]) -> Any:
    """Have something done before each plan; return the policy as it was."""
    good, calls = rig.loop.policy, itertools.count(1)

    def plan(request: PlanRequest, state: Any = None) -> Any:
        before(next(calls), request)
        return good.plan(request, state)

    rig.loop.policy = SimpleNamespace(plan=plan)
    return good


def arrive(rig: Rig) -> None:
    x, y = rig.topology.positions[rig.mission.probe.stages.target].tolist()
    rig.pose(1.1, x, y)
    rig.reading(1.1)


def think(request: PlanRequest, seconds: float) -> None:
    until = request.clock() + seconds
    while request.clock() < until:
        time.sleep(0.001)


def fail(*_: Any) -> None:
    msg = "no idea"
    raise RuntimeError(msg)


Start = Callable[..., Worker]


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    monkeypatch.setattr(worker_module, "JOIN_SECONDS", LIMIT)
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
    said = Said(send_waypoint=fail, send_results=fail)
    rig = at_place_0(budget=1)
    worker = start(rig, said)
    wait_until(lambda: rig.mission.probe.stages.target is not None, "a waypoint")
    arrive(rig)
    wait_until(lambda: "mission_ended" in said.calls, "the end to be said")
    assert rig.mission.state == "ended"
    assert worker.errors["results"] == 3


def test_planning_that_fails_pauses_and_the_planner_lives(start: Start) -> None:
    rig = at_place_0()
    good = hook(rig, fail)
    worker = start(rig, Said())
    wait_until(lambda: rig.mission.state == "paused", "the pause")
    assert rig.mission.reason == "planning failed: no idea"
    assert worker.errors["planner"] == 1
    rig.loop.policy = good
    assert rig.mission.resume() == ""
    wait_until(lambda: rig.mission.probe.stages.target is not None, "a waypoint")


def test_stop_does_not_wait_for_a_plan_for_long(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_module, "JOIN_SECONDS", 0.2)
    rig, hold = at_place_0(), threading.Event()
    hook(rig, lambda number, request: hold.wait(2 * LIMIT))
    said = Said()
    worker = start(rig, said)
    wait_until(lambda: rig.mission.decisions.running, "a plan being computed")
    rig.mission.pause("shut down")
    assert not worker.stop(), "a plan that has no end is given up"
    monkeypatch.setattr(worker_module, "JOIN_SECONDS", LIMIT)
    hold.set()
    assert worker.stop(), "it ends once the plan is there"
    assert "send_waypoint" not in said.calls, "a plan that was given up is not used"


def test_only_one_look_at_a_time_is_asked_for(start: Start) -> None:
    rig, hold = Rig(grid()), threading.Event()

    said = Said(send_results=lambda: hold.wait(2 * LIMIT))
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


def test_a_reading_is_used_while_a_decision_is_computed(start: Start) -> None:
    rig, began, hold = at_place_0(), threading.Event(), threading.Event()

    def before(number: int, request: PlanRequest) -> None:
        began.set()
        hold.wait(2 * LIMIT)

    hook(rig, before)
    start(rig, Said())
    assert began.wait(LIMIT)
    rig.reading(1.0)
    wait_until(lambda: rig.accepted == 1, "the reading, although a plan is being made")
    hold.set()
    wait_until(lambda: rig.mission.probe.stages.target is not None, "a waypoint")


def test_a_long_plan_is_given_up_when_the_worker_stops(start: Start) -> None:
    rig, began = at_place_0(), threading.Event()
    rig.loop.clock = time.monotonic

    def before(number: int, request: PlanRequest) -> None:
        began.set()
        think(request, 10.0 * LIMIT)

    hook(rig, before)
    worker = start(rig, Said())
    assert began.wait(LIMIT)
    assert worker.stop(), "the planner still plans"
    assert not worker.errors
    assert rig.mission.state == "running", "the plan has not failed"
