"""Sets of k items drawn, or chosen, with probability proportional to a kernel's determinant.

A k-DPP over m items with the positive semi-definite kernel L has ``Pr(S) = det L_S / e_k(L)`` for
|S| = k, where e_k sums the determinants of all sets of that size. Kernels come as a function that
returns the entries it is asked for, so that the full matrix is formed only where it is small.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from gp_active_sensing.types import FloatArray, IntArray
from gp_active_sensing.util.ties import first_best

_REFRESH = 64
"""Exchanges after which what the chain carries along is computed again."""


Entries: TypeAlias = Callable[[IntArray, IntArray], FloatArray]
"""``entries(rows, columns) -> (r, c)`` of a symmetric positive semi-definite kernel."""


def checked(diagonal: FloatArray, k: int) -> FloatArray:
    """Return a kernel's diagonal (m,) as floats, once it is seen that k items can be had.

    Raises:
        ValueError: k is below 0 or above m, or the diagonal is not one of a kernel.
    """
    values = np.asarray(diagonal, dtype=np.float64)
    if values.ndim != 1:
        msg = f"expected the kernel's diagonal with shape (m,), got shape {values.shape}"
        raise ValueError(msg)
    bad = np.flatnonzero(~(np.isfinite(values) & (values >= 0.0)))
    if bad.size:
        where = int(bad[0])
        msg = (
            "expected a kernel's diagonal, finite and not negative, "
            f"got {values[where]} for item {where}"
        )
        raise ValueError(msg)
    if not 0 <= k <= values.size:
        msg = f"expected a set of 0 … {values.size} items, got k = {k}: ask for fewer"
        raise ValueError(msg)
    return values


def tolerance(diagonal: FloatArray) -> float:
    """Return the variance or eigenvalue below which rounding cannot tell it from zero."""
    largest = float(diagonal.max(initial=0.0))
    return float(np.finfo(np.float64).eps * max(diagonal.size, 1) * largest)


def draw(weights: FloatArray, u: float) -> int:
    """Return the index at quantile `u` in [0, 1) of weights (m,), none negative, one above zero."""
    cumulative = np.cumsum(weights)
    index = int(np.searchsorted(cumulative, u * cumulative[-1], side="right"))
    # Rounding may put the last quantile at the very end; what weighs nothing is never drawn.
    return index if index < weights.size else int(np.flatnonzero(weights)[-1])


def singular(rank: int, k: int) -> ValueError:
    """Return the error of a kernel under which every set of k items has determinant zero."""
    msg = (
        f"expected a kernel of rank {k} or more for a set of {k} items, got one of rank {rank}: "
        "no set has a positive determinant; ask for fewer items or add to its diagonal"
    )
    return ValueError(msg)


def greedy_kdpp(entries: Entries, diagonal: FloatArray, k: int) -> IntArray:
    """Choose k items, each with the largest determinant together with those before it.

    ``x_j = argmax_x det L_{S ∪ {x}} = argmax_x L_xx - L_xS L_SS⁻¹ L_Sx``: a Cholesky factorisation
    with pivots that forms only the chosen columns, O(m k²). Its determinant is within
    a factor (k!)² of the largest. [Kathuria2016, Sec. 3; Civril2009]

    Args:
        entries: of the kernel L over m items.
        diagonal: (m,) of L.
        k: number of items, 0 … m.

    Returns:
        (k,) items in the order in which they were chosen; ties: the first. Where every further
        item leaves the determinant at zero, the first ones fill the set.

    Raises:
        ValueError: k or the diagonal cannot be used.
    """
    diagonal = checked(diagonal, k)
    m = diagonal.size
    everything = np.arange(m)
    residual = diagonal.copy()
    smallest = tolerance(diagonal)
    chosen = np.empty(k, dtype=np.int64)
    rows = np.empty((k, m))
    for j in range(k):
        item = int(first_best(residual))
        variance = residual[item]
        if variance <= smallest:
            chosen[j:] = np.setdiff1d(everything, chosen[:j])[: k - j]
            break
        chosen[j] = item
        column = entries(everything, chosen[j : j + 1])[:, 0] - rows[:j, item] @ rows[:j]
        rows[j] = column / np.sqrt(variance)
        residual -= rows[j] ** 2
        residual[chosen[: j + 1]] = -np.inf
    return chosen


def sample_kdpp(
    entries: Entries, diagonal: FloatArray, k: int, rng: np.random.Generator
) -> IntArray:
    """Draw k of m items with ``Pr(S) = det L_S / e_k(L)``, exactly. [Kulesza2012, Sec. 5.2.2].

    First k eigenvectors are drawn, with probability proportional to the product of their
    eigenvalues; then k items, by the chain rule of the projection onto these. O(m³) for the
    eigenvectors, O(m k²) for the rest; sums of products are kept as logarithms, which neither
    overflow nor vanish.

    Args:
        entries: of the kernel L over m items; all of them are asked for.
        diagonal: (m,) of L.
        k: number of items, 0 … m.
        rng: source of randomness.

    Returns:
        (k,) items, sorted.

    Raises:
        ValueError: k or the diagonal cannot be used, L is not positive semi-definite, or its rank
            is below k.
    """
    m = checked(diagonal, k).size
    everything = np.arange(m)
    if k in (0, m):
        return everything[:k]
    L = entries(everything, everything)
    values, vectors = np.linalg.eigh(L)
    smallest = float(np.finfo(np.float64).eps * m * max(values[-1], 0.0))
    # Rounding leaves the zeros of a singular kernel some way below zero, but not far.
    if not values[0] >= -1e3 * smallest:
        msg = f"expected a positive semi-definite kernel, got the eigenvalue {values[0]:.3g}"
        raise ValueError(msg)
    kept = values > smallest
    if int(kept.sum()) < k:
        raise singular(int(kept.sum()), k)
    chosen = _draw_eigenvectors(np.log(values[kept]), k, rng)
    return _draw_items(vectors[:, kept][:, chosen], rng)


def log_elementary(log_values: FloatArray, k: int) -> FloatArray:
    """Return ``log e_j(v_1 … v_r)`` for j = 0 … k (rows) and r = 0 … m (columns).

    ``e_j(v_1 … v_r) = e_j(v_1 … v_{r-1}) + v_r e_{j-1}(v_1 … v_{r-1})``. [Kulesza2012, Sec. 5.2.1].

    Args:
        log_values: (m,) logarithms of values above zero.
        k: highest degree.

    Returns:
        (k + 1, m + 1); -inf where r < j.
    """
    m = log_values.size
    table = np.full((k + 1, m + 1), -np.inf)
    table[0] = 0.0
    for r in range(1, m + 1):
        table[1:, r] = np.logaddexp(table[1:, r - 1], log_values[r - 1] + table[:-1, r - 1])
    return table


def _draw_eigenvectors(log_values: FloatArray, k: int, rng: np.random.Generator) -> list[int]:
    """Draw k indices, ``Pr(J) ∝ Π_{j in J} v_j``, deciding on the last value first."""
    table = log_elementary(log_values, k)
    with np.errstate(divide="ignore"):
        drawn = np.log(rng.random(log_values.size))
    chosen: list[int] = []
    left = k
    for r in range(log_values.size, 0, -1):
        if left == 0:
            break
        if drawn[r - 1] < log_values[r - 1] + table[left - 1, r - 1] - table[left, r]:
            chosen.append(r - 1)
            left -= 1
    return chosen


def _draw_items(V: FloatArray, rng: np.random.Generator) -> IntArray:
    """Draw as many items as V (m, k) has orthonormal columns, ``Pr(S) = det (V Vᵀ)_S``.

    Each item with a probability proportional to what the ones before leave of its row's length.
    """
    m, k = V.shape
    residual: FloatArray = (V * V).sum(axis=1)
    chosen = np.empty(k, dtype=np.int64)
    rows = np.empty((k, m))
    drawn = rng.random((k,))
    for j in range(k):
        item = draw(np.maximum(residual, 0.0), float(drawn[j]))
        chosen[j] = item
        column = V @ V[item] - rows[:j, item] @ rows[:j]
        rows[j] = column / np.sqrt(residual[item])
        residual -= rows[j] ** 2
        residual[chosen[: j + 1]] = 0.0
    return np.sort(chosen)


def sample_kdpp_mcmc(
    entries: Entries,
    diagonal: FloatArray,
    k: int,
    rng: np.random.Generator,
    *,
    epsilon: float = 0.01,
) -> IntArray:
    """Draw k of m items from a distribution within `epsilon` of the k-DPP's (total variation).

    The bases-exchange walk: one of the k items leaves, each with probability 1/k; then one of
    those outside it enters, the one that left included, ``Pr(y) ∝ det L_{S - x + y}``. It has the
    k-DPP as its stationary distribution and starts at the greedy maximum. [Anari2016] bound the
    lazy walk that proposes both items blindly by ``2 k m log(1/(ε Pr(S_0)))`` steps; this one needs
    only `mixing_steps`, about 10 k, since every proposal is drawn from its conditional
    distribution. A step forms at most one column of the kernel, O(m k); the matrix never.

    Args:
        entries: of the kernel L over m items.
        diagonal: (m,) of L.
        k: number of items, 0 … m.
        rng: source of randomness.
        epsilon: total variation distance from the k-DPP.

    Returns:
        (k,) items, sorted.

    Raises:
        ValueError: k, epsilon or the diagonal cannot be used, or the kernel's rank is below k.
    """
    diagonal = checked(diagonal, k)
    m = diagonal.size
    if not 0.0 < epsilon < 1.0:
        msg = f"expected epsilon between 0 and 1, got {epsilon}"
        raise ValueError(msg)
    if k in (0, m):
        return np.arange(k)
    walk = _BasesExchange(entries, diagonal, greedy_kdpp(entries, diagonal, k))
    steps = mixing_steps(diagonal, k, walk.log_determinant, epsilon)
    leaving = rng.integers(k, size=steps)
    entering = rng.random(steps)
    for slot, u in zip(leaving.tolist(), entering.tolist(), strict=True):
        walk.exchange(slot, u)
    return np.sort(walk.items)


def mixing_steps(
    diagonal: FloatArray, k: int, log_determinant: float, epsilon: float = 0.01
) -> int:
    """Return the steps after which the bases-exchange walk is within `epsilon` of its k-DPP.

    ``k (log log(1/Pr(S_0)) + log(1/(2 ε²)))`` [Cryan2021, Corollary 2]: each step leaves a share
    1 - 1/k of the relative entropy, which is log(1/Pr(S_0)) at the start, and the distance is at
    most the root of half of what is left. Pr(S_0) is bounded from the trace,
    ``e_k(L) ≤ C(m, k) (tr L / m)^k`` (Maclaurin), so no eigenvalue is needed.

    Args:
        diagonal: (m,) of the kernel.
        k: size of the sets.
        log_determinant: of the kernel at the set where the walk starts.
        epsilon: total variation distance.
    """
    m = len(diagonal)
    if k in (0, m):
        return 0
    sets = math.lgamma(m + 1) - math.lgamma(k + 1) - math.lgamma(m - k + 1)
    surprise = sets + k * math.log(float(np.mean(diagonal))) - log_determinant
    excess = max(surprise, 0.0) / (2.0 * epsilon**2)
    return math.ceil(k * math.log(excess)) if excess > 1.0 else 0


class _BasesExchange:
    """A set of items, and what an exchange of one of them needs.

    Attributes:
        items: (k,) the set S.
        rows: (k, m) rows L_S of the kernel.
        inverse: (k, k) ``L_SS⁻¹``.
        weights: (k, m) ``L_SS⁻¹ L_S``.
        residual: (m,) ``L_yy - L_yS L_SS⁻¹ L_Sy``, what S leaves of each item's variance.
    """

    def __init__(self, entries: Entries, diagonal: FloatArray, items: IntArray) -> None:
        self.entries = entries
        self.diagonal = diagonal
        self.everything = np.arange(diagonal.size)
        self.smallest = tolerance(diagonal)
        self.items = items.copy()
        self.rows = entries(self.items, self.everything)
        self.exchanges = 0
        self._refresh()

    def _refresh(self) -> None:
        block = self.rows[:, self.items]
        try:
            factor = np.linalg.cholesky(block)
        except np.linalg.LinAlgError:
            raise singular(int(np.linalg.matrix_rank(block)), len(self.items)) from None
        pivots = np.diagonal(factor)
        if pivots.min() ** 2 <= self.smallest:
            raise singular(int((pivots**2 > self.smallest).sum()), len(self.items))
        self.log_determinant = 2.0 * float(np.log(pivots).sum())
        self.inverse = np.linalg.inv(block)
        self.weights = self.inverse @ self.rows
        self.residual = self.diagonal - (self.rows * self.weights).sum(axis=0)

    def exchange(self, slot: int, u: float) -> None:
        """Let the item in `slot` leave, and the one at quantile `u` of those outside enter."""
        row, pivot = self.weights[slot], self.inverse[slot, slot]
        # What S without the item leaves of each variance: zero within S, and what left has 1/pivot.
        residual = np.maximum(self.residual + row * row / pivot, 0.0)
        left = self.items[slot]
        residual[self.items] = 0.0
        residual[left] = 1.0 / pivot
        item = draw(residual, u)
        if item != left:
            self._swap(slot, item, float(residual[item]))

    def _swap(self, slot: int, item: int, variance: float) -> None:
        """Put `item` in place of the one in `slot`; `variance` is what the others leave of it."""
        column = self.entries(self.everything, np.array([item]))[:, 0]
        ratio = self.inverse[:, slot] / self.inverse[slot, slot]
        row = self.weights[slot].copy()
        others = self.weights[:, item] - ratio * row[item]  # L_RR⁻¹ L_R,item of the rest R
        others[slot] = 0.0
        gain = (column - others @ self.rows) / variance
        self.residual += row * row / self.inverse[slot, slot] - variance * gain * gain
        self.weights -= np.outer(ratio, row) + np.outer(others, gain)
        self.weights[slot] = gain
        self.inverse -= np.outer(ratio, self.inverse[slot])
        self.inverse[slot] = self.inverse[:, slot] = 0.0
        others[slot] = -1.0
        self.inverse += np.outer(others, others) / variance
        self.rows[slot] = column
        self.items[slot] = item
        self.exchanges += 1
        if self.exchanges % _REFRESH == 0:
            self._refresh()
