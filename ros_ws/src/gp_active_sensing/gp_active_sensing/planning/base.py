"""The contract of every policy, and what a policy may offer besides `plan`."""

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
    Budget,
    CandidateValue,
    Cost,
    FloatArray,
    IntArray,
    Plan,
    Route,
)

PolicyState = Any
"""State that a policy keeps between stages: None, or JSON-serialisable data."""


@runtime_checkable
class Policy(Protocol):
    """A frozen dataclass whose fields are its configuration; it keeps no state of its own.

    It may have ``check(belief, topology)``, which raises PlanningError where it cannot plan (see
    `check_fit`); ``rest()``, which gives back what it holds outside of this process; and
    ``drift()``, which returns how readings age, None = as the configuration says.
    """

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
    """Candidates of the next move within the budget, and the ways there.

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

    def valued_plan(
        self, index: int, least: FloatArray, most: FloatArray | None = None, **fields: Any
    ) -> Plan:
        """Return the plan that goes to candidate number `index`, with what each is worth.

        The bounds on the candidates' values are `least` and `most`, each (A,); without `most` both
        are `least`. By default the plan's bounds are those of the candidate, and it was made in one
        expansion and in time.
        """
        lower, upper = least.tolist(), (least if most is None else most).tolist()
        given = {
            "lower": lower[index],
            "upper": upper[index],
            "expanded": 1,
            "deadline_hit": False,
            "candidates": tuple(map(CandidateValue, self.locations.tolist(), lower, upper)),
        }
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
    return Plan((), 0.0, 0.0, 0, 0.0, deadline_hit=False, cost=Cost(0.0, 0.0), reason=reason)


@runtime_checkable
class QueriesExpert(Protocol):
    """A policy that may want fresh values of an expert before its decisions."""

    @property
    def asks(self) -> bool:
        """Return whether the configuration makes it ask an expert."""

    def queries(
        self,
        belief: Belief,
        topology: Topology,
        *,
        rng: np.random.Generator,
        state: PolicyState,
        places: Collection[int] | None = None,
    ) -> Sequence[int]:
        """Return the places to ask about; `places` are those where the expert can be asked."""


@runtime_checkable
class PlansBatch(Protocol):
    """A policy that chooses for several probes together."""

    def plan_batch(
        self,
        request: PlanRequest,
        at: Sequence[int | None],
        state: PolicyState = None,
        remaining: Sequence[Budget] = (),
    ) -> tuple[list[Plan], PolicyState]:
        """Choose the next place of each of several probes, together.

        Args:
            request: what is known and what is left; its own `at` counts for nothing.
            at: where each probe stands; None = nowhere yet.
            state: what the previous call returned; None at the first.
            remaining: budget of each probe; () = that of the request for each.

        Returns:
            A plan for each probe, in order, without a waypoint where nothing is left for it; and
            the state.
        """


@runtime_checkable
class Explains(Protocol):
    """A policy that explains its choice; other policies are explained by their values.

    A policy also describes its values: `unit` is theirs ("nat"; "" where it has none), `bounded`
    says that they are between bounds.
    """

    @staticmethod
    def explain(plan: Plan, names: Sequence[str]) -> str:
        """Return a sentence; `names` (n,) are those of the map's places."""
        ...


SEVERAL = ("integrated_variance", "lawnmower", "max_entropy", "spread", "tour")
"""Policies that plan for several quantities together; their classes say `several`."""


def check_fit(
    policy: Policy,
    belief: Belief,
    topology: Topology,
    others: Collection[QuantityBelief] = (),
) -> None:
    """Ask a policy that does not fit every map or belief whether it fits these.

    Engines ask when they are built, so that a mission that cannot be planned does not begin.

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
    """Tell a policy that nothing is asked of it for now: the mission is over, or seems to be."""
    if give_back := getattr(policy, "rest", None):
        give_back()


def drift_of(policy: Policy) -> DriftConfig | None:
    """Return the drift that a policy brings itself, None for all others."""
    drift = getattr(policy, "drift", None)
    return drift() if drift else None


def asks_expert(policy: Policy) -> bool:
    """Return whether a policy wants fresh values of an expert, as it is configured."""
    return isinstance(policy, QueriesExpert) and policy.asks


def revisits(policy: object) -> bool:
    """Return whether a policy (or its class) chooses among all places, those read included."""
    return bool(getattr(policy, "revisits", False))


def crosses(policy: object) -> bool:
    """Return whether a policy (or its class) may go on through known places past unknown ones.

    Where moves bind, its next place may lie behind places that were read, though one that was not
    is next to it: a route crosses its own track. Others stay with `candidates`.
    """
    return bool(getattr(policy, "crosses", False))
