"""Log a mission's remaining budget, and its decisions with their reasons."""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Iterator

import numpy as np

from gp_active_sensing.mission.mission import Mission
from gp_active_sensing.types import FloatArray, Plan
from gp_active_sensing.util.wording import brief, distance

logger = logging.getLogger(__name__)


class MissionLog:
    """Logger of decisions and remaining budget; may be used from several threads."""

    def __init__(self, mission: Mission, policy: str, unit: str = "") -> None:
        from gp_active_sensing.planning import explain as sentences

        self._mission = mission
        self._policy = policy
        self._sentences = sentences
        self._unit = f" {unit}" if unit else ""
        self.value_unit = sentences.value_unit(policy)
        """Unit of a decision's value; "" = unknown."""
        self._tenths: dict[str, int] = {}
        self._decided: list[tuple[str, int, Plan]] = []
        """Probe, stage number and plan of each decision that is not logged yet."""
        self._uncertainty = ""
        self._lock = threading.Lock()

    def decision(self, probe: str, plan: Plan) -> None:
        """Queue a decision until `decisions` logs it; a plan to the end place is not queued."""
        if plan.waypoints:
            with self._lock:
                number = self._mission.probes[probe].stages.number
                self._decided.append((probe, number, plan))

    def decisions(
        self, std: FloatArray, weights: FloatArray | None = None, *, known: bool = True
    ) -> None:
        """Log each queued decision once the earlier stages of the same probe are recorded.

        Args:
            std: (n,) standard deviation of the field at each place, in the unit of the readings.
            weights: (n,) weights of the places; None = the weights of the mission's map.
            known: False while the scale of the readings is unknown; `std` is then not logged.
        """
        with self._lock:
            ready = [decided for decided in self._decided if self._follows(*decided[:2])]
            self._decided = [decided for decided in self._decided if decided not in ready]
            for probe, number, plan in ready:
                self._log(probe, number, plan, self._uncertainty_now(std, weights) if known else "")

    def _follows(self, probe: str, number: int) -> bool:
        """Return whether all stages before `number` are recorded or a later decision is queued."""
        left = self._mission.probes[probe].stages.unrecorded
        later = any(name == probe and n > number for name, n, _ in self._decided)
        return later or all(stage.number >= number for stage in left)

    def _log(self, probe: str, number: int, plan: Plan, uncertainty: str) -> None:
        names, words = self._mission.loop.topology.names, self._sentences
        whose = f" of {probe}" if probe else ""
        place = words.called(names[plan.waypoints[0]])
        metres = plan.cost.metres
        way = distance(metres) if metres > 0.0 else "here"
        logger.info("stage %d%s: next: %s (%s)%s", number, whose, place, way, uncertainty)
        why = words.why(plan, names, self._policy)
        logger.info("stage %d%s: %s", number, whose, f"{why[0].lower()}{why[1:]}")

    def _uncertainty_now(self, std: FloatArray, weights: FloatArray | None) -> str:
        """Describe the root of the map's mean variance, now and at the last call."""
        with np.errstate(over="ignore", invalid="ignore"):
            if weights is None:
                weights = self._mission.loop.topology.weights
            now = float(np.sqrt(np.average(np.square(std), weights=weights)))
        if not math.isfinite(now):
            return ""
        before, self._uncertainty = self._uncertainty, brief(now)
        change = f"{before} → " if before not in ("", self._uncertainty) else ""
        return f"; expected error {change}{self._uncertainty}{self._unit}"

    def budget(self) -> None:
        """Log the remaining budget each time another tenth of the total is spent."""
        for what, unit, left, whole in budget_left(self._mission):
            tenth = max(0, math.ceil(10.0 * left / whole - 1e-9))
            before = self._tenths.get(what)
            self._tenths[what] = tenth
            if before is not None and tenth != before:
                share = max(0.0, left / whole)
                logger.info(
                    "%.0f %% left of the %s: %.4g of %.4g%s", 100 * share, what, left, whole, unit
                )


def budget_left(mission: Mission) -> Iterator[tuple[str, str, float, float]]:
    """Yield the name, unit, remaining amount and total of each limit of the budget."""
    whole = mission.budget
    if whole.readings is not None:
        readings = mission.loop.remaining.readings
        yield "readings", "", float(readings or 0), float(whole.readings)
    for name, probe in mission.probes.items():
        whose = f" of {name}" if name else ""
        for what, unit, left, total in (
            ("metres", " m", probe.own_budget.metres, whole.metres),
            ("seconds", " s", probe.own_budget.seconds, whole.seconds),
        ):
            if left is not None and total is not None:
                yield f"{what}{whose}", unit, left, total
