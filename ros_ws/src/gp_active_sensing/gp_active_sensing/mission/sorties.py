"""Track the range of a probe's battery in metres and seconds."""

from __future__ import annotations

import math

from gp_active_sensing.engine.config import SortieConfig
from gp_active_sensing.mission.stream_config import BatteryConfig
from gp_active_sensing.planning.budget import least_of
from gp_active_sensing.types import Budget, Cost, Plan

CHANGING = "changes its battery"
"""Prefix of `ProbeState.gone` for a probe that waits for another battery."""
_MARGIN = 1.5
"""Expected relative excess of later drives over their plans, as a multiple of the past excess."""
_STEP = 0.005
"""Smallest change of the state of charge (0 to 1) that is recorded."""
_LEARNT = 0.03
"""The use per metre is estimated when at least this amount of charge (0 to 1) is used."""
_RECENT = 0.1
"""Amount of charge (0 to 1) over which the recent use per metre is estimated."""
_CHARGED = 0.1
"""Smallest rise of the state of charge (0 to 1) that indicates a new or recharged battery."""


class Sortie:
    """Range of a battery in metres and seconds; used under the mission's lock.

    Metres and seconds are counted from the battery change on, also during a pause. If drives have
    exceeded their plans, the range is divided by the expected ratio of later drives to their plans.
    """

    def __init__(self, whole: SortieConfig, battery: BatteryConfig) -> None:
        self.whole = Budget(None, whole.metres, whole.seconds)
        self.number = 1
        self.due = False
        """True if the battery must be changed at the end place."""
        self.waiting = False
        """True while the probe waits for another battery at the end place."""
        self.stages = 0
        """Number of drives to a place since the battery change."""
        self.level = math.nan
        """State of charge, 0 to 1; NaN = unknown."""
        self._reserve = battery.reserve
        self._spent = Cost(0.0, 0.0)
        self._counted: tuple[int, float] | None = None
        self._planned = self._driven = self._rest = Cost(0.0, 0.0)
        self._levels: list[tuple[float, float]] = []
        """State of charge and odometer value [m] in each record since the battery change."""
        self._per_metre = 1.0 / whole.metres if whole.metres else 0.0
        """Use of charge per metre; 0 = unknown."""

    @property
    def limited(self) -> bool:
        """True if the battery has a limit."""
        return self.whole != Budget() or not math.isnan(self.level)

    def begin(self, now_ns: int, metres: float) -> None:
        """Start the counting at a time and an odometer value [m], unless it has started already."""
        self._counted = self._counted or (now_ns, metres)

    def count(self, now_ns: int, metres: float) -> None:
        """Reduce the range by the distance and the time since the last call."""
        if self._counted is not None:
            then_ns, then = self._counted
            passed = Cost(max(0.0, metres - then), max(0.0, 1e-9 * (now_ns - then_ns)))
            self._spent, self._counted = self._spent.plus(passed), (now_ns, metres)

    def skip(self, step_ns: int) -> None:
        """Exclude a jump of the node's clock [ns] from the counted time."""
        if self._counted is not None:
            self._counted = self._counted[0] + step_ns, self._counted[1]

    def note_drive(self, plan: Plan, driven: Cost, rest: Cost) -> None:
        """Record the planned, driven and remaining cost of a drive."""
        self.stages += bool(plan.waypoints)
        self._planned, self._driven = self._planned.plus(plan.cost), self._driven.plus(driven)
        self._rest = rest

    def limit(self, budget: Budget) -> Budget:
        """Return the budget, limited to the range of this sortie."""
        left = self.whole.minus(cost=self._spent)
        return least_of(self._stretched(left, self._by_charge), budget)

    def fresh(self) -> Budget:
        """Return the metres and seconds that may be planned with a full battery."""
        charge = (1.0 - self._reserve) / self._per_metre if self._per_metre else math.inf
        return self._stretched(self.whole, math.inf if math.isnan(self.level) else charge)

    def _stretched(self, left: Budget, charge: float) -> Budget:
        """Return the metres and seconds that may be planned with a remaining budget `left`.

        `charge` is the range that the battery's charge allows [m]. The result is less than `left`
        if drives have exceeded their plans.
        """
        if math.isfinite(charge):
            left = least_of(Budget(metres=charge), left)
        metres = _ratio(self._driven.metres, self._planned.metres - self._rest.metres)
        seconds = _ratio(self._driven.seconds, self._planned.seconds - self._rest.seconds)
        return Budget(
            None,
            None if left.metres is None else left.metres / metres,
            None if left.seconds is None else left.seconds / seconds,
        )

    @property
    def _by_charge(self) -> float:
        """Range until the charge falls to the reserve [m]; inf = unknown."""
        if not self._levels or not self._per_metre:
            return math.inf
        level, then = self._levels[-1]
        since = 0.0 if self._counted is None else self._counted[1] - then
        return max(0.0, level - self._reserve) / self._per_metre - since

    def is_news(self, level: float) -> bool:
        """Return whether a state of charge differs from the last record by `_STEP` or more."""
        return math.isfinite(level) and not abs(level - self.level) < _STEP

    def note_level(self, level: float, metres: float) -> None:
        """Record the state of charge at an odometer value [m]; estimate the charge per metre."""
        if self._levels and level > self._levels[-1][0] + _CHARGED:
            self._levels = []
        self.level = level
        self._levels.append((level, metres))
        first = self._levels[0]
        if first[0] - level >= _LEARNT and metres > first[1]:
            recent = next(
                was for was in reversed(self._levels) if was[0] >= min(level + _RECENT, first[0])
            )
            self._per_metre = max(
                (was[0] - level) / (metres - was[1]) for was in (first, recent) if metres > was[1]
            )

    def change(self, number: int) -> None:
        """Begin sortie `number` with another battery."""
        self.number, self.stages = number, 0
        self.due = self.waiting = False
        self._spent, self._counted, self._levels = Cost(0.0, 0.0), None, []
        if not math.isnan(self.level):
            self.level = 1.0  # unknown until the next message


def _ratio(driven: float, planned: float) -> float:
    """Return the expected ratio of a drive's cost to its planned cost; it is at least 1."""
    if planned <= 0.0 or driven <= (1.0 + 1e-6) * planned:
        return 1.0
    return 1.0 + _MARGIN * (driven / planned - 1.0)
