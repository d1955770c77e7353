"""Composite kernels: the hyper-parameters of an expression, and its covariance.

Each additive term has one standard deviation (`scale`). The terms of ``(a+b)×c`` are a and b. A
leaf (base kernel) has no variance of its own. [Teng2020, App. E]
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

_NOISE = math.log(0.1)
"""Prior mean of the logarithm of the noise's standard deviation, for normalised outputs."""


@dataclass(frozen=True)
class Parameter:
    """Hyper-parameter; its natural logarithm is an entry of θ.

    Args:
        kind: noise, scale, length_scale, period or alpha.
        leaf: index of the base kernel, counted from left to right. A scale has the index of its
            term; the noise has -1.
        dimension: index of the input; -1 for a parameter without an input.
        mean, std: mean and standard deviation of the normal prior of the logarithm, for normalised
            inputs and outputs.
    """

    kind: str
    leaf: int
    dimension: int
    mean: float = 0.0
    std: float = 1.0


@dataclass(frozen=True)
class Composite:
    """Expression of base kernels over d inputs, with its hyper-parameters.

    θ (P,) contains the logarithms of all parameters: first the noise's standard deviation, then the
    scales, then the parameters of the leaves from left to right.

    Args:
        expression: expression of the grammar.
        dimensions: number d of inputs.

    Raises:
        ConfigError: the expression has too many base kernels.
    """

    expression: Expression
    dimensions: int
    parameters: tuple[Parameter, ...] = field(init=False)

    def __post_init__(self) -> None:
        check_size(self.expression)
        found = [Parameter("noise", -1, -1, _NOISE)]
        found += [Parameter("scale", k, -1) for k in range(len(self.expression.terms))]
        for k, base in enumerate(self.leaves):
            for kind in base.parameters:
                inputs = [-1] if kind == "alpha" else range(self.dimensions)
                found += [Parameter(kind, k, d) for d in inputs]
        object.__setattr__(self, "parameters", tuple(found))

    @cached_property
    def leaves(self) -> tuple[BaseKernel, ...]:
        """Base kernels, left to right."""
        return self.expression.leaves

    @property
    def name(self) -> str:
        """Name in the grammar, as in [Teng2020]."""
        return str(self.expression)

    @property
    def size(self) -> int:
        """Number P of parameters, including the noise."""
        return len(self.parameters)

    @cached_property
    def prior(self) -> tuple[FloatArray, FloatArray]:
        """(P,) means and (P,) standard deviations of the independent normal priors in p(θ)."""
        means = np.array([p.mean for p in self.parameters])
        return means, np.array([p.std for p in self.parameters])

    def where(self, kind: str, leaf: int | None = None) -> IntArray:
        """Return the indices in θ of the parameters of a kind; with `leaf`, of this leaf only."""
        kinds = [p.kind == kind and leaf in (None, p.leaf) for p in self.parameters]
        return np.flatnonzero(kinds)

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
        """Return a copy of θ (P,) with all length-scales, except those of LIN, times `factor`.

        Periods do not change.
        """
        theta = np.array(theta, dtype=np.float64)
        theta[self.lengths_of_variation] += math.log(factor)
        return theta

    def typical_length(self, theta: FloatArray, unit: FloatArray) -> float | None:
        """Return the geometric mean of the length-scales of all leaves except LIN; None = only LIN.

        `unit` (d,) is one normalised unit of each input, in the unit of the result.
        """
        logs = self.log_lengths(theta)
        return float(np.exp(np.mean([log + np.log(unit) for log in logs]))) if logs else None

    def log_lengths(self, theta: FloatArray) -> list[FloatArray]:
        """Return the logarithms (d,) of the length-scales of each leaf except LIN.

        For a periodic leaf, the length-scale at small distances is used, ``ℓ p / 2π``.
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
        """Indices in θ of the length-scales of all leaves except LIN."""
        found = self.where("length_scale")
        leaves = [self.leaves[self.parameters[i].leaf] for i in found]
        return found[[not isinstance(leaf, Linear) for leaf in leaves]]

    def _warped(self, theta: FloatArray, leaf: int, X: FloatArray) -> FloatArray:
        lengths, periods = (
            np.exp(theta[self.where(kind, leaf)]) for kind in ("length_scale", "period")
        )
        return np.asarray(self.leaves[leaf].warped(X, lengths, periods))

    def alpha(self, theta: FloatArray, leaf: int) -> float:
        """Return the mixture parameter of a leaf; 1 if the leaf has none."""
        return float(np.exp(theta[self.where("alpha", leaf)]).prod())

    def joined(self, theta: FloatArray, parts: Sequence[FloatArray]) -> FloatArray:
        """Return the value of the expression from the values of its leaves, left to right."""
        scale = np.exp(2.0 * theta[self.where("scale")])
        return np.asarray(self.expression.value(iter(parts), iter(scale)))
