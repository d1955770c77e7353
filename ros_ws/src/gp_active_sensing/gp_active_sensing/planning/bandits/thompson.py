"""Thompson sampling: the highest place of a field that could be the true one. [Russo2014]."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gp_active_sensing.belief import Belief
from gp_active_sensing.config import param
from gp_active_sensing.planning.bandits.base import Bandit
from gp_active_sensing.planning.bandits.view import View
from gp_active_sensing.types import FloatArray, IntArray
from gp_active_sensing.util.ties import by_size

__all__ = ["Thompson", "posterior_draw"]

_REACH = 3.0
"""Deviations above the mean by which places are ranked where there are too many."""

_JITTER = 1e-8
"""Variance, relative to the largest, that is added to every direction of a draw."""


@dataclass(frozen=True)
class Thompson(Bandit):
    """The highest place of one draw from the belief: λ by its weight, then the field given λ.

    Places in flight to other probes do not change the draw: it differs from call to call anyway.
    [Thompson1933; Russo2014]
    """

    joint: int = param(
        500,
        help="most places that are drawn together, those with the largest mean plus 3 deviations; "
        "the others are not chosen",
        low=1,
    )

    def scores(self, view: View, belief: Belief, rng: np.random.Generator) -> FloatArray:
        """Return the draw [unit of the readings]; less than any of it where none was made."""
        kept = np.arange(view.locations.size)
        if kept.size > self.joint:
            highest = by_size(view.mean + _REACH * view.std)
            kept = np.sort(highest[: self.joint])
        draw = self.sign * belief.transform.inverse(
            posterior_draw(belief, view.locations[kept], rng)
        )
        values = np.full(view.locations.size, float(draw.min()))
        values[kept] = draw
        return values


def posterior_draw(belief: Belief, locations: IntArray, rng: np.random.Generator) -> FloatArray:
    """Return one draw (m,) of the latent field, as the Gaussian process sees it.

    O(|D| m² + m³) on top of what the belief does anyway.
    """
    which = int(rng.choice(belief.weights.size, p=belief.weights))
    white = rng.standard_normal(locations.size)
    scales, known, slopes, mean = (part[which] for part in belief.roots(locations))
    covariance = scales * belief.covariance.between(locations, locations)[which]
    covariance += slopes.T @ slopes - known.T @ known
    scale = float(covariance.diagonal().max())
    draw = mean
    if scale <= 0.0:
        return np.asarray(draw)
    # The symmetric root: Cholesky's loses half of its digits where places hardly differ, and which
    # ones it loses depends on the processor. Rounding leaves negative eigenvalues, of about zero.
    values, vectors = np.linalg.eigh(covariance)
    lengths = np.sqrt(np.maximum(values, 0.0) + _JITTER * scale)
    return np.asarray(draw + vectors @ (lengths * (vectors.T @ white)))
