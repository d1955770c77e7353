"""GP-UCB: the place with the largest upper confidence bound. [Srinivas2010]."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gp_active_sensing.belief import Belief
from gp_active_sensing.planning.bandits.base import Bandit
from gp_active_sensing.planning.bandits.schedule import Schedule
from gp_active_sensing.planning.bandits.view import View
from gp_active_sensing.types import FloatArray

__all__ = ["GpUcb"]


@dataclass(frozen=True)
class GpUcb(Schedule, Bandit):
    """Largest upper confidence bound, ``argmax_x μ(x) + √β_t σ(x)``: the regret is bounded.

    With probability 1-δ, see `regret_bound`. [Srinivas2010, Eq. 6, Algorithm 1]
    """

    def scores(self, view: View, belief: Belief, rng: np.random.Generator) -> FloatArray:
        """Return ``μ + √β_t σ`` [unit of the readings]."""
        return view.mean + self.width(view.stage, view.size, belief) * view.std
