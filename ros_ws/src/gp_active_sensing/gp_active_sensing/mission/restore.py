"""Restore a mission from its journal after a kill or a power cut.

Finished decisions are taken from the journal and not computed again. An unfinished decision is
computed again from the readings at the time of its request. If the planning limit is given in
expansions, the mission therefore continues as if it had not been interrupted.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from gp_active_sensing.errors import RunError
from gp_active_sensing.mission import changes
from gp_active_sensing.mission.ingestion.intake import ReadingIntake
from gp_active_sensing.mission.mission import Mission
from gp_active_sensing.mission.poses import Pose
from gp_active_sensing.mission.probe import ProbeState
from gp_active_sensing.mission.recording import Recorder
from gp_active_sensing.mission.requests import DecisionRequest, Stage
from gp_active_sensing.records.event_lines import parse_event
from gp_active_sensing.records.events import (
    AnswerUnused,
    BatteryNoted,
    BudgetChanged,
    ClockStepped,
    DecisionAsked,
    DecisionTaken,
    Event,
    ExpertAnswered,
    ExpertAsked,
    JournalGap,
    LimitsMoved,
    MapChanged,
    MissionEnded,
    MissionStarted,
    MissionStopped,
    Moved,
    MoveShut,
    PlaceBlocked,
    ProbePosition,
    ReadingGated,
    ReadingUsed,
    ReturnBegun,
    RosterChanged,
    SortieChanged,
    StateChanged,
    StatusNoted,
    VisitMissed,
)
from gp_active_sensing.records.journal import kinds_of
from gp_active_sensing.types import Cost
from gp_active_sensing.util.wording import counted

logger = logging.getLogger(__name__)

_ONCE = frozenset(
    kind.KIND
    for kind in (
        *(MissionStarted, DecisionTaken, Moved, VisitMissed, ReturnBegun),
        *(MissionStopped, MissionEnded),
    )
)
"""Kinds of events that a journal never has twice in a row, unlike `MissionResumed`."""


def is_over(events: Sequence[Mapping[str, Any]]) -> str:
    """Return the reason why the mission of a journal ended; "" = the mission has not ended."""
    ends = [number for number, kind in enumerate(kinds_of(events)) if kind == MissionEnded.KIND]
    return str(events[ends[-1]].get("reason") or "it was ended") if ends else ""


def stopped_in_order(events: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether the last process of the mission was stopped and not killed."""
    return bool(events) and events[-1].get("event") == MissionStopped.KIND


