"""Events of a mission, as its journal keeps them: one frozen type for each kind.

What is written is enough to bring a mission to where it was without planning again, see
`mission.restore.MissionRestorer.apply`; `records.event_lines` writes and reads the lines.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple, TypeVar

from gp_active_sensing.types import Aim, Budget, Cost, Off, Plan, Reading

_E = TypeVar("_E", bound="Event")


class Whereabouts(NamedTuple):
    """Where a probe is.

    Args:
        odometer: driven since the mission began [m].
        pose: time [ns] and position [m] up to which that is counted; None = no pose yet.
        memory: of the odometer, of poses that are not exact.
    """

    odometer: float
    pose: tuple[int, float, float] | None = None
    memory: tuple[float, ...] = ()


class ProbeStatus(NamedTuple):
    """Where a probe is, and how many of its readings were not used, by the word of the reason."""

    where: Whereabouts
    rejected: Mapping[str, int]


@dataclass(frozen=True)
class StayRecord:
    """Average of a stay in the belief, from a reading on.

    Args:
        count: readings that `value` averages.
        value: in the sensor's unit.
        noise_variance: of the average; None = the belief's own noise.
        off: mean distance of the readings from the place's point; None = not known.
    """

    count: int
    value: float
    noise_variance: float | None
    off: Off | None


@dataclass(frozen=True, kw_only=True)
class Event:
    """Something that happened in a mission.

    Args:
        stamp_ns: time of the mission's clock [ns]; None = not known, or that of its reading.
        probe: to which it happened; "" = the only one, or the mission.
    """

    KIND: ClassVar[str] = ""
    """The word ``event`` of its line."""
    ALWAYS: ClassVar[tuple[str, ...]] = ()
    """Fields with a default that are written all the same."""
    stamp_ns: int | None = None
    probe: str = ""

    @property
    def time_ns(self) -> int:
        """When it happened [ns]; 0 = not known."""
        return self.stamp_ns or 0

    def of_probe(self: _E, probe: str) -> _E:
        """Return the event with the name of a probe."""
        return replace(self, probe=probe)


# -- the process -----------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class MissionStarted(Event):
    """Start of the run: seed, versions, driver, the map as worked out (`topology.config`)."""

    KIND = "start"
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class MissionResumed(MissionStarted):
    """The mission goes on in another process."""

    KIND = "resumed"


@dataclass(frozen=True, kw_only=True)
class StateChanged(Event):
    """A mission of nodes is running or paused from here on, and why; where its probes are."""

    KIND = "state"
    ALWAYS = ("probes",)
    stamp_ns: int = field()
    state: str
    reason: str
    probes: Mapping[str, Whereabouts] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class ClockStepped(Event):
    """The clock went forward by more than the time that passed; it is not charged."""

    KIND = "clock"
    step_ns: int


@dataclass(frozen=True, kw_only=True)
class JournalGap(Event):
    """Events before it could not be written, or cannot be read any more.

    Args:
        failures: so many.
        readings: of them, at most; None = not known.
        damaged: they were written.
    """

    KIND = "gap"
    failures: int
    readings: int | None = None
    damaged: bool = False


@dataclass(frozen=True, kw_only=True)
class MissionStopped(Event):
    """The process ended and the mission did not."""

    KIND = "stopped"
    ALWAYS = ("reason",)
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class MissionEnded(MissionStopped):
    """Why the mission ended."""

    KIND = "end"


# -- decisions -------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class DecisionAsked(Event):
    """A decision is being computed, of the readings so far.

    Args:
        at: where the probe stands; None = nowhere yet.
        pending: waypoints of other probes, and `passed`.
        passed: places that were left again, and whose readings are still to come.
        waiting: other probes that wait for a decision, and where they stand.
        where: the probe is; None = not known.
    """

    KIND = "asked"
    ALWAYS = ("probe", "waiting")
    stamp_ns: int = field()
    at: int | None
    pending: tuple[int, ...]
    passed: tuple[int, ...] = ()
    waiting: Mapping[str, int | None] = field(default_factory=dict)
    where: Whereabouts | None = None


@dataclass(frozen=True, kw_only=True)
class DecisionTaken(Event):
    """A plan with everything that a restart needs to execute it again.

    Args:
        stage: number of the decision.
        plan: what was decided.
        policy_state: what the policy handed on, as JSON can say it.
        at: where the probe stood; None = not known.
        where: the probe is; None = not known.
        foreseen: an earlier version planned it before the reading of the place had come.
        again: its place was observed already, and is to be read once more.
        left: of the budget of its probe; None = not known.
    """

    KIND = "decision"
    ALWAYS = ("policy_state", "at", "again")
    stage: int
    plan: Plan
    policy_state: Any = None
    at: int | None = None
    where: Whereabouts | None = None
    foreseen: bool = False
    again: bool = False
    left: Budget | None = None


@dataclass(frozen=True, kw_only=True)
class AnswerUnused(Event):
    """An answer without a waypoint, or one that came too late; asked again when that helps."""

    KIND = "unused"
    ALWAYS = ("probe", "reason", "expanded")
    waypoint: int | None
    reason: str = ""
    expanded: int = 0


@dataclass(frozen=True, kw_only=True)
class ReturnBegun(Event):
    """Nothing more is chosen, for a reason: the way to the end place.

    Args:
        reason: in words.
        path: places after the one where the probe stands, the end place last.
        cost: of the path.
        at: where the probe stood; None = not known.
        where: the probe is; None = not known.
        sortie: its battery is changed there, and the mission goes on.
    """

    KIND = "home"
    ALWAYS = ("at",)
    reason: str
    path: tuple[int, ...]
    cost: Cost
    at: int | None = None
    where: Whereabouts | None = None
    sortie: bool = False

    @property
    def plan(self) -> Plan:
        """The last plan, which has no waypoint."""
        return Plan(
            *((), 0.0, 0.0, 0, 0.0),
            deadline_hit=False,
            path=self.path,
            cost=self.cost,
            reason=self.reason,
        )


@dataclass(frozen=True, kw_only=True)
class SortieChanged(Event):
    """A sortie is over at the end place, or another one begins with another battery.

    Args:
        number: of the sortie, 1 for the first.
        over: it is over; otherwise it begins.
    """

    KIND = "sortie"
    number: int
    over: bool


@dataclass(frozen=True, kw_only=True)
class BatteryNoted(Event):
    """The charge of a battery has changed.

    Args:
        level: the charge, 0 to 1.
        where: the probe is.
    """

    KIND = "battery"
    level: float
    where: Whereabouts


@dataclass(frozen=True, kw_only=True)
class Moved(Event):
    """Cost of a drive.

    Args:
        cost: metres and seconds.
        where: the probe is; None = not known.
        went: place that was read instead of the plan's; None = the plan's.
        given_up: the drive ended on the way.
        passed: the plan's place was reached, and its reading is still to come.
    """

    KIND = "moved"
    cost: Cost
    where: Whereabouts | None = None
    went: int | None = None
    given_up: bool = False
    passed: bool = False


# -- readings --------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class ReadingEvent(Event):
    """An event of a reading, whose time it has."""

    reading: Reading

    @property
    def time_ns(self) -> int:
        """Time of its reading [ns]."""
        return self.reading.stamp_ns


@dataclass(frozen=True, kw_only=True)
class ReadingUsed(ReadingEvent):
    """A reading that the loop used.

    Args:
        reading: as it came, or the average of a window.
        count: readings that it is the average of.
        first_ns: time of the first of these [ns]; None = it is one.
        taken_back: why one counts that had been gated; "" = it had not.
        stay: what the belief holds of its stay from then on; None = the reading as it came.
    """

    KIND = "reading"
    count: int = 1
    first_ns: int | None = None
    taken_back: str = ""
    stay: StayRecord | None = None

    @property
    def average(self) -> Reading:
        """Average of its stay in the belief from then on."""
        stay = self.stay
        if stay is None:
            return self.reading
        return replace(
            self.reading, value=stay.value, noise_variance=stay.noise_variance, off=stay.off
        )


@dataclass(frozen=True, kw_only=True)
class ReadingGated(ReadingEvent):
    """A reading set aside, which is `off` standard deviations off; it may come back."""

    KIND = "gated"
    ALWAYS = ("off",)
    off: float | None = None


@dataclass(frozen=True, kw_only=True)
class VisitMissed(Event):
    """A visit without any reading.

    Args:
        location: the place.
        again: it is tried again.
        passed: the probe had been sent on, and no reading came in time.
    """

    KIND = "miss"
    location: int
    again: bool
    passed: bool = False


# -- an expert -------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class ExpertAsked(Event):
    """Where an expert is asked for values before the next decision.

    Args:
        places: () = nowhere.
        given_up: the question before it is not waited for any more.
    """

    KIND = "query"
    ALWAYS = ("places",)
    places: tuple[int, ...] = ()
    given_up: bool = False


@dataclass(frozen=True, kw_only=True)
class ExpertAnswered(ReadingEvent):
    """An answer that is used; `late`: its decision had been taken before."""

    KIND = "answer"
    ALWAYS = ("late",)
    late: bool = False


# -- probes, places, budget ------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class PlaceBlocked(Event):
    """A place cannot be reached.

    Args:
        location: the place.
        until_ns: it is not chosen before that [ns].
        why: in words.
        set_aside: it is not chosen again in this mission.
    """

    KIND = "blocked"
    ALWAYS = ("probe", "why", "set_aside")
    location: int
    until_ns: int
    why: str = ""
    set_aside: bool = False


@dataclass(frozen=True, kw_only=True)
class MoveShut(Event):
    """Nobody gets through a move, such as a door that is closed: ways are planned round it.

    Args:
        start: place where the move begins.
        goal: place where it leads.
        until_ns: no way leads through it before that [ns].
        why: in words.
    """

    KIND = "shut"
    ALWAYS = ("probe", "why")
    start: int
    goal: int
    until_ns: int
    why: str = ""


@dataclass(frozen=True, kw_only=True)
class LimitsMoved(Event):
    """Places were closed or opened, since they may lie beyond the limits, or do not any more.

    Args:
        closed: places that no probe may enter from here on.
        opened: places that it may enter again.
        declared: all places about the starts of probes, which are declared safe.
        began: names of these probes.
    """

    KIND = "limits"
    closed: tuple[int, ...] = ()
    opened: tuple[int, ...] = ()
    declared: tuple[int, ...] = ()
    began: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class BudgetChanged(Event):
    """Change of the total budget; spent parts count already.

    Args:
        readings: of the mission; None = any number.
        metres, seconds: of each probe.
        error: of the map, with which the mission is over; None = none.
        error_of: which error that is; "" = the usual one.
        errors: of the maps of further quantities, by name.
    """

    KIND = "budget"
    ALWAYS = ("error",)
    readings: int | None
    metres: float | None
    seconds: float | None
    error: float | None = None
    error_of: str = ""
    errors: Mapping[str, float] = field(default_factory=dict)

    @property
    def budget(self) -> Budget:
        """New budget."""
        return Budget(self.readings, self.metres, self.seconds)

    @property
    def aim(self) -> Aim | None:
        """Error of the map that ends the mission."""
        return None if self.error is None else Aim(self.error, self.error_of)

    @property
    def aims(self) -> dict[str, Aim]:
        """The errors of the maps of further quantities."""
        return {name: Aim(error, self.error_of) for name, error in self.errors.items()}


@dataclass(frozen=True, kw_only=True)
class MapChanged(Event):
    """The map is another one from here on; the places so far keep their numbers.

    Args:
        number: of the map in this mission; the first one, without an event, is 1.
        mark: of the occupancy grid that it was made from, see `OccupancyGrid.mark`.
        places: of the map.
        closed: of them are occupied now.
    """

    KIND = "map"
    number: int
    mark: str
    places: int
    closed: int


@dataclass(frozen=True, kw_only=True)
class RosterChanged(Event):
    """A probe takes part (`why` is "") or not any more, for a reason."""

    KIND = "roster"
    ALWAYS = ("probe",)
    stamp_ns: int = field()
    why: str
    where: Whereabouts


@dataclass(frozen=True, kw_only=True)
class StatusNoted(Event):
    """Where the probes are, and what was not used so far.

    Args:
        probes: by name.
        expert: answers that were not used, by the word of the reason; None = nobody is asked.
        alarms: texts of the alarms.
    """

    KIND = "status"
    probes: Mapping[str, ProbeStatus]
    expert: Mapping[str, int] | None = None
    alarms: tuple[str, ...] = ()


EVENT_TYPES: dict[str, type[Event]] = {
    kind.KIND: kind
    for kind in (
        *(MissionStarted, MissionResumed, StateChanged, ClockStepped, JournalGap, MissionStopped),
        *(MissionEnded, DecisionAsked, DecisionTaken, AnswerUnused, ReturnBegun, Moved),
        *(SortieChanged, BatteryNoted),
        *(ReadingUsed, ReadingGated, VisitMissed, ExpertAsked, ExpertAnswered),
        *(PlaceBlocked, MoveShut, LimitsMoved, BudgetChanged, MapChanged, RosterChanged),
        StatusNoted,
    )
}
"""Each kind by the word ``event`` of its line."""
