"""The mission of one probe: when to ask, when a place is done, when to pause, when it is over.

No ROS in here: time and messages come as arguments, so every case can be tested without a clock.

=========  ====================================================================================
idle       readings are used; nothing is decided yet
running    decides, waits for the place to be observed, decides again
paused     readings are used; no decisions until `resume`
ended      the last waypoint stands; readings are counted, not used
=========  ====================================================================================
"""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable
from typing import Any

from gp_active_sensing.events import decision_event, end_event, miss_event, moved_event
from gp_active_sensing.loop import SensingLoop
from gp_active_sensing.ros.inbox import Inbox
from gp_active_sensing.ros.intake import Intake
from gp_active_sensing.ros.jobs import PlanJob, Stage, Step
from gp_active_sensing.ros.latency import Latency
from gp_active_sensing.ros.settings import MissionConfig
from gp_active_sensing.types import Clock, Cost, Plan, Reading

__all__ = ["Mission"]

logger = logging.getLogger(__name__)

SHOW_SECONDS = 2.0
"""Least real time between two looks at the belief that no decision asks for."""


class Mission:
    """One mission; `step` and the commands may be called from different threads.

    Args:
        loop: the engine, before its first reading.
        intake: brings readings to the loop.
        inbox: what callbacks leave.
        config: distances and times.
        arrival_radius: distance to a waypoint at which the probe has arrived [m].
        clock: monotonic seconds.
        journal: takes the events of the mission.
    """

    def __init__(
        self,
        loop: SensingLoop,
        intake: Intake,
        inbox: Inbox,
        config: MissionConfig,
        *,
        arrival_radius: float,
        clock: Clock,
        journal: Callable[[dict[str, Any]], None] = lambda event: None,
    ) -> None:
        self.loop = loop
        self.intake = intake
        self.inbox = inbox
        self.config = config
        self.arrival_radius = arrival_radius
        self.reading_timeout = config.reading_timeout
        self.lock = threading.RLock()
        self.state = "idle"
        self.reason = ""
        """Why it is paused or over."""
        self.stage = 0
        self.plan: Plan | None = None
        """The decision being carried out."""
        self.last_plan: Plan | None = None
        self.driven = Cost(0.0, 0.0)
        self.latency = Latency()
        """From the message that completed a place to the next waypoint."""
        self.job_running = False
        self.showing = False
        """What is known is being shown; whoever shows it resets this."""
        self._job_number = 0
        self._at: int | None = None
        self._finished: Stage | None = None
        self._since = 0.0
        self._values: list[float] = []
        self._send_again = False
        self._arrived_ns: int | None = None
        self._counted_ns = 0
        """Time and distance up to which the budget is charged; 0 = not before a decision."""
        self._counted_metres = 0.0
        self._now_ns = 0
        self._ended_ns: int | None = None
        self._shown, self._shown_at = 0, clock()
        self._clock = clock
        self._journal = journal

    @property
    def target(self) -> int | None:
        """The place being driven to."""
        plan = self.plan  # once: the other thread may change it in between
        return None if plan is None else plan.waypoint

    @property
    def until_ns(self) -> int:
        """Up to when the mission has come, on the node's clock."""
        return self._now_ns if self._ended_ns is None else self._ended_ns

    # -- commands ------------------------------------------------------------------------------

    def start(self) -> str:
        """Begin; return why it cannot, "" when it does."""
        with self.lock:
            if self.state != "idle":
                return f"the mission is {self.state} already" + self._because()
            self._go_on()
            return ""

    def pause(self, reason: str = "asked to") -> str:
        """Take no more decisions; return why it cannot, "" when it does."""
        with self.lock:
            if self.state != "running":
                return f"the mission is {self.state}, not running" + self._because()
            self.state, self.reason = "paused", reason
            self._job_number += 1
            self.job_running = False
            return ""

    def resume(self) -> str:
        """Go on; return why it cannot, "" when it does."""
        with self.lock:
            if self.state != "paused":
                return f"the mission is {self.state}, not paused" + self._because()
            self._at = None  # it may have been driven elsewhere
            self._send_again = True
            self._go_on()
            return ""

    def _go_on(self) -> None:
        self.state, self.reason = "running", ""
        self._arrived_ns = None
        self._since = self._clock()
        # Time paused is not charged.
        self._counted_ns = self._now_ns if self.plan is not None else 0
        self._counted_metres = self.intake.metres
        self.inbox.wake()

    def _because(self) -> str:
        return f" ({self.reason})" if self.reason else ""

    # -- every message, and every so often -------------------------------------------------------

    def step(self, now_ns: int) -> Step:
        """Use what came and see what is to be done.

        Args:
            now_ns: time of the node's clock; 0 = there is none yet.
        """
        with self.lock:
            if now_ns > 0:
                self._watch_clock(now_ns)
            arrivals = self.inbox.take()
            self._note_values(self.intake.take(arrivals))
            if self.state != "running" or now_ns <= 0:
                return Step(self._show())
            again = self._progress(now_ns, max((a.received for a in arrivals), default=None))
            if self._send_again:
                self._send_again = False
                again = self.target
            return Step(self._next_job() or self._show(), again)

    def _note_values(self, readings: list[Reading]) -> None:
        target = self.target
        self._values += [r.value for r in readings if target is not None and r.location == target]

    def _watch_clock(self, now_ns: int) -> None:
        back = 1e-9 * (self._now_ns - now_ns)
        self._now_ns = now_ns
        if back <= self.config.clock_tolerance:
            return
        logger.error("the clock went back by %.3f s; resume the mission when that is right", back)
        self.intake.restart_clock()
        self._arrived_ns = None
        self.pause(f"the clock went back by {back:.3f} s")

    def _progress(self, now_ns: int, received: float | None) -> int | None:
        """See whether the place is done; return a waypoint to send again."""
        target = self.target
        if target is None:
            return None
        if self.loop.belief.observed[target]:
            self._complete(now_ns, received)
            return None
        if not self._inside(target):
            self._arrived_ns = None
            return None
        if self._arrived_ns is None:
            self._arrived_ns = now_ns
        if now_ns - self._arrived_ns < 1e9 * self.reading_timeout:
            return None
        again = self.loop.miss(target)
        self._journal(miss_event(target, again=again, stamp_ns=now_ns))
        if again:
            self._arrived_ns = now_ns
            return target
        self._complete(now_ns, received)
        return None

    def _inside(self, target: int) -> bool:
        pose = self.intake.track.newest
        if pose is None:
            return False
        x, y, _ = self.loop.topology.goals[target]
        return math.hypot(pose.x - x, pose.y - y) <= self.arrival_radius

    def _complete(self, now_ns: int, received: float | None) -> None:
        plan = self.plan
        if plan is None:
            return
        cost = Cost(
            self.intake.metres - self._counted_metres,
            max(0.0, 1e-9 * (now_ns - self._counted_ns)),
        )
        # What is driven while the next plan is computed is charged as well.
        self._counted_ns, self._counted_metres = now_ns, self.intake.metres
        self.loop.moved(cost)
        self.driven = self.driven.plus(cost)
        self._journal(moved_event(cost, stamp_ns=now_ns))
        value = sum(self._values) / len(self._values) if self._values else None
        self._finished = Stage(self.stage, plan, value, self.driven, now_ns)
        self._at = plan.waypoint
        self.plan = None
        self._since = self._clock() if received is None else received

    def _next_job(self) -> PlanJob | None:
        if self.plan is not None or self.job_running:
            return None
        if self._at is None:
            if self.intake.track.newest is None:
                return None  # where the probe is must be known first
            here = self.intake.here
            if here is None or self.intake.off_map:
                logger.warning("the probe is off the map: any place may be the first")
            else:
                self._at = here.place
        self.job_running = True
        self._job_number += 1
        self._shown, self._shown_at = self.loop.counts["accepted"], self._clock()
        return PlanJob(
            self.loop.snapshot(), self._at, self._job_number, self._finished, self._since
        )

    def _show(self) -> PlanJob | None:
        """Return a job that shows what is known, when there is news and none was shown lately."""
        accepted, now = self.loop.counts["accepted"], self._clock()
        recently = now - self._shown_at < SHOW_SECONDS
        if accepted == self._shown or recently or self.job_running or self.showing:
            return None
        self.showing = True
        return self.look()

    def look(self) -> PlanJob:
        """Return a job that only shows what is known now."""
        with self.lock:
            self._shown, self._shown_at = self.loop.counts["accepted"], self._clock()
            return PlanJob(self.loop.snapshot(), None, 0, None, self._shown_at, decide=False)

    # -- decisions -----------------------------------------------------------------------------

    def decided(self, job: PlanJob, plan: Plan) -> bool:
        """Take the answer to a job; say whether it is used (also when it is the last one)."""
        with self.lock:
            if job.number != self._job_number or self.state != "running":
                return False
            self.job_running = False
            if plan.waypoint is not None and self.loop.belief.observed[plan.waypoint]:
                return False  # read on the way while this was computed: decide again
            self._finished = None
            self.last_plan = plan
            if plan.waypoint is None:
                self._end(plan.reason or "nothing is left to observe")
                return True
            self.loop.adopt(job.loop)
            self.stage += 1
            self._journal(
                decision_event(self.stage, plan, job.loop.policy_state, stamp_ns=self._now_ns)
            )
            self.plan = plan
            self._values = []
            self._arrived_ns = None
            if self._counted_ns == 0:
                self._counted_ns, self._counted_metres = self._now_ns, self.intake.metres
            self.intake.expected = frozenset(plan.path)
            self.latency.add(self._clock() - job.since)
            return True

    def failed(self, job: PlanJob, error: BaseException) -> None:
        """Take note that a job could not be done."""
        with self.lock:
            if job.number == self._job_number:
                self.pause(f"planning failed: {error}")

    def _end(self, reason: str) -> None:
        self.state, self.reason = "ended", reason
        self._ended_ns = self._now_ns
        self.intake.open = False
        self.intake.stop_waiting()  # counts what still waits
        self._journal(end_event(reason, stamp_ns=self._now_ns))

    def stop(self, reason: str) -> Stage | None:
        """End it from outside, if it is not over; return a stage not handed out yet."""
        with self.lock:
            if self.state != "ended":
                self._note_values(self.intake.take(self.inbox.take()))
                self._note_values(self.intake.stop_waiting())
                self._job_number += 1
                self.job_running = False
                self._end(reason)
            stage, self._finished = self._finished, None
            return stage