class MissionRestorer:
    """Restorer of the state of a mission from its journal."""

    def __init__(self, mission: Mission, recorder: Recorder) -> None:
        self._mission = mission
        self._recorder = recorder
        self._asked: DecisionRequest | None = None
        self._recorded: set[int] = set()
        self._completed: set[int] = set()
        self._last_ns = 0
        self._before: Mapping[str, Any] = {}
        self._gaps = JournalGaps(mission)

    def run(self, lines: Sequence[Mapping[str, Any]]) -> None:
        """Apply every line of a journal.

        Raises:
            RunError: an event contradicts earlier events.
        """
        mission, recorder = self._mission, self._recorder
        recorder.muted = mission.loop.restoring = True
        self._recorded = recorder.stages.stages
        try:
            for number, line in enumerate(lines, start=1):
                self._apply_line(number, line)
        finally:
            recorder.muted = mission.loop.restoring = False
        self._finish()
        logger.warning(
            "continuing at stage %d: %s observed, %s, %s%s; kept in %s",
            mission.decisions.stage,
            counted(int(mission.loop.belief.observed.sum()), "place"),
            counted(mission.loop.counts["accepted"], "reading"),
            mission.state,
            f" ({mission.reason})" if mission.reason else "",
            "no folder" if recorder.run is None else recorder.run.path,
        )

    def _apply_line(self, number: int, line: Mapping[str, Any]) -> None:
        kind = str(line.get("event"))
        try:
            if kind in _ONCE and line == self._before:
                msg = "it is there twice"
                raise ValueError(msg)
            self._before = line
            event = parse_event(line)
            self._last_ns = max(self._last_ns, event.time_ns)
            self.apply(event)
        except (RunError, KeyError, TypeError, ValueError, IndexError) as error:
            if self._gaps.found and kind not in (DecisionTaken.KIND, JournalGap.KIND):
                logger.error("journal, event %d (%s) is not used: %s", number, kind, error)
                self._gaps.note(JournalGap(failures=1, damaged=True))
                return
            why = str(error) if isinstance(error, RunError) else f"{error!r}: {dict(line)}"
            msg = (
                f"journal, event {number}: {kind!r} does not follow from the events before it "
                f"({why}); the journal is damaged or of another version: begin a new mission in "
                "another run_dir"
            )
            raise RunError(msg) from error

    def apply(self, event: Event) -> None:
        """Restore the effect of an event.

        Raises:
            RunError, TypeError, ValueError, IndexError: the event contradicts earlier events.
        """
        match event:
            case ReadingUsed():
                self._reading(event)
            case ReadingGated():
                self._intake(event).restore(event)
            case StatusNoted():
                self._status(event)
            case DecisionAsked():
                self._ask(event)
            case DecisionTaken():
                self._decision(event)
            case Moved():
                self._moved(event)
            case VisitMissed():
                self._miss(event)
            case AnswerUnused():
                self._unused(event)
            case ReturnBegun():
                self._home(event)
            case ExpertAsked() if self._mission.consulting is not None:
                self._mission.consulting.replay_query(event)
            case ExpertAnswered() if self._mission.consulting is not None:
                self._mission.consulting.use(event.reading)
            case StateChanged():
                self._state(event)
            case ClockStepped():
                changes.skip(self._mission, event.step_ns)
            case PlaceBlocked():
                self._mission.blocked.replay(event)
            case SortieChanged():
                probe = self._probe(event)
                if event.over:
                    probe.sortie.due = probe.sortie.waiting = True
                else:
                    probe.renew(event.number)
            case BatteryNoted():
                self._probe(event).sortie.note_level(event.level, event.where.odometer)
            case MoveShut():
                self._asked = None
                self._mission.blocked.replay_move(event)
            case LimitsMoved():
                self._mission.decisions.replay_limits(event)
            case BudgetChanged():
                self._budget(event)
            case MapChanged():
                self._map(event)
            case RosterChanged():
                probe = self._probe(event)
                self._whereabouts(probe, event.where)
                self._mission.fleet.replay(probe, event.why, event.time_ns)
            case JournalGap():
                self._asked = None  # the answer may have come in the meantime
                self._gaps.note(event)
            case _:
                pass  # starts and ends of processes have no effect

    def _probe(self, event: Event) -> ProbeState:
        return self._named(event.probe)

    def _named(self, name: str) -> ProbeState:
        """Return the probe with this name; create a probe that joined the running mission."""
        if name not in self._mission.probes:
            changes.add_probe(self._mission, name)
        return self._mission.probes[name]

    def _state(self, event: StateChanged) -> None:
        mission, stamp_ns = self._mission, event.stamp_ns
        # If the clock was set back, this time is earlier than the previous one.
        self._last_ns = stamp_ns
        mission.state, mission.reason = event.state, event.reason
        self._asked = None  # a pause discards the unfinished decision
        for name, where in event.probes.items():
            self._whereabouts(self._named(name), where)
        if mission.state == "running":
            for probe in mission.probes.values():
                probe.at, probe.resting = None, ""
                probe.sent_ns = stamp_ns
                probe.sensor.forget()
                probe.passed.wait_again(stamp_ns)
                probe.stages.skip_drive(stamp_ns, probe.ingestion.metres)
                probe.sortie.count(stamp_ns, probe.ingestion.metres)

    def _ask(self, event: DecisionAsked) -> None:
        probe = self._probe(event)
        self._whereabouts(probe, event.where)
        probe.at = event.at
        probe.note_start(probe.at)
        self._mission.decisions.round = set(event.waiting)
        self._mission.loop.advance(event.stamp_ns)
        self._mission.blocked.open_moves(event.stamp_ns)
        self._asked = self._mission.decisions.job_for(
            probe, event.pending, event.waiting, event.stamp_ns, event.passed
        )

    def _decision(self, event: DecisionTaken) -> None:
        probe, plan = self._probe(event), event.plan
        decisions = self._mission.decisions
        if self._gaps.found:
            self._gaps.settle(probe, event)
        elif event.stage != decisions.stage + 1:
            msg = f"expected stage {decisions.stage + 1}"
            raise ValueError(msg)
        self._asked = None
        self._settle()
        self._mission.loop.replay_decision(
            event.policy_state, plan.path, probe.name, again=event.again, carried=probe.carried
        )
        decisions.stage = event.stage
        self._whereabouts(probe, event.where)
        probe.set_out(plan, decisions.stage, event.time_ns)
        decisions.last_plan = plan

    def _moved(self, event: Moved) -> None:
        probe = self._probe(event)
        plan, stamp_ns = probe.plan, event.time_ns
        self._whereabouts(probe, event.where)
        metres = probe.ingestion.metres
        cost = self._gaps.cost(probe, event.cost, stamp_ns)
        if event.passed and plan is not None:
            stage, cost = probe.stages.pass_by(plan, stamp_ns, metres, cost)
            probe.queue_passed(stage, cost, stamp_ns)
            return
        probe.pay(cost, stamp_ns, None if event.given_up else plan or probe.stages.home)
        if event.given_up:
            probe.stages.add_cost(cost, stamp_ns, metres)
            probe.forget_decision()
            probe.home, probe.resting = False, ""
        elif plan is not None:
            visits = self._mission.loop.visits
            probe.finished, _ = probe.stages.complete(
                plan, stamp_ns, metres, went=event.went, visits=visits, cost=cost
            )
            probe.at = probe.standing_after(probe.finished)
            self._record(probe.finished)
        else:
            probe.stages.add_cost(cost, stamp_ns, metres)
            if probe.stages.home is not None:
                probe.resting, probe.home = probe.stages.home.reason, True
                probe.stages.home = None

    def _record(self, stage: Stage) -> None:
        if not self._mission.claim(stage):
            return
        self._completed.add(stage.number)
        if stage.number not in self._recorded:
            self._recorder.stage(stage, self._mission.loop)

    def _reading(self, event: ReadingUsed) -> None:
        probe, intake = self._probe(event), self._intake(event)
        intake.pipeline.replay_reading(event, gap=self._gaps.found)
        probe.record_used([event.reading])
        for each in self._mission.probes.values():
            for stage in each.settle_read():
                self._record(stage)
        intake.restore(event)

    def _intake(self, event: ReadingUsed | ReadingGated) -> ReadingIntake:
        """Return the intake for the reading's quantity; raise KeyError for an unknown quantity."""
        return self._probe(event).ingestion.of(event.reading.quantity)

    def _miss(self, event: VisitMissed) -> None:
        probe, place = self._probe(event), event.location
        if not 0 <= place < self._mission.loop.topology.n:
            msg = "no such place"
            raise ValueError(msg)
        if event.stamp_ns is None:
            msg = "it does not say when"
            raise ValueError(msg)
        # The recorded value counts: `mission.retries` may have changed since then.
        self._mission.loop.replay_miss(place, again=event.again)
        if event.passed or not event.again:
            probe.sensor.miss(place)
        if event.passed:
            stage = probe.passed.miss(place, again=event.again)
            probe.stages.settle(stage)
            self._record(stage)
        else:
            probe.sent_ns = event.stamp_ns

    def _unused(self, event: AnswerUnused) -> None:
        """Restore an unused plan: a plan without a waypoint, or an obsolete plan."""
        probe = self._probe(event)
        self._asked = None
        if event.waypoint is not None:
            self._mission.decisions.round.add(probe.name)
            return
        self._settle()
        if probe.stages.home is None:
            self._mission.loop.release(probe.name)
            probe.finished = None

    def _budget(self, event: BudgetChanged) -> None:
        self._asked = None
        changes.apply_budget(self._mission, event.budget)
        if event.error_of:
            self._mission.loop.set_aims(event.aim, event.aims)

    def _map(self, event: MapChanged) -> None:
        self._asked = None
        if self._mission.map is None:
            msg = "the mission has no map that changes (map.topic)"
            raise ValueError(msg)
        self._mission.map.replay(self._mission, event)

    def _home(self, event: ReturnBegun) -> None:
        probe = self._probe(event)
        self._asked = None
        self._settle()
        self._mission.loop.replay_way_home(probe.name)
        self._whereabouts(probe, event.where)
        probe.set_out_home(event.plan, event.time_ns)
        probe.sortie.due = event.sortie
        self._mission.reason = f"{event.reason}; on the way to the end place"

    def _settle(self) -> None:
        if (consulting := self._mission.consulting) is not None:
            consulting.settle()

    def _status(self, event: StatusNoted) -> None:
        if (consulting := self._mission.consulting) is not None:
            consulting.restore(event.expert or {})
        for name, status in event.probes.items():
            probe = self._named(name)
            self._whereabouts(probe, status.where)
            probe.ingestion.recall(status.rejected)

    def _whereabouts(self, probe: ProbeState, where: ProbePosition | None) -> None:
        if where is None:
            msg = "it does not say where the probe is"
            raise ValueError(msg)
        counted = None
        if where.pose is not None:
            stamp_ns, x, y = where.pose
            counted = Pose(stamp_ns, self._mission.loop.topology.frame, x, y, float("nan"))
        probe.ingestion.odometer.recall(where.odometer, counted, where.memory)

    def _finish(self) -> None:
        mission = self._mission
        mission.now_ns = self._last_ns
        self._gaps.finish()
        if self._gaps.found:  # the journal may have lost the end of a recorded stage
            self._completed |= {n for n in self._recorded if n < mission.decisions.stage}
        self._recorder.stages.keep(self._completed)
        if mission.state == "running":
            mission.decisions.open = self._asked
        if mission.consulting is not None:
            mission.consulting.ask_for_missing()
        for probe in mission.probes.values():
            probe.since = probe.last_message
            probe.send_again = probe.target is not None


