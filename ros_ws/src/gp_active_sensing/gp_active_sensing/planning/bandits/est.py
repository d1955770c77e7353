"""EST: an estimate of the maximum says how wide the confidence bound is. [Wang2016]."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gp_active_sensing.belief import Belief
from gp_active_sensing.config import param
from gp_active_sensing.planning.bandits.base import Bandit
from gp_active_sensing.planning.bandits.improvement import Incumbent, safe_std
from gp_active_sensing.planning.bandits.max_value import est_a, est_n
from gp_active_sensing.planning.bandits.view import View
from gp_active_sensing.types import FloatArray

__all__ = ["Est", "Estimate"]


@dataclass(frozen=True)
class Estimate(Incumbent):
    """The keys that say how the maximum is estimated, where a policy needs it."""

    estimate: str = param(
        "n",
        help="of the maximum: n = its expectation by quadrature, a = by half a Gaussian, quicker",
        choices=("a", "n"),
    )

    def highest(self, view: View) -> float:
        """Return m̂, the estimate of the field's maximum [unit of the readings]."""
        estimate = est_a if self.estimate == "a" else est_n
        return estimate(*view.everywhere, self.standing(view))


@dataclass(frozen=True)
class Est(Estimate, Bandit):
    """The place likeliest to reach the estimated maximum, ``argmin_x (m̂ - μ(x))/σ(x)``.

    The same place as with an upper confidence bound of ``√β_t = min_x (m̂ - μ)/σ``. [Wang2016]
    """

    def scores(self, view: View, belief: Belief, rng: np.random.Generator) -> FloatArray:
        """Return ``(μ - m̂)/σ``."""
        return (view.mean - self.highest(view)) / safe_std(view.mean, view.std)
