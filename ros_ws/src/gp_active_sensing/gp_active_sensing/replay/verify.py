"""Verify that a recorded mission repeats its decisions and readings.

The frames of topic ``~/journal`` (`mission.input_log`) contain the messages, and the times of
steps and decisions. Each decision is computed again with the same number of expansions. The
mission then continues with the recorded decision, so that later decisions can be compared.
"""

from __future__ import annotations

import json
import math
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from gp_active_sensing.config import from_mapping
from gp_active_sensing.errors import RunError
from gp_active_sensing.loop import SensingLoop
from gp_active_sensing.mission import changes
from gp_active_sensing.mission.clocks import VirtualClock
from gp_active_sensing.mission.config import ActiveSensingConfig
from gp_active_sensing.mission.factory import MissionComponents
from gp_active_sensing.mission.fleet import LEFT
from gp_active_sensing.mission.ingestion.pipeline import ASKED
from gp_active_sensing.mission.input_log import parse_used
from gp_active_sensing.mission.live_parameters import adjust
from gp_active_sensing.mission.requests import DecisionRequest, ExpertRequest
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
from gp_active_sensing.records.run_map import GridMap
from gp_active_sensing.replay.recording import Recording
from gp_active_sensing.replay.stages import ReplayStages, Show
from gp_active_sensing.types import Plan, PlanLimit
from gp_active_sensing.util.files import json_ready
from gp_active_sensing.util.ties import RELATIVE

Line = Mapping[str, Any]
ENDED = "the recording ends here"
COMPARED = (ReadingUsed.KIND, ExpertAsked.KIND, ExpertAnswered.KIND)
"""Kinds of events, besides decisions, that must be equal in the repetition."""
ABSOLUTE = 1e-12
"""Absolute difference up to which numbers count as equal."""
_MOST_LISTED = 20


def difference(recorded: Line, replayed: Line) -> str:
    """Return the first difference between two decisions; "" = they are equal.

    Equal decisions have the same place of the probe and the same chosen place. Their costs have a
    relative difference of at most `RELATIVE`. Their bounds differ by at most `RELATIVE` times the
    largest bound of both decisions. Differences up to `ABSOLUTE` never count.
    """
    bounds = [d[key] for d in (recorded, replayed) for key in ("lower", "upper")]
    bounds += [x for d in (recorded, replayed) for c in d.get("candidates", ()) for x in c[1:]]
    slack = RELATIVE * max((abs(x) for x in bounds if math.isfinite(x)), default=0.0)
    for key in ("at", "waypoints", "lower", "upper", "metres", "seconds"):
        a, b = recorded.get(key), replayed.get(key)
        first = key == "waypoints"  # later waypoints are a forecast
        near = max(slack, ABSOLUTE) if key in ("lower", "upper") else ABSOLUTE
        if not (_close(a[:1], b[:1]) if a and b and first else _close(a, b, near)):
            return f"{key}: recorded {_short(a)}, replayed {_short(b)}"
    return ""


def _close(a: Any, b: Any, slack: float = ABSOLUTE) -> bool:
    """Return whether two items of plain data are equal up to rounding."""
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(_close(a[key], b[key], slack) for key in a)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(_close(x, y, slack) for x, y in zip(a, b, strict=True))
    if isinstance(a, float) or isinstance(b, float):
        try:
            return math.isclose(a, b, rel_tol=RELATIVE, abs_tol=slack)
        except TypeError:
            return False
    return bool(a == b)


def _short(value: Any) -> str:
    text = json.dumps(json_ready(value))
    return text if len(text) <= 160 else f"{text[:157]}..."


@dataclass
class Comparison:
    """Comparison of a recorded mission with its repetition.

    Args:
        decisions: number of recorded decisions.
        decisions_equal: number of equal decisions, see `difference`.
        decisions_to_the_bit: number of decisions that are equal to the last digit.
        planned_ahead: number of decisions that an earlier version planned before their readings
            came; these are not compared.
        readings: number of used readings in the record.
        readings_equal: number of readings whose repetition has the same place and, up to rounding,
            the same value.
        readings_extra: number of repeated readings that were not recorded.
        frames_lost: number of the journal's frames that the bag lacks.
        differences: descriptions of the first `_MOST_LISTED` differences.
    """

    decisions: int = 0
    decisions_equal: int = 0
    decisions_to_the_bit: int = 0
    planned_ahead: int = 0
    readings: int = 0
    readings_equal: int = 0
    readings_extra: int = 0
    frames_lost: int = 0
    differences: list[str] = field(default_factory=list)

    def decision(self, stage: int, recorded: Line, replayed: Line) -> bool:
        """Count a recorded decision; return whether the repeated decision is equal to the bit."""
        timed = {"plan_seconds": None}  # planning times differ
        first, second = (json.dumps(json_ready({**d, **timed})) for d in (recorded, replayed))
        exact = first == second
        if found := "" if exact else difference(recorded, replayed):
            self.no_decision(stage, found)
        else:
            self.decisions += 1
            self.decisions_equal += 1
            self.decisions_to_the_bit += exact
        return exact

    def no_decision(self, stage: int, why: str) -> None:
        """Count a recorded decision that the repetition does not make."""
        self.decisions += 1
        self.differs(f"decision {stage}: {why}")

    def differs(self, what: str) -> None:
        """Add the description of a difference."""
        if len(self.differences) < _MOST_LISTED:
            self.differences.append(what)

    def compare_readings(self, recorded: Sequence[Line], replayed: Sequence[Line]) -> None:
        """Compare the readings, questions and answers of the whole mission."""
        extra: dict[Any, list[Line]] = defaultdict(list)
        for line in replayed:
            extra[_key(line)].append(line)
        lost = []
        for line in recorded:
            others = extra[_key(line)]
            match = next((i for i, other in enumerate(others) if _close(line, other)), None)
            if match is None:
                lost.append(line)
            else:
                del others[match]
        more = [line for lines in extra.values() for line in lines]
        self.readings = len(recorded)
        self.readings_equal = self.readings - len(lost)
        self.readings_extra = len(more)
        for line in lost[:3]:
            self.differs(f"reading: recorded and not replayed {_short(line)}")
        for line in more[:3]:
            self.differs(f"reading: replayed and not recorded {_short(line)}")


