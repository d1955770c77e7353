"""Requests to policies: what is known, where the probes stand, and what is left."""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import KW_ONLY, dataclass, replace
from typing import NamedTuple

import numpy as np

from gp_active_sensing.belief import Belief
from gp_active_sensing.belief.link import AUTO
from gp_active_sensing.topology.base import Topology
from gp_active_sensing.types import Aim, Budget, Clock, Cost, PlanLimit


@dataclass(frozen=True)
class QuantityBelief:
    """Belief about a further quantity that the same robots measure.

    Args:
        name: of the quantity, as configured.
        belief: over the same places as that of the main quantity.
        weight: of its relative map error in the objective, not negative.
        sampled: it is read where a probe stops for it, not where one crosses.
        aim: error of its map with which the mission may end; None = it does not matter.
        link: name of the quantity whose map the belief is linked to as far as the readings are
            evidence for it, see `belief.link`; auto = the main one; None = none.
    """

    name: str
    belief: Belief
    weight: float = 1.0
    sampled: bool = False
    aim: Aim | None = None
    link: str | None = AUTO


class Sought(NamedTuple):
    """An error that the map of a quantity is to have; the main quantity has number 0."""

    number: int
    belief: Belief
    aim: Aim


@dataclass(frozen=True)
class Sorties:
    """Batteries after the one in a probe; they are changed at the end place.

    Args:
        whole: remaining budget of the whole mission, with the end place.
        fresh: metres and seconds that another battery lasts for.
    """

    whole: Budget
    fresh: Budget

    def minus(self, *, readings: int = 0, cost: Cost = Cost(0.0, 0.0)) -> Sorties:
        """Return the remaining sorties after some readings and a move."""
        return replace(self, whole=self.whole.minus(readings=readings, cost=cost))


@dataclass(frozen=True)
class PlanRequest:
    """Request for the next place, with the belief, the map and the remaining budget.

    Args:
        belief: what is known about the field; policies never change it.
        topology: where a probe may go.
        at: where the probe stands; None = nowhere yet.
        rng: source of randomness of this decision.
        pending: waypoints already given to other probes: planned as if observed (their variance is
            gone, their value is not known), never chosen.
        passed: those of them that a probe has left again, and whose readings are still to come.
        waiting: where other probes stand that are asked for next; None = nowhere yet.
        limit: limit on the computing of this decision.
        remaining: remaining budget of the mission, and its end place; the horizon is clipped to
            it. `candidates` and `BudgetConstraint` enforce it. With sorties it is the remaining
            budget of the current sortie.
        unavailable: places not to be chosen but not observed either (set aside).
        aim: error of the map with which the mission is over, whatever is left of its budget; None =
            the budget alone ends it.
        sorties: what follows with other batteries; None = nothing.
        others: further quantities, which a policy that can plans for together with `belief`.
        weight: of the main quantity, `belief`, among them.
        clock: monotonic seconds, for `limit.seconds`.
    """

    belief: Belief
    topology: Topology
    at: int | None
    _: KW_ONLY
    rng: np.random.Generator
    pending: Collection[int] = ()
    passed: Collection[int] = ()
    waiting: Collection[int | None] = ()
    limit: PlanLimit = PlanLimit()
    remaining: Budget = Budget()
    unavailable: Collection[int] = ()
    aim: Aim | None = None
    sorties: Sorties | None = None
    others: tuple[QuantityBelief, ...] = ()
    weight: float = 1.0
    clock: Clock = time.monotonic

    @property
    def beliefs(self) -> tuple[Belief, ...]:
        """Return the beliefs about all quantities, the main one first."""
        return (self.belief, *(q.belief for q in self.others))

    @property
    def sought(self) -> tuple[Sought, ...]:
        """Return the errors that end the mission once all are met; () = its budget ends it."""
        aims = (self.aim, *(q.aim for q in self.others))
        pairs = enumerate(zip(self.beliefs, aims, strict=True))
        return tuple(Sought(i, belief, aim) for i, (belief, aim) in pairs if aim is not None)

    @property
    def under_way(self) -> tuple[int, ...]:
        """Return the pending places that other probes are under way to."""
        return tuple(place for place in self.pending if place not in self.passed)