class JournalGaps:
    """Bounds on the readings and drives that are missing in a journal."""

    def __init__(self, mission: Mission) -> None:
        self._mission = mission
        self.found = False
        """True if the journal has a gap."""
        self._readings = 0
        """Upper bound on the number of readings that were lost since the last decision."""
        self._unsettled: set[str] = set()
        """Names of the probes whose drives since the last gap are unknown."""

    def note(self, event: JournalGap) -> None:
        """Record a gap in the journal."""
        missing = event.failures
        self.found = True
        self._readings += missing if event.readings is None else min(missing, event.readings)
        self._unsettled = set(self._mission.probes)
        logger.error(
            "%d events are not in the journal (%s): the mission continues without them, and used "
            "readings may be missing",
            missing,
            "damaged" if event.damaged else "they could not be written: a full disk?",
        )

    def settle(self, probe: ProbeState, event: DecisionTaken) -> None:
        """Set the remaining budget to the value that was recorded with a decision after the gap."""
        mission, loop = self._mission, self._mission.loop
        if event.stage <= mission.decisions.stage:
            msg = f"expected stage {mission.decisions.stage + 1} or later"
            raise ValueError(msg)
        loop.decisions += event.stage - mission.decisions.stage - 1
        if mission.state != "running":  # the event of the start is lost
            mission.state, mission.reason = "running", ""
        if (left := event.left) is None:
            msg = "it does not say what was left of the budget"
            raise ValueError(msg)
        if left.readings is not None and loop.remaining.readings is not None:
            loop.spent += max(0, loop.remaining.readings - left.readings)
        loop.remaining = replace(loop.remaining, readings=left.readings)
        metres = (probe.own_budget.metres or 0.0) - (left.metres or 0.0)
        seconds = (probe.own_budget.seconds or 0.0) - (left.seconds or 0.0)
        unknown = Cost(max(0.0, metres), max(0.0, seconds))
        probe.stages.driven = probe.stages.driven.plus(unknown)
        probe.own_budget = replace(probe.own_budget, metres=left.metres, seconds=left.seconds)
        self._readings = 0
        self._unsettled.discard(probe.name)

    def cost(self, probe: ProbeState, cost: Cost, now_ns: int) -> Cost:
        """Return an upper bound on the cost of a drive, including unrecorded drives before it."""
        if probe.name not in self._unsettled:
            return cost
        owed = probe.stages.owed(now_ns, probe.ingestion.metres)
        return Cost(max(cost.metres, owed.metres), max(cost.seconds, owed.seconds))

    def finish(self) -> None:
        """Reduce the budget by the readings that may have been lost after the last decision."""
        loop, left = self._mission.loop, self._mission.loop.remaining.readings
        if not self._readings or left is None:
            return
        readings = min(self._readings, left)
        loop.remaining = loop.remaining.minus(readings=readings)
        loop.spent += readings
        logger.error(
            "%d readings are subtracted from the budget, since they may have been used before the "
            "restart",
            readings,
        )
