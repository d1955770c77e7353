"""Interface of the policies, and functions that call their optional methods."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from gp_active_sensing.belief import Belief
from gp_active_sensing.belief.drift import DriftConfig
from gp_active_sensing.errors import PlanningError
from gp_active_sensing.planning.budget import READINGS_SPENT, BudgetConstraint
from gp_active_sensing.planning.request import PlanRequest, QuantityBelief
from gp_active_sensing.topology.base import Topology
from gp_active_sensing.types import BoolArray, CandidateValue, FloatArray, IntArray, Plan, Route

PolicyState = Any
"""State of a policy between two decisions: None, or JSON-serialisable data."""


@runtime_checkable
class Policy(Protocol):
    """Frozen dataclass whose fields are the configuration of the policy; it stores no state.

    Optional methods: ``check(belief, topology)`` raises PlanningError if the policy cannot plan
    (see `check_fit`). ``rest()`` releases resources outside of this process. ``drift()`` returns
    the drift model of the belief; None = the configured drift model.
    """

    def plan(self, request: PlanRequest, state: PolicyState = None) -> tuple[Plan, PolicyState]:
        """Choose the next place to observe.

        The method never changes the belief, and raises no error when the time limit is reached. The
        same request, random generator and `limit.expansions` give the same plan.

        Args:
            request: belief, map, remaining budget and limit.
            state: state that the previous call returned; None at the first call.
        """


@dataclass(frozen=True)
class Candidates:
    """Candidates: the places that a probe may choose next, with the routes to these places.

    Args:
        locations: (A,) candidates, sorted.
        routes: (A,) route to each candidate.
        observed: (n,) mask of the observed or pending places.
        reason: why there is no candidate; "" if there are candidates.
    """

    locations: IntArray
    routes: tuple[Route, ...]
    observed: BoolArray
    reason: str = ""

    def plan_for(self, index: int, **fields: Any) -> Plan:
        """Return the plan to drive to the candidate at `index`."""
        route = self.routes[index]
        waypoints = fields.pop("waypoints", (int(self.locations[index]),))
        return Plan(waypoints=waypoints, path=route.path, cost=route.cost, **fields)

    def valued_plan(
        self, index: int, least: FloatArray, most: FloatArray | None = None, **fields: Any
    ) -> Plan:
        """Return the plan to drive to the candidate at `index`, with the values of all candidates.

        `least` and `most` (A,) are lower and upper bounds on the values. If `most` is None, `least`
        has the exact values. If `fields` has no bounds, the plan gets the bounds of its candidate.
        """
        lower, upper = least.tolist(), (least if most is None else most).tolist()
        values = tuple(map(CandidateValue, self.locations.tolist(), lower, upper))
        given = {"lower": lower[index], "upper": upper[index], "candidates": values}
        return self.plan_for(index, **(given | fields))


def candidates(request: PlanRequest) -> Candidates:
    """Return the places that a probe can afford to observe next; see `BudgetConstraint`."""
    topology, at, remaining = request.topology, request.at, request.remaining
    observed = request.belief.observed.copy()
    observed[list(request.pending)] = True
    constraint, drives = BudgetConstraint(topology, remaining), []
    if remaining.readings is not None and remaining.readings <= 0:
        reason = READINGS_SPENT
    elif drives := constraint.drives(at, observed, request.unavailable):
        reason = ""
    elif topology.candidates(at, observed, request.unavailable).size:
        reason = constraint.why_none()
    else:
        reason = "every reachable place is observed, on its way to be, or set aside"
    locations = np.array([drive.place for drive in drives], dtype=np.int64)
    return Candidates(locations, tuple(drive.route for drive in drives), observed, reason)


def no_plan(reason: str) -> Plan:
    """Return the plan that ends a mission; it has no waypoint."""
    return Plan((), expanded=0, reason=reason)


@runtime_checkable
class QueriesExpert(Protocol):
    """Policy that may ask an expert for fresh values before its decisions."""

    @property
    def asks(self) -> bool:
        """True if the policy is configured to ask an expert."""

    def queries(
        self,
        belief: Belief,
        topology: Topology,
        *,
        rng: np.random.Generator,
        state: PolicyState,
        places: Collection[int] | None = None,
    ) -> Sequence[int]:
        """Return the places about which the expert is asked: some of `places`.

        If `places` is None, the policy may ask about any visited place.
        """


@runtime_checkable
class BatchPolicy(Protocol):
    """Policy that chooses the next places of several probes together."""

    def plan_batch(
        self,
        request: PlanRequest,
        at: Sequence[int | None],
        state: PolicyState = None,
    ) -> tuple[list[Plan], PolicyState]:
        """Choose the next places of several probes together.

        Args:
            request: belief, map, remaining budget and limit; its `at` is ignored.
            at: place of each probe; None = no place yet.
            state: state that the previous call returned; None at the first call.

        Returns:
            A plan for each probe, in order, and the state. The plan of a probe without a reachable
            goal has no waypoint.
        """


@runtime_checkable
class ExplainingPolicy(Protocol):
    """Policy that explains its plans in words.

    Any policy may have the attributes `unit` and `bounded`. `unit` is the unit of the values in the
    policy's plans, such as "nat". `bounded` is True if the values in the plans are bounds.
    """

    @staticmethod
    def explain(plan: Plan, names: Sequence[str]) -> str:
        """Return a sentence that explains a plan; `names` (n,) are the names of the places."""


SEVERAL = ("integrated_variance", "lawnmower", "max_entropy", "spread", "tour")
"""Names of the policies that plan for several quantities together."""


def check_fit(
    policy: Policy,
    belief: Belief,
    topology: Topology,
    others: Collection[QuantityBelief] = (),
) -> None:
    """Check that a policy can plan on this map with this belief and with `others`.

    Raises:
        PlanningError: the policy cannot plan for these arguments.
    """
    if others and getattr(policy, "one_quantity", False):
        msg = (
            f"this policy plans for one quantity, got {1 + len(others)}: remove "
            f"{', '.join(repr(q.name) for q in others)} or take one of {', '.join(SEVERAL)}, which "
            "plan for several together; policies that look for an extremum plan for the main one"
        )
        raise PlanningError(msg)
    if check := getattr(policy, "check", None):
        check(belief, topology)


def rest(policy: Policy) -> None:
    """Release the resources of a policy. Call this when no decision is expected soon."""
    if give_back := getattr(policy, "rest", None):
        give_back()


def drift_of(policy: Policy) -> DriftConfig | None:
    """Return the drift model that a policy defines; None = the policy defines no drift model."""
    drift = getattr(policy, "drift", None)
    return drift() if drift else None


def asks_expert(policy: Policy) -> bool:
    """Return whether a configured policy asks an expert for fresh values."""
    return isinstance(policy, QueriesExpert) and policy.asks


def revisits(policy: object) -> bool:
    """Return whether a policy (or its class) may choose observed places again."""
    return bool(getattr(policy, "revisits", False))


def crosses(policy: object) -> bool:
    """Return whether a policy (or its class) may drive through observed places to any goal.

    Other policies choose among unobserved adjacent places, if there are any; see `candidates`.
    """
    return bool(getattr(policy, "crosses", False))
