"""What policies share that lay a route for all that is left, once, and follow it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from gp_active_sensing.belief import Belief
from gp_active_sensing.planning.base import PlanRequest, PolicyState
from gp_active_sensing.planning.capabilities import check_fit
from gp_active_sensing.planning.reachability import ReachableGoals, reachable_goals
from gp_active_sensing.planning.routes.follow import Course, nearest_plan, unread_of
from gp_active_sensing.planning.routes.passes import pass_of
from gp_active_sensing.topology.base import Topology
from gp_active_sensing.types import BoolArray, Budget, Plan, PlanLimit

__all__ = ["Ask", "Laying", "RoutePolicy"]


@dataclass(frozen=True)
class Ask:
    """What a route is to be laid for.

    Args:
        belief: what is known about the field.
        topology: where a probe may go.
        at: where it stands; None = nowhere yet.
        reach: where it can go with what is left.
        unread: (n,) places that may be chosen, and cost a reading when they are crossed.
        pending: places that other probes are sent to.
        remaining: of the budget, with where it has to end.
        limit: on the computing of this decision.
        spent: says whether the time of this decision is up.
        earlier: places that were read before a pass over the map, which is to go between them.
    """

    belief: Belief
    topology: Topology
    at: int | None
    reach: ReachableGoals
    unread: BoolArray
    pending: tuple[int, ...]
    remaining: Budget
    limit: PlanLimit
    spent: Callable[[], bool]
    earlier: tuple[int, ...] = ()


@dataclass(frozen=True)
class Laying:
    """A route that was laid.

    Args:
        places: in the order in which they are to be visited.
        expanded: how much was searched for it, the unit of `PlanLimit.expansions`.
        stopped: a limit ended the search.
    """

    places: tuple[int, ...]
    expanded: int = 1
    stopped: bool = False


class RoutePolicy(ABC):
    """A policy that lays a route at its first decision, and follows it whatever is read.

    A new one overrides `lay`. When nothing of the route can be visited any more and something of
    the budget is left, the nearest places follow. Where an error of the map ends the mission, each
    route is one pass (see `passes`) and another one follows. The state is the route (see `Course`).
    """

    crosses: ClassVar[bool] = True
    """The way to the next place may lead on through places that are known, past unknown ones."""
    lays_again: ClassVar[bool] = False
    """Another route is laid when nothing of the first one is left."""

    @property
    def in_passes(self) -> bool:
        """How dense a route is follows from the budget that it is laid for."""
        return True

    @abstractmethod
    def lay(self, ask: Ask) -> Laying:
        """Return the route to follow."""

    def plan(self, request: PlanRequest, state: PolicyState = None) -> tuple[Plan, PolicyState]:
        """Choose the next place; see `Policy.plan`."""
        belief, topology, at = request.belief, request.topology, request.at
        pending, limit, remaining = request.pending, request.limit, request.remaining
        unavailable, clock = request.unavailable, request.clock
        started = clock()
        check_fit(self, belief, topology)
        reach = reachable_goals(belief, topology, at, pending, unavailable, remaining)
        options: dict[str, Any] = {
            "pending": pending,
            "unavailable": unavailable,
            "remaining": remaining,
            "reach": reach,
        }
        course, plan, laying = Course.of(state), None, Laying(())
        if course is not None:
            plan, course = course.next_plan(
                belief, topology, at, waiting=request.waiting, **options
            )
        in_passes = request.aim is not None and self.in_passes
        if plan is None and not reach.reason and (course is None or self.lays_again or in_passes):

            def spent() -> bool:
                return limit.seconds is not None and clock() - started >= limit.seconds

            unread = unread_of(belief, pending, unavailable)
            ask = Ask(belief, topology, at, reach, unread, tuple(pending), remaining, limit, spent)
            if in_passes and not spent():
                next_one = pass_of(request, reach, unread, spent)
                earlier = tuple(np.flatnonzero(belief.observed).tolist())
                ask = replace(ask, remaining=next_one.budget, earlier=earlier)
                laying = Laying(next_one.stops)
            if not laying.places:
                laying = self.lay(ask)
            plan, course = Course(laying.places).next_plan(
                belief, topology, at, waiting=request.waiting, **options
            )
        if plan is None:
            plan = nearest_plan(belief, topology, at, **options)
        state = None if course is None else course.to_state()
        if not plan.waypoints:
            return plan, state
        seconds = clock() - started
        return replace(
            plan, expanded=laying.expanded, deadline_hit=laying.stopped, seconds=seconds
        ), state
