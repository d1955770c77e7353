"""Mutual information: the place whose reading tells most about the places not observed."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from gp_active_sensing.belief import Belief
from gp_active_sensing.config import param
from gp_active_sensing.planning.base import PolicyState
from gp_active_sensing.planning.greedy import Greedy
from gp_active_sensing.planning.pending import marginals_given_pending
from gp_active_sensing.types import FloatArray, IntArray

__all__ = ["MutualInformation"]

_NEGLIGIBLE = 1e-9
"""Weight below which a candidate λ is left out of the average."""
_FLOOR = 1e-9
"""Least noise variance, relative to the prior variance, that an inverse can be trusted with."""
_BATCH = 8.0
"""How much dearer, for each number computed, many small inverses are than a large one."""
_NUMBERS = 2_000_000
"""Numbers in the largest temporary array of the small inverses."""


@dataclass(frozen=True)
class MutualInformation(Greedy):
    r"""Largest gain of information about the places not observed. [Krause2008].

    .. math:: \arg\max_x \sum_\lambda b(\lambda) \big( H[Z_x | z_D, \lambda]
        - H[Z_x | Z_{X \setminus (D \cup x)}, \lambda] \big)

    The first term alone (`ie`) goes to the edge of the map, where half of what a reading tells is
    about places that are not on it; the second takes off what x has in common with
    nothing. It is averaged under each λ with the present belief; what a reading tells about λ
    is not counted (`max_entropy` and `bal` count it). The value is below zero where x is
    better known already than all the other places could tell.

    Where the map is large, the second term conditions on the `neighbourhood` places
    most correlated with x only, as the local kernels of the paper. Fewer conditions leave more
    entropy, so the value is then too small, by less the more places are taken. Time for n
    unobserved places, A candidates and k neighbours: O(L min(n³, A (n + k³))).
    """

    neighbourhood: int | None = param(
        64,
        help="unobserved places whose readings each candidate is compared with, the most "
        "correlated ones; null = all of them. Small maps take all in any case",
        low=1,
    )

    def scores(
        self, belief: Belief, locations: IntArray, pending: Collection[int], state: PolicyState
    ) -> FloatArray:
        """Return the expected gain of mutual information."""
        prior = _ReadingVariances(belief)
        left = ~belief.observed
        left[list(pending)] = False
        others = np.flatnonzero(left)
        n, k = len(others), self.neighbourhood
        if k is None or n - 1 <= k or n**3 <= _BATCH * len(locations) * k**3:
            given_rest = prior.given_all(others)[:, np.searchsorted(others, locations)]
        else:
            given_rest = prior.given_nearest(locations, others, k)
        _, variance = marginals_given_pending(belief, locations, pending)
        predictive = variance[prior.live] + prior.noise
        return np.asarray(prior.weights @ (0.5 * np.log(predictive / given_rest)))


class _ReadingVariances:
    """Variances of a reading given readings of other places but not those of D.

    Args:
        belief: whose prior covariance, mean included, is meant.
    """

    def __init__(self, belief: Belief) -> None:
        weights = belief.weights
        self.live = np.flatnonzero(weights > _NEGLIGIBLE)
        self.weights = weights[self.live] / weights[self.live].sum()
        self._covariance = belief.covariance
        basis = belief.mean.basis * belief.mean.std
        self._basis = basis
        # Where the scale of the field is not known, everything is in units of its estimate.
        signal = np.array([h.signal_std for h in belief.hyperparameters])
        unscaled = np.array([h.signal_std for h in belief.covariance.hyperparameters])
        self._factor = np.square(signal / unscaled)[self.live, None, None]
        variance = self._latent_variance(np.arange(belief.n))
        floor = _FLOOR * variance.max(axis=1)
        self.noise = np.maximum(belief.noise_variance[self.live], floor)[:, None]

    def _latent_variance(self, where: IntArray) -> FloatArray:
        variance = self._covariance.variance(where)[self.live] + (self._basis[where] ** 2).sum(1)
        return np.asarray(self._factor[:, :, 0] * variance)

    def _between(self, rows: IntArray, columns: IntArray) -> FloatArray:
        """(L', r, c) prior covariance of the latent field, the unknown mean included."""
        latent = self._covariance.between(rows, columns)[self.live]
        return np.asarray(self._factor * (latent + self._basis[rows] @ self._basis[columns].T))

    def given_all(self, others: IntArray) -> FloatArray:
        """(L', n) variance of a reading at each place given readings at all the others.

        ``1 / (Σ⁻¹)_xx``: one inverse for each λ.
        """
        n = len(others)
        variance = np.empty((len(self.live), n))
        for row, covariance in enumerate(self._between(others, others)):
            noise = float(self.noise[row, 0])
            covariance[np.arange(n), np.arange(n)] += noise
            inverse = np.linalg.inv(covariance)
            variance[row] = 1.0 / np.maximum(np.diagonal(inverse), 1e-300)
        return self._bracketed(variance, others)

    def given_nearest(self, locations: IntArray, others: IntArray, k: int) -> FloatArray:
        """(L', A) variance of a reading at each location given its k nearest of `others`.

        Nearest by correlation, averaged over λ; the location itself is left out.
        """
        variance = np.empty((len(self.live), len(locations)))
        step = max(1, _NUMBERS // (len(self.live) * max(k * k, len(others))))
        for start in range(0, len(locations), step):
            part = locations[start : start + step]
            latent = self._covariance.between(part, others)[self.live]
            # A kernel may know the field at some place for certain.
            scale = np.maximum(self._covariance.variance(others)[self.live], 1e-300)
            score = np.tensordot(self.weights, np.abs(latent) / np.sqrt(scale)[:, None], 1)
            score[others[None, :] == part[:, None]] = -1.0
            # Of places that only rounding tells apart, those that come first.
            score = np.round(score / max(float(score.max()), 1e-300), 9)
            score -= 0.5e-9 / len(others) * np.arange(len(others))
            near = others[np.argpartition(-score, k - 1, axis=1)[:, :k]]
            for row, (x, places) in enumerate(zip(part, near, strict=True)):
                block = self._between(places, places)
                block[:, np.arange(k), np.arange(k)] += self.noise
                cross = self._between(np.array([x]), places)
                solved = np.linalg.solve(block, np.swapaxes(cross, 1, 2))
                explained = (cross @ solved)[:, 0, 0]
                prior = self._latent_variance(np.array([x]))[:, 0] + self.noise[:, 0]
                variance[:, start + row] = prior - explained
        return self._bracketed(variance, locations)

    def _bracketed(self, variance: FloatArray, where: IntArray) -> FloatArray:
        """Keep rounding out: no reading is surer than its noise, or less sure than at first."""
        return np.clip(variance, self.noise, self._latent_variance(where) + self.noise)
