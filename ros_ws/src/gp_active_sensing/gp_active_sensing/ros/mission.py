"""The mission of one probe: when to ask, when a place is done, when to pause, when it is over.

No ROS in here: time and messages come as arguments, so every case can be tested without a clock.

=========  ====================================================================================
idle       readings are used; nothing is decided yet
running    decides, waits for the place to be observed, decides again; drives to the end place
paused     readings are used; no decisions until `resume`
ended      the last waypoint stands; readings are counted, not used
=========  ====================================================================================
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from gp_active_sensing.events import (
    decision_event,
    end_event,
    miss_event,
    moved_event,
)
from gp_active_sensing.foresight import Foresight
from gp_active_sensing.loop import SensingLoop
from gp_active_sensing.ros.ahead import Ahead
from gp_active_sensing.ros.arrival import Arrival
from gp_active_sensing.ros.homeward import Homeward
from gp_active_sensing.ros.inbox import Inbox
from gp_active_sensing.ros.intake import Intake
from gp_active_sensing.ros.jobs import AheadJob, PlanJob, Stage, Step
from gp_active_sensing.ros.latency import Latency
from gp_active_sensing.ros.settings import MissionConfig
from gp_active_sensing.ros.stages import Stages
from gp_active_sensing.types import Clock, Plan

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
        ahead: cells of the next reading to plan for while the probe drives; 0 = plan on arrival.
        back_to_start: the end place is the one where the probe stands at the first decision.
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
        ahead: int = 0,
        back_to_start: bool = False,
        journal: Callable[[dict[str, Any]], None] = lambda event: None,
    ) -> None:
        self.loop = loop
        self.intake = intake
        self.inbox = inbox
        self.config = config
        self.arrival = Arrival(
            loop.topology, intake.track, radius=arrival_radius, timeout=config.reading_timeout
        )
        self.lock = threading.RLock()
        self.state = "idle"
        self.reason = ""
        """Why it is paused or over."""
        self.stages = Stages()
        self.homeward = Homeward(loop, intake, self.stages, journal, from_start=back_to_start)
        self.last_plan: Plan | None = None
        self.latency = Latency()
        """From the message that completed a place to the next waypoint."""
        self.latencies = {"foreseen": Latency(), "computed": Latency()}
        """The same, by how the decision came about."""
        self.ahead = Ahead(ahead)
        self.job_running = False
        self.showing = False
        """What is known is being shown; whoever shows it resets this."""
        self._job_number = 0
        self._at: int | None = None
        self._finished: Stage | None = None
        self._since = 0.0
        self._send_again = False
        self._now_ns = 0
        self._ended_ns: int | None = None
        self._shown, self._shown_at = 0, clock()
        self._clock = clock
        self._journal = journal

    @property
    def plan(self) -> Plan | None:
        """The decision being carried out."""
        return self.stages.plan

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
            self._give_up_planning()
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
        self.arrival.forget()
        self._since = self._clock()
        self.stages.go_on(self._now_ns, self.intake.metres)
        self.inbox.wake()

    def _give_up_planning(self) -> None:
        self._job_number += 1
        self.job_running = False
        self.ahead.drop()

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
            self.stages.note(self.intake.take(arrivals))
            if self.state != "running" or now_ns <= 0:
                return Step(self._show())
            again = self._progress(now_ns, max((a.received for a in arrivals), default=None))
            if (last := self._arrived_home(now_ns)) is not None:
                return Step(last)
            if (report := self._take_foreseen()) is not None:
                return Step(report, plan=self.plan)
            if self._send_again:
                self._send_again = False
                again = self.stages.target
            return Step(self._next_job() or self._next_ahead() or self._show(), again)

    def _watch_clock(self, now_ns: int) -> None:
        back = 1e-9 * (self._now_ns - now_ns)
        self._now_ns = now_ns
        if back <= self.config.clock_tolerance:
            return
        logger.error("the clock went back by %.3f s; resume the mission when that is right", back)
        self.intake.restart_clock()
        self.arrival.forget()
        self.pause(f"the clock went back by {back:.3f} s")

    def _progress(self, now_ns: int, received: float | None) -> int | None:
        """See whether the place is done; return a waypoint to send again."""
        plan = self.plan
        if plan is None:
            return None
        target = plan.waypoints[0]
        if self.loop.belief.observed[target]:
            self._complete(plan, now_ns, received)
            return None
        if not self.arrival.overdue(target, now_ns):
            return None
        again = self.loop.miss(target)
        self._journal(miss_event(target, again=again, stamp_ns=now_ns))
        if again:
            return target
        self._complete(plan, now_ns, received)
        return None

    def _complete(self, plan: Plan, now_ns: int, received: float | None) -> None:
        self._finished, cost = self.stages.complete(plan, now_ns, self.intake.metres)
        self.loop.moved(cost)
        self._journal(moved_event(cost, stamp_ns=now_ns))
        self._at = plan.waypoint
        self._since = self._clock() if received is None else received

    def _arrived_home(self, now_ns: int) -> PlanJob | None:
        """End the mission when it is where it has to end; return a job that shows what is known."""
        home = self.stages.home
        if home is None or not self.arrival.inside(home.path[-1]):
            return None
        self.homeward.arrive(now_ns)
        self._end(home.reason)
        return replace(self.look(), last=True)

    def _next_job(self) -> PlanJob | None:
        if self.plan is not None or self.stages.home is not None or self.job_running:
            return None
        self.ahead.drop()
        if self._at is None:
            if self.intake.track.newest is None:
                return None  # where the probe is must be known first
            here = self.intake.here
            if here is not None and not self.intake.off_map:
                self._at = here.place
            elif self.homeward.needs_start:
                return None  # where it has to come back to must be known first
            else:
                logger.warning("the probe is off the map: any place may be the first")
        self.homeward.note_start(self._at)
        self.job_running = True
        self._job_number += 1
        self._shown, self._shown_at = self.loop.counts["accepted"], self._clock()
        loop = self.homeward.snapshot(self._at)
        return PlanJob(loop, self._at, self._job_number, self._finished, self._since)

    def _next_ahead(self) -> AheadJob | None:
        if self.job_running:
            return None
        return self.ahead.job(self.loop, self.plan, self.stages.noise_variance)

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
            if plan.waypoint is None:
                self._finished = None
                self.last_plan = plan
                if plan.path:
                    self.loop.adopt(job.loop)
                    self.arrival.forget()
                    self.ahead.drop()
                    self.reason = self.homeward.begin(plan, job.at, self._now_ns)
                    return True
                self._end(plan.reason or "nothing is left to observe")
                return True
            self.loop.adopt(job.loop)
            self._carry_out(plan, job.since)
            return True

    def foreseen(self, job: AheadJob, foresight: Foresight) -> None:
        """Take note of what has been foreseen so far."""
        with self.lock:
            self.ahead.offer(job, foresight)

    def _take_foreseen(self) -> PlanJob | None:
        """Go on as foreseen, if that fits; return a job that records the stage that ended."""
        finished = self._finished
        if finished is None or self.plan is not None or self.job_running:
            return None
        found = self.ahead.take(self.loop, finished.value, self.homeward.rest(self._at))
        if found is None:
            return None
        plan, value = found
        self._shown, self._shown_at = self.loop.counts["accepted"], self._clock()
        report = PlanJob(self.loop.snapshot(), None, 0, finished, self._since, decide=False)
        self._carry_out(plan, self._since, foreseen_for=value)
        return report

    def _carry_out(self, plan: Plan, since: float, foreseen_for: float | None = None) -> None:
        foreseen = foreseen_for is not None
        self._journal(
            decision_event(
                self.stages.number + 1,
                plan,
                self.loop.policy_state,
                stamp_ns=self._now_ns,
                foreseen=foreseen,
                foreseen_for=foreseen_for,
            )
        )
        self.stages.begin(plan, self._now_ns, self.intake.metres, foreseen=foreseen)
        self.last_plan = plan
        self._finished = None
        self.arrival.forget()
        self.intake.expected = frozenset(plan.path)
        took = self._clock() - since
        self.latency.add(took)
        self.latencies["foreseen" if foreseen else "computed"].add(took)

    def failed(self, job: PlanJob, error: BaseException) -> None:
        """Take note that a job could not be done."""
        with self.lock:
            if job.number == self._job_number:
                self.pause(f"planning failed: {error}")

    def _end(self, reason: str) -> None:
        self.state, self.reason = "ended", reason
        self.ahead.drop()
        self._ended_ns = self._now_ns
        self.intake.open = False
        self.intake.stop_waiting()  # counts what still waits
        self._journal(end_event(reason, stamp_ns=self._now_ns))

    def claim(self, stage: Stage) -> bool:
        """Say whether a stage is still to be recorded, and leave that to whoever asks."""
        with self.lock:
            return self.stages.claim(stage)

    def stop(self, reason: str) -> list[Stage]:
        """End it from outside, if it is not over; return the stages not recorded yet."""
        with self.lock:
            if self.state != "ended":
                self.stages.note(self.intake.take(self.inbox.take()))
                self.stages.note(self.intake.stop_waiting())
                self._give_up_planning()
                self._end(reason)
            self._finished = None
            return self.stages.unrecorded
