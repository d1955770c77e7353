"""Samples and greedy maxima of k-DPPs (determinantal point processes of k items).

For a positive semi-definite kernel L, a k-DPP has ``Pr(S) = det L_S / e_k(L)`` for sets S of k
items. The normaliser e_k is the sum of all these determinants. A kernel is a function that returns
the requested entries, so a large matrix is never formed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from gp_active_sensing.types import FloatArray, IntArray
from gp_active_sensing.util.ties import first_best

EXACT = 500
"""Largest number of items from which `draw_kdpp` draws exactly."""
_REFRESH = 64
"""Number of exchanges after which the Markov chain recomputes its matrices."""


Entries: TypeAlias = Callable[[IntArray, IntArray], FloatArray]
"""Function ``entries(rows, columns)`` that returns entries (r, c) of a positive semi-definite
kernel."""


def checked(diagonal: FloatArray, k: int) -> FloatArray:
    """Check the diagonal (m,) of a kernel, and return the diagonal as floats.

    Raises:
        ValueError: k is below 0 or above m, or an entry is negative or not finite.
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
    """Return the value below which a variance or an eigenvalue of a kernel is a rounding error."""
    largest = float(diagonal.max(initial=0.0))
    return float(np.finfo(np.float64).eps * max(diagonal.size, 1) * largest)


def draw(weights: FloatArray, u: float) -> int:
    """Return the index at the quantile `u` in [0, 1) of a distribution with weights (m,)."""
    cumulative = np.cumsum(weights)
    index = int(np.searchsorted(cumulative, u * cumulative[-1], side="right"))
    # Rounding errors may put the last quantile beyond the end.
    return index if index < weights.size else int(np.flatnonzero(weights)[-1])


def singular(rank: int, k: int) -> ValueError:
    """Return the error for a kernel under which every set of k items has determinant zero."""
    msg = (
        f"expected a kernel of rank {k} or more for a set of {k} items, got one of rank {rank}: "
        "no set has a positive determinant; ask for fewer items or add to its diagonal"
    )
    return ValueError(msg)


def greedy_kdpp(entries: Entries, diagonal: FloatArray, k: int) -> IntArray:
    """Choose k items one by one, so that each item makes the determinant as large as possible.

    ``x_j = argmax_x det L_{S ∪ {x}} = argmax_x L_xx - L_xS L_SS⁻¹ L_Sx``, computed by a pivoted
    Cholesky factorisation of the chosen columns, O(m k²). The determinant is within a factor (k!)²
    of the largest. [Kathuria2016, Sec. 3; Civril2009]

    Args:
        entries: entries of the kernel L over m items.
        diagonal: (m,) diagonal of L.
        k: number of items, 0 … m.

    Returns:
        (k,) items in the order of choice; ties go to the first item. If every further item makes
        the determinant zero, the first remaining items fill the set.

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


def draw_kdpp(entries: Entries, diagonal: FloatArray, k: int, rng: np.random.Generator) -> IntArray:
    """Draw k items by `sample_kdpp`, or by `sample_kdpp_mcmc` if there are more than `EXACT`."""
    sample = sample_kdpp if diagonal.size <= EXACT else sample_kdpp_mcmc
    return sample(entries, diagonal, k, rng)


def sample_kdpp(
    entries: Entries, diagonal: FloatArray, k: int, rng: np.random.Generator
) -> IntArray:
    """Draw k of m items with ``Pr(S) = det L_S / e_k(L)``, exactly. [Kulesza2012, Sec. 5.2.2].

    The function first draws k eigenvectors with probability proportional to the product of their
    eigenvalues. Then k items are drawn by the chain rule of the projection onto the eigenvectors.
    The time is O(m³ + m k²). `rng` is the source of randomness; see `greedy_kdpp` for the others.

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
    # Rounding errors may make zero eigenvalues slightly negative.
    if not values[0] >= -1e3 * smallest:
        msg = f"expected a positive semi-definite kernel, got the eigenvalue {values[0]:.3g}"
        raise ValueError(msg)
    kept = values > smallest
    if int(kept.sum()) < k:
        raise singular(int(kept.sum()), k)
    chosen = _draw_eigenvectors(np.log(values[kept]), k, rng)
    return _draw_items(vectors[:, kept][:, chosen], rng)


