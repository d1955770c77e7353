"""Searches for hot spots: Gaussian-process bandits, one policy a file."""

from __future__ import annotations

from gp_active_sensing.planning.bandits.base import Bandit
from gp_active_sensing.planning.bandits.view import View, view_of

__all__ = ["Bandit", "View", "view_of"]
