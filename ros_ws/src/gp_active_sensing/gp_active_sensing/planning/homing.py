"""The way to the end place: check that it exists, and take it when nothing more is chosen."""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np

from gp_active_sensing.errors import PlanningError
from gp_active_sensing.planning.budget import BudgetConstraint, in_metres
from gp_active_sensing.topology.base import Topology
from gp_active_sensing.types import Budget, Cost, Plan

__all__ = ["check_end", "with_way_home"]

logger = logging.getLogger(__name__)


def check_end(
    topology: Topology, budget: Budget, at: int | None, *, speed: float | None = None
) -> None:
    """Refuse a mission that cannot end where it has to.

    Args:
        topology: where the probe may go.
        budget: of the whole mission, with its end place.
        at: where the probe stands; None = nowhere yet: some place must do as the first one.
        speed: the probe's own speed [m/s], by which seconds are counted; None = the map's.

    Raises:
        PlanningError: there is no way to the end place, or none within the budget.
    """
    if budget.end is None:
        return
    allowance = BudgetConstraint(topology, in_metres(budget, speed))
    name, where = topology.names[budget.end], f"map {topology.name!r}"
    if at is None:
        nothing = np.zeros(topology.n, dtype=np.bool_)
        if not allowance.drives(None, nothing):
            msg = (
                f"end: no place of {where} can be observed first and left for {name!r} within "
                "the budget; raise the budget, or choose another end place"
            )
            raise PlanningError(msg)
        return
    home = allowance.way_home(at)
    if home is None:
        msg = (
            f"end: {name!r} cannot be reached from {topology.names[at]!r} on {where}; choose "
            "another end place, or another start"
        )
        raise PlanningError(msg)
    if not allowance.allows(at, Cost(0.0, 0.0), reads=0):
        metres, seconds = home.cost if speed is None else (home.cost[0], home.cost[0] / speed)
        have = [f"{budget.metres:.6g} m"] if budget.metres is not None else []
        have += [f"{budget.seconds:.6g} s"] if budget.seconds is not None else []
        msg = (
            f"end: the way from {topology.names[at]!r} to {name!r} takes {metres:.6g} m and "
            f"{seconds:.6g} s, {' and '.join(have)} are left; raise the budget, or choose a nearer "
            "end place"
        )
        raise PlanningError(msg)


def with_way_home(plan: Plan, topology: Topology, at: int, remaining: Budget) -> Plan:
    """Return a last plan with the way to where the mission has to end.

    Args:
        plan: without a waypoint.
        topology: the map.
        at: where the probe stands.
        remaining: what is left, with the end place; in metres where the probe has its own speed.
    """
    if remaining.end is None:
        return plan
    end = topology.names[remaining.end]
    home = BudgetConstraint(topology, remaining).way_home(at)
    if home is None:  # it was driven elsewhere than planned
        logger.warning("the end place %r cannot be reached from %r", end, topology.names[at])
        return replace(plan, reason=f"{plan.reason}; the end place {end!r} cannot be reached")
    if not remaining.affords(home.cost, readings=0):
        logger.warning(
            "the way to the end place %r takes %.0f m and %.0f s, more than is left of the budget: "
            "something took longer than planned",
            end,
            *home.cost,
        )
    return replace(plan, path=home.path, cost=home.cost)
