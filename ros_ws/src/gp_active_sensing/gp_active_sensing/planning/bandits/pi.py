"""Most probable improvement, also called probability of improvement. [Mockus1989]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gp_active_sensing.belief import Belief
from gp_active_sensing.planning.bandits.base import Bandit
from gp_active_sensing.planning.bandits.improvement import Improvement
from gp_active_sensing.planning.bandits.view import View
from gp_active_sensing.types import FloatArray

__all__ = ["ProbabilityOfImprovement"]


@dataclass(frozen=True)
class ProbabilityOfImprovement(Improvement, Bandit):
    """Most probable improvement on the best place so far, ``argmax_x Pr{f(x) > m} = Φ(u)``.

    With ``u = (μ - m)/σ`` and m the incumbent plus the margin. Without a margin it would stay at
    the incumbent, where u is 0; where nobody has chosen one it is a quarter of the noise's standard
    deviation. [Mockus1989; Srinivas2010, Sec. 6]
    """

    noise_share: ClassVar[float] = 0.25

    def scores(self, view: View, belief: Belief, rng: np.random.Generator) -> FloatArray:
        """Return u, in the order of the probabilities even where these are all 0 or 1."""
        return self.excess(view)[0]
