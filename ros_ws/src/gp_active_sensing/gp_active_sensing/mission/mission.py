"""State machine of a mission: when to decide, when a place is done, when to pause or end.

One engine and one budget of readings for one or several probes; one decision is taken at a time,
with the other probes' waypoints pending. No ROS in here: time and messages come as arguments, so
every case can be tested without a clock, and a logged bag goes through the same code as a robot.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace

from gp_active_sensing.mission.delays import say_delay
from gp_active_sensing.mission.fleet import LEFT, OFF_LIST, why_resting
from gp_active_sensing.mission.inbox import BATCH, Envelope, RawAnswer, RawReading
from gp_active_sensing.mission.plan_ahead import ContingentPlans
from gp_active_sensing.mission.poses import Pose
from gp_active_sensing.mission.probe import ProbeState
from gp_active_sensing.mission.requests import (
    DecisionRequest,
    ExpertRequest,
    MissionOutput,
    PlanAheadRequest,
    Stage,
)
from gp_active_sensing.mission.sensor import speaks
from gp_active_sensing.mission.watch import MissionWatch
from gp_active_sensing.planning.base import READINGS_SPENT
from gp_active_sensing.records.events import AnswerUnused, MissionEnded, MissionStopped
from gp_active_sensing.types import Plan

__all__ = ["Mission"]

logger = logging.getLogger(__name__)

SHOW_SECONDS = 2.0
"""Least real time between two looks at the belief that no decision asks for."""


AGAIN = "blocked places are tried again"
"""How the reason ends of a mission that waits for such places."""


def _same(message: Envelope, following: Envelope) -> bool:
    """Return whether what follows is a reading of the same probe and the same moment."""
    one, other = message.what, following.what
    if isinstance(one, RawAnswer) or not isinstance(other, RawReading):
        return False
    return message.probe == following.probe and one.stamp_ns == other.stamp_ns


class Mission(MissionWatch):
    """One mission; `step` and the commands may be called from different threads."""

    # -- every message, and every so often -------------------------------------------------------

    def step(self, now_ns: int) -> list[MissionOutput]:
        """Process queued messages and return the resulting actions.

        Args:
            now_ns: time of the node's clock; 0 = there is none yet.
        """
        with self.lock, self._step_clock.standing() as at:
            if self.trace is None:
                return self._step(now_ns)
            self.trace.begin(now_ns, at)
            quiet = not self._catching_up
            try:
                return self._step(now_ns)
            finally:
                self.trace.end(quiet=quiet)

    def _step(self, now_ns: int) -> list[MissionOutput]:
        self._ticking = now_ns > 0
        if self._ticking:
            self._watch_clock(now_ns)
            self.loop.clock_ns = now_ns
        steps: list[MissionOutput] = []
        messages = deque(() if self._holds() else self.inbox.take(BATCH))
        try:
            while messages:
                message = messages.popleft()
                steps += self._use(message, more=bool(messages) and _same(message, messages[0]))
                if self._holds():
                    break
        finally:  # an error in one message must not take the others along
            self.inbox.put_back(list(messages))
        steps += self._every_so_often()
        if self.consulting is not None:
            if (job := self.consulting.next_job()) is not None:
                steps.append(MissionOutput(job))
            if places := self.consulting.outgoing():
                steps.append(MissionOutput(query=places))
        return steps

    def _holds(self) -> bool:
        """Return whether messages wait until the decision is there."""
        return self.config.wait_for_plan and self.decisions.running

    @property
    def _catching_up(self) -> list[ProbeState]:
        """Those of whom messages are kept until all that was missed has come."""
        return [probe for probe in self.probes.values() if probe.ingestion.catch_up.waiting]

    @property
    def _decides(self) -> bool:
        return self.state == "running" and self._ticking

    def _use(self, message: Envelope, *, more: bool) -> Iterator[MissionOutput]:
        """Use a message; with more to come of the same moment nothing is decided from it yet."""
        if self.trace is not None:
            self.trace.used(message)
        if isinstance(message.what, RawAnswer):
            yield from self._use_answer(message.what)
            return
        probe = self.probes.get(message.probe)
        if probe is None:
            self.strangers[message.probe] += 1
            return
        probe.take([message])
        if isinstance(message.what, Pose):
            self.fleet.heard(probe, message.what.stamp_ns, self._now_ns)
        elif speaks(message):
            self.fleet.spoke(probe, self._now_ns)
        if self._decides and not more:
            yield from self._look_at(probe, message.received)

    def _use_answer(self, answer: RawAnswer) -> Iterator[MissionOutput]:
        if self.consulting is None:
            self.strangers["expert"] += 1
        elif self.consulting.take(answer, self._now_ns) and self._decides:
            if job := self._next_job():
                yield MissionOutput(job)

    def _every_so_often(self) -> Iterator[MissionOutput]:
        most = max(1, BATCH // max(1, len(self._catching_up)))
        for probe in self.probes.values():
            probe.take([], most)
            if probe.gone == LEFT + OFF_LIST and len(probe.ingestion.track):
                probe.forget_messages()  # of what was in the inbox when it left the list
            if probe.ingestion.lag.work():
                say_delay(probe.ingestion.lag, probe.name, probe.ingestion.delay)
            if self._decides:
                yield from self._look_at(probe, None)
        if any(probe.ingestion.catch_up.hands_on for probe in self.probes.values()):
            self.inbox.wake()  # for the next piece
        self._note_status()
        if self._last_words:
            self._last_words = False
            yield MissionOutput(replace(self.look(), last=True))
        elif not self._decides:
            if job := self._show():
                yield MissionOutput(job)
        else:
            yield from self._go_about()

    def _go_about(self) -> Iterator[MissionOutput]:
        """See what the time that passes makes necessary."""
        if self.blocked.expire(self._now_ns):
            self._choose_again()
        if silent := self.fleet.miss_silent(self._now_ns):
            for probe in silent:
                self.decisions.forget(probe)
            self._rest_no_more()
        if not self.decisions.running and not self.fleet.waiting:
            for probe in self.fleet.present:
                if self._has_more(probe):
                    probe.call_back(self._now_ns)
        for probe in self.fleet.present:
            self.blocked.watch(probe, self._now_ns)
            if probe.send_again:
                probe.send_again = False
                if probe.target is not None:
                    yield MissionOutput(again=probe.target, probe=probe.name)
        if job := self._next_job():
            yield MissionOutput(job)
        elif self.config.follow == "waypoint" and (ahead := self.decisions.next_ahead()):
            yield MissionOutput(ahead)
        elif job := self._show():
            yield MissionOutput(job)
        if self._end_if_done():  # of those that are left after others have gone
            self._last_words = True

    def _look_at(self, probe: ProbeState, received: float | None) -> Iterator[MissionOutput]:
        """See what a probe has come to, once what was missed is known."""
        if probe.gone or probe.ingestion.catch_up.going_on:
            return
        driving = probe.plan is not None
        again = probe.see(self._now_ns, received)
        if probe.is_mute:
            self._send_no_further(probe)
            return
        home = probe.stages.home
        if home is not None and probe.arrival.inside(home.path[-1]):
            probe.homeward.arrive(self._now_ns)
            probe.resting = home.reason
            self._last_words = self._end_if_done()
        if probe.finished is not None and probe.plan is None:
            if driving and probe.finished.value is None:
                self._rest_no_more()  # what was kept for it is free for others
            if (report := self.decisions.take_foreseen(probe, self._now_ns)) is not None:
                self._note_shown()
                yield MissionOutput(report, plan=probe.plan, probe=probe.name)
        if again is not None:
            yield MissionOutput(again=again, probe=probe.name)
        if self._decides and (job := self._next_job()):
            yield MissionOutput(job)

    def _end_if_done(self) -> bool:
        """End the mission when there is nothing left to do for any probe; say whether it did."""
        present = self.fleet.present
        if any(self._has_more(probe) for probe in present):
            return False
        if self.state != "running" or self.decisions.running or not present:
            return False
        if not all(probe.resting and probe.stages.home is None for probe in present):
            return False
        if self.loop.blocked and self.loop.remaining.readings != 0 and not self.loop.good_enough():
            if not self.reason.endswith(AGAIN):
                self.reason = f"{why_resting(present)}; {AGAIN}"
                logger.info("nothing can be chosen: %s", self.blocked.waits(self._now_ns))
            return False
        self._end(why_resting(present))
        return True

    def _has_more(self, probe: ProbeState) -> bool:
        """Return whether readings that were kept for others are now left for a probe."""
        home = probe.stages.home
        if READINGS_SPENT not in (probe.resting, home.reason if home is not None else ""):
            return False
        left = self.loop.readings_for(probe.name, self.fleet.pending(probe))
        return left is None or left > 0

    def _next_job(self) -> DecisionRequest | None:
        job = self.decisions.next_job(self._now_ns)
        if job is not None:
            self._note_shown()
        return job

    def _show(self) -> DecisionRequest | None:
        """Return a job that shows what is known, when there is news and none was shown lately."""
        accepted, now = self.loop.counts["accepted"], self._clock()
        recently = now - self._shown_at < SHOW_SECONDS
        if accepted == self._shown or recently or self.decisions.running or self.showing:
            return None
        self.showing = True
        return self.look()

    def _note_shown(self) -> None:
        self._shown, self._shown_at = self.loop.counts["accepted"], self._clock()

    def look(self) -> DecisionRequest:
        """Return a job that only shows what is known now."""
        with self.lock:
            self._note_shown()
            return DecisionRequest(
                self.loop.snapshot(), None, 0, None, self._shown_at, decide=False
            )

    # -- decisions -----------------------------------------------------------------------------

    def decided(self, job: DecisionRequest, plan: Plan) -> bool:
        """Take the answer to a job; say whether it is used (also when it is the last one)."""
        with self.lock:
            if job.number != self.decisions.number or self.state != "running":
                return False
            used = self.decisions.take(job, plan, self._now_ns)
            if used and plan.waypoint is not None and self.reason.endswith(AGAIN):
                self.reason = ""
            if not used or not plan.path:
                self._journal(
                    AnswerUnused(
                        waypoint=plan.waypoint,
                        reason=plan.reason,
                        expanded=plan.expanded,
                        stamp_ns=self._now_ns,
                        probe=job.probe,
                    )
                )
            if self.decisions.refusal:
                self.pause(self.decisions.refusal)
            if used and plan.waypoint is None:
                if plan.path:
                    self.reason = f"{plan.reason}; on the way to the end place"
                elif self._end_if_done():
                    self.last_job = job.number
            return used

    def queried(self, job: ExpertRequest, places: Sequence[int]) -> None:
        """Ask an expert where the policy wants to; () = nowhere."""
        with self.lock:
            if self.consulting is not None and self.state == "running":
                self.consulting.ask(job, places, self._now_ns)
            self.inbox.wake()

    def foreseen(self, job: PlanAheadRequest, foresight: ContingentPlans) -> None:
        """Record what has been foreseen so far."""
        with self.lock:
            self.probes[job.probe].ahead.offer(job, foresight)

    def failed(self, job: DecisionRequest, error: BaseException) -> None:
        """Record that a job could not be done."""
        with self.lock:
            if job.number == self.decisions.number:
                self.pause(f"planning failed: {error}")

    def _end(self, reason: str, *, over: bool = True) -> None:
        """End it; `over` False: another process may go on with it."""
        self.state, self.reason = "ended", reason
        self._ended_ns = self._now_ns
        if self.consulting is not None:
            self.consulting.open = False
        for probe in self.probes.values():
            probe.ahead.drop()
            probe.ingestion.open = False
            probe.ingestion.stop_waiting()  # counts what still waits
        kind = MissionEnded if over else MissionStopped
        self._journal(kind(reason=reason, stamp_ns=self._now_ns))

    def claim(self, stage: Stage) -> bool:
        """Return whether a stage is still to be recorded, and leave that to anyone who asks."""
        with self.lock:
            return self.probes[stage.probe].stages.claim(stage)

    def go_on_from(self, now_ns: int) -> None:
        """Record the time of the last event before a restart."""
        self._now_ns = now_ns

    def stop(self, reason: str, *, over: bool = True) -> list[Stage]:
        """End it from outside, if it is not over; return the stages not recorded yet.

        Args:
            reason: why.
            over: False when another process may go on with it.
        """
        with self.lock:
            self._last_words = False
            if self.state != "ended":
                for message in self.inbox.take():
                    if self.trace is not None:
                        self.trace.used(message)
                    if isinstance(message.what, RawAnswer):
                        if self.consulting is not None:
                            self.consulting.take(message.what, self._now_ns)
                    elif message.probe in self.probes:
                        self.probes[message.probe].take([message])
                    else:
                        self.strangers[message.probe] += 1
                for probe in self.probes.values():
                    probe.stages.note(probe.ingestion.stop_waiting())
                self.decisions.give_up()
                self._end(reason, over=over)
            unrecorded: list[Stage] = []
            for probe in self.probes.values():
                probe.finished = None
                unrecorded += probe.stages.unrecorded
            return sorted(unrecorded, key=lambda stage: stage.number)
