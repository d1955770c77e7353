"""Routes whose cost with curves fits into the budget, for probes with a turning radius.

A policy plans a route of straight lines, because the headings are known only for a whole route.
If the route with its curves exceeds the budget, the policy plans again with a smaller budget.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from gp_active_sensing.planning.base import Policy, PolicyState
from gp_active_sensing.planning.budget import BudgetConstraint
from gp_active_sensing.planning.request import PlanRequest
from gp_active_sensing.planning.routes.distances import unit_of
from gp_active_sensing.planning.routes.follow import trip_of
from gp_active_sensing.planning.turning import Turning, turning
from gp_active_sensing.types import Budget, Plan

_ROUNDS = 4
"""Largest number of times that a policy plans for one decision."""
_ROOM = 0.99
"""Safety factor by which the reduced budget is multiplied before a policy plans again."""


def plan_with_curves(
    policy: Policy, request: PlanRequest, state: PolicyState
) -> tuple[Plan, PolicyState]:
    """Return a policy's plan. The policy plans again if curves make its route too expensive."""
    view, whole = request.topology, request.remaining
    limited = whole.metres is not None or whole.seconds is not None
    found = policy.plan(request, state)
    if not isinstance(view, Turning) or not limited:
        return found
    share = 1.0
    for _ in range(_ROUNDS - 1):
        over = _over(view, request, found[0]) if len(found[0].waypoints) > 1 else 0.0
        if over <= 1.0:
            break
        share *= _ROOM / over
        shorter = policy.plan(replace(request, remaining=_part(whole, share)), state)
        if not shorter[0].waypoints:  # no shorter route is possible
            break
        found = shorter
    return found


def _part(budget: Budget, share: float) -> Budget:
    return replace(
        budget,
        metres=None if budget.metres is None else share * budget.metres,
        seconds=None if budget.seconds is None else share * budget.seconds,
    )


def _over(view: Turning, request: PlanRequest, plan: Plan) -> float:
    """Return the cost of a route with curves and of the drive to the end [parts of the budget]."""
    whole = request.remaining
    nothing = np.zeros(view.n, dtype=np.bool_)
    trip = trip_of(view.straight, plan.waypoints, request.at, nothing, unit_of(whole))
    if trip is None:
        return 1.0
    cost, heading = view.drive(trip.path)
    last = plan.waypoints[-1]
    there = turning(view.straight, view.turn_radius, last, heading)
    if whole.end is not None and (home := BudgetConstraint(there, whole).way_home(last)):
        cost = cost.plus(home.cost)
    limits = ((cost.metres, whole.metres), (cost.seconds, whole.seconds))
    parts = [spent / left for spent, left in limits if left]
    return max(parts, default=0.0) if all(map(math.isfinite, parts)) else 1.0
