"""Reservations of readings for routes and revisits; storage of the plans of a batch."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeAlias

from gp_active_sensing.planning.base import PolicyState
from gp_active_sensing.types import BoolArray, Cost, Plan

_KEY = "joint"
Visit: TypeAlias = tuple[str, int]
"""Name of the quantity ("" = the main quantity) and place of a reading."""
Observed: TypeAlias = Callable[[str], BoolArray]
"""Function from the name of a quantity to the (n,) mask of places with readings of the quantity."""


class BudgetReservations:
    """Readings of the budget that are reserved for the newest plan of each probe.

    Each plan has a route and a quantity that completes its visits. One reading is reserved for each
    place on the route that has no reading of this quantity. If the goal of the plan is already
    observed, one reading is reserved for the goal as well.
    """

    def __init__(self) -> None:
        self._ways: dict[str, tuple[str, tuple[int, ...]]] = {}
        """Quantity and route of the newest plan of each probe; () = no route."""
        self._due: dict[str, Visit] = {}
        """Quantity and goal of each probe that will read an observed place again."""

    def copy(self) -> BudgetReservations:
        """Return an independent copy."""
        other = BudgetReservations()
        other._ways, other._due = dict(self._ways), dict(self._due)
        return other

    def make(
        self, probe: str, way: tuple[int, ...], quantity: str = "", *, again: bool = False
    ) -> None:
        """Replace the reservations of a probe by the reservations for a new plan.

        Args:
            probe: name of the probe.
            way: places on the route, in order; () = no route.
            quantity: name of the quantity whose reading completes a visit of the probe.
            again: True if the last place is observed and will get another reading.
        """
        self._ways[probe] = quantity, way
        self._due.pop(probe, None)
        if again:
            self._due[probe] = quantity, way[-1]

    def copy_from(self, other: BudgetReservations, probe: str) -> None:
        """Copy the reservations of a probe from another instance."""
        self._ways[probe] = other._ways.get(probe, ("", ()))
        self._due.pop(probe, None)
        if probe in other._due:
            self._due[probe] = other._due[probe]

    def drop(self, probe: str) -> None:
        """Drop the reservations of a probe."""
        self._ways.pop(probe, None)
        self._due.pop(probe, None)

    def hand_on(self, probe: str, key: str) -> None:
        """Store the reserved route of a probe under `key` instead of the probe's name."""
        self._ways[key] = self._ways.pop(probe, ("", ()))

    def is_due(self, place: int, quantity: str = "") -> bool:
        """Return whether a further reading is reserved for an observed place."""
        return (quantity, place) in self._due.values()

    def pay(self, place: int, quantity: str = "") -> None:
        """Record a reading of a place, and end the reservations for revisits of this place."""
        read = (quantity, place)
        self._due = {probe: goal for probe, goal in self._due.items() if goal != read}

    def kept(self, observed: Observed, set_aside: Collection[int]) -> set[Visit]:
        """Return the reserved readings on all routes, except at places that are `set_aside`."""
        ways = {(quantity, place) for quantity, way in self._ways.values() for place in way}
        return self._open(ways, observed, set_aside)

    def goals(self, observed: Observed, set_aside: Collection[int]) -> set[Visit]:
        """Return the reserved readings at the goals, except at places that are `set_aside`."""
        ends = {(quantity, way[-1]) for quantity, way in self._ways.values() if way}
        return self._open(ends, observed, set_aside)

    def _open(
        self, visits: set[Visit], observed: Observed, set_aside: Collection[int]
    ) -> set[Visit]:
        unread = {(quantity, place) for quantity, place in visits if not observed(quantity)[place]}
        return {visit for visit in unread.union(self._due.values()) if visit[1] not in set_aside}

    def kept_from(
        self, probe: str, pending: Collection[int], observed: Observed, set_aside: Collection[int]
    ) -> int:
        """Return the number of readings that are reserved for all probes except `probe`.

        The count includes `pending` waypoints and the unobserved places on the routes to them.
        """
        visits = {
            (quantity, place)
            for other, (quantity, way) in self._ways.items()
            if other != probe and way and way[-1] in pending
            for place in way
            if place in pending or place not in set_aside
        }
        known = {place for _, place in visits}
        visits.update(("", place) for place in pending if place not in known)
        again = {goal for other, goal in self._due.items() if other != probe}
        return sum(not observed(visit[0])[visit[1]] or visit in again for visit in visits)


class BatchPlan:
    """Plans that were chosen together for several probes, stored in the policy's state.

    The plans are valid until the next reading that counts against the budget.
    """

    def __init__(self, state: PolicyState, readings: int) -> None:
        self.policy_state = state
        """The policy's own state."""
        self._readings = readings
        self._plans: dict[str, dict[str, Any]] = {}
        if isinstance(state, Mapping) and _KEY in state:
            self.policy_state = state["policy"]
            if state["readings"] == readings:
                self._plans = dict(state[_KEY])

    @property
    def goals(self) -> tuple[int, ...]:
        """Goals of the stored plans."""
        return tuple(int(plan["waypoints"][0]) for plan in self._plans.values())

    def keep(self, probe: str, at: int | None, plan: Plan) -> None:
        """Store the plan of a probe at the place `at`."""
        self._plans[probe] = {
            "at": at,
            "waypoints": list(plan.waypoints),
            "path": list(plan.path),
            "cost": list(plan.cost),
            "value": [plan.lower, plan.upper],
        }

    def pop(self, probe: str, at: int | None, unavailable: Collection[int]) -> Plan | None:
        """Remove and return the stored plan of a probe at the place `at`.

        The result is None if there is no such plan, or if its goal is unavailable.
        """
        kept = self._plans.pop(probe, None)
        if kept is None or kept["at"] != at or kept["waypoints"][0] in unavailable:
            return None
        lower, upper = kept["value"]
        metres, seconds = kept["cost"]
        return Plan(
            waypoints=tuple(kept["waypoints"]),
            lower=lower,
            upper=upper,
            expanded=0,
            path=tuple(kept["path"]),
            cost=Cost(metres, seconds),
        )

    def state(self) -> PolicyState:
        """Return the policy's own state, together with the stored plans if there are any."""
        if not self._plans:
            return self.policy_state
        return {"policy": self.policy_state, _KEY: dict(self._plans), "readings": self._readings}
