"""Plan the next decision while the probe drives, so that the waypoint is ready on arrival.

The reading that it will take is not known, so the predictive mixture at the goal is cut into cells
of about equal probability, as the planner does, and a plan is made for the median of each. On
arrival the reading picks its cell's plan; nothing is left to compute.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, replace

import numpy as np

from gp_active_sensing.errors import ReadingError
from gp_active_sensing.loop import SensingLoop
from gp_active_sensing.mission.requests import PlanAheadRequest
from gp_active_sensing.planning.bal.discretise import by_cells
from gp_active_sensing.types import Budget, Cost, Plan, PlanLimit
from gp_active_sensing.util.ties import RELATIVE

_EXPECTED = 3.0
"""A reading this many standard deviations off was not foreseen."""
_LONG = 1e9
"""Seconds that never pass: with a limit in seconds a policy looks at the clock, and so can be
interrupted."""
_kept: ContextVar[list[logging.LogRecord] | None] = ContextVar("kept", default=None)


class DeferredLogs(logging.Filter):
    """Log filter for a driver's handlers: holds messages about assumed readings.

    Messages of the plan that is used are released with it.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Keep the record for later while a reading is supposed; let it pass otherwise."""
        kept = _kept.get()
        if kept is None:
            return True
        if record not in kept:  # another handler's filter was first
            kept.append(record)
        return False


@dataclass(frozen=True)
class ContingentPlan:
    """Plan for one reading.

    Args:
        plan: the decision.
        after: the engine after it, without the belief.
        said: what was logged on the way to it.
    """

    plan: Plan
    after: SensingLoop
    log_records: tuple[logging.LogRecord, ...] = ()


@dataclass(frozen=True)
class ContingentPlans:
    """Plans for every reading that the goal may give.

    Args:
        goal: the place under way to.
        decisions: decisions taken when it was made; it holds for the one after them.
        observed: places observed when it was made.
        medians: (S,) reading that each plan is made for, ascending.
        cuts: (S-1,) readings between the cells.
        expected: lowest and highest reading that it is meant for.
        cells: (S,) what to do then; None where that is not known (yet).
    """

    goal: int
    decisions: int
    observed: int
    medians: tuple[float, ...]
    cuts: tuple[float, ...]
    expected: tuple[float, float]
    cells: tuple[ContingentPlan | None, ...]

    def cell(self, value: float) -> int:
        """Return the number of the cell that a reading falls into."""
        return int(np.searchsorted(self.cuts, value))

    @property
    def plans(self) -> tuple[Plan | None, ...]:
        """(S,) the plans."""
        return tuple(None if cell is None else cell.plan for cell in self.cells)

    @property
    def ready(self) -> int:
        """Number of cells with a plan."""
        return sum(cell is not None for cell in self.cells)


class _Cancelled(Exception):
    """The plan is not wanted any more."""


def foresee_by_cell(
    loop: SensingLoop,
    goal: int,
    *,
    cost: Cost = Cost(0.0, 0.0),
    samples: int = 5,
    noise_variance: float | None = None,
    limit: PlanLimit | None = None,
    cancelled: Callable[[], bool] = lambda: False,
    heading: float | None = None,
    only: float | None = None,
) -> Iterator[ContingentPlans]:
    """Plan the decision after the next reading, while the probe is under way to it.

    Args:
        loop: the engine, after the decision to go to `goal`; it is not changed.
        goal: where the probe is under way to.
        cost: what getting there still takes off the budget.
        samples: cells of the reading, S; each is planned for.
        noise_variance: of the reading to come; None = the belief's own.
        limit: of the computing for each cell; None = the loop's own.
        cancelled: asked whenever the policy looks at its clock, and between the cells.
        heading: on arriving at the goal [rad]; None = not known.
        only: plan for the cell whose median this is (rounding aside); None = for all.

    Yields:
        The plans there are after each cell; none after it was cancelled.
    """
    limit = loop.limit if limit is None else limit
    if limit.seconds is None:
        limit = replace(limit, seconds=_LONG)
    found = _cells(loop, goal, samples)
    slack = RELATIVE * max(map(abs, found.expected))
    for number, value in enumerate(found.medians):
        if cancelled():
            return
        if only is not None and not math.isclose(value, only, rel_tol=RELATIVE, abs_tol=slack):
            continue
        try:
            cell = _plan_for(loop, goal, value, cost, noise_variance, limit, cancelled, heading)
        except _Cancelled:
            return
        cells = (*found.cells[:number], cell, *found.cells[number + 1 :])
        found = replace(found, cells=cells)
        yield found


def take(
    loop: SensingLoop,
    contingent: ContingentPlans,
    value: float,
    *,
    rest: Cost = Cost(0.0, 0.0),
    remaining: Budget | None = None,
    probe: str = "",
) -> Plan | None:
    """Take the plan foreseen for a reading of the goal as the loop's next decision.

    Args:
        loop: the engine; it has the reading and what else was read on the way.
        contingent: made on the way to where the probe stands.
        value: what was read there.
        rest: what is still to be driven before the plan's way begins.
        remaining: what is left for its probe; None = the loop's own.
        probe: its name, where there are several.

    Returns:
        The plan, or None when there is none for this reading, or none that fits any more (another
        decision was taken meanwhile, another place observed, the waypoint set aside, the way costs
        more than is left): then ask.
    """
    observed = loop.belief.observed
    if loop.decisions != contingent.decisions or not observed[contingent.goal]:
        return None
    if int(observed.sum()) != contingent.observed + 1:
        return None
    low, high = contingent.expected
    if not low <= value <= high:  # NaN is not
        return None
    cell = contingent.cells[contingent.cell(value)]
    if cell is None or cell.plan.waypoint is None:
        return None
    waypoint = cell.plan.waypoint
    if observed[waypoint] or waypoint in loop.unavailable:
        return None
    if not loop.fits(cell.plan, after=rest, remaining=remaining) or loop.good_enough():
        return None
    loop.adopt(cell.after, probe)
    for record in cell.log_records:
        logging.getLogger(record.name).handle(record)
    return cell.plan


def _cells(loop: SensingLoop, goal: int, samples: int) -> ContingentPlans:
    """Return empty contingent plans: cells of the next reading at the goal, by their medians.

    In the sensor's unit; a transform keeps the order, so cells stay cells.
    """
    belief = loop.belief
    weights = belief.weights
    mean, variance = belief.marginals(np.array([goal]))
    noisy = variance + belief.noise_variance[:, None]
    found = by_cells(weights, mean, noisy, np.zeros_like(mean), samples)
    centre = float(weights @ mean[:, 0])
    spread = math.sqrt(float(weights @ (noisy[:, 0] + (mean[:, 0] - centre) ** 2)))
    ends = np.array([centre - _EXPECTED * spread, centre + _EXPECTED * spread])
    inverse = belief.transform.inverse
    medians = np.asarray(inverse(found.values[0]))
    low, high = np.asarray(inverse(ends)).tolist()
    return ContingentPlans(
        goal,
        loop.decisions,
        int(belief.observed.sum()),
        tuple(medians.tolist()),
        tuple((0.5 * (medians[1:] + medians[:-1])).tolist()),
        (low, high),
        (None,) * samples,
    )


def _plan_for(
    loop: SensingLoop,
    goal: int,
    value: float,
    cost: Cost,
    noise_variance: float | None,
    limit: PlanLimit,
    cancelled: Callable[[], bool],
    heading: float | None,
) -> ContingentPlan | None:
    """Return the decision after a reading; None when no sensor can give such a reading."""

    def clock() -> float:
        if cancelled():
            raise _Cancelled
        return loop.clock()

    kept: list[logging.LogRecord] = []
    token = _kept.set(kept)
    try:
        trial = loop.snapshot(clock)
        then = trial.belief.seconds + cost.seconds
        trial.belief.observe(goal, value, noise_variance, seconds=then)
        trial.belief.adapt()
        for further in (each.belief for each in trial.quantities.values()):
            if further.settled and not further.observed[goal]:  # it is read with the main one
                expected = float(further.predict(np.array([goal]))[0][0])
                further.observe(goal, expected, seconds=then)
        trial.set_aside.discard(goal)
        trial.remaining = trial.remaining.minus(readings=1, cost=cost)
        if trial.sorties is not None:
            trial.sorties = trial.sorties.minus(readings=1, cost=cost)
        plan = trial.ask(goal, limit=limit, heading=heading)
    except ReadingError:
        return None
    finally:
        _kept.reset(token)
    # Its copies are not needed any more, and large.
    trial.belief, trial.quantities = loop.belief, loop.quantities
    return ContingentPlan(plan, trial, tuple(kept))


class PlannedAhead:
    """State of a mission's next decision; used under the mission's lock.

    Args:
        samples: cells of the reading, each planned for; 0 = nothing is planned ahead.
    """

    def __init__(self, samples: int = 0) -> None:
        self.samples = samples
        self.contingent: ContingentPlans | None = None
        self._number = 0
        self._made_for: tuple[int, int] | None = None

    @property
    def progress(self) -> str:
        """How many cells are planned for, "" when nothing is planned ahead now."""
        contingent = self.contingent  # once: another thread may change it in between
        if self._made_for is None:
            return ""
        return f"{0 if contingent is None else contingent.ready} of {self.samples}"

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
        self.contingent = None

    def offer(self, job: PlanAheadRequest, contingent: ContingentPlans) -> None:
        """Record what has been foreseen so far, if it is still wanted."""
        if job.number == self._number:
            self.contingent = contingent

    def take(
        self,
        loop: SensingLoop,
        value: float | None,
        left: Budget,
        rest: Cost = Cost(0.0, 0.0),
        probe: str = "",
    ) -> tuple[Plan, float] | None:
        """Take the decision that was foreseen for a reading of the goal, once.

        Returns:
            The plan and the reading that it was made for; None when it has to be computed.
        """
        contingent = self.contingent
        self.drop()
        if contingent is None or value is None:
            return None
        plan = take(loop, contingent, value, rest=rest, remaining=left, probe=probe)
        return None if plan is None else (plan, contingent.medians[contingent.cell(value)])
