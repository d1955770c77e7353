"""Contract of every policy, and its optional methods besides `plan`."""

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
from gp_active_sensing.types import (
    BoolArray,
    CandidateValue,
    FloatArray,
    IntArray,
    Plan,
    Route,
)

PolicyState = Any
"""State that a policy keeps between stages: None, or JSON-serialisable data."""


@runtime_checkable
class Policy(Protocol):
    """Frozen dataclass whose fields are the policy's configuration; it stores no state.

    Optional methods: ``check(belief, topology)`` raises PlanningError if the policy cannot plan
    (see `check_fit`). ``rest()`` releases resources outside of this process. ``drift()`` returns
    the drift of the belief; None = the configured drift.
    """

    def plan(self, request: PlanRequest, state: PolicyState = None) -> tuple[Plan, PolicyState]:
        """Choose the next place to observe.

        The method never raises on a deadline and never changes the belief. The same request,
        generator state and `limit.expansions` give the same plan.

        Args:
            request: belief, map, remaining budget and limit.
            state: state that the previous call returned; None at the first call.
        """
        ...


@dataclass(frozen=True)
class Candidates:
    """Candidates for the next move within the budget, and the ways to them.

    Args:
        locations: (A,) candidates, sorted.
        routes: (A,) way to each candidate.
        observed: (n,) observed or pending places.
        reason: reason why there is no candidate; "" if there is one.
    """

    locations: IntArray
    routes: tuple[Route, ...]
    observed: BoolArray
    reason: str = ""

    def plan_for(self, index: int, **fields: Any) -> Plan:
        """Return the plan that goes to the candidate at `index`."""
        route = self.routes[index]
        waypoints = fields.pop("waypoints", (int(self.locations[index]),))
        return Plan(waypoints=waypoints, path=route.path, cost=route.cost, **fields)

    def valued_plan(
        self, index: int, least: FloatArray, most: FloatArray | None = None, **fields: Any
    ) -> Plan:
        """Return the plan that goes to the candidate at `index`, with the values of all candidates.

        The bounds on the values are `least` and `most`, each (A,); without `most` both bounds are
        `least`. By default the plan has the bounds of its candidate.
        """
        lower, upper = least.tolist(), (least if most is None else most).tolist()
        values = tuple(map(CandidateValue, self.locations.tolist(), lower, upper))
        given = {"lower": lower[index], "upper": upper[index], "candidates": values}
        return self.plan_for(index, **(given | fields))


def candidates(request: PlanRequest) -> Candidates:
    """Return the candidates that a probe can afford, with their routes; see `BudgetConstraint`."""
    topology, at, remaining = request.topology, request.at, request.remaining
    observed = request.belief.observed.copy()
    observed[list(request.pending)] = True
    nothing = np.empty(0, dtype=np.int64)
    if remaining.readings is not None and remaining.readings <= 0:
        return Candidates(nothing, (), observed, READINGS_SPENT)
    constraint = BudgetConstraint(topology, remaining)
    drives = constraint.drives(at, observed, request.unavailable)
    if drives:
        locations = np.array([drive.place for drive in drives], dtype=np.int64)
        return Candidates(locations, tuple(drive.route for drive in drives), observed)
    if topology.candidates(at, observed, request.unavailable).size:
        return Candidates(nothing, (), observed, constraint.why_none())
    reason = "every reachable place is observed, on its way to be, or set aside"
    return Candidates(nothing, (), observed, reason)


def no_plan(reason: str) -> Plan:
    """Return the plan without a waypoint that ends a mission."""
    return Plan((), expanded=0, reason=reason)


@runtime_checkable
class QueriesExpert(Protocol):
    """Policy that may ask an expert for fresh values before its decisions."""

    @property
    def asks(self) -> bool:
        """Return whether the configured policy asks an expert."""

    def queries(
        self,
        belief: Belief,
        topology: Topology,
        *,
        rng: np.random.Generator,
        state: PolicyState,
        places: Collection[int] | None = None,
    ) -> Sequence[int]:
        """Return the places to ask about. The expert knows only `places`; None = all places."""


@runtime_checkable
class PlansBatch(Protocol):
    """Policy that chooses for several probes together."""

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
class Explains(Protocol):
    """Policy that explains its choice; other policies are explained by the candidates' values.

    Optional attributes describe the values: `unit` (such as "nat"), and `bounded` if the values
    are bounds.
    """

    @staticmethod
    def explain(plan: Plan, names: Sequence[str]) -> str:
        """Return a sentence that explains a plan; `names` (n,) are the names of the places."""
        ...


SEVERAL = ("integrated_variance", "lawnmower", "max_entropy", "spread", "tour")
"""Names of the policies that plan for several quantities together."""


def check_fit(
    policy: Policy,
    belief: Belief,
    topology: Topology,
    others: Collection[QuantityBelief] = (),
) -> None:
    """Check that a policy can plan with a belief, on a map, for several quantities.

    Raises:
        PlanningError: the policy cannot plan on this map, with this belief, or for several
            quantities.
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
    """Let a policy release its resources, because no decision is expected for now."""
    if give_back := getattr(policy, "rest", None):
        give_back()


def drift_of(policy: Policy) -> DriftConfig | None:
    """Return the drift that a policy defines; None for a policy without a drift."""
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

    Other policies choose among `candidates`: the unobserved adjacent places, if there are any.
    """
    return bool(getattr(policy, "crosses", False))