def log_elementary(log_values: FloatArray, k: int) -> FloatArray:
    """Return logarithms of elementary symmetric polynomials e_j of the values v_1 … v_r.

    ``e_j(v_1 … v_r) = e_j(v_1 … v_{r-1}) + v_r e_{j-1}(v_1 … v_{r-1})``. [Kulesza2012, Sec. 5.2.1].

    Args:
        log_values: (m,) logarithms of values above zero.
        k: highest degree.

    Returns:
        (k + 1, m + 1) array with the row j = 0 … k and the column r = 0 … m; -inf for r < j.
    """
    m = log_values.size
    table = np.full((k + 1, m + 1), -np.inf)
    table[0] = 0.0
    for r in range(1, m + 1):
        table[1:, r] = np.logaddexp(table[1:, r - 1], log_values[r - 1] + table[:-1, r - 1])
    return table


def _draw_eigenvectors(log_values: FloatArray, k: int, rng: np.random.Generator) -> list[int]:
    """Draw a set J of k indices with ``Pr(J) ∝ Π_{j in J} v_j``, given the logarithms of v."""
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
    """Draw a set S of k items with ``Pr(S) = det (V Vᵀ)_S``, for orthonormal columns V (m, k)."""
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
    entries: Entries, diagonal: FloatArray, k: int, rng: np.random.Generator
) -> IntArray:
    """Draw k of m items from a distribution within total variation 0.01 of the k-DPP.

    The function runs the bases-exchange walk from the greedy maximum for `mixing_steps` steps,
    about 10 k. In each step a random item x leaves the set S. An item y outside of S - x enters
    with ``Pr(y) ∝ det L_{S - x + y}``. A step forms at most one column of the kernel, and its time
    is O(m k). The arguments are those of `sample_kdpp`. [Anari2016; Cryan2021]

    Returns:
        (k,) items, sorted.

    Raises:
        ValueError: k or the diagonal cannot be used, or the kernel's rank is below k.
    """
    diagonal = checked(diagonal, k)
    m = diagonal.size
    if k in (0, m):
        return np.arange(k)
    walk = _BasesExchange(entries, diagonal, greedy_kdpp(entries, diagonal, k))
    steps = mixing_steps(diagonal, k, walk.log_determinant)
    leaving = rng.integers(k, size=steps)
    entering = rng.random(steps)
    for slot, u in zip(leaving.tolist(), entering.tolist(), strict=True):
        walk.exchange(slot, u)
    return np.sort(walk.items)


def mixing_steps(
    diagonal: FloatArray, k: int, log_determinant: float, epsilon: float = 0.01
) -> int:
    """Return the number of steps after which the bases-exchange walk is close to the k-DPP.

    The number is ``k (log log(1/Pr(S_0)) + log(1/(2 ε²)))`` [Cryan2021, Corollary 2]. Here
    Pr(S_0) is bounded from below by Maclaurin's inequality ``e_k(L) ≤ C(m, k) (tr L / m)^k``.

    Args:
        diagonal: (m,) diagonal of the kernel L.
        k: size of the sets.
        log_determinant: log determinant of the kernel at the first set S_0 of the walk.
        epsilon: largest total variation distance from the k-DPP.
    """
    m = len(diagonal)
    if k in (0, m):
        return 0
    sets = math.lgamma(m + 1) - math.lgamma(k + 1) - math.lgamma(m - k + 1)
    surprise = sets + k * math.log(float(np.mean(diagonal))) - log_determinant
    excess = max(surprise, 0.0) / (2.0 * epsilon**2)
    return math.ceil(k * math.log(excess)) if excess > 1.0 else 0


class _BasesExchange:
    """Set S of k items, and the matrices that are needed to exchange one item.

    Attributes:
        items: (k,) the set S.
        rows: (k, m) rows L_S of the kernel.
        inverse: (k, k) ``L_SS⁻¹``.
        weights: (k, m) ``L_SS⁻¹ L_S``.
        residual: (m,) variances ``L_yy - L_yS L_SS⁻¹ L_Sy`` of the items given S.
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
        """Replace ``items[slot]`` by a random item, which `u` in [0, 1) selects."""
        row, pivot = self.weights[slot], self.inverse[slot, slot]
        # Variances given the other items of S: zero within S, and 1/pivot for the leaving item.
        residual = np.maximum(self.residual + row * row / pivot, 0.0)
        left = self.items[slot]
        residual[self.items] = 0.0
        residual[left] = 1.0 / pivot
        item = draw(residual, u)
        if item != left:
            self._swap(slot, item, float(residual[item]))

    def _swap(self, slot: int, item: int, variance: float) -> None:
        """Replace ``items[slot]`` by `item`, which has the `variance` given the other items."""
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
