"""Verify a recorded mission: the same messages at the same times give the same decisions.

The frames of the journal (`mission.input_log`) say which messages the node used in which step, at
what time, and when each decision was taken. Each decision is computed again, with as many
expansions as were spent on it, and compared; the mission continues with the recorded one, so that
what comes after a difference is compared as well.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from gp_active_sensing.config import from_mapping
from gp_active_sensing.errors import RunError
from gp_active_sensing.loop import SensingLoop
from gp_active_sensing.mission import changes
from gp_active_sensing.mission.clocks import VirtualClock
from gp_active_sensing.mission.config import ActiveSensingConfig
from gp_active_sensing.mission.factory import MissionComponents
from gp_active_sensing.mission.fleet import LEFT
from gp_active_sensing.mission.inbox import RawAnswer, RawReading
from gp_active_sensing.mission.ingestion.pipeline import ASKED
from gp_active_sensing.mission.input_log import taken_of
from gp_active_sensing.mission.live_parameters import adjust
from gp_active_sensing.mission.plan_ahead import ContingentPlan, ContingentPlans, foresee_by_cell
from gp_active_sensing.mission.poses import Pose
from gp_active_sensing.mission.requests import DecisionRequest, ExpertRequest, PlanAheadRequest
from gp_active_sensing.records.event_lines import parse_events, to_line
from gp_active_sensing.records.events import (
    AnswerUnused,
    ClockStepped,
    DecisionTaken,
    Event,
    ExpertAnswered,
    ExpertAsked,
    MapChanged,
    MissionEnded,
    MissionResumed,
    MissionStarted,
    MissionStopped,
    PlaceBlocked,
    ReadingUsed,
    ReturnBegun,
    RosterChanged,
    StateChanged,
)
from gp_active_sensing.replay.comparison import Comparison
from gp_active_sensing.replay.options import as_recorded
from gp_active_sensing.replay.recorded import Frame, MessageLookup, Recording
from gp_active_sensing.replay.stages import ReplayStages, Show
from gp_active_sensing.topology.kept_maps import GridMap
from gp_active_sensing.types import Clock, Plan, PlanLimit

__all__ = ["ReproducibilityCheck"]

Line = Mapping[str, Any]
ENDED = "the recording ends here"
COMPARED = (ReadingUsed.KIND, ExpertAsked.KIND, ExpertAnswered.KIND)
"""Events that have to come out again."""


class ReproducibilityCheck:
    """Does a recorded mission again.

    Args:
        parts: the mission and its records, made with `clockwork` as their clock.
        build_on: makes them again, to go on after the events of a journal.
        config: with which they are made.
        lookout: finds the messages.
        clockwork: the mission's clock.
        maps: that came by a topic, by their marks.
        show: takes each record.
        clock: real seconds.
    """

    def __init__(
        self,
        parts: MissionComponents,
        build_on: Callable[[Sequence[Line]], MissionComponents],
        config: ActiveSensingConfig,
        lookout: MessageLookup,
        clockwork: VirtualClock,
        *,
        maps: Mapping[str, GridMap] = MappingProxyType({}),
        show: Show = lambda record: None,
        clock: Clock = time.monotonic,
    ) -> None:
        self._maps = maps
        self._build_on = build_on
        self._lookout = lookout
        self._clockwork = clockwork
        self._clock = clock
        self._show = show
        self.comparison = Comparison()
        self._journal: list[Line] = [{"event": MissionStarted.KIND}]
        """As the node had it."""
        self._recorded: list[Line] = []
        self._replayed: list[Line] = []
        self._offset = 0.0
        """Added to the recorded clock, which may begin again."""
        self._latest = 0.0
        self._now_ns = 0
        self._job: DecisionRequest | None = None
        self._query: ExpertRequest | None = None
        self._ahead: dict[str, PlanAheadRequest] = {}
        self._config = config
        self.parts = parts
        self.stages = ReplayStages(self.parts, show)
        self._hear()

    def _hear(self) -> None:
        self.parts.recorder.listener = self._replayed_event

    def _replayed_event(self, event: Event) -> None:
        if event.KIND in COMPARED:
            self._replayed.append(to_line(event))

    def run(self, recording: Recording, progress: Callable[[int], None] = lambda read: None) -> str:
        """Do it; return the status of the mission.

        Raises:
            ReplayError: the bag is damaged.
        """
        for frame in recording.frames:
            self._frame(frame)
            progress(self._lookout.read)
        ended = self.parts.mission.state == "ended"
        self.parts.recorder.listener = lambda event: None  # what follows was not recorded
        self.stages.stop(ENDED, over=False)
        comparison = self.comparison
        comparison.frames_lost = recording.lost
        comparison.compare_readings(self._recorded, self._replayed)
        return "finished" if ended else "interrupted"

    def outcome(self) -> dict[str, Any]:
        """Return what came of it, for the summary."""
        return {
            "mode": "again",
            "information": self.stages.gained.to_mapping(),
            "comparison": self.comparison.to_mapping(),
        }

    # -- frames --------------------------------------------------------------------------------

    def _frame(self, frame: Frame) -> None:
        content = frame.content
        if "setup" in content:
            self._go_on_in_another_process(content["setup"])
            return
        lines = frame.events
        self._journal += lines
        self._recorded += [line for line in lines if line.get("event") in COMPARED]
        events = list(parse_events(lines))
        for now_ns, seconds in content.get("quiet", ()):
            self._set(seconds)
            self._step(int(now_ns))
        self._set(content["clock"])
        for entry in content.get("took", ()):
            self._put(entry, frame)
        if "config" in content:
            self._adjust(content["config"])
        if "now" in content:
            for event in events:
                if isinstance(event, DecisionTaken) and event.foreseen:
                    self._foresee(event)
            self._step(int(content["now"]))
            return
        for event in events:
            self._follow(event)

    def _follow(self, event: Event) -> None:
        """Do what was done between two steps, and compare what comes of it."""
        mission = self.parts.mission
        match event:
            case ExpertAsked():
                self._on_query(event)
            case DecisionTaken():
                self._on_decision(event)
            case ReturnBegun():
                self._on_home(event)
            case AnswerUnused():
                self._on_unused(event)
            case StateChanged():
                self._on_state(event)
            case ClockStepped():
                self._job = None
                changes.clock_stepped(mission, event.step_ns, event.time_ns)
            case PlaceBlocked():
                mission.unreachable(event.probe, event.why)
            case MapChanged():
                self._job = None
                if mission.map is not None:
                    mission.map.take(mission, self._maps[event.mark])
            case RosterChanged() if event.why.startswith(LEFT):
                changes.leave(mission, event.probe, event.why.removeprefix(LEFT))
            case RosterChanged() if not event.why:
                changes.join(mission, event.probe)
            case ReadingUsed() if event.taken_back == ASKED:
                mission.accept_gated()  # other readings come out by themselves
            case MissionStopped() if mission.state != "ended":
                self.stages.stop(event.reason, over=isinstance(event, MissionEnded))

    def _put(self, entry: Sequence[Any], frame: Frame) -> None:
        """Leave a message that the node used in the inbox: that of the bag, if it is there."""
        probe, noted, age = taken_of(entry)
        what: Pose | RawReading | RawAnswer | None = noted
        if not isinstance(noted, RawAnswer):  # of those the journal has everything
            what = self._lookout.find(noted, probe, frame.stamp_ns)
        if what is None:
            self.comparison.messages_missing += 1
            what = noted
        elif not _is_same(what, noted):
            self.comparison.messages_differ += 1
        received = self._offset + float(frame.content["clock"]) - age
        self.parts.mission.inbox.put(what, received, probe)

    def _adjust(self, config: Mapping[str, Any]) -> None:
        """Go on with another configuration, as the node did."""
        now = from_mapping(ActiveSensingConfig, as_recorded(config))
        mission, before = self.parts.mission, self._config
        for name in now.probes:
            if name not in mission.probes:
                changes.add_probe(mission, name)
        adjust(self.parts, before, now)
        self._config = now

    def _set(self, seconds: float) -> None:
        self._clockwork.set(self._offset + float(seconds))
        self._latest = max(self._latest, self._offset + float(seconds))

    def _step(self, now_ns: int) -> None:
        self._now_ns = now_ns
        for step in self.parts.mission.step(now_ns):
            self.stages.taken(step)
            if isinstance(step.job, ExpertRequest):
                self._query = step.job
            elif isinstance(step.job, PlanAheadRequest):
                self._ahead[step.job.probe] = step.job
            elif step.job is not None and step.job.decide:
                self._job = step.job
            elif step.job is not None:
                self.stages.show(step.job)

    def _go_on_in_another_process(self, setup: Mapping[str, Any]) -> None:
        """Do what the node did when it was started again: go on from its journal."""
        self.parts.recorder.close()
        self._offset, self._job, self._ahead = self._latest, None, {}
        self._query = None
        tail = list(setup.get("tail", ()))
        whole = int(setup["earlier"]) - len(tail)
        if len(self._journal) < whole:
            self.comparison.differs(
                f"{whole - len(self._journal)} events of the journal are not in the bag"
            )
        # The last events before a kill may be in the journal only.
        self._journal = [*self._journal[:whole], *tail]
        try:
            self.parts = self._build_on(self._journal)
        except RunError as error:
            self.comparison.differs(f"the mission went on, and cannot here: {error}")
            return
        self._journal.append({"event": MissionResumed.KIND})
        before, self.stages = self.stages.gained, ReplayStages(self.parts, self._show)
        self.stages.gained = before
        self._hear()

    # -- what happened between steps -----------------------------------------------------------

    def _on_query(self, event: ExpertAsked) -> None:
        job, self._query = self._query, None
        if event.given_up:
            return  # by what it was given up for
        if job is None:
            self.comparison.differs("the question to the expert was not asked for in the replay")
            return
        if (places := job.ask()) != event.places:
            self.comparison.differs(f"the question to the expert: {list(places)} in the replay")
        self.parts.mission.queried(job, event.places)

    def _on_decision(self, event: DecisionTaken) -> None:
        job, self._job = self._job, None
        if job is None:
            self.comparison.no_decision(event.stage, "it was not asked for in the replay")
            return
        trial, plan = self._computed(job, event.plan.expanded)
        used = trial
        if not self._is_equal(event, plan, trial, job.at):
            used = self._as_recorded(event, trial, plan, job)
        job = replace(job, loop=used)
        if self.parts.mission.decided(job, event.plan):
            self.stages.decided(used, job.pending)
        self.stages.show(job)

    def _is_equal(
        self, event: DecisionTaken, plan: Plan, after: SensingLoop, at: int | None
    ) -> bool:
        """Count a recorded decision; return whether it came out again to the bit."""
        own = replace(event, plan=plan, policy_state=after.policy_state, at=at)
        return self.comparison.decision(event.stage, to_line(event), to_line(own))

    def _on_home(self, event: ReturnBegun) -> None:
        job, self._job = self._job, None
        if job is None:
            self.comparison.differs("the way to the end place was not asked for in the replay")
            return
        recorded = event.plan
        trial, plan = self._computed(job, None)
        used = trial
        if plan.waypoints or plan.path != recorded.path or plan.reason != recorded.reason:
            self.comparison.differs(f"the way to the end place: {plan.reason!r} in the replay")
            used = job.loop
            used.replay_way_home(job.probe)
        job = replace(job, loop=used)
        self.parts.mission.decided(job, recorded)
        self.stages.show(job)

    def _on_unused(self, event: AnswerUnused) -> None:
        job, self._job = self._job, None
        if job is None:
            return
        trial, plan = self._computed(job, event.expanded)
        if plan.waypoint != event.waypoint:
            self.comparison.differs(f"an answer that was not used: {plan.waypoint} in the replay")
            plan = Plan((), 0.0, 0.0, 0, 0.0, deadline_hit=False, reason=event.reason)
        job = replace(job, loop=trial)
        if self.parts.mission.decided(job, plan):
            self.stages.show(job)

    def _computed(self, job: DecisionRequest, expansions: int | None) -> tuple[SensingLoop, Plan]:
        """Return the engine after a decision taken again, and the decision."""
        trial = job.loop.snapshot(self._clock)
        if expansions is not None:
            trial.limit = PlanLimit(expansions=expansions)
        plan = replace(job, loop=trial).ask()
        trial.clock = job.loop.clock
        return trial, plan

    @staticmethod
    def _as_recorded(
        event: DecisionTaken,
        trial: SensingLoop,
        plan: Plan,
        job: DecisionRequest | PlanAheadRequest,
    ) -> SensingLoop:
        """Return the engine after the recorded decision, where it is not the replayed one.

        Args:
            event: the decision.
            trial: the engine after the replayed one.
            plan: the replayed one.
            job: what was asked of which engine.
        """
        if plan.path == event.plan.path:
            # The last digits of the state are those of the recording, so that no error grows.
            trial.policy_state = event.policy_state
            return trial
        used, path = job.loop.snapshot(), event.plan.path
        used.replay_decision(event.policy_state, path, job.probe, again=event.again)
        return used

    def _on_state(self, event: StateChanged) -> None:
        mission = self.parts.mission
        if event.state == "paused":
            self._job = None
            mission.pause(event.reason)
        elif mission.state == "idle":
            mission.start()
        else:
            mission.resume()

    # -- foreseen --------------------------------------------------------------------------------

    def _foresee(self, event: DecisionTaken) -> None:
        """Offer the mission the decision that it will take as foreseen in the next step."""
        stage, recorded = event.stage, event.plan
        job = self._ahead.get(event.probe)
        if job is None:
            self.comparison.no_decision(stage, "it was not planned ahead in the replay")
            return
        value = event.foreseen_for
        job.loop.clock = self._clock
        grown = foresee_by_cell(
            job.loop,
            job.plan.waypoints[0],
            cost=job.plan.cost,
            heading=job.plan.heading,
            samples=job.samples,
            noise_variance=job.noise_variance,
            limit=PlanLimit(expansions=recorded.expanded),
            only=math.nan if value is None else value,
        )
        found: ContingentPlans | None = next(grown, None)
        cell = None if found is None else next((c for c in found.cells if c is not None), None)
        if found is None or cell is None:
            self.comparison.no_decision(stage, f"no reading {value} is planned for in the replay")
            return
        after = cell.after
        if not self._is_equal(event, cell.plan, after, event.at):
            after = self._as_recorded(event, after, cell.plan, job)
        taken = ContingentPlan(recorded, after, cell.said)
        cells = tuple(None if c is None else taken for c in found.cells)
        self.parts.mission.foreseen(job, replace(found, cells=cells))


def _is_same(
    what: Pose | RawReading | RawAnswer | None, noted: Pose | RawReading | RawAnswer
) -> bool:
    """Return whether a message of the bag says what the journal noted of it.

    A height that the journal does not have counts for nothing: earlier versions noted none.
    """
    if isinstance(what, Pose) and isinstance(noted, Pose) and math.isnan(noted.z):
        what, noted = replace(what, z=0.0), replace(noted, z=0.0)
    return what == noted
