"""Events of a mission: a frozen class for each kind of event in the journal.

A restart restores the mission from its events without planning, see
`mission.restore.MissionRestorer.apply`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

from gp_active_sensing.types import Aim, Budget, Cost, Off, Plan, Reading


class ProbePosition(NamedTuple):
    """Position and odometer of a probe.

    Args:
        odometer: distance since the start of the mission [m].
        pose: time [ns] and position x, y [m] of the last pose in `odometer`; None = no pose yet.
        memory: state of an odometer for inexact poses; () = exact poses.
    """

    odometer: float
    pose: tuple[int, float, float] | None = None
    memory: tuple[float, ...] = ()


class ProbeStatus(NamedTuple):
    """Position and odometer of a probe, and the number of its unused readings by reason."""

    where: ProbePosition
    rejected: Mapping[str, int]


@dataclass(frozen=True)
class StayRecord:
    """Average of the readings of one stay at a place.

    Args:
        count: number of averaged readings.
        value: average in the sensor's unit.
        noise_variance: noise variance of the average; None = noise variance of the belief.
        off: mean distance of the readings from the place's point [m]; None = not known.
    """

    count: int
    value: float
    noise_variance: float | None
    off: Off | None


@dataclass(frozen=True, kw_only=True)
class Event:
    """Event of a mission.

    Args:
        stamp_ns: time of the mission's clock [ns]; None = not known, or an event of a reading
            (`ReadingEvent`).
        probe: name of the probe; "" = the only probe, or the mission.
    """

    KIND: ClassVar[str] = ""
    """Value of the key ``event`` in the line of the journal."""
    ALWAYS: ClassVar[tuple[str, ...]] = ()
    """Names of fields that are also written with their defaults."""
    stamp_ns: int | None = None
    probe: str = ""

    @property
    def time_ns(self) -> int:
        """Time of the event [ns]; 0 = not known."""
        return self.stamp_ns or 0


# -- the process -----------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class MissionStarted(Event):
    """Start of the run; `details` has seed, versions, driver, and keys that describe the map."""

    KIND = "start"
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class MissionResumed(MissionStarted):
    """Continuation of the mission in another process."""

    KIND = "resumed"


@dataclass(frozen=True, kw_only=True)
class StateChanged(Event):
    """Change of the mission's state to running or paused, with the positions of its probes."""

    KIND = "state"
    ALWAYS = ("probes",)
    stamp_ns: int = field()
    state: str
    reason: str
    probes: Mapping[str, ProbePosition] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class ClockStepped(Event):
    """Forward jump of the clock by `step_ns`, which is not charged to the budget."""

    KIND = "clock"
    step_ns: int


@dataclass(frozen=True, kw_only=True)
class JournalGap(Event):
    """Gap in the journal: events that were not written or cannot be read.

    Args:
        failures: number of missing events.
        readings: largest possible number of readings in the gap; None = not known.
        damaged: True if the events were written but cannot be read.
    """

    KIND = "gap"
    failures: int
    readings: int | None = None
    damaged: bool = False


@dataclass(frozen=True, kw_only=True)
class MissionStopped(Event):
    """End of the process before the end of the mission."""

    KIND = "stopped"
    ALWAYS = ("reason",)
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class MissionEnded(MissionStopped):
    """End of the mission."""

    KIND = "end"


# -- decisions -------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class DecisionAsked(Event):
    """Request for a decision that is based on the readings so far.

    Args:
        at: place of the probe; None = no place yet.
        pending: waypoints of other probes, followed by the places in `passed`.
        passed: places that the probe left before their readings came.
        waiting: places of other probes that wait for a decision, by name.
        where: position and odometer of the probe; None = not known.
    """

    KIND = "asked"
    ALWAYS = ("probe", "waiting")
    stamp_ns: int = field()
    at: int | None
    pending: tuple[int, ...]
    passed: tuple[int, ...] = ()
    waiting: Mapping[str, int | None] = field(default_factory=dict)
    where: ProbePosition | None = None


