"""Budget reserved for places on planned routes and for pending revisits; plans made together."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeAlias

from gp_active_sensing.planning.base import PolicyState
from gp_active_sensing.types import BoolArray, Cost, Plan

_KEY = "joint"
Visit: TypeAlias = tuple[str, int]
"""A reading of the budget: the quantity that it is of ("" = the main one), and its place."""
Observed: TypeAlias = Callable[[str], BoolArray]
"""Returns the (n,) places with a reading of a quantity."""


class BudgetReservations:
    """The ways of the last plans, and which of their goals are to be read once more.

    A way belongs to the quantity that completes the visits of its probe; "" = the main one. A place
    without a reading of that quantity costs a reading of the budget when it is read. So does a goal
    that was observed already when it was chosen (policies that visit again), with its next reading.
    """

    def __init__(self) -> None:
        self._ways: dict[str, tuple[str, tuple[int, ...]]] = {}
        """Quantity, and places on the way of the last plan with a waypoint, by probe."""
        self._due: dict[str, Visit] = {}
        """Goals that were observed when they were chosen, until they are read again; by probe."""

    def copy(self) -> BudgetReservations:
        """Return an independent copy."""
        other = BudgetReservations()
        other._ways, other._due = dict(self._ways), dict(self._due)
        return other

    def make(
        self, probe: str, way: tuple[int, ...], quantity: str = "", *, again: bool = False
    ) -> None:
        """Reserve the readings of a probe's new plan; its last plan ends.

        Args:
            probe: its name.
            way: places on it, in the order in which they are reached; () = it goes nowhere.
            quantity: name of the one that completes a visit of the probe.
            again: the last of them is observed already, and is to be read once more.
        """
        self._ways[probe] = quantity, way
        self._due.pop(probe, None)
        if again:
            self._due[probe] = quantity, way[-1]

    def take_over(self, other: BudgetReservations, probe: str) -> None:
        """Take over what another instance reserves for a probe."""
        self._ways[probe] = other._ways.get(probe, ("", ()))
        self._due.pop(probe, None)
        if probe in other._due:
            self._due[probe] = other._due[probe]

    def drop(self, probe: str) -> None:
        """Drop the reservations of a probe."""
        self._ways.pop(probe, None)
        self._due.pop(probe, None)

    def hand_on(self, probe: str, key: str) -> None:
        """Keep the reservation of a probe that drives on, under a new name."""
        self._ways[key] = self._ways.pop(probe, ("", ()))

    def is_due(self, place: int, quantity: str = "") -> bool:
        """Return whether the next reading of a place is a visit that costs one of the budget."""
        return (quantity, place) in self._due.values()

    def pay(self, place: int, quantity: str = "") -> None:
        """Record a reading of a place: every reservation of it is fulfilled."""
        for probe in [probe for probe, goal in self._due.items() if goal == (quantity, place)]:
            del self._due[probe]

    def kept(self, observed: Observed, set_aside: Collection[int]) -> set[Visit]:
        """Return the reserved readings, each as its quantity and its place."""
        ways = {(quantity, place) for quantity, way in self._ways.values() for place in way}
        return self._open(ways, observed, set_aside)

    def goals(self, observed: Observed, set_aside: Collection[int]) -> set[Visit]:
        """Return the reserved readings at goals."""
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
        """Return the number of readings that are reserved for the other probes.

        Each of the others has those that it was promised: for its waypoint, and for what is not
        observed yet on its way there. A place that has been read meanwhile is paid for already.
        """
        ways = [each for other, each in self._ways.items() if other != probe]
        visits = {
            (quantity, place)
            for quantity, way in ways
            if way and way[-1] in pending
            for place in way
            if place in pending or place not in set_aside
        }
        known = {place for _, place in visits}
        visits.update(("", place) for place in pending if place not in known)
        again = {goal for other, goal in self._due.items() if other != probe}
        return sum(not observed(visit[0])[visit[1]] or visit in again for visit in visits)


class BatchPlan:
    """Plans that were chosen together, as part of the policy's state: a journal keeps them.

    They hold as long as no visit was made since: each probe takes its own when it is asked for.
    More readings of places that are known, as a sensor sends them all the time, change little.
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
        """Keep the plan of a probe that stands at `at`."""
        self._plans[probe] = {
            "at": at,
            "waypoints": list(plan.waypoints),
            "path": list(plan.path),
            "cost": list(plan.cost),
            "value": [plan.lower, plan.upper],
        }

    def take(self, probe: str, at: int | None, unavailable: Collection[int]) -> Plan | None:
        """Remove and return the plan stored for a probe, if it is still at the same place."""
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
            seconds=0.0,
            deadline_hit=False,
            path=tuple(kept["path"]),
            cost=Cost(metres, seconds),
        )

    def state(self) -> PolicyState:
        """Return the policy's own state, with the stored plans if there are any."""
        if not self._plans:
            return self.policy_state
        return {"policy": self.policy_state, _KEY: dict(self._plans), "readings": self._readings}
