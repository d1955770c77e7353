"""Requests to policies: belief, places of the probes, and remaining budget."""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import KW_ONLY, dataclass
from typing import NamedTuple

import numpy as np

from gp_active_sensing.belief import Belief
from gp_active_sensing.belief.link import AUTO
from gp_active_sensing.topology.base import Topology
from gp_active_sensing.types import Aim, Budget, Clock, PlanLimit


@dataclass(frozen=True)
class QuantityBelief:
    """Belief about a further quantity that the same probes measure.

    Args:
        name: configured name of the quantity.
        belief: belief over the same places as the belief about the main quantity.
        weight: weight of the quantity's relative map error in the objective, not negative.
        sampled: True if a probe measures the quantity only where the probe stops.
        aim: error of the quantity's map at which the mission may end; None = any error.
        link: name of another quantity whose map helps to predict this quantity, see `belief.link`;
            auto = the main quantity; None = no quantity.
    """

    name: str
    belief: Belief
    weight: float = 1.0
    sampled: bool = False
    aim: Aim | None = None
    link: str | None = AUTO


class TargetError(NamedTuple):
    """Target error for the map of the quantity with index `number`; 0 = the main quantity."""

    number: int
    belief: Belief
    aim: Aim


@dataclass(frozen=True)
class Sorties:
    """Budgets of a mission in sorties. After each sortie, the end place gives a fresh battery.

    Args:
        whole: remaining budget of the whole mission, including the end place.
        fresh: metres and seconds that a fresh battery lasts.
    """

    whole: Budget
    fresh: Budget


@dataclass(frozen=True)
class PlanRequest:
    """Request for the next place, with the belief, the map and the remaining budget.

    Args:
        belief: belief about the field; policies never change it.
        topology: map of the probe.
        at: place of the probe; None = no place yet.
        rng: source of randomness of this decision.
        pending: waypoints of other probes. Policies never choose these places, and treat them as
            observed with unknown values.
        passed: pending places that a probe has left before their readings arrived.
        waiting: places of other probes that wait for a decision; None = no place yet.
        limit: limit on the computing effort of this decision.
        remaining: remaining budget and end place of the mission, or of the current sortie.
        unavailable: unobserved places that must not be chosen.
        aim: error of the main quantity's map at which the mission may end; None = any error.
        sorties: budgets of the next batteries; None = no further batteries.
        others: further quantities.
        weight: weight of the main quantity (`belief`) among all quantities.
        clock: monotonic clock [s], for `limit.seconds`.
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
        """Beliefs about all quantities; the main quantity comes first."""
        return (self.belief, *(q.belief for q in self.others))

    @property
    def sought(self) -> tuple[TargetError, ...]:
        """Target errors of the maps. The mission ends when all are met; () = no target."""
        aims = (self.aim, *(q.aim for q in self.others))
        pairs = enumerate(zip(self.beliefs, aims, strict=True))
        return tuple(TargetError(i, belief, aim) for i, (belief, aim) in pairs if aim is not None)

    @property
    def under_way(self) -> tuple[int, ...]:
        """Pending places, except those in `passed`."""
        return tuple(place for place in self.pending if place not in self.passed)
