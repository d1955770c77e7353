"""Run a mission in two threads: one processes messages, one computes decisions."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

from gp_active_sensing.mission import changes
from gp_active_sensing.mission.clocks import ClockMonitor
from gp_active_sensing.mission.mission import Mission
from gp_active_sensing.mission.requests import DecisionRequest, ExpertRequest, MissionOutput
from gp_active_sensing.types import Plan

if TYPE_CHECKING:
    from gp_active_sensing.ros.publishers import Publishers

logger = logging.getLogger(__name__)

TICK_SECONDS = 0.05
"""Longest sleep of the mission thread while no message arrives [s, real time]."""
JOIN_SECONDS = 1.0
"""Longest wait for the threads at shutdown [s], so that the process can end within 2 s."""
SETTLE_SECONDS = 3.0
"""Longest wait for a running planning job at the end of the mission [s]."""


class WorkerStoppedError(Exception):
    """Error: the worker was stopped while a decision was computed."""


class Worker:
    """Runner that executes a mission in two threads."""

    def __init__(
        self,
        mission: Mission,
        outputs: Publishers,
        now_ns: Callable[[], int],
        simulated: Callable[[], bool] = lambda: False,
    ) -> None:
        self._mission = mission
        self._outputs = outputs
        self._watch = ClockMonitor(now_ns, time.monotonic, simulated)
        self._stopping = threading.Event()
        self._jobs: queue.Queue[DecisionRequest | ExpertRequest | threading.Event | None] = (
            queue.Queue()
        )
        self.errors: Counter[str] = Counter()
        self._threads = [
            threading.Thread(target=self._run_mission, name="mission", daemon=True),
            threading.Thread(target=self._run_planner, name="planner", daemon=True),
        ]

    @property
    def is_running(self) -> bool:
        """True if both threads run."""
        return all(thread.is_alive() for thread in self._threads)

    def start(self) -> None:
        """Start both threads."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> bool:
        """Stop and join both threads; return whether the threads ended in time."""
        self._stopping.set()
        self._mission.inbox.wake()
        self._jobs.put(None)
        until = time.monotonic() + JOIN_SECONDS
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(max(0.0, until - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    def settle(self) -> bool:
        """Wait for the planner thread to finish its jobs; return whether it finished in time."""
        done = threading.Event()
        self._jobs.put(done)
        return done.wait(SETTLE_SECONDS)

    def _run_mission(self) -> None:
        while not self._stopping.is_set():
            self._mission.inbox.wait(TICK_SECONDS)
            try:
                now_ns, stepped_ns = self._watch.read()
                if stepped_ns:
                    changes.clock_stepped(self._mission, stepped_ns, now_ns)
                for step in self._mission.step(now_ns):
                    self._do(step)
            except Exception:
                self._note("mission")
                self._stopping.wait(TICK_SECONDS)  # limit the rate of failures

    def _do(self, step: MissionOutput) -> None:
        if step.job is not None:
            self._jobs.put(step.job)
        place = step.leg if step.again is None else step.again
        if place is not None:
            self._output(self._outputs.send_again, step.probe, place)
        if step.hold:
            self._output(self._outputs.publish_position, step.probe)
        if step.query:
            self._output(self._outputs.send_query, step.query)

    def _run_planner(self) -> None:
        while (job := self._jobs.get()) is not None:
            if isinstance(job, threading.Event):
                job.set()
            elif isinstance(job, ExpertRequest):
                self._query(job)
            elif job.decide:
                self._decide(job)
            else:
                self._output(self._outputs.send_results, job)
                self._mission.showing = False
                if job.last:
                    self._output(self._outputs.mission_ended)

    def _ask(self, job: DecisionRequest) -> Plan:
        """Compute a decision; raise WorkerStoppedError if the worker is stopped meanwhile."""
        clock = job.loop.clock

        def until_stopped() -> float:
            if self._stopping.is_set():
                raise WorkerStoppedError
            return clock()

        job.loop.clock = until_stopped
        try:
            return job.ask()
        finally:
            job.loop.clock = clock

    def _decide(self, job: DecisionRequest) -> None:
        try:
            plan = self._ask(job)
            used = self._mission.decided(job, plan)
        except WorkerStoppedError:
            return
        except Exception as error:
            self._note("planner")
            self._mission.failed(job, error)
            return
        if not used:
            self._mission.inbox.wake()
            return  # the next job includes the finished stage
        if plan.path:
            self._output(self._outputs.send_waypoint, job.probe, plan)
        self._mission.inbox.wake()  # process waiting messages and decide for the next probe
        self._output(self._outputs.send_results, job)
        if self._mission.last_job == job.number:
            self._output(self._outputs.mission_ended)

    def _query(self, job: ExpertRequest) -> None:
        places: tuple[int, ...] = ()
        try:
            places = job.ask()
        except Exception:  # without places, the decision does not wait for an answer
            self._note("planner")
        self._mission.queried(job, places)

    def _output(self, send: Callable[..., object], *args: object) -> None:
        """Call a method of the outputs; log and count its errors."""
        try:
            send(*args)
        except Exception:
            self._note("results")

    def _note(self, where: str) -> None:
        self.errors[where] += 1
        if self.errors[where] <= 3 or self.errors[where] % 100 == 0:
            logger.exception("the %s thread failed (%d times)", where, self.errors[where])
