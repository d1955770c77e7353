"""The contract of every policy: belief + topology -> Plan."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from gp_active_sensing.planning.budget import BudgetConstraint
from gp_active_sensing.types import (
    Aim,
    BoolArray,
    Budget,
    Clock,
    Cost,
    IntArray,
    Plan,
    PlanLimit,
    Route,
)

if TYPE_CHECKING:
    from gp_active_sensing.belief import Belief
    from gp_active_sensing.topology.base import Topology

__all__ = [
    "READINGS_SPENT",
    "BatchRequest",
    "Candidates",
    "PlanRequest",
    "Policy",
    "PolicyState",
    "candidates",
    "candidates_of",
    "no_plan",
]

READINGS_SPENT = "the budget of readings is spent"
"""Why nothing is chosen when no reading is left."""
PolicyState = Any
"""What a policy hands from one stage to the next: None, or JSON-serialisable data."""


@dataclass(frozen=True)
class PlanRequest:
    """What a policy is asked: the next place, from what is known, for what is left.

    Args:
        belief: what is known about the field; policies never change it.
        topology: where a probe may go.
        at: where the probe stands; None = nowhere yet.
        rng: source of randomness of this decision.
        pending: waypoints already given to other probes: planned as if observed (their variance is
            gone, their value is not known), never chosen.
        waiting: where other probes stand that are asked for next; None = nowhere yet.
        limit: limit on the computing of this decision.
        remaining: what is left of the mission's budget, and where it has to end; the horizon is
            clipped to it. `candidates` and `BudgetConstraint` keep it.
        unavailable: places not to be chosen but not observed either (set aside).
        aim: error of the map with which the mission is over, whatever is left of its budget; None =
            the budget alone ends it.
        clock: monotonic seconds, for `limit.seconds`.
    """

    belief: Belief
    topology: Topology
    at: int | None
    _: KW_ONLY
    rng: np.random.Generator
    pending: Collection[int] = ()
    waiting: Collection[int | None] = ()
    limit: PlanLimit = PlanLimit()
    remaining: Budget = Budget()
    unavailable: Collection[int] = ()
    aim: Aim | None = None
    clock: Clock = time.monotonic


@dataclass(frozen=True)
class BatchRequest:
    """What a policy for batches is asked: the next place of each of several probes, together.

    Args:
        belief: what is known about the field; policies never change it.
        topology: where probes may go.
        at: where each probe stands; None = nowhere yet.
        rng: source of randomness of this decision.
        pending: waypoints of probes that are on their way.
        limit: limit on the computing of this decision.
        remaining: of the budget that all of them draw on, as each of them sees it; () = none.
        unavailable: places not to be chosen but not observed either.
        clock: monotonic seconds.
    """

    belief: Belief
    topology: Topology
    at: Sequence[int | None]
    _: KW_ONLY
    rng: np.random.Generator
    pending: Collection[int] = ()
    limit: PlanLimit = PlanLimit()
    remaining: Sequence[Budget] = ()
    unavailable: Collection[int] = ()
    clock: Clock = time.monotonic


@runtime_checkable
class Policy(Protocol):
    """A frozen dataclass whose fields are its configuration; it keeps no state of its own."""

    def plan(self, request: PlanRequest, state: PolicyState = None) -> tuple[Plan, PolicyState]:
        """Choose the next place to observe.

        Never raises on a deadline, never changes the belief; the same request, generator state
        and `limit.expansions` give the same plan.

        Args:
            request: what is known and what is left.
            state: what the previous call returned; None at the first.
        """
        ...


@dataclass(frozen=True)
class Candidates:
    """What a probe may do next: candidates within the budget, and how to get there.

    Args:
        locations: (A,) candidates, sorted.
        routes: (A,) the way to each.
        observed: (n,) observed or pending places.
        reason: why there is no candidate ("" when there is one).
    """

    locations: IntArray
    routes: tuple[Route, ...]
    observed: BoolArray
    reason: str = ""

    def plan_for(self, index: int, **fields: Any) -> Plan:
        """Return the plan that goes to candidate number `index`."""
        route = self.routes[index]
        waypoints = fields.pop("waypoints", (int(self.locations[index]),))
        return Plan(waypoints=waypoints, path=route.path, cost=route.cost, **fields)


def candidates(request: PlanRequest) -> Candidates:
    """Return the candidates that a probe can afford, with their routes; see `BudgetConstraint`."""
    return candidates_of(
        request.belief,
        request.topology,
        request.at,
        request.pending,
        request.unavailable,
        request.remaining,
    )


def candidates_of(
    belief: Belief,
    topology: Topology,
    at: int | None,
    pending: Collection[int],
    unavailable: Collection[int],
    remaining: Budget,
) -> Candidates:
    """Return the candidates of a request that is given in its parts; see `candidates`."""
    observed = belief.observed.copy()
    observed[list(pending)] = True
    nothing = np.empty(0, dtype=np.int64)
    if remaining.readings is not None and remaining.readings <= 0:
        return Candidates(nothing, (), observed, READINGS_SPENT)
    constraint = BudgetConstraint(topology, remaining)
    drives = constraint.drives(at, observed, unavailable)
    if drives:
        locations = np.array([drive.place for drive in drives], dtype=np.int64)
        return Candidates(locations, tuple(drive.route for drive in drives), observed)
    if topology.candidates(at, observed, unavailable).size:
        return Candidates(nothing, (), observed, constraint.why_none())
    reason = "every reachable place is observed, on its way to be, or set aside"
    return Candidates(nothing, (), observed, reason)


def no_plan(reason: str) -> Plan:
    """Return the plan of a mission that is over."""
    return Plan((), 0.0, 0.0, 0, 0.0, deadline_hit=False, cost=Cost(0.0, 0.0), reason=reason)
