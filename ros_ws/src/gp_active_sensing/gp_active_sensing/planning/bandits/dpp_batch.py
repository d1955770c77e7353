"""Batches by a determinantal point process (DPP). [Contal2013; Kathuria2016].

The first place of a batch has the largest upper confidence bound. The other places come from the
region in which the field may have its maximum. UCB-PE and EST-PE choose them by greedy maximisation
of the determinant. The other policies draw them from the DPP.
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
from gp_active_sensing.planning.dpp import draw_kdpp, greedy_kdpp
from gp_active_sensing.types import BoolArray, FloatArray, IntArray
from gp_active_sensing.util.ties import by_size, first_best

LEAST_NOISE = 1e-8
"""Lower limit of a DPP kernel's noise variance, as a fraction of the field's largest variance."""
_NEGLIGIBLE = 1e-12
"""Weight below which a hyperparameter candidate λ is ignored."""


def relevance_region(
    mean: FloatArray, std: FloatArray, width: float, floor: float | None = None
) -> BoolArray:
    """Return the (m,) mask of the region ``R⁺ = {x : μ(x) + 2√β σ(x) ≥ y•}``.

    R⁺ contains the places at which the field may have its maximum. ``y• = max_x μ(x) - √β σ(x)`` is
    a lower bound on the maximum. [Contal2013, Sec. 3; Kathuria2016, Algorithm 2].

    Args:
        mean: (m,) means μ of the places.
        std: (m,) standard deviations σ of the places.
        width: confidence width √β.
        floor: value of y•; None = y• is computed from the m places.
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
    """Return the indices of the places from which a batch chooses `size` further members.

    The places lie in the region R⁺ of `relevance_region`; the indices `without` are excluded. If R⁺
    has fewer than `size` places, the places with the next largest ``μ + 2√β σ`` are added.
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
    """DPP kernel ``L = I + σ⁻² C`` over places, conditioned on the members of a batch.

    ``C = Σ_λ b(λ) (C_λ + (μ_λ - μ)(μ_λ - μ)ᵀ)`` is the joint covariance over the hyperparameter
    candidates λ, in the unit of the transformed readings. ``σ² = Σ_λ b(λ) σ_n²(λ)`` is the noise
    variance. Conditioning on the members S replaces L by the Schur complement
    ``L - L_·S L_SS⁻¹ L_S·``. With one λ and one member, this is the kernel K_{t,1} of
    [Kathuria2016, Sec. 3.2].

    Args:
        belief: belief over the field; it is not changed.
        places: (m,) places to choose from.
        members: places of the batch so far; a place that occurs twice counts twice.
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
        # With one row for each place, a column of the kernel is one matrix product.
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
        # Variances of the field are not negative, so the diagonal of L is at least one.
        self.diagonal: FloatArray = 1.0 + np.maximum(variance, 0.0) / noise
        if members:
            self._condition(len(members))

    def _condition(self, count: int) -> None:
        """Condition the kernel on the first `count` places, and remove these places."""
        members, others = np.arange(count), np.arange(count, self.places.size)
        block = self.entries(members, members)
        cross = self.entries(others, members)
        E = np.linalg.solve(np.linalg.cholesky(block), cross.T).T
        self.places = self.places[count:]
        self._less = np.hstack([self._less[count:], E])
        self._more = self._more[count:]
        self.diagonal = np.maximum(self.diagonal[count:] - (E**2).sum(axis=1), 1.0)

    def entries(self, rows: IntArray, columns: IntArray) -> FloatArray:
        """Return the entries of the kernel at the indices `rows` (r,) and `columns` (c,)."""
        # Most calls ask for whole columns, which need no copy.
        whole = rows.size == self.places.size and bool((rows == np.arange(rows.size)).all())
        less = self._less if whole else self._less[rows]
        more = self._more if whole else self._more[rows]
        prior = self._belief.covariance.between(self.places[rows], self.places[columns])
        L = np.tensordot(self._shares, prior[self._kept], axes=1)
        L += more @ self._more[columns].T - less @ self._less[columns].T
        L += rows[:, None] == columns
        return np.asarray(L)


def _stacked(parts: FloatArray) -> FloatArray:
    """Return an array (L, r, m) as a contiguous array (m, L r)."""
    return np.ascontiguousarray(parts.reshape(-1, parts.shape[2]).T)


@dataclass(frozen=True)
class Dpp(Batch):
    """Base class of policies that choose the further members of a batch by a DPP.

    The first member is the place with the largest upper bound. A batch continues as long as this
    member is pending. Probes that wait at different times may thus get members of the same batch.
    The t of β_t counts batches [Kathuria2016, Algorithm 2]. A new policy overrides `explore`.
    """

    in_rounds: ClassVar[bool] = True

    @abstractmethod
    def explore(self, kernel: RegionKernel, size: int, rng: np.random.Generator) -> IntArray:
        """Choose `size` members of the batch, as indices into ``kernel.places``."""

    def choose(self, start: Start, size: int, rng: np.random.Generator) -> list[int]:
        """Choose the next members of the batch; see `Batch.choose`."""
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
    """Base class of policies that choose further members by greedy maximisation of the determinant.

    [Kathuria2016, Theorem 3.3]
    """

    def explore(self, kernel: RegionKernel, size: int, rng: np.random.Generator) -> IntArray:
        """Choose places one by one, each with the largest variance given the earlier places."""
        return greedy_kdpp(kernel.entries, kernel.diagonal, size)


@dataclass(frozen=True)
class UcbDppMax(BySchedule, DppMax):
    """UCB-PE: one robot as gp_ucb; the others go to uncertain places that may be the highest.

    [Contal2013; Kathuria2016, Algorithm 2]
    """


@dataclass(frozen=True)
class EstDppMax(ByEstimate, DppMax):
    """EST-PE: as ucb_dpp_max, with the confidence bounds of est. [Kathuria2016, Algorithm 2]."""


@dataclass(frozen=True)
class DppSample(Dpp):
    """Base class of policies that draw the further members S with ``Pr(S) ∝ det L_S``."""

    def explore(self, kernel: RegionKernel, size: int, rng: np.random.Generator) -> IntArray:
        """Draw `size` members of the batch, as indices into ``kernel.places``."""
        return draw_kdpp(kernel.entries, kernel.diagonal, size, rng)


@dataclass(frozen=True)
class UcbDppSample(BySchedule, DppSample):
    """As ucb_dpp_max; the other robots' places are drawn at random. [Kathuria2016, Theorem 3.4]."""


@dataclass(frozen=True)
class EstDppSample(ByEstimate, DppSample):
    """As ucb_dpp_sample, with the confidence bounds of est. [Kathuria2016, Theorem 3.4]."""
