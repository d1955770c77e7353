"""Keep the budget for the way to the end place, and send a probe there at the end."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from gp_active_sensing.loop import SensingLoop
from gp_active_sensing.records.events import Event, Moved, ReturnBegun
from gp_active_sensing.types import Cost, Plan

if TYPE_CHECKING:
    from gp_active_sensing.mission.probe import ProbeState

__all__ = ["ReturnHome"]

logger = logging.getLogger(__name__)


class ReturnHome:
    """Keeps a probe able to get to its end place; used under the mission's lock.

    Args:
        probe: whose end place it is.
        journal: takes the events.
        from_start: the end place is the one where the probe stands at its first decision.
    """

    def __init__(
        self, probe: ProbeState, journal: Callable[[Event], None], *, from_start: bool
    ) -> None:
        self._probe = probe
        self._journal = journal
        self._from_start = from_start

    @property
    def needs_start(self) -> bool:
        """The end place is not known yet."""
        return self._from_start and self._probe.purse.end is None

    def note_start(self, at: int | None) -> None:
        """Record where the probe begins."""
        if self.needs_start:
            self._probe.purse = replace(self._probe.purse, end=at)

    def rest(self, at: int | None) -> Cost:
        """Return what is still to be driven to the end of the place where the probe is.

        On a road the next decision is taken when half a segment is driven; the other half is driven
        in any case, and charged with what follows.
        """
        here = self._probe.ingestion.here
        if here is None or at is None or here.place != at:
            return Cost(0.0, 0.0)
        loop = self._probe.loop
        metres, seconds = loop.topology.route(None, at, loop.belief.observed).cost
        if loop.speed is not None:
            seconds = metres / loop.speed
        return Cost((1.0 - here.fraction) * metres, (1.0 - here.fraction) * seconds)

    def snapshot(self, at: int | None, now_ns: int) -> SensingLoop:
        """Return a copy of the engine to take the next decision on.

        What was driven and waited since the last stage ended is taken off what is left, and what is
        still to be driven in any case.

        Args:
            at: where the probe stands.
            now_ns: time of the node's clock.
        """
        copy = self._probe.snapshot()
        owed = self._probe.stages.owed(now_ns, self._probe.ingestion.metres)
        copy.remaining = copy.remaining.minus(cost=owed.plus(self.rest(at)))
        return copy

    def begin(self, plan: Plan, at: int | None, now_ns: int) -> None:
        """Drive to the end place, since nothing more is chosen."""
        probe = self._probe
        self._journal(
            ReturnBegun(
                reason=plan.reason,
                path=plan.path,
                cost=plan.cost,
                at=at,
                where=probe.whereabouts(),
                stamp_ns=now_ns,
            )
        )
        probe.set_out_home(plan, now_ns)
        logger.info(
            "nothing more is chosen%s (%s); on the way to the end place %s, %.0f m",
            f" for {probe.name}" if probe.name else "",
            plan.reason,
            probe.loop.topology.names[plan.path[-1]],
            plan.cost.metres,
        )

    def arrive(self, now_ns: int) -> None:
        """Charge the way to the end place."""
        probe = self._probe
        probe.stages.home = None
        probe.home = True
        cost = probe.stages.charge(now_ns, probe.ingestion.metres)
        probe.purse = probe.purse.minus(cost=cost)
        self._journal(Moved(cost=cost, where=probe.whereabouts(), stamp_ns=now_ns))
