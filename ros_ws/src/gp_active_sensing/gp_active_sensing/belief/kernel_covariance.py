"""Prior covariance of candidates that have different kernels of the grammar."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass

import numpy as np

from gp_active_sensing.belief.covariance import HyperParameters
from gp_active_sensing.kernels.composite import Composite, correlation_of_square, warped
from gp_active_sensing.types import FloatArray, IntArray

__all__ = ["KernelCandidates", "KernelCovariance"]

_TABLE = 16_000_000
"""Numbers of a table of all covariances up to which there is one: 128 MB."""


@dataclass(frozen=True, eq=False)
class KernelCandidates:
    """Candidates that have the same kernel and differ in the lengths over which it varies.

    Some may differ in what is each place's own and in the noise only: then their θ are the same.

    Args:
        composite: the kernel.
        thetas: (F, P) in normalised units; equal but for lengths of variation.
        hyperparameters: (F,) what they are in the units of the map and the readings.
        weights: (F,) prior belief.
    """

    composite: Composite
    thetas: FloatArray
    hyperparameters: tuple[HyperParameters, ...]
    weights: FloatArray


class KernelCovariance:
    """``s² k_i(z, z'; θ_i)`` over places whose inputs are z, the candidates kernel by kernel.

    The variance differs from place to place where a kernel has a LIN. What is each place's own is
    not in it, see `PlaceCovariance`.

    Args:
        groups: the candidates, those of a kernel together.
        inputs: (n, d) of the places in normalised units.
        output_scale: s, one normalised unit of the field in the unit of the readings.

    Raises:
        ValueError: no candidate, or inputs that are not finite or do not fit the kernels.
    """

    def __init__(
        self, groups: Sequence[KernelCandidates], inputs: FloatArray, output_scale: float
    ) -> None:
        Z = np.array(inputs, dtype=np.float64)
        if not groups or not all(group.hyperparameters for group in groups):
            msg = "expected at least one candidate, got none"
            raise ValueError(msg)
        widths = {group.composite.dimensions for group in groups}
        if Z.ndim != 2 or widths != {Z.shape[1]} or not np.isfinite(Z).all():
            msg = f"expected finite inputs (n, {widths.pop()}), got shape {Z.shape}"
            raise ValueError(msg)
        self._n = len(Z)
        self._kernels: list[_Prepared] = []
        self._hyperparameters = tuple(h for group in groups for h in group.hyperparameters)
        # Candidates of the same θ have their covariance in common.
        which: list[int] = []
        distinct = 0
        for group in groups:
            thetas, inverse = np.unique(group.thetas, axis=0, return_inverse=True)
            self._kernels.append(_Prepared(group.composite, thetas, Z, output_scale**2))
            which += (distinct + inverse.reshape(-1)).tolist()
            distinct += len(thetas)
        self._which: IntArray = np.array(which)
        self._variance: FloatArray = np.concatenate([part.variance() for part in self._kernels])
        self._table: FloatArray | None = None
        if distinct * self._n**2 <= _TABLE:
            everywhere = np.arange(self._n)
            self._table = self._computed(everywhere, everywhere)

    @property
    def n(self) -> int:
        """Number of locations."""
        return self._n

    @property
    def hyperparameters(self) -> tuple[HyperParameters, ...]:
        """(L,) the candidates Λ."""
        return self._hyperparameters

    def between(self, rows: IntArray, columns: IntArray) -> FloatArray:
        """Return the (L, r, c) covariance of the latent field."""
        if self._table is None:
            return np.asarray(self._computed(rows, columns)[self._which])
        return np.asarray(
            self._table[self._which[:, None, None], np.asarray(rows)[:, None], columns]
        )

    def variance(self, locations: IntArray) -> FloatArray:
        """Return the (L, m) prior variance of the latent field."""
        return np.asarray(self._variance[:, locations][self._which])

    def only(self, which: Sequence[int]) -> KernelCovariance:
        """Return the same under some of the candidates only."""
        other = copy(self)
        other._which = self._which[list(which)]
        other._hyperparameters = tuple(self._hyperparameters[i] for i in which)
        return other

    def _computed(self, rows: IntArray, columns: IntArray) -> FloatArray:
        found = np.concatenate([part.between(rows, columns) for part in self._kernels])
        # Rounding of squared distances: a place has its variance with itself.
        at, to = np.nonzero(np.asarray(rows)[:, None] == np.asarray(columns)[None, :])
        found[:, at, to] = self._variance[:, np.asarray(rows)[at]]
        return found


class _Prepared:
    """The distinct θ of one kernel, with what every place brings to each of its leaves.

    A leaf that is no LIN is a function of ``|w - w'|²``, a LIN is ``w · w'``; the w, (F, n, q), are
    kept.
    """

    def __init__(
        self, composite: Composite, thetas: FloatArray, Z: FloatArray, scale: float
    ) -> None:
        self._composite, self._theta = composite, thetas[0]
        self._scale = scale
        self._shape = (len(thetas), len(Z))
        self._leaves: list[tuple[str, FloatArray, FloatArray, float]] = []
        for leaf, base in enumerate(self._composite.leaves):
            lengths = self._of("length_scale", leaf, thetas)
            periods = self._of("period", leaf, thetas)
            places = np.array(
                [
                    warped(Z, ell, periods[f] if periods.size else None)
                    for f, ell in enumerate(lengths)
                ]
            )
            alpha = float(self._of("alpha", leaf, thetas)[0, 0]) if base == "RQ" else 1.0
            self._leaves.append((base, places, (places**2).sum(axis=2), alpha))

    def _of(self, kind: str, leaf: int, thetas: FloatArray) -> FloatArray:
        """(F, d) parameters of a leaf; (F, 0) when it has none of the kind."""
        return np.asarray(np.exp(thetas[:, self._composite.where(kind, leaf)]))

    def variance(self) -> FloatArray:
        """Return (F, n)."""
        values = [
            square if base == "LIN" else np.ones(self._shape) for base, _, square, _ in self._leaves
        ]
        return self._scale * self._composite.joined(self._theta, values)

    def between(self, rows: IntArray, columns: IntArray) -> FloatArray:
        """Return (F, r, c)."""
        values = []
        for base, places, square, alpha in self._leaves:
            product = places[:, rows] @ np.swapaxes(places[:, columns], 1, 2)
            if base == "LIN":
                values.append(product)
                continue
            apart = square[:, rows, None] + square[:, None, columns] - 2.0 * product
            values.append(correlation_of_square(base, np.maximum(apart, 0.0), alpha))
        return self._scale * self._composite.joined(self._theta, values)