def _key(line: Line) -> tuple[Any, ...]:
    return line.get("event"), line.get("probe"), line.get("stamp_ns")


class ReproducibilityCheck:
    """Repetition of a recorded mission; `build_on` rebuilds the mission from events at restarts."""

    def __init__(
        self,
        parts: MissionComponents,
        build_on: Callable[[Sequence[Line]], MissionComponents],
        config: ActiveSensingConfig,
        clockwork: VirtualClock,
        *,
        maps: Mapping[str, GridMap],
        show: Show,
    ) -> None:
        self.comparison = Comparison()
        self.read = 0
        """Number of messages so far."""
        self._build_on, self._config, self._clockwork = build_on, config, clockwork
        self._maps, self._show = maps, show
        self._journal: list[Line] = [{"event": MissionStarted.KIND}]
        """Events of the node's journal so far."""
        self._recorded: list[Line] = []
        self._replayed: list[Line] = []
        self._offset = self._latest = 0.0
        """Seconds added to recorded times after a restart, and the latest time with them [s]."""
        self._job: DecisionRequest | None = None
        self._query: ExpertRequest | None = None
        self.parts = parts
        self.stages = ReplayStages(parts, show)
        parts.recorder.listener = self._replayed_event

    def _replayed_event(self, event: Event) -> None:
        if event.KIND in COMPARED:
            self._replayed.append(to_line(event))

    def run(self, recording: Recording, progress: Callable[[int], None]) -> str:
        """Repeat the mission; return its status."""
        for number, frame in enumerate(recording.frames, start=1):
            self._frame(frame)
            progress(number)
        ended = self.parts.mission.state == "ended"
        self.parts.recorder.listener = lambda event: None  # later events were not recorded
        self.stages.stop(ENDED, over=False)
        self.comparison.frames_lost = recording.lost
        self.comparison.compare_readings(self._recorded, self._replayed)
        return "finished" if ended else "interrupted"

    def outcome(self) -> dict[str, Any]:
        """Return the result for the summary."""
        return {
            "mode": "again",
            "information": asdict(self.stages.gained),
            "comparison": asdict(self.comparison),
        }

    # -- frames --------------------------------------------------------------------------------

    def _frame(self, frame: Mapping[str, Any]) -> None:
        if "setup" in frame:
            self._resume(frame["setup"])
            return
        lines = frame.get("events", ())
        self._journal += lines
        self._recorded += [line for line in lines if line.get("event") in COMPARED]
        events = list(parse_events(lines))
        for now_ns, seconds in frame.get("quiet", ()):
            self._set(seconds)
            self._step(int(now_ns))
        self._set(frame["clock"])
        for entry in frame.get("took", ()):
            self.read += 1
            probe, message, age = parse_used(entry)
            received = self._offset + float(frame["clock"]) - age
            self.parts.mission.inbox.put(message, received, probe)
        if "config" in frame:
            self._adjust(frame["config"])
        if "now" in frame:
            self._step(int(frame["now"]))
            events = [e for e in events if isinstance(e, DecisionTaken) and e.foreseen]
        for event in events:
            self._follow(event)

    def _follow(self, event: Event) -> None:
        """Repeat an event that happened between two steps; compare decisions and questions."""
        mission = self.parts.mission
        match event:
            case ExpertAsked():
                self._on_query(event)
            case DecisionTaken() | ReturnBegun() | AnswerUnused():
                self._on_answer(event)
            case StateChanged(state="paused"):
                self._job = None
                mission.pause(event.reason)
            case StateChanged():
                mission.start() if mission.state == "idle" else mission.resume()
            case ClockStepped():
                self._job = None
                changes.clock_stepped(mission, event.step_ns, event.time_ns)
            case PlaceBlocked():
                mission.unreachable(event.probe, event.why)
            case MapChanged():
                self._job = None
                if mission.map is not None:
                    mission.map.adopt(mission, self._maps[event.mark])
            case RosterChanged() if event.why.startswith(LEFT):
                changes.leave(mission, event.probe, event.why.removeprefix(LEFT))
            case RosterChanged() if not event.why:
                changes.join(mission, event.probe)
            case ReadingUsed() if event.taken_back == ASKED:
                mission.accept_gated()  # other readings are repeated by the mission
            case MissionStopped() if mission.state != "ended":
                self.stages.stop(event.reason, over=isinstance(event, MissionEnded))

    def _adjust(self, config: Mapping[str, Any]) -> None:
        now = from_mapping(ActiveSensingConfig, config)
        for name in now.probes:
            if name not in self.parts.mission.probes:
                changes.add_probe(self.parts.mission, name)
        adjust(self.parts, self._config, now)
        self._config = now

    def _set(self, seconds: float) -> None:
        self._clockwork.set(self._offset + float(seconds))
        self._latest = max(self._latest, self._offset + float(seconds))

    def _step(self, now_ns: int) -> None:
        for step in self.parts.mission.step(now_ns):
            if isinstance(step.job, ExpertRequest):
                self._query = step.job
            elif step.job is not None and step.job.decide:
                self._job = step.job
            elif step.job is not None:
                self.stages.show(step.job)

    def _resume(self, setup: Mapping[str, Any]) -> None:
        """Continue from the journal, as the restarted node did."""
        self.parts.recorder.close()
        self._offset, self._job, self._query = self._latest, None, None
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
        gained, self.stages = self.stages.gained, ReplayStages(self.parts, self._show)
        self.stages.gained = gained
        self.parts.recorder.listener = self._replayed_event

    # -- decisions -----------------------------------------------------------------------------

    def _on_query(self, event: ExpertAsked) -> None:
        job, self._query = self._query, None
        if event.given_up:
            return  # repeated by the event that caused it
        if job is None:
            self.comparison.differs("the question to the expert was not asked for in the replay")
            return
        if (places := job.ask()) != event.places:
            self.comparison.differs(f"the question to the expert: {list(places)} in the replay")
        self.parts.mission.queried(job, event.places)

    def _on_answer(self, event: DecisionTaken | ReturnBegun | AnswerUnused) -> None:
        """Compare an answer of the policy with the recorded one, and continue with the latter."""
        job, self._job = self._job, None
        if job is None:
            why = "it was not asked for in the replay"
            if isinstance(event, DecisionTaken):
                self.comparison.no_decision(event.stage, why)
            elif isinstance(event, ReturnBegun):
                self.comparison.differs(f"the way to the end place: {why}")
            return
        if isinstance(event, DecisionTaken) and event.foreseen:
            self.comparison.planned_ahead += 1
            self._continue(event, job, self._after(event, job), event.plan)
            return
        loop = job.loop.snapshot(time.monotonic)
        if isinstance(event, AnswerUnused):
            loop.limit = PlanLimit(expansions=event.expanded)
        elif isinstance(event, DecisionTaken):
            loop.limit = PlanLimit(expansions=event.plan.expanded)
        plan = replace(job, loop=loop).ask()
        loop.clock = job.loop.clock
        match event:
            case DecisionTaken(plan=recorded):
                loop = self._compared(event, plan, loop, job)
            case ReturnBegun(plan=recorded):
                if plan.waypoints or (plan.path, plan.reason) != (recorded.path, recorded.reason):
                    self.comparison.differs(f"the way to the end place: {plan.reason!r} here")
                    loop = job.loop
                    loop.replay_way_home(job.probe)
            case AnswerUnused():
                recorded = plan
                if plan.waypoint != event.waypoint:
                    self.comparison.differs(f"an answer that was not used: {plan.waypoint} here")
                    recorded = Plan((), expanded=0, reason=event.reason)
        self._continue(event, job, loop, recorded)

    def _continue(
        self,
        event: DecisionTaken | ReturnBegun | AnswerUnused,
        job: DecisionRequest,
        loop: SensingLoop,
        recorded: Plan,
    ) -> None:
        """Continue the mission with a recorded answer; `loop` is the engine after this answer."""
        job = replace(job, loop=loop)
        used = self.parts.mission.decided(job, recorded)
        if used and isinstance(event, DecisionTaken):
            self.stages.decided(loop, job.pending)
        if used or not isinstance(event, AnswerUnused):
            self.stages.show(job)

    def _compared(
        self, event: DecisionTaken, plan: Plan, trial: SensingLoop, job: DecisionRequest
    ) -> SensingLoop:
        own = replace(event, plan=plan, policy_state=trial.policy_state, at=job.at)
        self.comparison.decision(event.stage, to_line(event), to_line(own))
        if plan.path == event.plan.path:
            # Continue from the recorded state, so that rounding errors do not grow.
            trial.policy_state = event.policy_state
            return trial
        return self._after(event, job)

    def _after(self, event: DecisionTaken, job: DecisionRequest) -> SensingLoop:
        loop = job.loop.snapshot()
        carried = self.parts.mission.probes[job.probe].carried
        loop.replay_decision(
            event.policy_state, event.plan.path, job.probe, again=event.again, carried=carried
        )
        return loop
