r"""Composite kernels: what parameters an expression of the grammar has, and its covariance.

With inputs x and leaves of d dimensions

.. math::
    SE = e^{-r^2/2}, \quad RQ = (1 + r^2/2a)^{-a}, \quad r^2 = \sum_d (x_d - x'_d)^2/\ell_d^2

    PER = \exp\Big(-2 \sum_d \sin^2(\pi (x_d - x'_d)/p_d)/\ell_d^2\Big), \quad
    LIN = \sum_d x_d x'_d/\ell_d^2

and Matérn functions of r. A leaf has no variance of its own: each additive term has one standard
deviation (`scale`); in ``(a+b)×c`` they are those of a and b. [Teng2020, App. E; Rasmussen2006]
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from gp_active_sensing.kernels.grammar import (
    BaseKernel,
    Expression,
    Product,
    Sum,
    check_size,
    leaves,
)
from gp_active_sensing.types import FloatArray, IntArray

__all__ = ["Composite", "Parameter", "correlation_of_square", "evaluate", "warped"]

_PRIORS = {
    "noise": (math.log(0.1), 1.0),
    "scale": (0.0, 1.0),
    "length_scale": (0.0, 1.0),
    "period": (0.0, 1.0),
    "alpha": (0.0, 1.0),
}
"""Mean and standard deviation of the logarithms, inputs and outputs having standard deviation 1."""


@dataclass(frozen=True)
class Parameter:
    """A hyper-parameter; θ holds its natural logarithm.

    Args:
        kind: noise, scale, length_scale, period or alpha.
        leaf: which leaf it belongs to, left to right; of a scale: which one it is; noise: -1.
        dimension: of the input; -1 where it is not of one.
        mean, std: of the normal prior of its logarithm, in normalised units.
    """

    kind: str
    leaf: int
    dimension: int
    mean: float
    std: float


@dataclass(frozen=True)
class Composite:
    """An expression over inputs of `dimensions`.

    θ is (P,): logarithms, first the noise's standard deviation, then the scales, then the leaves'
    parameters from left to right.

    Args:
        expression: of the grammar.
        dimensions: d.

    Raises:
        ConfigError: an expression of too many base kernels.
    """

    expression: Expression
    dimensions: int
    parameters: tuple[Parameter, ...] = field(init=False)

    def __post_init__(self) -> None:
        check_size(self.expression)
        found = [("noise", -1, -1)]
        found += [("scale", k, -1) for k in range(scales(self.expression))]
        for k, base in enumerate(self.leaves):
            found += [("length_scale", k, d) for d in range(self.dimensions)]
            if base == "PER":
                found += [("period", k, d) for d in range(self.dimensions)]
            if base == "RQ":
                found.append(("alpha", k, -1))
        made = tuple(Parameter(*what, *_PRIORS[what[0]]) for what in found)
        object.__setattr__(self, "parameters", made)

    @cached_property
    def leaves(self) -> tuple[str, ...]:
        """Base kernels, left to right."""
        return leaves(self.expression)

    @property
    def name(self) -> str:
        """Name in the grammar, as in the paper."""
        return str(self.expression)

    @property
    def size(self) -> int:
        """P, number of parameters, the noise among them."""
        return len(self.parameters)

    @cached_property
    def prior(self) -> tuple[FloatArray, FloatArray]:
        """(P,) means and (P,) standard deviations of the prior p(θ), independent normals."""
        means = np.array([p.mean for p in self.parameters])
        return means, np.array([p.std for p in self.parameters])

    def where(self, kind: str, leaf: int | None = None) -> IntArray:
        """Return the indices in θ of the parameters of a kind (of one leaf)."""
        found = [
            i
            for i, p in enumerate(self.parameters)
            if p.kind == kind and (leaf is None or p.leaf == leaf)
        ]
        return np.array(found, dtype=np.int64)

    def covariance(self, theta: FloatArray, X1: FloatArray, X2: FloatArray) -> FloatArray:
        """Return the (n, m) covariance of the latent function at rows of X1 (n, d), X2 (m, d)."""
        return self.joined(theta, [self._leaf(theta, k, X1, X2) for k in range(len(self.leaves))])

    def variance(self, theta: FloatArray, X: FloatArray) -> FloatArray:
        """Return the (n,) prior variance of the latent function at the rows of X (n, d)."""
        parts = []
        for k, base in enumerate(self.leaves):
            if base == "LIN":
                parts.append((X**2 / self._lengths(theta, k) ** 2).sum(axis=1))
            else:
                parts.append(np.ones(len(X)))
        return self.joined(theta, parts)

    def stretched(self, theta: FloatArray, factor: float) -> FloatArray:
        """Return θ (P,) with every length over which the field varies times a factor.

        Those are the length-scales of all leaves but LIN. A period stays what it is, as that of a
        day does: of a PER it is the length-scale, how far the field stays alike within a period.
        `typical_length` is the factor times what it was.
        """
        theta = np.array(theta, dtype=np.float64)
        theta[self.lengths_of_variation] += math.log(factor)
        return theta

    def typical_length(self, theta: FloatArray, unit: FloatArray) -> float | None:
        """Return the geometric mean of the lengths over which the field varies, None without any.

        A periodic leaf counts with that near 0, ``ℓ p / 2π``.

        Args:
            theta: (P,).
            unit: (d,) what 1 is of each input, in the unit that the length is wanted in.
        """
        logs = []
        for k, base in enumerate(self.leaves):
            if base == "LIN":
                continue
            of_leaf = theta[self.where("length_scale", k)] + np.log(unit)
            if base == "PER":
                of_leaf = of_leaf + theta[self.where("period", k)] - math.log(2.0 * math.pi)
            logs.append(of_leaf)
        return float(np.exp(np.mean(logs))) if logs else None

    @cached_property
    def lengths_of_variation(self) -> IntArray:
        """Indices in θ of the length-scales that `stretched` stretches."""
        found = [
            i
            for i, p in enumerate(self.parameters)
            if p.kind == "length_scale" and self.leaves[p.leaf] != "LIN"
        ]
        return np.array(found, dtype=np.int64)

    def _lengths(self, theta: FloatArray, leaf: int) -> FloatArray:
        return np.asarray(np.exp(theta[self.where("length_scale", leaf)]))

    def _leaf(self, theta: FloatArray, k: int, X1: FloatArray, X2: FloatArray) -> FloatArray:
        base = self.leaves[k]
        ell = self._lengths(theta, k)
        if base == "LIN":
            return np.asarray((X1 / ell) @ (X2 / ell).T)
        period = np.exp(theta[self.where("period", k)]) if base == "PER" else None
        A, B = (warped(X, ell, period) for X in (X1, X2))
        square = np.maximum(
            (A * A).sum(axis=1)[:, None] + (B * B).sum(axis=1)[None, :] - 2.0 * A @ B.T, 0.0
        )
        alpha = float(np.exp(theta[self.where("alpha", k)][0])) if base == "RQ" else 1.0
        return correlation_of_square(base, square, alpha)

    def joined(self, theta: FloatArray, parts: Sequence[FloatArray]) -> FloatArray:
        """Return what the values of the leaves make, left to right; any shapes that broadcast."""
        scale = np.exp(2.0 * theta[self.where("scale")])
        return np.asarray(evaluate(self.expression, iter(parts), iter(scale)))


def scales(expression: Expression) -> int:
    """Return the number of scales that an expression has."""
    if isinstance(expression, BaseKernel):
        return 1
    if isinstance(expression, Sum):
        return sum(scales(part) for part in expression.parts)
    return sum(scales(part) for part in expression.parts if isinstance(part, Sum)) or 1


def warped(X: FloatArray, lengths: FloatArray, periods: FloatArray | None) -> FloatArray:
    """Return inputs (n, d) such that r² is their squared distance; (n, 2d) of a periodic leaf."""
    if periods is None:
        return np.asarray(X / lengths)
    angle = 2.0 * math.pi * X / periods
    return np.hstack([np.cos(angle) / lengths, np.sin(angle) / lengths])


def correlation_of_square(base: str, square: FloatArray, alpha: float = 1.0) -> FloatArray:
    """Return the correlation at squared scaled distances, any shape, of any base but LIN."""
    if base in ("SE", "PER"):
        return np.asarray(np.exp(-0.5 * square))
    if base == "RQ":
        return np.asarray(np.exp(-alpha * np.log1p(square / (2.0 * alpha))))
    r = np.sqrt(square)
    if base == "MAT12":
        return np.asarray(np.exp(-r))
    s = math.sqrt(3.0 if base == "MAT32" else 5.0) * r
    near = 1.0 + s if base == "MAT32" else 1.0 + s + s * s / 3.0
    return np.asarray(near * np.exp(-s))


def evaluate(
    expression: Expression, parts: Iterator[Any], scales: Iterator[Any], *, factor: bool = False
) -> Any:
    """Return the value of an expression, of whatever can be added and multiplied.

    Args:
        expression: to evaluate.
        parts: value of every leaf, left to right.
        scales: variances of the terms, in their order.
        factor: of a product, which has no scale of its own unless it is a sum.
    """
    if isinstance(expression, BaseKernel):
        return next(parts) if factor else next(scales) * next(parts)
    product = isinstance(expression, Product)
    own = product and not any(isinstance(part, Sum) for part in expression.parts)
    total = next(scales) if own else None
    for part in expression.parts:
        value = evaluate(part, parts, scales, factor=product)
        if total is None:
            total = value
        else:
            total = total * value if product else total + value
    return total