@dataclass(frozen=True, kw_only=True)
class DecisionTaken(Event):
    """Plan of a probe, with the data that a restart needs.

    Args:
        stage: number of the decision.
        policy_state: state of the policy after the decision, as JSON data.
        at: place of the probe; None = not known.
        where: position and odometer of the probe; None = not known.
        foreseen: True in old journals if the plan was made before the reading of the place.
        again: True for another reading of an observed place.
        left: remaining budget of the probe; None = not known.
    """

    KIND = "decision"
    ALWAYS = ("policy_state", "at", "again")
    stage: int
    plan: Plan
    policy_state: Any = None
    at: int | None = None
    where: ProbePosition | None = None
    foreseen: bool = False
    again: bool = False
    left: Budget | None = None


@dataclass(frozen=True, kw_only=True)
class AnswerUnused(Event):
    """Policy's answer that came too late or has no waypoint."""

    KIND = "unused"
    ALWAYS = ("probe", "reason", "expanded")
    waypoint: int | None
    reason: str = ""
    expanded: int = 0


@dataclass(frozen=True, kw_only=True)
class ReturnBegun(Event):
    """Start of the drive to the end place, after the last decision.

    Args:
        path: places after the current place; the last place is the end place.
        at: place of the probe; None = not known.
        where: position and odometer of the probe; None = not known.
        sortie: True if the battery is changed at the end place and the mission continues.
    """

    KIND = "home"
    ALWAYS = ("at",)
    reason: str
    path: tuple[int, ...]
    cost: Cost
    at: int | None = None
    where: ProbePosition | None = None
    sortie: bool = False

    @property
    def plan(self) -> Plan:
        """Plan of the return, without a waypoint."""
        return Plan((), expanded=0, path=self.path, cost=self.cost, reason=self.reason)


@dataclass(frozen=True, kw_only=True)
class SortieChanged(Event):
    """End of a sortie before a battery change at the end place, or start of the next sortie.

    Args:
        number: number of the sortie, counted from 1.
        over: True at the end of the sortie, False at its start.
    """

    KIND = "sortie"
    number: int
    over: bool


@dataclass(frozen=True, kw_only=True)
class BatteryNoted(Event):
    """Change of the charge of a battery.

    Args:
        level: charge, 0 to 1.
        where: position and odometer of the probe.
    """

    KIND = "battery"
    level: float
    where: ProbePosition


@dataclass(frozen=True, kw_only=True)
class Moved(Event):
    """Cost of a drive.

    Args:
        where: position and odometer of the probe; None = not known.
        went: observed place; None = the place of the plan.
        given_up: True if the drive ended before the probe reached the place.
        passed: True if the place was reached and its reading is missing.
    """

    KIND = "moved"
    cost: Cost
    where: ProbePosition | None = None
    went: int | None = None
    given_up: bool = False
    passed: bool = False


# -- readings --------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class ReadingEvent(Event):
    """Event of a reading; the time of the event is the time of the reading."""

    reading: Reading

    @property
    def time_ns(self) -> int:
        """Time of the reading [ns]."""
        return self.reading.stamp_ns


@dataclass(frozen=True, kw_only=True)
class ReadingUsed(ReadingEvent):
    """Reading that updates the belief.

    Args:
        reading: the reading, or the average of a window.
        count: number of averaged readings.
        first_ns: time of the first averaged reading [ns]; None = a single reading.
        taken_back: reason why a gated reading is used after all; "" = it was not gated.
        stay: average of the stay so far, including this reading; None = the reading itself.
    """

    KIND = "reading"
    count: int = 1
    first_ns: int | None = None
    taken_back: str = ""
    stay: StayRecord | None = None

    @property
    def average(self) -> Reading:
        """Average of the stay so far, including this reading."""
        stay = self.stay
        if stay is None:
            return self.reading
        return replace(
            self.reading, value=stay.value, noise_variance=stay.noise_variance, off=stay.off
        )


