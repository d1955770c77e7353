"""Searches for hot spots: Gaussian-process bandits, one kind of policy a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gp_active_sensing.util.lazy import lazy_names

if TYPE_CHECKING:
    from gp_active_sensing.planning.bandits.base import Bandit
    from gp_active_sensing.planning.bandits.view import View, view_of

__all__ = ["Bandit", "View", "view_of"]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "base": ("Bandit",),
        "view": (
            "View",
            "view_of",
        ),
    },
)
