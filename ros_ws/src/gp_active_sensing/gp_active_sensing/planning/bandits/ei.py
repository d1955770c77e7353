"""Expected improvement. [Mockus1978]."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gp_active_sensing.belief import Belief
from gp_active_sensing.planning.bandits.base import Bandit
from gp_active_sensing.planning.bandits.improvement import Improvement, log_expected_improvement
from gp_active_sensing.planning.bandits.view import View
from gp_active_sensing.types import FloatArray

__all__ = ["ExpectedImprovement"]


@dataclass(frozen=True)
class ExpectedImprovement(Improvement, Bandit):
    """Expected improvement on the best place so far, ``argmax_x E[max(f(x) - m, 0)]``.

    With m the incumbent plus the margin, which is nothing where nobody has chosen it. [Mockus1978;
    Srinivas2010, Sec. 6]
    """

    def scores(self, view: View, belief: Belief, rng: np.random.Generator) -> FloatArray:
        """Return the logarithm of the expected improvement [log of the unit of the readings]."""
        return log_expected_improvement(*self.excess(view))
