"""⟨α,ε⟩-BAL, the anytime nonmyopic planner: policy, tree, search, discretisation, bounds."""

from __future__ import annotations

from gp_active_sensing.planning.bal.policy import Bal

__all__ = ["Bal"]
