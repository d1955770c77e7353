"""Configuration of budgets, computing limits and the end place."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from gp_active_sensing.config import param
from gp_active_sensing.errors import ConfigError
from gp_active_sensing.types import MEAN, OF, Aim, Budget, PlanLimit

START = "start"
"""Value of `end` for the first place of the probe, unless a place has this name."""


@dataclass(frozen=True)
class SortieConfig:
    """Distance and time that one battery lasts; null = no such limit."""

    metres: float | None = param(
        None,
        help="range of one battery. The probe returns to probe.end (to its start if probe.end is "
        "null) before the battery is empty, and waits there for ~/resume",
        unit="m",
        above=0.0,
    )
    seconds: float | None = param(
        None, help="time that one battery lasts, including pauses", unit="s", above=0.0
    )


@dataclass(frozen=True)
class TripConfig:
    """Configuration of the end place, the speed and the battery of a probe."""

    end: int | str | None = param(
        None,
        help="place where the probe must be at the end of the mission, within the budget of metres "
        "and seconds: a name in quotes, an index, or start (where it began). null = anywhere",
    )
    speed: float | str = param(
        "limit",
        help="constant speed, or limit = the speed limits of the map",
        unit="m/s",
        above=0.0,
        high=1000.0,
        choices=("limit",),
    )
    sortie: SortieConfig = field(default_factory=SortieConfig)

    @property
    def own_speed(self) -> float | None:
        """Speed of the probe [m/s]; None = the speeds of the map."""
        return None if isinstance(self.speed, str) else float(self.speed)


@dataclass(frozen=True)
class DriveConfig:
    """Configuration of the motion of a probe."""

    turn_radius: float = param(
        0.0,
        help="smallest radius of a curve that the probe can drive. The way between two places "
        "then consists of arcs and straight lines. 0 = the probe turns on the spot. Not used on "
        "roads",
        unit="m",
        low=0.0,
        high=1e5,
    )


@dataclass(frozen=True)
class BudgetConfig:
    """Limits on the mission. The first limit that is reached ends the mission; null = no limit."""

    readings: int | None = param(None, help="largest number of places to observe", low=1)
    metres: float | None = param(None, help="largest distance driven", unit="m", above=0.0)
    seconds: float | None = param(None, help="largest driving time", unit="s", above=0.0)
    error: float | dict[str, float] | None = param(  # noqa: RUF009
        None,
        help="the mission ends when the error of the map is at most this value with 95 % "
        "probability. For several quantities: a mapping {name: error}; the mission ends when all "
        "errors are reached",
        unit="field unit",
        above=0.0,
    )
    error_of: str = param(
        MEAN,
        help="measure of error: root mean square over the places, weighted by map.weights; or the "
        "error of the worst place with a weight above 0",
        choices=OF,
    )

    def __post_init__(self) -> None:
        each = self.error if isinstance(self.error, dict) else {}
        for name, error in each.items():
            number = isinstance(error, int | float) and not isinstance(error, bool)
            if not number or not 0.0 < error < math.inf:
                msg = f"error.{name}: expected a number above 0, got {error!r}"
                raise ConfigError(msg)

    def aim(self, main: str = "") -> Aim | None:
        """Return the target error of the main quantity `main`; None = no target error."""
        error = self.error.get(main) if isinstance(self.error, dict) else self.error
        return None if error is None else Aim(error, self.error_of)

    def aims(self, main: str = "") -> dict[str, Aim]:
        """Return the target errors of the further quantities, keyed by the quantities' names."""
        each = self.error if isinstance(self.error, dict) else {}
        return {name: Aim(error, self.error_of) for name, error in each.items() if name != main}

    def budget(self) -> Budget:
        """Return the limits as a `Budget`."""
        return Budget(self.readings, self.metres, self.seconds)


@dataclass(frozen=True)
class LimitConfig:
    """Limit on the computing effort of one decision; null = no such limit.

    A scenario without this section has a limit of 500 expansions per decision.
    """

    seconds: float | None = param(
        None, help="largest computing time of a decision", unit="s", low=0.0
    )
    expansions: int | None = param(
        None,
        help="largest number of states that the planner's search expands for a decision. Unlike "
        "seconds, it gives the same plan on every machine",
        low=0,
    )

    def limit(self) -> PlanLimit:
        """Return the limits as a `PlanLimit`."""
        return PlanLimit(self.seconds, self.expansions)