@dataclass(frozen=True, kw_only=True)
class ReadingGated(ReadingEvent):
    """Rejection of a reading that is `off` standard deviations away from its prediction."""

    KIND = "gated"
    ALWAYS = ("off",)
    off: float | None = None


@dataclass(frozen=True, kw_only=True)
class VisitMissed(Event):
    """Visit without a reading.

    Args:
        again: True if the place is visited again.
        passed: True if the probe had left before the reading was due.
    """

    KIND = "miss"
    location: int
    again: bool
    passed: bool = False


# -- an expert -------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class ExpertAsked(Event):
    """Question to an expert before the next decision.

    Args:
        places: places of the question; () = a question without places.
        given_up: True if the mission stops waiting for the previous answer.
    """

    KIND = "query"
    ALWAYS = ("places",)
    places: tuple[int, ...] = ()
    given_up: bool = False


@dataclass(frozen=True, kw_only=True)
class ExpertAnswered(ReadingEvent):
    """Expert's answer that updates the belief; `late` = the answer came after the decision."""

    KIND = "answer"
    ALWAYS = ("late",)
    late: bool = False


# -- probes, places, budget ------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class PlaceBlocked(Event):
    """Place that cannot be reached.

    Args:
        until_ns: earliest time of another attempt [ns].
        set_aside: True if the mission does not choose the place again.
    """

    KIND = "blocked"
    ALWAYS = ("probe", "why", "set_aside")
    location: int
    until_ns: int
    why: str = ""
    set_aside: bool = False


@dataclass(frozen=True, kw_only=True)
class MoveShut(Event):
    """Move that routes avoid, for example because a door is shut.

    Args:
        start: first place of the move.
        goal: last place of the move.
        until_ns: end of the closure [ns].
    """

    KIND = "shut"
    ALWAYS = ("probe", "why")
    start: int
    goal: int
    until_ns: int
    why: str = ""


@dataclass(frozen=True, kw_only=True)
class LimitsMoved(Event):
    """Places that the limits close or open.

    Args:
        closed: places that no probe may enter from now on.
        opened: places that probes may enter again.
        declared: all places that count as safe because they are near the starts of probes.
        began: names of the probes whose starts have been declared safe.
    """

    KIND = "limits"
    closed: tuple[int, ...] = ()
    opened: tuple[int, ...] = ()
    declared: tuple[int, ...] = ()
    began: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class BudgetChanged(Event):
    """New total budget, including the spent part.

    Args:
        readings: number of readings of the mission; None = unlimited.
        metres, seconds: limits of each probe; None = unlimited.
        error: expected error of the map at which the mission ends; None = it does not end the
            mission.
        error_of: "mean" or "worst", the kind of `error`; "" = the default.
        errors: like `error`, for the map of each further quantity, by name.
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
        """Map error at which the mission ends; None = the error does not end the mission."""
        return None if self.error is None else Aim(self.error, self.error_of)

    @property
    def aims(self) -> dict[str, Aim]:
        """Map error at which the mission ends, for each further quantity by name."""
        return {name: Aim(error, self.error_of) for name, error in self.errors.items()}


@dataclass(frozen=True, kw_only=True)
class MapChanged(Event):
    """Change of the map. Places that existed before keep their indices.

    Args:
        number: number of the map in this mission; the first map has 1.
        mark: checksum of its occupancy grid, see `topology.live.mark_of`.
        places: number of places.
        closed: number of occupied places.
    """

    KIND = "map"
    number: int
    mark: str
    places: int
    closed: int


@dataclass(frozen=True, kw_only=True)
class RosterChanged(Event):
    """Entry of a probe into the mission (`why` is ""), or its exit for a reason."""

    KIND = "roster"
    ALWAYS = ("probe",)
    stamp_ns: int = field()
    why: str
    where: ProbePosition


@dataclass(frozen=True, kw_only=True)
class StatusNoted(Event):
    """Positions of the probes, and the numbers of readings that were not used so far.

    Args:
        probes: status by name.
        expert: number of unused answers by reason; None = no expert.
        alarms: texts of the present alarms.
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
