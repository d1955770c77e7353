"""Searches for hot spots: Gaussian-process bandits, for one probe or for several together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gp_active_sensing.util.lazy import lazy_names

if TYPE_CHECKING:
    from gp_active_sensing.planning.bandits.base import Bandit, View, view_of
    from gp_active_sensing.planning.bandits.batch import Batch

__all__ = ["Bandit", "Batch", "View", "view_of"]


__getattr__, __dir__ = lazy_names(
    __name__, {"base": ("Bandit", "View", "view_of"), "batch": ("Batch",)}
)
