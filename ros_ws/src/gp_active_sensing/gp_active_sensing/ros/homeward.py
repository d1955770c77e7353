"""Where a mission has to end, and what of the budget is spoken for before the next decision."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from gp_active_sensing.events import home_event, moved_event
from gp_active_sensing.loop import SensingLoop
from gp_active_sensing.ros.intake import Intake
from gp_active_sensing.ros.stages import Stages
from gp_active_sensing.types import Cost, Plan

__all__ = ["Homeward"]

logger = logging.getLogger(__name__)


class Homeward:
    """Keeps a mission able to get to its end place; used under the mission's lock.

    Args:
        loop: the engine.
        intake: knows where the probe is.
        stages: add up what was driven.
        journal: takes the events.
        from_start: the end place is the one where the probe stands at the first decision.
    """

    def __init__(
        self,
        loop: SensingLoop,
        intake: Intake,
        stages: Stages,
        journal: Callable[[dict[str, Any]], None],
        *,
        from_start: bool,
    ) -> None:
        self._loop = loop
        self._intake = intake
        self._stages = stages
        self._journal = journal
        self._from_start = from_start

    @property
    def needs_start(self) -> bool:
        """The end place is not known yet."""
        return self._from_start and self._loop.remaining.end is None

    def note_start(self, at: int | None) -> None:
        """Take note of where the mission begins."""
        if self.needs_start:
            self._loop.remaining = replace(self._loop.remaining, end=at)

    def rest(self, at: int | None) -> Cost:
        """Return what is still to be driven to the end of the place where the probe is.

        On a road the next decision is taken when half a segment is driven; the other half is driven
        in any case, and charged with what follows.
        """
        here = self._intake.here
        if here is None or at is None or here.place != at:
            return Cost(0.0, 0.0)
        loop = self._loop
        metres, seconds = loop.topology.route(None, at, loop.belief.observed).cost
        if loop.speed is not None:
            seconds = metres / loop.speed
        return Cost((1.0 - here.fraction) * metres, (1.0 - here.fraction) * seconds)

    def snapshot(self, at: int | None) -> SensingLoop:
        """Return a copy of the engine to take the next decision on."""
        copy = self._loop.snapshot()
        copy.remaining = copy.remaining.minus(cost=self.rest(at))
        return copy

    def begin(self, plan: Plan, at: int | None, now_ns: int) -> str:
        """Drive to the end place, since nothing more is chosen; return why, in a sentence."""
        self._stages.home = plan
        self._intake.expected = frozenset(plan.path)
        self._journal(home_event(plan, stamp_ns=now_ns, at=at))
        logger.info(
            "nothing more is chosen (%s); on the way to the end place %s, %.0f m",
            plan.reason,
            self._loop.topology.names[plan.path[-1]],
            plan.cost.metres,
        )
        return f"{plan.reason}; on the way to the end place"

    def arrive(self, now_ns: int) -> None:
        """Charge the way to the end place."""
        self._stages.home = None
        cost = self._stages.charge(now_ns, self._intake.metres)
        self._loop.moved(cost)
        self._journal(moved_event(cost, stamp_ns=now_ns))
