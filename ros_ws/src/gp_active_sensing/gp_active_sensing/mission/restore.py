"""Restore a mission from its journal after a kill or a power cut.

Events are taken in the order in which they were written, through the same bookkeeping; nothing is
planned again. A decision that was being computed is computed again from the readings it was asked
with, so a mission limited in expansions goes on exactly as it would have.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gp_active_sensing.errors import RunError
from gp_active_sensing.mission.gaps import JournalGaps
from gp_active_sensing.mission.mission import Mission
from gp_active_sensing.mission.poses import Pose
from gp_active_sensing.mission.probe import ProbeState
from gp_active_sensing.mission.recording import Recorder
from gp_active_sensing.mission.requests import DecisionRequest
from gp_active_sensing.records.events import (
    aim_of,
    budget_of,
    cost_of,
    finite,
    gap_event,
    home_of,
    plan_of,
    reading_of,
)
from gp_active_sensing.records.journal import kinds_of

__all__ = ["MissionRestorer", "is_over", "stopped_in_order"]

logger = logging.getLogger(__name__)

_ONCE = ("start", "decision", "moved", "miss", "home", "stopped", "end")
"""Events of which two that are alike never follow each other; a mission may be killed right after
it was resumed."""


def is_over(events: Sequence[Mapping[str, Any]]) -> str:
    """Return why the mission of a journal ended, "" when it did not."""
    ends = [number for number, kind in enumerate(kinds_of(events)) if kind == "end"]
    return str(events[ends[-1]].get("reason") or "it was ended") if ends else ""


def stopped_in_order(events: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether the last process of a mission ended in order, and was not cut off."""
    return bool(events) and events[-1].get("event") == "stopped"


