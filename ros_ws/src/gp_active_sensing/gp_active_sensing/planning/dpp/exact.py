"""Exact sets: eigenvalues, elementary symmetric polynomials, one item after another."""

from __future__ import annotations

import numpy as np

from gp_active_sensing.planning.dpp.kernel import Entries, checked, draw, singular
from gp_active_sensing.types import FloatArray, IntArray

__all__ = ["log_elementary", "sample_kdpp"]


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
