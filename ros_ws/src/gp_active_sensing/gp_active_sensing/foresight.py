"""Plans made while the probe drives, so that the next waypoint is there when it arrives.

The reading that it will take is not known, so the predictive mixture at the goal is cut into cells
of about equal probability, as the planner does, and a plan is made for the median of each. On
arrival the reading picks its cell's plan; nothing is left to compute.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from gp_active_sensing.loop import SensingLoop
from gp_active_sensing.planning.bal.discretise import by_cells
from gp_active_sensing.planning.base import PolicyState
from gp_active_sensing.types import Cost, FloatArray, Plan, PlanLimit, Reading

__all__ = ["Foresight", "foresee", "take"]


@dataclass(frozen=True)
class Foresight:
    """What to do next, for every reading that the goal may give.

    Args:
        goal: the place under way to.
        decisions: decisions taken when it was made; it holds for the one after them.
        medians: (S,) reading that each plan was made for, ascending.
        cuts: (S-1,) readings between the cells.
        plans: (S,) what to do then.
        states: (S,) the policy state each plan leaves.
    """

    goal: int
    decisions: int
    medians: tuple[float, ...]
    cuts: tuple[float, ...]
    plans: tuple[Plan, ...]
    states: tuple[PolicyState, ...]

    def cell(self, value: float) -> int:
        """Return the number of the cell that a reading falls into."""
        return int(np.searchsorted(self.cuts, value))


def foresee(
    loop: SensingLoop,
    goal: int,
    *,
    cost: Cost = Cost(0.0, 0.0),
    samples: int = 5,
    limit: PlanLimit | None = None,
    cancelled: Callable[[], bool] = lambda: False,
) -> Foresight | None:
    """Plan the decision after the next reading, while the probe is under way to it.

    Args:
        loop: the engine, after the decision to go to `goal`; it is not changed.
        goal: where the probe is under way to.
        cost: what getting there still takes off the budget.
        samples: cells of the reading, S; each is planned for.
        limit: of the computing for each cell; None = the loop's own.
        cancelled: looked at between the cells.

    Returns:
        The plans, or None when cancelled.
    """
    medians, cuts = _cells(loop, goal, samples)
    plans, states = [], []
    for value in medians:
        if cancelled():
            return None
        trial = loop.snapshot()
        trial.moved(cost)
        trial.tell([Reading(0, goal, float(value))])
        plans.append(trial.ask(goal, limit=limit))
        states.append(trial.policy_state)
    return Foresight(
        goal,
        loop.decisions,
        tuple(medians.tolist()),
        tuple(cuts.tolist()),
        tuple(plans),
        tuple(states),
    )


def take(loop: SensingLoop, foresight: Foresight, value: float) -> Plan | None:
    """Take the plan foreseen for a reading of the goal as the loop's next decision.

    Args:
        loop: the engine; it has been told the reading and what else was read on the way.
        foresight: made on the way to where the probe stands.
        value: what was read there.

    Returns:
        The plan, or None when it does not fit any more (another decision was taken meanwhile, the
        waypoint has been read or set aside, the way costs more than is left): then ask.
    """
    if loop.decisions != foresight.decisions or not np.isfinite(value):
        return None
    if not loop.belief.observed[foresight.goal]:
        return None
    number = foresight.cell(value)
    plan, waypoint = foresight.plans[number], foresight.plans[number].waypoint
    if waypoint is None or loop.belief.observed[waypoint] or waypoint in loop.set_aside:
        return None
    if not loop.remaining.affords(plan.cost):
        return None
    loop.replay_decision(foresight.states[number])
    return replace(plan, seconds=0.0)


def _cells(loop: SensingLoop, goal: int, samples: int) -> tuple[FloatArray, FloatArray]:
    """Return the medians (S,) of cells of the next reading at the goal, and what lies halfway.

    In the sensor's unit; a transform keeps the order, so cells stay cells.
    """
    belief = loop.belief
    mean, variance = belief.marginals(np.array([goal]))
    noisy = variance + belief.noise_variance[:, None]
    found = by_cells(belief.weights, mean, noisy, np.zeros_like(mean), samples)
    medians = np.asarray(belief.transform.inverse(found.values[0]))
    return medians, 0.5 * (medians[1:] + medians[:-1])
