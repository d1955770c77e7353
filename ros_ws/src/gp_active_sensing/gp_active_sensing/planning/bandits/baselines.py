"""Two baselines of the search for hot spots: the mean alone, the variance alone. [Srinivas2010]."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gp_active_sensing.belief import Belief
from gp_active_sensing.planning.bandits.base import Bandit
from gp_active_sensing.planning.bandits.view import View
from gp_active_sensing.types import FloatArray

__all__ = ["MeanOnly", "VarianceOnly"]


@dataclass(frozen=True)
class MeanOnly(Bandit):
    """Largest posterior mean, ``argmax_x μ(x)``: sticks to the first high place it finds.

    [Srinivas2010, Sec. 6]
    """

    def scores(self, view: View, belief: Belief, rng: np.random.Generator) -> FloatArray:
        """Return ``μ`` [unit of the readings]."""
        return view.mean


@dataclass(frozen=True)
class VarianceOnly(Bandit):
    """Largest posterior variance, ``argmax_x σ(x)``: greedy for information about the whole field.

    [Srinivas2010, Eq. 4]
    """

    def scores(self, view: View, belief: Belief, rng: np.random.Generator) -> FloatArray:
        """Return ``σ`` [unit of the readings]."""
        return view.std
