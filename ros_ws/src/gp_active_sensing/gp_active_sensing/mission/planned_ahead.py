"""Keep the plans made ahead for a probe, and pick one when its reading has come."""

from __future__ import annotations

from gp_active_sensing.loop import SensingLoop
from gp_active_sensing.mission.plan_ahead import ContingentPlans, take
from gp_active_sensing.mission.requests import PlanAheadRequest
from gp_active_sensing.types import Budget, Cost, Plan

__all__ = ["PlannedAhead"]


class PlannedAhead:
    """What a mission knows of its next decision; used under the mission's lock.

    Args:
        samples: cells of the reading, each planned for; 0 = nothing is planned ahead.
    """

    def __init__(self, samples: int = 0) -> None:
        self.samples = samples
        self.foresight: ContingentPlans | None = None
        self._number = 0
        self._made_for: tuple[int, int] | None = None

    @property
    def progress(self) -> str:
        """How many cells are planned for, "" when nothing is planned ahead now."""
        foresight = self.foresight  # once: another thread may change it in between
        if self._made_for is None:
            return ""
        return f"{0 if foresight is None else foresight.ready} of {self.samples}"

    def job(
        self,
        loop: SensingLoop,
        plan: Plan | None,
        noise_variance: float | None,
        left: Budget,
        probe: str = "",
    ) -> PlanAheadRequest | None:
        """Return what to plan ahead now, None when that is nothing or on its way.

        A place observed on the way makes what was foreseen worthless: it is begun again.

        Args:
            loop: the mission's engine.
            plan: being carried out.
            noise_variance: what the readings bring along.
            left: of the probe's budget.
            probe: its name.
        """
        if not self.samples or plan is None:
            return None
        if left.readings is not None and left.readings <= 1:
            return None  # the next reading is the last
        key = (loop.decisions, int(loop.belief.observed.sum()))
        if key == self._made_for:
            return None
        self.drop()
        self._made_for = key
        number = self._number
        copy = loop.snapshot()
        copy.remaining = left
        return PlanAheadRequest(
            copy,
            plan,
            number,
            self.samples,
            noise_variance,
            lambda: self._number != number,
            probe,
        )

    def drop(self) -> None:
        """Forget what was foreseen, and cancel what is being planned."""
        self._number += 1
        self._made_for = None
        self.foresight = None

    def offer(self, job: PlanAheadRequest, foresight: ContingentPlans) -> None:
        """Record what has been foreseen so far, if it is still wanted."""
        if job.number == self._number:
            self.foresight = foresight

    def take(
        self,
        loop: SensingLoop,
        value: float | None,
        left: Budget,
        rest: Cost = Cost(0.0, 0.0),
        probe: str = "",
    ) -> tuple[Plan, float] | None:
        """Take the decision that was foreseen for a reading of the goal, once.

        Args:
            loop: the mission's engine.
            value: what was read there.
            left: of the probe's budget.
            rest: what is still to be driven to the end of the place.
            probe: its name.

        Returns:
            The plan and the reading that it was made for; None when it has to be computed.
        """
        foresight = self.foresight
        self.drop()
        if foresight is None or value is None:
            return None
        plan = take(loop, foresight, value, rest=rest, remaining=left, probe=probe)
        return None if plan is None else (plan, foresight.medians[foresight.cell(value)])
