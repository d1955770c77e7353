"""The place where the field is expected to be highest: no exploration at all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gp_active_sensing.belief import Belief
from gp_active_sensing.planning.bandits.base import Bandit
from gp_active_sensing.planning.bandits.view import View
from gp_active_sensing.types import FloatArray

__all__ = ["MeanOnly"]


@dataclass(frozen=True)
class MeanOnly(Bandit):
    """Largest posterior mean, ``argmax_x μ(x)``: sticks to the first high place it finds.

    [Srinivas2010, Sec. 6]
    """

    def scores(self, view: View, belief: Belief, rng: np.random.Generator) -> FloatArray:
        """Return ``μ`` [unit of the readings]."""
        return view.mean
