"""Composite kernels: the hyper-parameters of an expression, and its covariance.

A leaf has no variance of its own: each additive term has one standard deviation (`scale`); in
``(a+b)×c`` they are those of a and b. [Teng2020, App. E]
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from gp_active_sensing.kernels.base import BaseKernel, Expression, Linear, Periodic
from gp_active_sensing.kernels.grammar import check_size
from gp_active_sensing.types import FloatArray, IntArray

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
        found += [("scale", k, -1) for k in range(len(self.expression.terms))]
        for k, base in enumerate(self.leaves):
            for kind in base.parameters:
                of = [-1] if kind == "alpha" else range(self.dimensions)
                found += [(kind, k, d) for d in of]
        made = tuple(Parameter(*what, *_PRIORS[what[0]]) for what in found)
        object.__setattr__(self, "parameters", made)

    @cached_property
    def leaves(self) -> tuple[BaseKernel, ...]:
        """Base kernels, left to right."""
        return self.expression.leaves

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
        parts = [
            leaf.between(
                self._warped(theta, k, X1),
                self._warped(theta, k, X2),
                alpha=self.alpha(theta, k),
            )
            for k, leaf in enumerate(self.leaves)
        ]
        return self.joined(theta, parts)

    def variance(self, theta: FloatArray, X: FloatArray) -> FloatArray:
        """Return the (n,) prior variance of the latent function at the rows of X (n, d)."""
        leaves = enumerate(self.leaves)
        return self.joined(theta, [leaf.variance(self._warped(theta, k, X)) for k, leaf in leaves])

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

        Args:
            theta: (P,).
            unit: (d,) what 1 is of each input, in the unit that the length is wanted in.
        """
        logs = self.log_lengths(theta)
        return float(np.exp(np.mean([log + np.log(unit) for log in logs]))) if logs else None

    def log_lengths(self, theta: FloatArray) -> list[FloatArray]:
        """Return the (d,) logarithms of the length of each leaf that has one.

        A periodic leaf counts with that near 0, ``ℓ p / 2π``.
        """
        logs = []
        for k, base in enumerate(self.leaves):
            if isinstance(base, Linear):
                continue
            of_leaf = theta[self.where("length_scale", k)]
            if isinstance(base, Periodic):
                of_leaf = of_leaf + theta[self.where("period", k)] - math.log(2.0 * math.pi)
            logs.append(np.asarray(of_leaf))
        return logs

    @cached_property
    def lengths_of_variation(self) -> IntArray:
        """Indices in θ of the length-scales that `stretched` stretches."""
        found = [
            i
            for i, p in enumerate(self.parameters)
            if p.kind == "length_scale" and not isinstance(self.leaves[p.leaf], Linear)
        ]
        return np.array(found, dtype=np.int64)

    def _warped(self, theta: FloatArray, leaf: int, X: FloatArray) -> FloatArray:
        lengths, periods = (
            np.exp(theta[self.where(kind, leaf)]) for kind in ("length_scale", "period")
        )
        return np.asarray(self.leaves[leaf].warped(X, lengths, periods))

    def alpha(self, theta: FloatArray, leaf: int) -> float:
        """Return the mixture parameter of a leaf, 1 where it has none."""
        return float(np.exp(theta[self.where("alpha", leaf)]).prod())

    def joined(self, theta: FloatArray, parts: Sequence[FloatArray]) -> FloatArray:
        """Return what the values of the leaves make, left to right; any shapes that broadcast."""
        scale = np.exp(2.0 * theta[self.where("scale")])
        return np.asarray(self.expression.value(iter(parts), iter(scale)))
