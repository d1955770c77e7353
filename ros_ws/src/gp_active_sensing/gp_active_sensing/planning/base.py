"""The contract of every policy: belief + topology -> Plan."""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from gp_active_sensing.planning.budget import BudgetConstraint
from gp_active_sensing.types import (
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
    from gp_active_sensing.belief.drift import DriftConfig
    from gp_active_sensing.topology.base import Topology

__all__ = [
    "READINGS_SPENT",
    "Candidates",
    "Policy",
    "PolicyState",
    "check_fit",
    "choices",
    "crosses",
    "drift_of",
    "no_plan",
    "rest",
    "revisits",
]

READINGS_SPENT = "the budget of readings is spent"
"""Why nothing is chosen when no reading is left."""
PolicyState = Any
"""What a policy hands from one stage to the next: None, or JSON-serialisable data."""


@runtime_checkable
class Policy(Protocol):
    """A frozen dataclass whose fields are its configuration; it keeps no state of its own."""

    def plan(
        self,
        belief: Belief,
        topology: Topology,
        at: int | None,
        *,
        pending: Collection[int] = (),
        limit: PlanLimit = PlanLimit(),
        rng: np.random.Generator,
        state: PolicyState = None,
        remaining: Budget = Budget(),
        unavailable: Collection[int] = (),
        clock: Clock = time.monotonic,
    ) -> tuple[Plan, PolicyState]:
        """Choose the next place to observe.

        Never raises on a deadline, never changes `belief`; the same arguments, generator state
        and `limit.expansions` give the same plan.

        Args:
            belief: what is known about the field.
            topology: where a probe may go.
            at: where the probe stands; None = nowhere yet.
            pending: waypoints already given to other probes: planned as if observed (their
                variance is gone, their value is not known), never chosen.
            limit: limit on the computing of this decision.
            rng: source of randomness of this decision.
            state: what the previous call returned; None at the first.
            remaining: what is left of the mission's budget, and where it has to end; the horizon is
                clipped to it. `choices` and `BudgetConstraint` keep it.
            unavailable: places not to be chosen but not observed either (set aside).
            clock: monotonic seconds, for `limit.seconds`.
        """
        ...


def check_fit(policy: Policy, belief: Belief, topology: Topology) -> None:
    """Ask a policy that does not fit every map or belief whether it fits these.

    Such a policy has a method ``check(belief, topology)``, which raises; others have none. Engines
    ask when they are built, so that a mission that cannot be planned does not begin.

    Raises:
        PlanningError: the policy cannot plan on this map, or with this belief.
    """
    check = getattr(policy, "check", None)
    if callable(check):
        check(belief, topology)


def rest(policy: Policy) -> None:
    """Tell a policy that nothing is asked of it for now: the mission is over, or seems to be.

    One that holds something outside of this process has a method ``rest()``, which gives it back;
    it has to be able to go on.
    """
    resting = getattr(policy, "rest", None)
    if callable(resting):
        resting()


def drift_of(policy: Policy) -> DriftConfig | None:
    """Return how readings age for a policy that says so itself, None for all others.

    Such a policy has a method ``drift()``; engines build the belief with what it returns.
    """
    drift = getattr(policy, "drift", None)
    return drift() if callable(drift) else None


def revisits(policy: object) -> bool:
    """Say whether a policy (or its class) chooses among all places, those read before included."""
    return bool(getattr(policy, "revisits", False))


def crosses(policy: object) -> bool:
    """Say whether a policy (or its class) may go on through known places past unknown ones.

    Where moves bind its next place may lie behind places that were read, though one that was not is
    next to it: a route crosses its own track. Others stay with `choices`.
    """
    return bool(getattr(policy, "crosses", False))


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


def choices(
    belief: Belief,
    topology: Topology,
    at: int | None,
    pending: Collection[int],
    unavailable: Collection[int],
    remaining: Budget,
) -> Candidates:
    """Find the candidates a probe can afford, with their routes; see `BudgetConstraint`."""
    observed = belief.observed.copy()
    observed[list(pending)] = True
    nothing = np.empty(0, dtype=np.int64)
    if remaining.readings is not None and remaining.readings <= 0:
        return Candidates(nothing, (), observed, READINGS_SPENT)
    allowance = BudgetConstraint(topology, remaining)
    drives = allowance.drives(at, observed, unavailable)
    if drives:
        locations = np.array([drive.place for drive in drives], dtype=np.int64)
        return Candidates(locations, tuple(drive.route for drive in drives), observed)
    if topology.candidates(at, observed, unavailable).size:
        return Candidates(nothing, (), observed, allowance.why_none())
    reason = "every reachable place is observed, on its way to be, or set aside"
    return Candidates(nothing, (), observed, reason)


def no_plan(reason: str) -> Plan:
    """Return the plan of a mission that is over."""
    return Plan((), 0.0, 0.0, 0, 0.0, deadline_hit=False, cost=Cost(0.0, 0.0), reason=reason)
