r"""Sets of places that take much off the error of the map: greedy ones, and exchanges in them.

With A the set, :math:`M = (C_{AA} + \sigma_e^2 I)^{-1}` and :math:`B = M S_{AA} M`, a place x that
joins takes off another

.. math:: \frac{S_{xx} - 2 C_{xA} M S_{Ax} + C_{xA} B C_{Ax}}
               {C_{xx} + \sigma_e^2 - C_{xA} M C_{Ax}},

and a place a that leaves gives back :math:`B_{aa} / M_{aa}`. All under each candidate λ; what is
returned is expected over the belief.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from gp_active_sensing.planning.map_error import MapVariance
from gp_active_sensing.types import BoolArray, FloatArray, IntArray
from gp_active_sensing.util.ties import first_best

__all__ = ["exchange", "greedy", "joining", "leaving"]

_LEAST = 1e-12
"""Variance below which a place is known, as a share of the largest."""
_WORTH = 1e-9
"""Share of a value that an exchange has to bring: less is rounding."""


def greedy(field: MapVariance, count: int, allowed: BoolArray | None = None) -> IntArray:
    """Return places that each take most off after those before them. O(L k² m).

    Args:
        field: what readings at m places do.
        count: number k of places; fewer where nothing is left to be learned.
        allowed: (m,) places to choose from; None = all.

    Returns:
        (k,) numbers among the m, in the order in which they were chosen.
    """
    L, m = field.covariance.shape[:2]
    count = min(count, m)
    open_ = np.ones(m, dtype=np.bool_) if allowed is None else allowed.copy()
    variance = np.diagonal(field.covariance, axis1=1, axis2=2).copy()
    shared = np.diagonal(field.shared, axis1=1, axis2=2).copy()
    floor = _LEAST * variance.max(axis=1, initial=0.0)[:, None]
    # C <- C - g gᵀ and S <- S - (g tᵀ + t gᵀ) after each place: g and t are kept, C and S are not.
    g, t = np.zeros((L, count, m)), np.zeros((L, count, m))
    chosen: list[int] = []
    for k in range(count):
        if not open_.any():
            break
        spread = np.maximum(variance, 0.0) + field.noise[:, None]
        gain = field.weights @ (np.maximum(shared, 0.0) / np.maximum(spread, floor + 1e-300))
        x = int(first_best(np.where(open_, gain, -np.inf)))
        if gain[x] <= 0.0:
            break
        past_g, past_t = g[:, :k], t[:, :k]
        c = field.covariance[:, :, x] - np.einsum("lk,lkm->lm", past_g[:, :, x], past_g)
        s = field.shared[:, :, x] - np.einsum("lk,lkm->lm", past_g[:, :, x], past_t)
        s -= np.einsum("lk,lkm->lm", past_t[:, :, x], past_g)
        root = np.sqrt(np.maximum(c[:, x] + field.noise, floor[:, 0] + 1e-300))[:, None]
        g[:, k] = c / root
        t[:, k] = s / root - 0.5 * s[:, x, None] * c / root**3
        variance -= g[:, k] ** 2
        shared -= 2.0 * g[:, k] * t[:, k]
        open_[x] = False
        chosen.append(x)
    return np.array(chosen, dtype=np.int64)


def joining(field: MapVariance, which: IntArray) -> FloatArray:
    """Return what each of the m places would take off after some have been read, (m,).

    0 for those themselves. O(L (k³ + k² m)).

    Args:
        field: what readings at m places do.
        which: (k,) numbers of different places.
    """
    if not len(which):
        return np.asarray(field.weights @ field.gains())
    total = np.zeros(field.covariance.shape[1])
    for weight, noise, C, S in _each(field):
        M = _precision(C, which, noise)
        cross, shared = C[which], S[which]
        told = M @ cross  # (k, m)
        numerator = np.diagonal(S) - 2.0 * (told * shared).sum(axis=0)
        numerator += (told * (S[np.ix_(which, which)] @ told)).sum(axis=0)
        spread = np.diagonal(C) + noise - (told * cross).sum(axis=0)
        floor = max(_LEAST * float(np.diagonal(C).max()), noise, 1e-300)
        total += weight * np.maximum(numerator, 0.0) / np.maximum(spread, floor)
    total[which] = 0.0
    return total


def leaving(field: MapVariance, which: IntArray) -> FloatArray:
    """Return what the map would lose without each of some places, (k,). O(L k³).

    Args:
        field: what readings at m places do.
        which: (k,) numbers of different places.
    """
    total = np.zeros(len(which))
    for weight, noise, C, S in _each(field):
        M = _precision(C, which, noise)
        B = M @ S[np.ix_(which, which)] @ M
        total += weight * np.maximum(np.diagonal(B), 0.0) / np.maximum(np.diagonal(M), 1e-300)
    return total


def exchange(
    field: MapVariance, which: IntArray, allowed: BoolArray, more: Callable[[], bool]
) -> IntArray:
    """Return a set of as many places that is not worse: the least useful give way to better ones.

    O(L (k³ + k² m)) an exchange. Ends where none of them brings anything.

    Args:
        field: what readings at m places do.
        which: (k,) numbers of different places.
        allowed: (m,) places that may join.
        more: asked before each exchange whether there is room for it.
    """
    chosen = which.copy()
    value = field.value(chosen)
    while len(chosen) and more():
        least = int(first_best(-leaving(field, chosen)))
        rest = np.delete(chosen, least)
        gains = np.where(allowed, joining(field, rest), 0.0)
        gains[rest] = 0.0
        x = int(first_best(gains))
        if x == chosen[least]:
            break
        trial = np.append(rest, x)
        better = field.value(trial)
        if better <= value * (1.0 + _WORTH):
            break
        chosen, value = trial, better
    return np.asarray(chosen)


def _each(field: MapVariance) -> Iterator[tuple[float, float, FloatArray, FloatArray]]:
    """Yield weight, noise, C and S of each candidate."""
    for row, (weight, noise) in enumerate(zip(field.weights, field.noise, strict=True)):
        yield float(weight), float(noise), field.covariance[row], field.shared[row]


def _precision(C: FloatArray, which: IntArray, noise: float) -> FloatArray:
    """Return ``(C_AA + σ² I)⁻¹``, with a little more noise where rounding would spoil it."""
    block = C[np.ix_(which, which)]
    least = _LEAST * float(np.diagonal(block).max(initial=0.0))
    block[np.diag_indices_from(block)] += max(noise, least, 1e-300)
    inverse = np.linalg.inv(block)
    return np.asarray(0.5 * (inverse + inverse.T))
