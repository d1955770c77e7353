"""A decision made for several probes at once, kept until each of them asks for its part."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from gp_active_sensing.planning.base import PolicyState
from gp_active_sensing.types import Cost, Plan

__all__ = ["BatchPlan"]

_KEY = "joint"


class BatchPlan:
    """Plans that were chosen together, as part of the policy's state: a journal keeps them.

    They hold as long as no visit was made since: each probe takes its own when it is asked for.
    More readings of places that are known, as a sensor sends them all the time, change little.

    Args:
        state: of the policy, with or without such plans.
        readings: of the budget, spent so far.
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
        """Where the plans lead that are kept."""
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
        """Return the plan kept for a probe, if it still stands there; it is kept no longer.

        Args:
            probe: its name.
            at: where it stands.
            unavailable: places not to be chosen now.
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
            seconds=0.0,
            deadline_hit=False,
            path=tuple(kept["path"]),
            cost=Cost(metres, seconds),
        )

    def state(self) -> PolicyState:
        """Return the state to hand on: the policy's own, with the plans that are kept if any."""
        if not self._plans:
            return self.policy_state
        return {"policy": self.policy_state, _KEY: dict(self._plans), "readings": self._readings}
