"""Estimate the budget that events missing from a journal may have cost.

Each decision says what was left then, so that what was missing before it is known again. What is
missing after the last one may have cost a reading each, and all that was driven since: so much is
taken off the budget, which is never exceeded.
"""

from __future__ import annotations

import logging
from dataclasses import replace

from gp_active_sensing.mission.mission import Mission
from gp_active_sensing.mission.probe import ProbeState
from gp_active_sensing.records.events import DecisionTaken, JournalGap
from gp_active_sensing.types import Cost

__all__ = ["JournalGaps"]

logger = logging.getLogger(__name__)


class JournalGaps:
    """Keeps the books of a mission that is restored from a journal with gaps.

    Args:
        mission: as far as it is restored.
    """

    def __init__(self, mission: Mission) -> None:
        self._mission = mission
        self.found = False
        """There was a gap so far."""
        self._readings = 0
        """That may have been used and are not known, since the last decision."""
        self._unsettled: set[str] = set()
        """Probes of which it is not known what they drove."""

    def note(self, event: JournalGap) -> None:
        """Record a gap."""
        missing = event.failures
        self.found = True
        self._readings += min(missing, missing if event.readings is None else event.readings)
        self._unsettled = set(self._mission.probes)
        logger.error(
            "%d events are not in the journal (%s): the mission goes on without them, readings "
            "that were used may be missing",
            missing,
            "damaged" if event.damaged else "they could not be written: a full disk?",
        )

    def settle(self, probe: ProbeState, event: DecisionTaken) -> None:
        """Record what a decision says was left when it was taken, and that it was taken."""
        mission, loop = self._mission, self._mission.loop
        stage = event.stage
        if stage <= mission.decisions.stage:
            msg = f"expected stage {mission.decisions.stage + 1} or later"
            raise ValueError(msg)
        loop.decisions += stage - mission.decisions.stage - 1
        if mission.state != "running":  # no decision is taken otherwise
            mission.state, mission.reason = "running", ""
        if (left := event.left) is None:
            msg = "it does not say what was left of the budget"
            raise ValueError(msg)
        if left.readings is not None and loop.remaining.readings is not None:
            loop.spent += max(0, loop.remaining.readings - left.readings)
        loop.remaining = replace(loop.remaining, readings=left.readings)
        metres = (probe.purse.metres or 0.0) - (left.metres or 0.0)
        seconds = (probe.purse.seconds or 0.0) - (left.seconds or 0.0)
        unknown = Cost(max(0.0, metres), max(0.0, seconds))
        probe.stages.driven = probe.stages.driven.plus(unknown)
        probe.purse = replace(probe.purse, metres=left.metres, seconds=left.seconds)
        self._readings = 0
        self._unsettled.discard(probe.name)

    def cost(self, probe: ProbeState, cost: Cost, now_ns: int) -> Cost:
        """Return what a drive may have cost at most, with those before it that are not known."""
        if probe.name not in self._unsettled:
            return cost
        owed = probe.stages.owed(now_ns, probe.ingestion.metres)
        return Cost(max(cost.metres, owed.metres), max(cost.seconds, owed.seconds))

    def finish(self) -> None:
        """Take off the budget what may have been read after the last decision."""
        loop, readings = self._mission.loop, self._readings
        if not readings or loop.remaining.readings is None:
            return
        readings = min(readings, loop.remaining.readings)
        loop.remaining = replace(loop.remaining, readings=loop.remaining.readings - readings)
        loop.spent += readings
        logger.error(
            "%d readings are taken off the budget: so many may have been used and are not known",
            readings,
        )
