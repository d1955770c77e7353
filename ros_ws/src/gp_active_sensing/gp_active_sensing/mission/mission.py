"""State machine of a mission: decisions, visits, pauses and the end.

- ``idle``: readings are used; there are no decisions yet.
- ``running``: decisions are computed. Probes visit places and at last drive to the end place.
- ``paused``: readings are used; there are no decisions until `resume`.
- ``ended``: readings are counted and not used; the last waypoint stays published.

The probes of a mission share one engine and one budget of readings. One decision is computed at a
time; the engine treats the other probes' waypoints as pending. The module does not import ROS.
Time and messages are arguments, so that robots, bags and tests use the same code. Functions in
`mission.changes` change a running mission.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from gp_active_sensing.loop import SensingLoop
from gp_active_sensing.mission.blocked import BlockedPlaces
from gp_active_sensing.mission.checkers import is_reading_of
from gp_active_sensing.mission.clocks import Latency, StepClock
from gp_active_sensing.mission.config import CLOCK_TOLERANCE, MissionConfig
from gp_active_sensing.mission.decisions import Decisions
from gp_active_sensing.mission.expert_queries import ExpertQueries
from gp_active_sensing.mission.fleet import LEFT, OFF_LIST, Fleet, resting_reason
from gp_active_sensing.mission.inbox import (
    BATCH,
    Envelope,
    Inbox,
    RawAnswer,
    RawBattery,
    RawReading,
)
from gp_active_sensing.mission.input_log import InputLog
from gp_active_sensing.mission.log_messages import FINISHING, budget_text, log_delay, loudness
from gp_active_sensing.mission.poses import Pose
from gp_active_sensing.mission.probe import ProbeState
from gp_active_sensing.mission.requests import DecisionRequest, ExpertRequest, MissionOutput, Stage
from gp_active_sensing.mission.sorties import CHANGING
from gp_active_sensing.planning.budget import READINGS_SPENT
from gp_active_sensing.records.events import (
    AnswerUnused,
    Event,
    MapChanged,
    MissionEnded,
    MissionStopped,
    StateChanged,
    StatusNoted,
)
from gp_active_sensing.topology.live import is_cut
from gp_active_sensing.types import Clock, Cost, Plan

if TYPE_CHECKING:
    from gp_active_sensing.records.run_map import GridMap
    from gp_active_sensing.topology.live import LivePlaces

logger = logging.getLogger(__name__)

STATUS_SECONDS = 1.0
"""Smallest time between two events with the positions of the probes [s, real time]."""
SHOW_SECONDS = 2.0
"""Smallest time between two displays of the belief while no decision is taken [s, real time]."""
AGAIN = "blocked places are tried again"
"""Suffix of `Mission.reason` while the mission waits to try blocked places again."""
AWAY = "away, and waited for"
"""Suffix of `Mission.reason` while the mission waits for silent probes to come back."""
GROWS = "the map may grow"
"""Suffix of `Mission.reason` while the mission waits for the map to become larger."""
TO_COME = "readings of places passed are still to come"
"""Suffix of `Mission.reason` while the mission waits for readings of passed places."""


class GrowingMap(Protocol):
    """Protocol of `live_map.LiveMap`: map that newer maps replace during a mission."""

    places: LivePlaces
    refused: Counter[str]
    problem: str

    def adopt(self, mission: Mission, found: GridMap) -> bool:
        """Use a newer map, unless it is unusable; return whether the places have changed."""

    def refuse(self, word: str, why: str) -> None:
        """Count an unusable map under `word`, and store the reason `why`."""

    def replay(self, mission: Mission, event: MapChanged) -> None:
        """After a restart, restore the map from a journalled event."""


def _same(message: Envelope, following: Envelope) -> bool:
    one, other = message.what, following.what
    if isinstance(one, RawAnswer) or not isinstance(other, RawReading):
        return False
    return message.probe == following.probe and one.stamp_ns == other.stamp_ns


class Mission:
    """Mission of one or several probes; its methods may be called from several threads.

    Args:
        loop: the engine, before its first reading.
        probes: the probes; a single probe has no name.
        make_probe: creates a probe that joins later, from its name; None = no probe can join.
    """

    def __init__(
        self,
        loop: SensingLoop,
        probes: Sequence[ProbeState],
        inbox: Inbox,
        config: MissionConfig,
        *,
        clock: Clock,
        journal: Callable[[Event], None] = lambda event: None,
        make_probe: Callable[[str], ProbeState] | None = None,
        step_clock: StepClock | None = None,
    ) -> None:
        self.loop = loop
        self.make_probe = make_probe
        self.fleet = Fleet(probes, config, journal)
        self.inbox = inbox
        self.config = config
        self.blocked = BlockedPlaces(loop, config, journal)
        self.budget = replace(probes[0].own_budget, readings=loop.remaining.readings)
        """Total budget: readings for all probes together, metres and seconds for each probe."""
        self.lock = threading.RLock()
        self.state = "idle"
        self.reason = ""
        """Reason of the present state; "" = none."""
        self.decisions = Decisions(loop, self.fleet, clock, journal)
        self.reading_latency = Latency()
        """Statistics of the time from the arrival of a reading to its use in the belief."""
        for probe in probes:
            probe.ingestion.pipeline.latency = self.reading_latency  # main quantity only
        self.showing = False
        """True from the request of a belief display until the display is finished."""
        self.map: GrowingMap | None = None
        """Live map; None = the map does not change."""
        self.nothing_since_ns: int | None = None
        """Time since which the map has no places to choose [ns]; None = there are such places."""
        self.last_job: int | None = None
        """Number of the planning job whose plan ended the mission; None = none."""
        self._silent: set[str] = set()
        """Names of the probes whose silence has been logged."""
        self._holds_probes = False
        """True from the start of a pause until the probes get the order to stop."""
        self._final_display_due = False
        """True if the mission has ended and its final belief must still be shown."""
        self.trace: InputLog | None = None
        """Log of the processed messages and events; None = no log."""
        self.unknown_senders: Counter[str] = Counter()
        """Number of messages from unknown probes, keyed by the probe's name."""
        self.now_ns = 0
        self._ticking = False
        """True if the node's clock is running."""
        self._ended_ns: int | None = None
        self._shown, self._shown_at = 0, clock()
        self._noted: StatusNoted | None = None
        self._noted_at = clock()
        self._clock = clock
        self._step_clock = StepClock(clock) if step_clock is None else step_clock
        self.journal = journal

    @property
    def probes(self) -> dict[str, ProbeState]:
        """All probes, including those that have left, keyed by name."""
        return self.fleet.probes

    @property
    def probe(self) -> ProbeState:
        """First probe, or the only probe."""
        return next(iter(self.probes.values()))

    @property
    def consulting(self) -> ExpertQueries | None:
        """Queries to an expert; None = there is no expert."""
        return self.decisions.consulting

    @property
    def driven(self) -> Cost:
        """Sum of the metres and seconds driven by all probes."""
        total = Cost(0.0, 0.0)
        for probe in self.probes.values():
            total = total.plus(probe.stages.driven)
        return total

    @property
    def rejected(self) -> Counter[str]:
        """Number of rejected messages for each reason, summed over the probes."""
        total = Counter(self.unknown_senders and {"unknown_probe": self.unknown_senders.total()})
        for probe in self.probes.values():
            total += probe.ingestion.counts
        return total + self.inbox.refused

    @property
    def until_ns(self) -> int:
        """Time of the newest step, or of the end of an ended mission, on the node's clock [ns]."""
        return self.now_ns if self._ended_ns is None else self._ended_ns

    # -- commands ---------------------------------------------------------------------------

    def start(self, who: str = "") -> str:
        """Start the mission; return an error text, or "" on success."""
        with self.lock:
            if self.state != "idle":
                return f"the mission is {self.state} already" + self._reason_text()
            logger.info(
                "the mission begins%s: %d places, budget %s",
                f" ({who})" if who else "",
                self.loop.topology.n,
                budget_text(self.budget, self.loop.aim),
            )
            self._resume_probes()
            return ""

    def pause(self, reason: str = "asked to") -> str:
        """Pause the mission; return an error text, or "" on success."""
        with self.lock:
            if self.state != "running":
                return f"the mission is {self.state}, not running" + self._reason_text()
            stage = self.decisions.stage
            logger.log(loudness(reason), "paused at stage %d (%s)", stage, reason)
            self._set_state("paused", reason)
            self.decisions.cancel()
            return ""

    def resume(self, who: str = "asked to") -> str:
        """Resume the mission; return an error text, or "" on success."""
        with self.lock:
            changing = [probe for probe in self.probes.values() if probe.sortie.waiting]
            if self.state == "running" and changing:
                self._readmit(changing)
                return ""
            if self.state != "paused":
                return f"the mission is {self.state}, not paused" + self._reason_text()
            logger.info("resumed at stage %d (%s)", self.decisions.stage, who)
            self._readmit(changing)
            for probe in self.probes.values():
                probe.at = None  # the probe may have moved during the pause
                probe.send_again = True
                probe.sent_ns = self.now_ns
            self.wake_resting()
            self._resume_probes()
            return ""

    def _readmit(self, changing: Sequence[ProbeState]) -> None:
        for probe in changing:
            probe.end_change(self.now_ns)
            if probe.gone:
                self.fleet.join(probe.name, self.now_ns)
        self.inbox.wake()

    def unreachable(
        self, name: str = "", why: str = "reported as unreachable", *, place: int | None = None
    ) -> str:
        """Block the place that a probe drives to; return an error text, or "" on success.

        If `place` is given and the probe no longer drives there, nothing is blocked.
        """
        with self.lock:
            probe = self.probes.get(name)
            if probe is None or probe.plan is None or self.state != "running":
                return "no place is being driven to"
            if place is not None and place not in (probe.target, probe.waypoint):
                return "another place is being driven to by now"
            if self.blocked.refuse(probe, self.now_ns, why):
                self._avoid_shut_moves()
            self.inbox.wake()
            return ""

    def arrived(self, name: str, place: int) -> bool:
        """Record an arrival reported by the controller; return whether another waypoint follows."""
        with self.lock:
            probe = self.probes[name]
            probe.content = place == probe.waypoint and len(probe.waypoints) > 1
            self.inbox.wake()
            return probe.content

    def accept_gated(self) -> int:
        """Use all readings that the outlier gate holds back; return their number."""
        with self.lock:
            found = sum(probe.accept_gated() for probe in self.probes.values())
            self.inbox.wake()
            return found

    def _resume_probes(self) -> None:
        self._set_state("running", "")
        for probe in self.probes.values():
            probe.restart_checks()
            probe.sensor.forget()
            probe.passed.wait_again(self.now_ns)
            probe.since = self._clock()
            probe.stages.skip_drive(self.now_ns, probe.ingestion.metres)
            probe.sortie.count(self.now_ns, probe.ingestion.metres)
        self.inbox.wake()

    def _set_state(self, state: str, reason: str) -> None:
        self.state, self.reason = state, reason
        self._holds_probes = state == "paused" and reason != FINISHING
        probes = {name: probe.whereabouts() for name, probe in self.probes.items()}
        self.journal(StateChanged(state=state, reason=reason, stamp_ns=self.now_ns, probes=probes))

    def _reason_text(self) -> str:
        return f" ({self.reason})" if self.reason else ""

    # -- messages and periodic work --------------------------------------------------------------

    def step(self, now_ns: int) -> list[MissionOutput]:
        """Process queued messages; return the actions. `now_ns` 0 = the clock has not started."""
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
        if self._decides and self.blocked.open_moves(now_ns):
            self.choose_again()
        steps: list[MissionOutput] = []
        messages = deque(() if self._messages_wait() else self.inbox.pop(BATCH))
        try:
            while messages:
                message = messages.popleft()
                steps += self._use(message, more=bool(messages) and _same(message, messages[0]))
                if self._messages_wait():
                    break
        finally:  # keep the other messages after an error in one
            self.inbox.put_back(list(messages))
        steps += self._every_so_often()
        if self.consulting is not None:
            if (job := self.consulting.next_job()) is not None:
                steps.append(MissionOutput(job))
            if places := self.consulting.outgoing():
                steps.append(MissionOutput(query=places))
        return steps

    def _messages_wait(self) -> bool:
        return self.config.wait_for_plan and self.decisions.running

    @property
    def _catching_up(self) -> list[ProbeState]:
        """Probes whose messages wait for missed messages; see `Backlog`."""
        return [probe for probe in self.probes.values() if probe.ingestion.catch_up.waiting]

    @property
    def _decides(self) -> bool:
        return self.state == "running" and self._ticking

    def _use(self, message: Envelope, *, more: bool) -> Iterator[MissionOutput]:
        """Process a message.

        `more` True = a reading with the same stamp follows, so that no decision is taken yet.
        """
        if self.trace is not None:
            self.trace.used(message)
        if isinstance(message.what, RawAnswer):
            yield from self._use_answer(message.what)
            return
        probe = self.probes.get(message.probe)
        if probe is None:
            self.unknown_senders[message.probe] += 1
            return
        if isinstance(message.what, RawBattery):
            if self.state != "ended":
                probe.note_charge(message.what.level, self.now_ns)
            return
        probe.process([message])
        if isinstance(message.what, Pose):
            self.fleet.record_pose(probe, message.what.stamp_ns, self.now_ns)
        elif is_reading_of(message, probe.lead):
            self.fleet.record_reading(probe, self.now_ns)
        if self._decides and not more:
            yield from self._check_probe(probe, message.received)

    def _use_answer(self, answer: RawAnswer) -> Iterator[MissionOutput]:
        if self.consulting is None:
            self.unknown_senders["expert"] += 1
            return
        used = self.consulting.process_answer(answer, self.now_ns)
        if used and self._decides and (job := self._next_job()):
            yield MissionOutput(job)

    def _every_so_often(self) -> Iterator[MissionOutput]:
        most = max(1, BATCH // max(1, len(self._catching_up)))
        for probe in self.probes.values():
            probe.process([], most)
            if probe.gone == LEFT + OFF_LIST and len(probe.ingestion.track):
                probe.forget_messages()  # these messages are older than the probe's removal
            for intake in probe.ingestion.intakes:
                if intake.lag.work():
                    of = intake.quantity or self.loop.name
                    log_delay(intake.lag, probe.name, intake.delay, of)
            if self._decides:
                yield from self._check_probe(probe, None)
        if any(probe.ingestion.catch_up.releasing for probe in self.probes.values()):
            self.inbox.wake()  # the next messages are processed at once
        for probe in self.probes.values():
            if probe.ground.check():
                self._react_off_map(probe)
        self._note_status()
        if self._holds_probes:
            self._holds_probes = False
            under_way = (probe for probe in self.fleet.present if probe.target is not None)
            yield from (MissionOutput(hold=True, probe=probe.name) for probe in under_way)
        if self._final_display_due:
            self._final_display_due = False
            for stage in self._settled():
                yield MissionOutput(replace(self.preview(), finished=stage))
            yield MissionOutput(replace(self.preview(), last=True))
        elif not self._decides:
            if job := self._show():
                yield MissionOutput(job)
        else:
            yield from self._check_time()

    def _check_time(self) -> Iterator[MissionOutput]:
        if self.blocked.expire(self.now_ns) or self._miss_passed():
            self.choose_again()
        silent_now = set(self.fleet.silent(self.now_ns))
        for name in sorted(silent_now - self._silent):
            logger.error("%s is silent: it sends no pose", name or "the probe")
        self._silent = silent_now
        if silent := self.fleet.drop_silent(self.now_ns):
            for probe in silent:
                self.decisions.forget(probe)
            self.wake_resting()
        if not self.decisions.running and not self.fleet.waiting:
            for probe in self.fleet.present:
                if self._has_more(probe):
                    probe.call_back(self.now_ns)
        for probe in self.fleet.present:
            if self.blocked.watch(probe, self.now_ns):
                self._avoid_shut_moves()
            elif why := probe.overdrawn(self.now_ns):
                logger.warning("%s: another place is chosen", why)
                probe.drop_decision(self.now_ns)
            elif probe.home and probe.sortie.due:
                self._change_battery(probe)
                continue
            if probe.send_again and probe.target is not None:
                if probe.ground.astray is None:  # otherwise the probe drives back to the map
                    probe.update_waypoints()
                if len(probe.waypoints) > 1 and probe.ingestion.track.newest is None:
                    continue  # the next waypoint depends on the position
                yield MissionOutput(again=probe.target, probe=probe.name)
            probe.send_again = False
        if job := self._next_job() or self._show():
            yield MissionOutput(job)
        if self._end_if_done():  # true if the last busy probe has left
            self._final_display_due = True

    def _avoid_shut_moves(self) -> None:
        self.decisions.cancel()
        for probe in self.fleet.present:
            plan, here = probe.plan or probe.stages.home, probe.standing()
            if plan is None:
                continue
            way = plan.path[plan.path.index(here) :] if here in plan.path else plan.path
            if here is not None and here not in plan.path:
                way = (here, *way)
            if is_cut(self.loop.topology, way, ()):
                probe.call_back(self.now_ns)
        self.wake_resting()

    def _miss_passed(self) -> bool:
        """Record the results of passed places; return whether a place got no reading in time."""
        missed = 0
        for probe in self.probes.values():
            probe.settle_read()
            if probe.ingestion.catch_up.active:
                continue
            for place in probe.passed.overdue(self.now_ns, probe.arrival.timeout):
                probe.miss_passed(place, self.now_ns)
                missed += 1
        return missed > 0

    def keep_passed(self, readings: int) -> int:
        """Count passed places as missed, except the `readings` oldest; return how many remain."""
        numbers = sorted(n for probe in self.probes.values() for n in probe.passed.numbers)
        for probe in self.probes.values():
            for place in probe.passed.places_of(numbers[readings:]):
                probe.miss_passed(place, self.now_ns)
        return min(readings, len(numbers))

    def _settled(self) -> list[Stage]:
        flowing = [probe for probe in self.probes.values() if probe.flows]
        return [stage for probe in flowing for stage in probe.stages.unrecorded]

    def _check_probe(self, probe: ProbeState, received: float | None) -> Iterator[MissionOutput]:
        """End the probe's stage or drive if it is complete and no missed messages are expected."""
        if probe.gone or probe.ingestion.catch_up.active:
            return
        driving = probe.plan is not None
        again = probe.check_visit(self.now_ns, received)
        if probe.lacks_readings:
            self._stop_without_readings(probe)
            return
        home = probe.stages.home
        if home is not None and probe.arrival.inside(home.path[-1]):
            probe.arrive_home(self.now_ns)
            probe.resting = home.reason
            self._final_display_due = self._end_if_done()
        finished = probe.finished
        if driving and finished is not None and finished.value is None and probe.plan is None:
            self.wake_resting()  # other probes may use the reading
        if again is not None:
            yield MissionOutput(again=again, probe=probe.name)
        elif (leg := probe.advance()) is not None:
            yield MissionOutput(leg=leg, probe=probe.name)
        if self._decides and (job := self._next_job()):
            yield MissionOutput(job)

    def _end_if_done(self) -> bool:
        present = self.fleet.present
        if any(self._has_more(probe) or probe.sortie.due for probe in present):
            return False
        if self.state != "running" or self.decisions.running or not present:
            return False
        if not all(probe.resting and probe.stages.home is None for probe in present):
            return False
        if any(probe.passed for probe in self.probes.values()):
            if not self.reason.endswith(TO_COME):
                self.reason = f"{resting_reason(present)}; {TO_COME}"
            return False
        shut_off = any(self.blocked.hide_places(probe) for probe in present)
        waits = bool(self.loop.blocked) or shut_off
        if waits and self.loop.remaining.readings != 0 and not self.loop.good_enough():
            if not self.reason.endswith(AGAIN):
                self.reason = f"{resting_reason(present)}; {AGAIN}"
                logger.info("nothing can be chosen: %s", self.blocked.waits(self.now_ns))
            return False
        if not self.loop.good_enough() and (away := self.fleet.away(self.now_ns)):
            if not self.reason.endswith(AWAY):
                self.reason = f"{resting_reason(present)}; {', '.join(away)} {AWAY}"
                logger.info("nothing can be chosen: %s", self.reason)
            return False
        if self.map is not None and self._waits_for_map(resting_reason(present)):
            return False
        self._end(resting_reason(present))
        return True

    def _waits_for_map(self, why: str) -> bool:
        if self.loop.remaining.readings == 0 or self.loop.good_enough():
            return False
        assert self.map is not None
        seconds = self.map.places.config.patience
        if self.nothing_since_ns is None:
            self.nothing_since_ns = self.now_ns
            if seconds > 0.0:
                self.reason = f"{why}; {GROWS}"
                logger.info("nothing can be chosen: waiting %.3g s for a new map", seconds)
        return self.now_ns - self.nothing_since_ns < 1e9 * seconds

    def _has_more(self, probe: ProbeState) -> bool:
        """Return whether readings are left again for a probe whose readings were spent."""
        home = probe.stages.home
        if READINGS_SPENT not in (probe.resting, home.reason if home is not None else ""):
            return False
        left = self.loop.readings_for(probe.name, self.fleet.pending(probe))
        return left is None or left > 0

    def _next_job(self) -> DecisionRequest | None:
        job = self.decisions.next_job(self.now_ns)
        if job is not None:
            self._note_shown()
        return job

    def _show(self) -> DecisionRequest | None:
        accepted, now = self.loop.used, self._clock()
        recently = now - self._shown_at < SHOW_SECONDS
        if accepted == self._shown or recently or self.decisions.running or self.showing:
            return None
        self.showing = True
        return replace(self.preview(), finished=next(iter(self._settled()), None))

    def _note_shown(self) -> None:
        self._shown, self._shown_at = self.loop.used, self._clock()

    def preview(self) -> DecisionRequest:
        """Return a planning job that shows the belief and computes no decision."""
        with self.lock:
            self._note_shown()
            copy = self.loop.snapshot()
            return DecisionRequest(copy, None, 0, None, self._shown_at, decide=False)

    # -- alarms and status --------------------------------------------------------------------

    def _watch_clock(self, now_ns: int) -> None:
        back = 1e-9 * (self.now_ns - now_ns)
        self.now_ns = now_ns
        if back <= CLOCK_TOLERANCE:
            return
        logger.error(
            "the clock went back by %.3f s: the mission pauses. Resume it when the clock is right. "
            "If a simulation was started again, begin a new mission in another run_dir",
            back,
        )
        for probe in self.probes.values():
            probe.ingestion.restart_clock()
            probe.restart_checks()
        self.pause(f"the clock went back by {back:.3f} s")

    def _react_off_map(self, probe: ProbeState) -> None:
        """If a probe is off the map, log this and react as `mission.off_map` demands."""
        if not (alarm := probe.alarm):
            return
        logger.error("%s (pose.off_map is %g m)", alarm, probe.ground.limit)
        if self.config.off_map == "pause":
            self.pause(f"{alarm}; bring it back, then call ~/resume")
        elif self.config.off_map == "return" and self._decides:
            probe.turn_back()

    @property
    def alarms(self) -> tuple[str, ...]:
        """Texts of the present alarms."""
        found = [probe.alarm for probe in self.probes.values() if probe.alarm]
        for probe in self.fleet.present:
            without = probe.further.complaints(self.config.silent_places)
            found += [f"{probe.name}: {what}" if probe.name else what for what in without]
        if self.state == "running":
            silent = self.fleet.silent(self.now_ns).items()
            found += [f"{n or 'the probe'} is silent for {seconds:.0f} s" for n, seconds in silent]
        return tuple(found)

    def _change_battery(self, probe: ProbeState) -> None:
        """Pause the mission while a battery is changed; in a fleet, exclude only this probe."""
        what = probe.begin_change(self.now_ns)
        if len(self.probes) == 1:
            self.pause(what)
            return
        logger.warning("%s", what)
        self.fleet.exclude(probe, CHANGING, self.now_ns)
        self.decisions.forget(probe)
        self.wake_resting()

    @property
    def _waits_for_batteries(self) -> Iterator[str]:
        waiting = (probe for probe in self.probes.values() if probe.name and probe.sortie.waiting)
        return (f"{p.name}: sortie {p.sortie.number} is over, change its battery" for p in waiting)

    def _stop_without_readings(self, probe: ProbeState) -> None:
        """Pause the mission because a sensor is silent; in a fleet, exclude only this probe."""
        why = probe.sensor.complaint(self.loop.topology.names, self.now_ns)
        if len(self.probes) == 1:
            self.pause(f"{why}, then call ~/resume")
            return
        self.fleet.exclude(probe, f"{why}; its next reading brings it back", self.now_ns)
        self.decisions.forget(probe)
        self.wake_resting()

    def _note_status(self) -> None:
        now = self._clock()
        if now - self._noted_at < STATUS_SECONDS or self.state == "ended":
            return
        self._noted_at = now
        status = StatusNoted(
            probes={name: probe.status() for name, probe in self.probes.items()},
            expert=None if self.consulting is None else self.consulting.rejected,
            alarms=(*self.alarms, *self.blocked.shut_moves, *self._waits_for_batteries),
        )
        if status != self._noted:
            self._noted = status
            self.journal(replace(status, stamp_ns=self.now_ns))

    # -- decisions -----------------------------------------------------------------------------

    def decided(self, job: DecisionRequest, plan: Plan) -> bool:
        """Use a computed plan, which may end the mission; return whether the plan is used."""
        with self.lock:
            if job.number != self.decisions.number or self.state != "running":
                return False
            used = self.decisions.adopt(job, plan, self.now_ns)
            if used and plan.waypoint is not None:
                self.nothing_since_ns = None
                if self.reason.endswith((AGAIN, AWAY, GROWS, TO_COME)):
                    self.reason = ""
            if not used or not plan.path:
                self.journal(
                    AnswerUnused(
                        waypoint=plan.waypoint,
                        reason=plan.reason,
                        expanded=plan.expanded,
                        stamp_ns=self.now_ns,
                        probe=job.probe,
                    )
                )
            if not used and self.decisions.no_way and plan.waypoints:
                self.blocked.add(plan.waypoints[0], self.now_ns, self.decisions.no_way, job.probe)
            if self.decisions.refusal:
                self.pause(self.decisions.refusal)
            if used and plan.waypoint is None:
                if plan.path:
                    self.reason = f"{plan.reason}; on the way to the end place"
                elif self._end_if_done():
                    if self.probes[job.probe].flows:
                        self._final_display_due = True  # after the records of all stages
                    else:
                        self.last_job = job.number
            return used

    def queried(self, job: ExpertRequest, places: Sequence[int]) -> None:
        """Ask the expert about the places that a job has chosen; () = ask nothing."""
        with self.lock:
            if self.consulting is not None and self.state == "running":
                self.consulting.ask(job, places, self.now_ns)
            self.inbox.wake()

    def failed(self, job: DecisionRequest, error: BaseException) -> None:
        """Pause the mission because the computation of a decision raised an error."""
        with self.lock:
            if job.number == self.decisions.number:
                self.pause(f"planning failed: {error}")

    def _end(self, reason: str, *, over: bool = True) -> None:
        """End the mission. `over` is False if another process may resume the mission."""
        self.state, self.reason = "ended", reason
        self._ended_ns = self.now_ns
        if self.consulting is not None:
            self.consulting.open = False
        for probe in self.probes.values():
            probe.ingestion.set_open(yes=False)
            probe.ingestion.stop_waiting()  # waiting readings are counted
        kind = MissionEnded if over else MissionStopped
        self.journal(kind(reason=reason, stamp_ns=self.now_ns))

    def claim(self, stage: Stage) -> bool:
        """Claim a stage for recording; return False if the stage was claimed before."""
        with self.lock:
            return self.probes[stage.probe].stages.claim(stage)

    def stop(self, reason: str, *, over: bool = True) -> list[Stage]:
        """End the mission by command; return the unrecorded stages in order of their numbers.

        With `over` False, another process may resume the mission.
        """
        with self.lock:
            self._final_display_due = False
            if self.state != "ended":
                for message in self.inbox.pop():
                    if self.trace is not None:
                        self.trace.used(message)
                    if isinstance(message.what, RawAnswer):
                        if self.consulting is None:
                            self.unknown_senders["expert"] += 1
                        else:
                            self.consulting.process_answer(message.what, self.now_ns)
                    elif message.probe not in self.probes:
                        self.unknown_senders[message.probe] += 1
                    elif not isinstance(message.what, RawBattery):
                        self.probes[message.probe].process([message])
                for probe in self.probes.values():
                    probe.record_used(probe.ingestion.stop_waiting())
                    if over:
                        probe.settle_all()
                    else:
                        probe.settle_read()
                self.decisions.cancel()
                self._end(reason, over=over)
            unrecorded: list[Stage] = []
            for probe in self.probes.values():
                probe.finished = None
                unrecorded += probe.stages.unrecorded
            return sorted(unrecorded, key=lambda stage: stage.number)

    # -- new decisions --------------------------------------------------------------------------

    def wake_resting(self) -> None:
        """Request a new decision for each resting probe, since a place may be available now."""
        for probe in self.probes.values():
            if probe.resting and not probe.home:
                probe.resting = ""
                probe.since = self._clock()

    def choose_again(self) -> None:
        """Request a new decision for all probes that rest, are at the end place or drive to it."""
        self.wake_resting()
        if self.loop.remaining.readings == 0:
            return
        for probe in self.fleet.present:
            if probe.home or probe.stages.home is not None:
                probe.call_back(self.now_ns)
        self.reason = ""
