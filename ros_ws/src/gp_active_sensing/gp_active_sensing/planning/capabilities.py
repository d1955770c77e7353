"""Protocols for what a policy may offer besides `plan`, and the functions that ask for it.

A policy has a capability when it has the method or attribute; it need not derive from anything.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from gp_active_sensing.planning.base import BatchRequest, Policy, PolicyState
from gp_active_sensing.types import Plan

if TYPE_CHECKING:
    from gp_active_sensing.belief import Belief
    from gp_active_sensing.belief.drift import DriftConfig
    from gp_active_sensing.topology.base import Topology

__all__ = [
    "ChecksFit",
    "Crosses",
    "HoldsResources",
    "LooksAhead",
    "PlansBatch",
    "QueriesExpert",
    "Revisits",
    "Seeks",
    "SetsDrift",
    "StepsToward",
    "check_fit",
    "crosses",
    "drift_of",
    "rest",
    "revisits",
]


@runtime_checkable
class ChecksFit(Protocol):
    """A policy that does not fit every map or belief, and says so before a mission begins."""

    def check(self, belief: Belief, topology: Topology) -> None:
        """Raise PlanningError where it cannot plan on this map, or with this belief."""


@runtime_checkable
class HoldsResources(Protocol):
    """A policy that holds something outside of this process, such as a program."""

    def rest(self) -> None:
        """Give it back for now; the policy has to be able to go on."""


@runtime_checkable
class SetsDrift(Protocol):
    """A policy that says how readings age; engines build the belief with it."""

    def drift(self) -> DriftConfig | None:
        """Return how readings age, None = as the configuration says."""


@runtime_checkable
class QueriesExpert(Protocol):
    """A policy that wants fresh values of an expert before some decisions."""

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
        self, request: BatchRequest, state: PolicyState = None
    ) -> tuple[list[Plan], PolicyState]:
        """Return a plan for each probe of the request, and the state."""


@runtime_checkable
class Revisits(Protocol):
    """A policy that chooses among all places, those read before included."""

    revisits: bool


@runtime_checkable
class Crosses(Protocol):
    """A policy whose way may lead on through known places, past unknown ones."""

    crosses: bool


@runtime_checkable
class Seeks(Protocol):
    """A policy whose values are of something that it says; some look for an extremum."""

    objective: str


@runtime_checkable
class StepsToward(Protocol):
    """A policy that drives to its goal on a route, or decides again after each step."""

    toward: str


@runtime_checkable
class LooksAhead(Protocol):
    """A policy that looks some readings ahead."""

    horizon: int


def check_fit(policy: Policy, belief: Belief, topology: Topology) -> None:
    """Ask a policy that does not fit every map or belief whether it fits these.

    Engines ask when they are built, so that a mission that cannot be planned does not begin.

    Raises:
        PlanningError: the policy cannot plan on this map, or with this belief.
    """
    if isinstance(policy, ChecksFit):
        policy.check(belief, topology)


def rest(policy: Policy) -> None:
    """Tell a policy that nothing is asked of it for now: the mission is over, or seems to be."""
    if isinstance(policy, HoldsResources):
        policy.rest()


def drift_of(policy: Policy) -> DriftConfig | None:
    """Return how readings age for a policy that says so itself, None for all others."""
    return policy.drift() if isinstance(policy, SetsDrift) else None


def revisits(policy: object) -> bool:
    """Return whether a policy (or its class) chooses among all places, those read included."""
    return isinstance(policy, Revisits) and bool(policy.revisits)


def crosses(policy: object) -> bool:
    """Return whether a policy (or its class) may go on through known places past unknown ones.

    Where moves bind, its next place may lie behind places that were read, though one that was not
    is next to it: a route crosses its own track. Others stay with `candidates`.
    """
    return isinstance(policy, Crosses) and bool(policy.crosses)
