"""What flows through the framework: readings in, plans out, and the limits on both."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

FloatArray: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.int64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
MEAN, WORST = "mean", "worst"
OF = (MEAN, WORST)
"""Scope of an error of the map: the root mean over the places, or the worst place."""
Off: TypeAlias = float | tuple[float, float]
"""How far from a place's point [m]; across and up on a map with heights, where a field changes by
another amount a metre upwards."""
Clock: TypeAlias = Callable[[], float]
"""A monotonic clock in seconds; injected, never global."""


@dataclass(frozen=True)
class Reading:
    """One value of the scalar sensor.

    Any output of a sensor makes a reading, so construction never fails. `SensingLoop.tell` alone
    accepts or rejects readings, and counts them.

    Args:
        stamp_ns: time of measurement, nanoseconds of the driver's clock.
        location: index of the place it belongs to, or None when only a position is known.
        value: the measured value, in the sensor's unit.
        noise_variance: variance of this reading's noise; None = the belief's own noise.
        source: where it came from (topic, file), for messages and records.
        position: (x, y), or (x, y, z) on a map with heights, in metres in the map frame, when
            `location` is None.
        position_variance: mean square error of that position, as the localisation reports it [m²];
            0 = not known, or without effect.
        height_variance: mean square error of the height, on a map with heights [m²]; likewise.
    """

    stamp_ns: int
    location: int | None
    value: float
    noise_variance: float | None = None
    source: str = ""
    position: tuple[float, ...] | None = None
    off: Off | None = None
    """How far off its place's point it was taken, or the readings were on average that it stands
    for; None = at the point, or of no consequence."""
    position_variance: float = 0.0
    height_variance: float = 0.0
    quantity: str = ""
    """Name of the quantity that it is of; "" = the main one of its mission."""


@dataclass(frozen=True)
class PlacedReading:
    """A reading that was checked: its place is on the map, and the belief takes its value.

    `SensingLoop.place` makes one of a `Reading`, and what has one need not check it again.

    Args:
        reading: as it came, with its place.
        place: index of its place.
        value: as the Gaussian process has it (`Belief.transform`).
        noise_variance: likewise; None = the belief's own noise.
    """

    reading: Reading
    place: int
    value: float
    noise_variance: float | None

    def stamped(self, stamp_ns: int) -> PlacedReading:
        """Return the same reading with another stamp [ns]."""
        return replace(self, reading=replace(self.reading, stamp_ns=stamp_ns))


class Cost(NamedTuple):
    """Cost of a move."""

    metres: float
    seconds: float

    def plus(self, other: Cost) -> Cost:
        """Return the sum of two costs."""
        return Cost(self.metres + other.metres, self.seconds + other.seconds)


class Route(NamedTuple):
    """A way to a place: the places driven after the start, the goal last, and its cost."""

    path: tuple[int, ...]
    cost: Cost


class CandidateValue(NamedTuple):
    """Why a place was (not) chosen: bounds on the value of going there first [nat]."""

    location: int
    lower: float
    upper: float


class RouteValue(NamedTuple):
    """A route that a policy weighed, and what it promised.

    Args:
        kind: how the route came about, in words ("evenly spaced rows").
        first: the first place that it reads.
        readings: places that it reads.
        left: share of the map's present mean variance that is expected to remain after it.
    """

    kind: str
    first: int
    readings: int
    left: float


@dataclass(frozen=True)
class Plan:
    """A decision.

    Args:
        waypoints: places to observe, the next one first; empty when nothing is left to observe
            within the budget. A nonmyopic planner adds what it would most likely do afterwards.
        lower: lower bound on the value of the decision [nat, or the policy's own unit].
        upper: upper bound, never below `lower`.
        expanded: planner expansions spent (the unit of `PlanLimit.expansions`).
        seconds: computing time spent.
        deadline_hit: the limit ended the search before its gap was closed.
        path: places driven after the start to reach `waypoints[0]`, which is its last entry; of a
            plan without a waypoint the way to where the mission has to end, () when there is none.
        cost: cost of `path`.
        horizon: readings looked ahead, N' (clipped to the remaining budget).
        candidates: bounds for each first place that was considered.
        reason: why there is no waypoint; of a plan with one "", or why it is not the policy's own.
        heading: of a probe with a turning radius on arriving at the end of `path` [rad]; None =
            not known, or of no consequence.
        routes: of a policy that plans whole routes those that it weighed, the chosen one first.
    """

    waypoints: tuple[int, ...]
    lower: float
    upper: float
    expanded: int
    seconds: float
    deadline_hit: bool
    path: tuple[int, ...] = ()
    cost: Cost = Cost(0.0, 0.0)
    horizon: int = 1
    candidates: tuple[CandidateValue, ...] = ()
    reason: str = ""
    heading: float | None = None
    routes: tuple[RouteValue, ...] = ()

    @property
    def waypoint(self) -> int | None:
        """The next place to observe, or None when there is nothing left."""
        return self.waypoints[0] if self.waypoints else None

    @property
    def gap(self) -> float:
        """``upper - lower`` [nat]."""
        return self.upper - self.lower


@dataclass(frozen=True)
class PlanLimit:
    """Limit on the computing of one decision; whichever is reached first.

    Use `seconds` on a robot and `expansions` in tests and experiments: the latter gives the same
    plan on every machine. None = no such limit. Zero still gives a legal waypoint.
    """

    seconds: float | None = None
    expansions: int | None = None

    def __post_init__(self) -> None:
        for name in ("seconds", "expansions"):
            value = getattr(self, name)
            if value is not None and (math.isnan(value) or value < 0):
                msg = f"PlanLimit.{name} must be zero or more, got {value!r}"
                raise ValueError(msg)


@dataclass(frozen=True)
class Budget:
    """Limit on the mission, any together; None = no such limit.

    Args:
        readings: newly observed places.
        metres: distance driven.
        seconds: time driven.
        end: index of the place where the probe has to be when it is over; metres and seconds have
            to last for the way there. None = anywhere.
    """

    readings: int | None = None
    metres: float | None = None
    seconds: float | None = None
    end: int | None = None

    def affords(self, cost: Cost, readings: int = 1) -> bool:
        """Return whether a move of this cost fits that brings so many readings."""
        tolerance = 1e-6  # a micrometre, a microsecond: clocks count in nanoseconds
        return (
            (self.readings is None or self.readings >= readings)
            and (self.metres is None or cost.metres <= self.metres + tolerance)
            and (self.seconds is None or cost.seconds <= self.seconds + tolerance)
        )

    def minus(self, *, readings: int = 0, cost: Cost = Cost(0.0, 0.0)) -> Budget:
        """Return what is left after `readings` new places and a move of `cost`."""
        return Budget(
            None if self.readings is None else self.readings - readings,
            None if self.metres is None else self.metres - cost.metres,
            None if self.seconds is None else self.seconds - cost.seconds,
            self.end,
        )


@dataclass(frozen=True)
class Aim:
    """An error of the map at which a mission has done enough, whatever is left of its budget.

    Args:
        error: that the belief promises, in the sensor's unit.
        of: the root mean over the places, or the worst place: one of `OF`.
    """

    error: float
    of: str = MEAN


@dataclass(frozen=True)
class Rejection:
    """A reading that was not used, with the word it is counted under and a sentence."""

    reading: Reading
    reason: str
    message: str


@dataclass(frozen=True)
class TellReport:
    """Result of `SensingLoop.tell`.

    Args:
        accepted: number of readings used.
        new_places: places observed for the first time, in order.
        rejected: the others, each with its reason; nothing is lost silently.
        late: accepted readings older than one accepted before (counted, used all the same).
    """

    accepted: int = 0
    new_places: tuple[int, ...] = ()
    rejected: tuple[Rejection, ...] = field(default=())
    late: int = 0
