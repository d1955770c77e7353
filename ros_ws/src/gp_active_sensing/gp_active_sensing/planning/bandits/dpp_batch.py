"""Batches by a DPP: one member by its upper bound, the others over where the maximum may be.

The set of largest determinant (UCB-PE, EST-PE) or a sample. [Contal2013; Kathuria2016]
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gp_active_sensing.belief import Belief
from gp_active_sensing.planning.bandits.batch import Batch, ByEstimate, BySchedule, Start
from gp_active_sensing.planning.dpp import greedy_kdpp, sample_kdpp, sample_kdpp_mcmc
from gp_active_sensing.types import BoolArray, FloatArray, IntArray
from gp_active_sensing.util.ties import by_size, first_best

LEAST_NOISE = 1e-8
"""Noise as a share of the largest variance of the region: with less the identity would be lost in
rounding, and no set would have a determinant."""
_NEGLIGIBLE = 1e-12
"""Candidates λ with a smaller share of the belief are left out: rounding is larger."""


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


@dataclass(frozen=True)
class Dpp(Batch):
    """The first member has the largest upper bound; the others are a set of a DPP over R⁺.

    Where probes wait one at a time, one of them is on its way to the largest upper bound, and the
    others explore. The t of β_t and of R⁺ counts rounds, not readings [Kathuria2016, Algorithm 2].
    A new one overrides `explore`.
    """

    in_rounds: ClassVar[bool] = True

    @abstractmethod
    def explore(self, kernel: RegionKernel, size: int, rng: np.random.Generator) -> IntArray:
        """Return `size` members of the batch, as indices into ``kernel.places``."""

    def choose(self, start: Start, size: int, rng: np.random.Generator) -> list[int]:
        """Return the next members of the batch; see `Batch.choose`."""
        view, members = start.view, start.members
        chosen: list[int] = []
        if start.lead is None:
            chosen = [int(first_best(start.upper()))]
            members = (*members, int(view.locations[chosen[0]]))
        more = size - len(chosen)
        if more:
            mean, std = view.everywhere
            places = np.concatenate([view.locations, members])
            width = start.widths(view.stage, places, std[places])
            floor = float((mean - width * std)[places].max())
            after = start.widths(view.stage + 1, places, std[places])
            region = region_of(view.mean, view.std, after, floor, size=more, without=chosen)
            kernel = RegionKernel(start.belief, view.locations[region], members)
            chosen += region[self.explore(kernel, more, rng)].tolist()
        return chosen


@dataclass(frozen=True)
class DppMax(Dpp):
    """Members with the largest determinant, one after another. [Kathuria2016, Theorem 3.3]."""

    def explore(self, kernel: RegionKernel, size: int, rng: np.random.Generator) -> IntArray:
        """Return the greedy maximum: each time the place that is known least."""
        return greedy_kdpp(kernel.entries, kernel.diagonal, size)


@dataclass(frozen=True)
class UcbDppMax(BySchedule, DppMax):
    """UCB-PE: the largest upper bound, then the least known of where the maximum may be.

    [Contal2013; Kathuria2016, Algorithm 2]
    """


@dataclass(frozen=True)
class EstDppMax(ByEstimate, DppMax):
    """EST-PE: as ucb_dpp_max, with the bounds of est. [Kathuria2016, Algorithm 2]."""


@dataclass(frozen=True)
class DppSample(Dpp):
    """Members drawn together, ``Pr(S) ∝ det L_S``: diverse, but not always the same."""

    exact_up_to: ClassVar[int] = 500
    """Largest relevance region that is drawn from exactly, by eigenvalues. Beyond it a Markov
    chain draws, which never forms the kernel [places]."""
    epsilon: ClassVar[float] = 0.01
    """Distance in total variation of the Markov chain from the exact distribution."""

    def explore(self, kernel: RegionKernel, size: int, rng: np.random.Generator) -> IntArray:
        """Return a sample."""
        entries, diagonal = kernel.entries, kernel.diagonal
        if diagonal.size <= self.exact_up_to:
            return sample_kdpp(entries, diagonal, size, rng)
        return sample_kdpp_mcmc(entries, diagonal, size, rng, epsilon=self.epsilon)


@dataclass(frozen=True)
class UcbDppSample(BySchedule, DppSample):
    """The largest upper bound, then a sample of diverse places where the maximum may be.

    [Kathuria2016, Theorem 3.4]
    """


@dataclass(frozen=True)
class EstDppSample(ByEstimate, DppSample):
    """As ucb_dpp_sample, with the bounds of est. [Kathuria2016, Theorem 3.4]."""
