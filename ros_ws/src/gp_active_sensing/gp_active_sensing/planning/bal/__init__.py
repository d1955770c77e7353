"""⟨α,ε⟩-BAL, the anytime nonmyopic planner: policy, tree, search, discretisation, bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gp_active_sensing.util.lazy import lazy_names

if TYPE_CHECKING:
    from gp_active_sensing.planning.bal.policy import Bal

__all__ = ["Bal"]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "policy": ("Bal",),
    },
)
