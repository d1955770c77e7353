"""The relevance region of a batch, where the maximum may still be, and its DPP's kernel."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from gp_active_sensing.belief import Belief
from gp_active_sensing.types import BoolArray, FloatArray, IntArray
from gp_active_sensing.util.ties import by_size

__all__ = ["RegionKernel", "region_of", "relevance_region"]


def relevance_region(
    mean: FloatArray, std: FloatArray, width: float, floor: float | None = None
) -> BoolArray:
    """Return ``R⁺ = {x : μ(x) + 2√β σ(x) ≥ y•}``, ``y• = max_x μ(x) - √β σ(x)``.

    [Contal2013, Sec. 3; Kathuria2016, Algorithm 2]. t counts rounds; the width in R⁺ is that of the
    next one, β_{t+1}, where it is known (UCB); for EST it is not, and β_t stands for it.

    Args:
        mean: (m,) μ of the candidates.
        std: (m,) σ.
        width: √β.
        floor: y•, where members of the batch that are no candidates count for it; None = they
            do not.

    Returns:
        (m,) whether each is in R⁺.
    """
    best = float((mean - width * std).max()) if floor is None else floor
    return np.asarray(mean + 2.0 * width * std >= best)


def region_of(
    mean: FloatArray,
    std: FloatArray,
    width: float,
    floor: float | None = None,
    *,
    size: int,
    without: Sequence[int] = (),
) -> IntArray:
    """Return the indices of R⁺ that further members of a batch are chosen from.

    Where it holds fewer than are wanted, the candidates with the largest upper bounds
    ``μ + 2√β σ`` outside it make up for them.

    Args:
        mean: (m,) μ of the candidates.
        std: (m,) σ.
        width: √β.
        floor: y•; None = that of the candidates.
        size: how many members are wanted, at most the candidates that are left.
        without: candidates that are members already.
    """
    inside = relevance_region(mean, std, width, floor)
    upper = mean + 2.0 * width * std
    open_ = np.ones(mean.size, dtype=np.bool_)
    open_[list(without)] = False
    inside &= open_
    missing = size - int(inside.sum())
    if missing > 0:
        upper[inside | ~open_] = -np.inf
        inside[by_size(upper)[:missing]] = True
    return np.flatnonzero(inside)


LEAST_NOISE = 1e-8
"""Noise as a share of the largest variance of the region: with less the identity would be lost in
rounding, and no set would have a determinant."""
_NEGLIGIBLE = 1e-12
"""Candidates λ with a smaller share of the belief are left out: rounding is larger."""


class RegionKernel:
    """``L = I + σ⁻² C`` over places, given the members that a batch has already.

    C is the joint covariance of the mixture, as the Gaussian process sees the field,
    ``Σ_λ b(λ) (C_λ + (μ_λ - μ)(μ_λ - μ)ᵀ)``, and σ² = Σ_λ b(λ) σ_n²(λ), not
    less than `LEAST_NOISE`. Members S enter by the
    Schur complement ``L - L_·S L_SS⁻¹ L_S·``: the probability of a set given that it contains S.
    With one λ and one member that is ``K_{t,1} = I + σ⁻² k_{t,1}`` of [Kathuria2016, Sec. 3.2].

    Args:
        belief: over the field; not changed.
        places: (m,) the region.
        members: places of the batch so far; one that is listed twice is read twice.
    """

    def __init__(self, belief: Belief, places: IntArray, members: tuple[int, ...] = ()) -> None:
        weights = belief.weights
        kept = weights > _NEGLIGIBLE
        b = weights[kept] / weights[kept].sum()
        self._belief, self._kept = belief, kept
        everything = np.concatenate([np.asarray(members, dtype=np.int64), places])
        scale, W, B, mean = belief.roots(everything)
        self._shares = b * scale[kept]
        root = np.sqrt(b)[:, None]
        spread = (mean[kept] - b @ mean[kept]) * root
        # One row a place, so that a column of the kernel is one product with a matrix.
        self._less = _stacked(W[kept] * root[:, None])
        self._more = np.hstack([_stacked(B[kept] * root[:, None]), spread.T])
        self.places = everything
        prior = self._shares @ belief.covariance.variance(everything)[kept]
        variance = prior + (self._more**2).sum(axis=1) - (self._less**2).sum(axis=1)
        noise = float(b @ belief.noise_variance[kept])
        noise = max(noise, LEAST_NOISE * float(variance.max(initial=0.0)))
        self._shares /= noise
        self._less /= math.sqrt(noise)
        self._more /= math.sqrt(noise)
        # A variance of the field is not below zero, so neither is that of L below one.
        self._diagonal: FloatArray = 1.0 + np.maximum(variance, 0.0) / noise
        if members:
            self._condition(len(members))

    def _condition(self, count: int) -> None:
        """Take the first places as members, and leave the others."""
        members, others = np.arange(count), np.arange(count, self.places.size)
        block = self.entries(members, members)
        cross = self.entries(others, members)
        E = np.linalg.solve(np.linalg.cholesky(block), cross.T).T
        self.places = self.places[count:]
        self._less = np.hstack([self._less[count:], E])
        self._more = self._more[count:]
        self._diagonal = np.maximum(self._diagonal[count:] - (E**2).sum(axis=1), 1.0)

    @property
    def diagonal(self) -> FloatArray:
        """(m,) of L."""
        return self._diagonal

    def entries(self, rows: IntArray, columns: IntArray) -> FloatArray:
        """Return the (r, c) entries of L; O(r c |D|) for each λ."""
        # Whole columns are what is mostly asked for: they need no copy.
        whole = rows.size == self.places.size and bool((rows == np.arange(rows.size)).all())
        less = self._less if whole else self._less[rows]
        more = self._more if whole else self._more[rows]
        prior = self._belief.covariance.between(self.places[rows], self.places[columns])
        L = np.tensordot(self._shares, prior[self._kept], axes=1)
        L += more @ self._more[columns].T - less @ self._less[columns].T
        L += rows[:, None] == columns
        return np.asarray(L)


def _stacked(parts: FloatArray) -> FloatArray:
    """Return (L, r, m) as one contiguous (m, L r)."""
    return np.ascontiguousarray(parts.reshape(-1, parts.shape[2]).T)
