"""What a mission says in the log: why a place was chosen, and how much of the budget is left."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator

from gp_active_sensing.mission.mission import Mission
from gp_active_sensing.types import Plan

__all__ = ["Telling", "budget_left"]

logger = logging.getLogger(__name__)


class Telling:
    """Says each thing once.

    Args:
        mission: what it is about.
        policy: its name, for the words.
    """

    def __init__(self, mission: Mission, policy: str) -> None:
        from gp_active_sensing.report import sentences  # its page is large, and made later anyway

        self._mission = mission
        self._policy = policy
        self._sentences = sentences
        self._tenths: dict[str, int] = {}

    def decision(self, probe: str, plan: Plan) -> None:
        """Say why a place was chosen; of a plan that leads home the mission says it."""
        if not plan.waypoints:
            return
        words = self._sentences
        unit = words.value_unit(self._policy)
        why = words.why(plan, self._mission.loop.topology.names, self._policy, unit)
        number = self._mission.probes[probe].stages.number
        whose = f" of {probe}" if probe else ""
        logger.info("stage %d%s: %s", number, whose, f"{why[0].lower()}{why[1:]}")

    def budget(self) -> None:
        """Say how much is left, whenever another tenth of it is spent."""
        for what, unit, left, whole in budget_left(self._mission):
            tenth = max(0, math.ceil(10.0 * left / whole - 1e-9))
            before = self._tenths.get(what)
            self._tenths[what] = tenth
            if before is not None and tenth != before:
                share = max(0.0, left / whole)
                logger.info(
                    "%.0f %% left of the %s: %.6g of %.6g%s", 100 * share, what, left, whole, unit
                )


def budget_left(mission: Mission) -> Iterator[tuple[str, str, float, float]]:
    """Yield what the budget limits, its unit, what is left of it and what it was in all."""
    whole = mission.budget
    if whole.readings is not None:
        readings = mission.loop.remaining.readings
        yield "readings", "", float(readings or 0), float(whole.readings)
    for name, probe in mission.probes.items():
        whose = f" of {name}" if name else ""
        for what, unit, left, total in (
            ("metres", " m", probe.purse.metres, whole.metres),
            ("seconds", " s", probe.purse.seconds, whole.seconds),
        ):
            if left is not None and total is not None:
                yield f"{what}{whose}", unit, left, total
