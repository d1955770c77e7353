"""What policies share that lay a route for all that is left, once, and follow it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from gp_active_sensing.belief import Belief
from gp_active_sensing.planning.base import PlanRequest, PolicyState
from gp_active_sensing.planning.capabilities import check_fit
from gp_active_sensing.planning.reachability import ReachableGoals, reachable_goals
from gp_active_sensing.planning.routes.follow import Course, nearest_plan, unread_of
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
    the budget is left, the nearest places follow. The state is the route (see `Course`).
    """

    crosses: ClassVar[bool] = True
    """The way to the next place may lead on through places that are known, past unknown ones."""
    lays_again: ClassVar[bool] = False
    """Another route is laid when nothing of the first one is left."""

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
            plan, course = course.next_plan(belief, topology, at, **options)
        if plan is None and not reach.reason and (course is None or self.lays_again):

            def spent() -> bool:
                return limit.seconds is not None and clock() - started >= limit.seconds

            unread = unread_of(belief, pending, unavailable)
            ask = Ask(belief, topology, at, reach, unread, tuple(pending), remaining, limit, spent)
            laying = self.lay(ask)
            plan, course = Course(laying.places).next_plan(belief, topology, at, **options)
        if plan is None:
            plan = nearest_plan(belief, topology, at, **options)
        state = None if course is None else course.to_state()
        if not plan.waypoints:
            return plan, state
        seconds = clock() - started
        return replace(
            plan, expanded=laying.expanded, deadline_hit=laying.stopped, seconds=seconds
        ), state