class MissionRestorer:
    """Brings a fresh mission to where its journal ends.

    Args:
        mission: before its first message, configured as it was.
        recorder: writes the records of stages that are missing.
    """

    def __init__(self, mission: Mission, recorder: Recorder) -> None:
        self._mission = mission
        self._recorder = recorder
        self._asked: DecisionRequest | None = None
        self._recorded: set[int] = set()
        self._completed: set[int] = set()
        self._last_ns = 0
        self._before: Mapping[str, Any] = {}
        self._gaps = JournalGaps(mission)
        self._takers: dict[str, Callable[[Mapping[str, Any]], None]] = {
            "state": self._state,
            "asked": self._ask,
            "decision": self._decision,
            "moved": self._moved,
            "reading": self._reading,
            "gated": self._gated,
            "query": self._query,
            "answer": self._answer,
            "miss": self._miss,
            "blocked": self._blocked,
            "unused": self._unused,
            "clock": self._clock,
            "gap": self._gap,
            "budget": self._budget,
            "roster": self._fleet,
            "home": self._home,
            "status": self._status,
        }

    def run(self, events: Sequence[Mapping[str, Any]]) -> None:
        """Take every event.

        Raises:
            RunError: one does not follow from those before it.
        """
        mission, recorder = self._mission, self._recorder
        recorder.muted = mission.loop.restoring = True
        self._recorded = recorder.stages.stages
        try:
            for number, event in enumerate(events, start=1):
                self._take(number, event)
        finally:
            recorder.muted = mission.loop.restoring = False
        self._finish()
        logger.warning(
            "continuing at stage %d: %d places observed, %d readings, %s%s; kept in %s",
            mission.decisions.stage,
            int(mission.loop.belief.observed.sum()),
            mission.loop.counts["accepted"],
            mission.state,
            f" ({mission.reason})" if mission.reason else "",
            "no folder" if recorder.run is None else recorder.run.path,
        )

    def _take(self, number: int, event: Mapping[str, Any]) -> None:
        kind = str(event.get("event"))
        taker = self._takers.get(kind)
        try:
            if kind in _ONCE and event == self._before:
                msg = "it is there twice"
                raise ValueError(msg)
            self._before = event
            self._last_ns = max(self._last_ns, int(event.get("stamp_ns", 0)))
            if taker is not None:
                taker(event)
        except (KeyError, TypeError, ValueError, IndexError) as error:
            if self._gaps.found and kind not in ("decision", "gap"):
                logger.error("journal, event %d (%s) is not used: %s", number, kind, error)
                self._gaps.note(gap_event(1, damaged=True))
                return
            msg = (
                f"journal, event {number}: {kind!r} does not follow from the events before it "
                f"({error!r}): {dict(event)}; the journal is damaged or of another version: begin "
                "a new mission in another run_dir"
            )
            raise RunError(msg) from error

    def _probe(self, event: Mapping[str, Any]) -> ProbeState:
        return self._named(str(event.get("probe", "")))

    def _named(self, name: str) -> ProbeState:
        """Return a probe by its name; one that joined while the mission ran joins now."""
        if name not in self._mission.probes:
            self._mission.add(name)
        return self._mission.probes[name]

    # -- the events ----------------------------------------------------------------------------

    def _state(self, event: Mapping[str, Any]) -> None:
        mission = self._mission
        # Where the clock was set back this is earlier than what was before.
        self._last_ns = int(event["stamp_ns"])
        mission.state, mission.reason = str(event["state"]), str(event["reason"])
        self._asked = None  # pausing gives up what is being computed
        for name, where in dict(event.get("probes", {})).items():
            self._whereabouts(self._named(name), where)
        if mission.state == "running":
            for probe in mission.probes.values():
                probe.at, probe.resting = None, ""
                probe.sent_ns = int(event["stamp_ns"])
                probe.sensor.forget()
                probe.stages.go_on(probe.sent_ns, probe.ingestion.metres)

    def _ask(self, event: Mapping[str, Any]) -> None:
        probe = self._probe(event)
        if "odometer" in event:  # not in journals of version 0.1
            self._whereabouts(probe, event)
        probe.at = None if event["at"] is None else int(event["at"])
        probe.homeward.note_start(probe.at)
        waiting = {
            str(name): None if at is None else int(at)
            for name, at in dict(event.get("waiting", {})).items()
        }
        now_ns = int(event["stamp_ns"])
        self._mission.decisions.round = set(waiting)
        self._mission.loop.advance(now_ns)
        self._asked = self._mission.decisions.job_for(
            probe, tuple(event["pending"]), waiting, now_ns
        )

    def _decision(self, event: Mapping[str, Any]) -> None:
        probe, plan = self._probe(event), plan_of(event)
        decisions = self._mission.decisions
        if self._gaps.found:
            self._gaps.settle(probe, event)
        elif int(event["stage"]) != decisions.stage + 1:
            msg = f"expected stage {decisions.stage + 1}"
            raise ValueError(msg)
        self._asked = None
        self._settle()
        self._mission.loop.replay_decision(
            event["policy_state"], plan.path, probe.name, again=bool(event.get("again", False))
        )
        decisions.stage = int(event["stage"])
        self._whereabouts(probe, event)
        probe.set_out(
            plan, decisions.stage, int(event["stamp_ns"]), foreseen=bool(event["foreseen"])
        )
        decisions.last_plan = plan

    def _moved(self, event: Mapping[str, Any]) -> None:
        probe = self._probe(event)
        plan = probe.plan
        self._whereabouts(probe, event)
        stamp_ns, metres = int(event["stamp_ns"]), probe.ingestion.metres
        cost = self._gaps.cost(probe, cost_of(event), stamp_ns)
        probe.purse = probe.purse.minus(cost=cost)
        if event.get("given_up"):
            probe.stages.charge_again(cost, stamp_ns, metres)
            probe.forget_decision()
            probe.home, probe.resting = False, ""
        elif plan is not None:
            went = event.get("went")
            probe.finished = probe.stages.complete_again(
                plan,
                cost,
                stamp_ns,
                metres,
                probe=probe.name,
                went=went,
                visits=self._mission.loop.visits,
            )
            probe.at = probe.standing_after(probe.finished)
            self._record(probe)
        else:
            probe.stages.charge_again(cost, stamp_ns, metres)
            if probe.stages.home is not None:
                probe.resting, probe.home = probe.stages.home.reason, True
                probe.stages.home = None

    def _record(self, probe: ProbeState) -> None:
        """Write the record of the stage that ended, unless it is there."""
        stage = probe.finished
        if stage is None or not probe.stages.claim(stage):
            return
        self._completed.add(stage.number)
        if stage.number in self._recorded:
            return
        belief = self._mission.loop.belief
        self._recorder.stage(stage, belief, belief.mixture())

    def _reading(self, event: Mapping[str, Any]) -> None:
        probe, reading = self._probe(event), reading_of(event)
        if not probe.ingestion.pipeline.tell_again(event, reading, gap=self._gaps.found):
            msg = "a reading that was used is refused now"
            raise ValueError(msg)
        probe.stages.note([reading])
        probe.sensor.note([reading])
        self._gated(event)

    def _query(self, event: Mapping[str, Any]) -> None:
        if (consulting := self._mission.consulting) is not None:
            consulting.replay_query(event)

    def _answer(self, event: Mapping[str, Any]) -> None:
        if (consulting := self._mission.consulting) is not None:
            consulting.replay_answer(reading_of(event))

    def _gated(self, event: Mapping[str, Any]) -> None:
        ingestion = self._probe(event).ingestion
        ingestion.restore(event)
        ingestion.known.note(event)

    def _miss(self, event: Mapping[str, Any]) -> None:
        place = int(event["location"])
        if not 0 <= place < self._mission.loop.topology.n:
            msg = "no such place"
            raise ValueError(msg)
        # As it was: how often a visit is repeated may be changed while a mission runs.
        self._mission.loop.replay_miss(place, again=bool(event["again"]))
        self._probe(event).sent_ns = int(event["stamp_ns"])
        if not event["again"]:
            self._probe(event).sensor.miss(place)

    def _blocked(self, event: Mapping[str, Any]) -> None:
        place, until_ns = int(event["location"]), int(event["until_ns"])
        self._mission.blocked.replay(place, until_ns, set_aside=bool(event.get("set_aside")))

    def _unused(self, event: Mapping[str, Any]) -> None:
        """Record an answer that nothing came of: there was no place, or none any more."""
        probe = self._probe(event)
        self._asked = None
        if event["waypoint"] is not None:
            self._mission.decisions.round.add(probe.name)
        if event["waypoint"] is None:
            self._settle()
        if event["waypoint"] is None and probe.stages.home is None:
            self._mission.loop.release(probe.name)
            probe.finished = None

    def _clock(self, event: Mapping[str, Any]) -> None:
        """Record a time that did not pass: the clock was set."""
        self._mission.skip(int(event["step_ns"]))

    def _gap(self, event: Mapping[str, Any]) -> None:
        self._asked = None  # it may have been answered
        self._gaps.note(event)

    def _budget(self, event: Mapping[str, Any]) -> None:
        self._asked = None
        self._mission.take_budget(budget_of(event))
        if "error" in event:
            self._mission.loop.aim = aim_of(event)

    def _fleet(self, event: Mapping[str, Any]) -> None:
        probe, why = self._probe(event), str(event["why"])
        self._whereabouts(probe, event)
        self._mission.fleet.replay(probe, why, int(event["stamp_ns"]))

    def _home(self, event: Mapping[str, Any]) -> None:
        probe, plan = self._probe(event), home_of(event)
        self._asked = None
        self._settle()
        self._mission.loop.replay_way_home(probe.name)
        self._whereabouts(probe, event)
        probe.set_out_home(plan, int(event["stamp_ns"]))
        self._mission.reason = f"{plan.reason}; on the way to the end place"

    def _settle(self) -> None:
        if (consulting := self._mission.consulting) is not None:
            consulting.settle()

    def _status(self, event: Mapping[str, Any]) -> None:
        if (consulting := self._mission.consulting) is not None:
            consulting.restore(dict(event.get("expert", {})))
        for name, status in dict(event["probes"]).items():
            probe = self._named(name)
            self._whereabouts(probe, status)
            probe.ingestion.rejected.clear()
            probe.ingestion.rejected.update({str(k): int(n) for k, n in status["rejected"].items()})

    def _whereabouts(self, probe: ProbeState, event: Mapping[str, Any]) -> None:
        """Record how far a probe has come; what it drives from there on is counted."""
        probe.ingestion.metres = finite(event, "odometer")
        if event["pose"] is not None:
            stamp_ns, x, y = event["pose"]
            frame = self._mission.loop.topology.frame
            probe.ingestion.counted = Pose(int(stamp_ns), frame, float(x), float(y), float("nan"))

    # -- at the end ----------------------------------------------------------------------------

    def _finish(self) -> None:
        mission = self._mission
        mission.go_on_from(self._last_ns)
        self._gaps.finish()
        if self._gaps.found:  # the end of a stage may be missing where its record is there
            self._completed |= {n for n in self._recorded if n < mission.decisions.stage}
        self._recorder.stages.keep(self._completed)
        if mission.state == "running":
            mission.decisions.open = self._asked
        if mission.consulting is not None:
            mission.consulting.go_on()
        for probe in mission.probes.values():
            probe.since = probe.heard
            probe.send_again = probe.target is not None
