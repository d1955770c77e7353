"""Basic types: readings, plans, costs, and the limits on plans and missions."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

FloatArray: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.int64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
MEAN, WORST = "mean", "worst"
OF = (MEAN, WORST)
"""Scopes of a map error: root mean square over the places, or the worst place."""
Off: TypeAlias = float | tuple[float, float]
"""Distance from a place's point [m]; on a map with heights, (horizontal, vertical) distance."""
Clock: TypeAlias = Callable[[], float]
"""Monotonic clock [s]; always passed as an argument."""


@dataclass(frozen=True)
class Reading:
    """One value measured by a scalar sensor.

    The constructor checks nothing. `SensingLoop.tell` accepts or rejects readings.

    Args:
        stamp_ns: time of the measurement on the driver's clock [ns].
        location: index of the place; None = only a position is known.
        value: measured value in the sensor's unit.
        noise_variance: variance of this reading's noise; None = the belief's noise.
        source: topic or file of the reading, for messages and records.
        position: (x, y), or (x, y, z) on a map with heights, in the map frame [m]; used if
            `location` is None.
        position_variance: mean square error of the position, as the localisation reports it [m²];
            0 = unknown.
        height_variance: mean square error of the height, on a map with heights [m²]; 0 = unknown.
    """

    stamp_ns: int
    location: int | None
    value: float
    noise_variance: float | None = None
    source: str = ""
    position: tuple[float, ...] | None = None
    off: Off | None = None
    """Distance of the reading from its place's point [m]; None = ignore the distance.

    An average of several readings has the mean of the distances of these readings.
    """
    position_variance: float = 0.0
    height_variance: float = 0.0
    quantity: str = ""
    """Name of the measured quantity; "" = the main quantity of the mission."""


@dataclass(frozen=True)
class PlacedReading:
    """Reading with a valid place and value, made by `SensingLoop.place`.

    Args:
        reading: the reading with its place.
        place: index of the place.
        value: value after the belief's transform (`Belief.transform`).
        noise_variance: variance of the noise after the transform; None = the belief's noise.
    """

    reading: Reading
    place: int
    value: float
    noise_variance: float | None

    def stamped(self, stamp_ns: int) -> PlacedReading:
        """Return a copy of the reading with another stamp [ns]."""
        return replace(self, reading=replace(self.reading, stamp_ns=stamp_ns))


class Cost(NamedTuple):
    """Cost of a move."""

    metres: float
    seconds: float

    def plus(self, other: Cost) -> Cost:
        """Return the sum of two costs."""
        return Cost(self.metres + other.metres, self.seconds + other.seconds)


class Route(NamedTuple):
    """Route to a place: the places after the start, including the goal, and the cost."""

    path: tuple[int, ...]
    cost: Cost


class CandidateValue(NamedTuple):
    """Bounds on the value of a candidate (possible next place) [the policy's unit]."""

    location: int
    lower: float
    upper: float


class RouteValue(NamedTuple):
    """Route that a policy compared with other routes, and its predicted effect.

    Args:
        kind: origin of the route in words, such as "evenly spaced rows".
        first: first observed place of the route.
        readings: number of places that the route observes.
        left: expected mean variance of the map after the route, as a fraction of the present value.
    """

    kind: str
    first: int
    readings: int
    left: float


@dataclass(frozen=True)
class Plan:
    """Decision of a policy.

    Args:
        waypoints: places to observe, next place first; () = no affordable place is left. A
            nonmyopic policy adds the expected places after the next place.
        lower: lower bound on the value of the decision [the policy's unit].
        upper: upper bound on the value of the decision, never below `lower`.
        expanded: number of planner expansions, see `PlanLimit.expansions`.
        seconds: computing time [s].
        deadline_hit: True if a `PlanLimit` ended the search early.
        path: places after the start up to ``waypoints[0]``. Without a waypoint, the route to the
            end place; () = no end place.
        cost: cost of `path`.
        horizon: number N' of readings that the policy plans ahead, clipped to the budget.
        candidates: bounds on the value of each possible next place.
        reason: reason for a plan without a waypoint, or for a fallback; "" otherwise.
        heading: heading [rad] at the end of `path`, for a probe with a turning radius; None =
            unknown.
        routes: routes that the policy compared, chosen route first.
    """

    waypoints: tuple[int, ...]
    lower: float = 0.0
    upper: float = 0.0
    expanded: int = 1
    seconds: float = 0.0
    deadline_hit: bool = False
    path: tuple[int, ...] = ()
    cost: Cost = Cost(0.0, 0.0)
    horizon: int = 1
    candidates: tuple[CandidateValue, ...] = ()
    reason: str = ""
    heading: float | None = None
    routes: tuple[RouteValue, ...] = ()

    @property
    def waypoint(self) -> int | None:
        """Next place to observe; None = no place is left."""
        return self.waypoints[0] if self.waypoints else None

    @property
    def gap(self) -> float:
        """Difference ``upper - lower`` [the policy's unit]."""
        return self.upper - self.lower


@dataclass(frozen=True)
class PlanLimit:
    """Limits on the computation of one decision; None = no limit.

    The first reached limit ends the computation. A limit in `expansions` gives the same plan on
    every computer; a limit in `seconds` does not. With a limit of zero, a plan still has a legal
    waypoint.
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
    """Budget of a mission; None = no limit.

    Args:
        readings: number of newly observed places.
        metres: driven distance [m].
        seconds: driving time [s].
        end: index of the end place; None = the mission may end anywhere. Metres and seconds include
            the route to the end place.
    """

    readings: int | None = None
    metres: float | None = None
    seconds: float | None = None
    end: int | None = None

    def affords(self, cost: Cost, readings: int = 1) -> bool:
        """Return whether a move of `cost` and `readings` new places fit into the budget."""
        tolerance = 1e-6  # a micrometre, or a microsecond: clocks count in nanoseconds
        return (
            (self.readings is None or self.readings >= readings)
            and (self.metres is None or cost.metres <= self.metres + tolerance)
            and (self.seconds is None or cost.seconds <= self.seconds + tolerance)
        )

    def minus(self, *, readings: int = 0, cost: Cost = Cost(0.0, 0.0)) -> Budget:
        """Return the remaining budget after a move of `cost` and `readings` new places."""
        return Budget(
            None if self.readings is None else self.readings - readings,
            None if self.metres is None else self.metres - cost.metres,
            None if self.seconds is None else self.seconds - cost.seconds,
            self.end,
        )


@dataclass(frozen=True)
class Aim:
    """Map error at which a mission ends.

    Args:
        error: largest expected error in the sensor's unit.
        of: scope of the error, one of `OF`.
    """

    error: float
    of: str = MEAN


@dataclass(frozen=True)
class Rejection:
    """Rejected reading, with a reason code for counting and a message."""

    reading: Reading
    reason: str
    message: str


@dataclass(frozen=True)
class TellReport:
    """Result of `SensingLoop.tell`.

    Args:
        accepted: number of used readings.
        new_places: newly observed places, in order.
        rejected: rejected readings with their reasons.
        late: number of readings that were used although a newer reading had already been used.
    """

    accepted: int = 0
    new_places: tuple[int, ...] = ()
    rejected: tuple[Rejection, ...] = ()
    late: int = 0
