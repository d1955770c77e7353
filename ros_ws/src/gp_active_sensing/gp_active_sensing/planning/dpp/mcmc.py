"""Sets from a Markov chain: for kernels too large to be formed."""

from __future__ import annotations

import math

import numpy as np

from gp_active_sensing.planning.dpp.greedy import greedy_kdpp
from gp_active_sensing.planning.dpp.kernel import Entries, checked, draw, singular, tolerance
from gp_active_sensing.types import FloatArray, IntArray

__all__ = ["mixing_steps", "sample_kdpp_mcmc"]

_REFRESH = 64
"""Exchanges after which what the chain carries along is computed afresh."""


def sample_kdpp_mcmc(
    entries: Entries,
    diagonal: FloatArray,
    k: int,
    rng: np.random.Generator,
    *,
    epsilon: float = 0.01,
    steps: int | None = None,
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
        steps: of the walk; None = `mixing_steps`, which keep `epsilon`.

    Returns:
        (k,) items, sorted.

    Raises:
        ValueError: k, epsilon, steps or the diagonal cannot be used, or the kernel's rank is
            below k.
    """
    diagonal = checked(diagonal, k)
    m = diagonal.size
    if not 0.0 < epsilon < 1.0:
        msg = f"expected epsilon between 0 and 1, got {epsilon}"
        raise ValueError(msg)
    if steps is not None and steps < 0:
        msg = f"expected zero steps or more, got {steps}"
        raise ValueError(msg)
    if k in (0, m):
        return np.arange(k)
    walk = _Walk(entries, diagonal, greedy_kdpp(entries, diagonal, k))
    if steps is None:
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


class _Walk:
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
        """Compute all but the rows from the rows."""
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
