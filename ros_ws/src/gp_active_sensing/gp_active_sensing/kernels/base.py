"""Kernels that can be added and multiplied, with the same formulas for numpy and torch.

The argument `xp` of a formula is the array module: numpy, or torch in gp_active_sensing_learning.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np

from gp_active_sensing.types import FloatArray

_Values = Iterator[Any]
_LEAST = 1e-20
"""Lower limit of squared distances in torch. It is needed because the square root has an infinite
derivative at 0."""


@runtime_checkable
class Kernel(Protocol):
    """Correlation function, without the signal variance."""

    def correlation(self, X1: FloatArray, X2: FloatArray, length_scales: FloatArray) -> FloatArray:
        """Return the (n, m) correlations of the rows of `X1` (n, p) and `X2` (m, p).

        `length_scales` has one value for all features, (1,), or one for each feature, (p,). A value
        is in the unit of its feature.
        """

    def correlations(self, X1: FloatArray, X2: FloatArray, length_scales: FloatArray) -> FloatArray:
        """Return the (L, n, m) correlations for `length_scales` (L, 1) or (L, p)."""


@runtime_checkable
class GraphKernel(Protocol):
    """Function of the eigenvalues of a graph's Laplacian, for `belief.graph_covariance`."""

    def density(self, eigenvalues: FloatArray, length_scale: float) -> FloatArray:
        """Return the (k,) spectral densities: positive, and not increasing with the eigenvalue.

        Args:
            eigenvalues: (k,) squared wave numbers [1/m²], ascending from 0.
            length_scale: length-scale along the links [m].
        """


class Expression:
    """Kernel composed of base kernels by + and *. [Duvenaud2013; Teng2020, Sec. 2.3].

    Expressions that differ only in the order of terms and factors are equal. Other equivalent
    expressions, such as SE×SE and SE, count as different.
    """

    parts: tuple[Expression, ...]

    def __add__(self, other: Expression) -> Sum:
        return Sum(_flat(Sum, self, other))

    def __mul__(self, other: Expression) -> Product:
        return Product(_flat(Product, self, other))

    @property
    def leaves(self) -> tuple[BaseKernel, ...]:
        """Base kernels, left to right."""
        return tuple(leaf for part in self.parts for leaf in part.leaves)

    @property
    def terms(self) -> tuple[Expression, ...]:
        """Additive terms, left to right (a, b in ``(a+b)×c``). Each has a variance of its own."""
        return (self,)

    def value(self, leaves: _Values, variances: _Values, *, factor: bool = False) -> Any:
        """Return the value of the expression, as numpy arrays or tensors.

        Args:
            leaves: value of every leaf, left to right.
            variances: variance of every additive term, left to right.
            factor: True for a factor of a product. A factor has variances only if it is a sum.
        """
        raise NotImplementedError


def _flat(kind: type[Expression], *parts: Expression) -> tuple[Expression, ...]:
    """Return the parts of a sum or product in canonical order, without nesting."""
    flat = [q for p in parts for q in (p.parts if isinstance(p, kind) else (p,))]
    return tuple(sorted(flat, key=_key))


def _key(expression: Expression) -> tuple[int, int, list[int], str]:
    """Return the key by which parts are sorted: first sums, then products, then base kernels.

    Parts of one kind are sorted by their number of leaves, and then by `rank`. The name
    distinguishes expressions of the same base kernels, such as PER+LIN+RQ and PER×LIN+RQ.
    """
    kind = 0 if isinstance(expression, Sum) else 1 if isinstance(expression, Product) else 2
    leaves = expression.leaves
    return kind, -len(leaves), [leaf.rank for leaf in leaves], str(expression)


@dataclass(frozen=True)
class Sum(Expression):
    """Sum of two or more parts that are not sums, in canonical order; the result of +."""

    parts: tuple[Expression, ...]

    def __str__(self) -> str:
        return "+".join(map(str, self.parts))

    @property
    def terms(self) -> tuple[Expression, ...]:
        """Additive terms; see `Expression.terms`."""
        return tuple(term for part in self.parts for term in part.terms)

    def value(self, leaves: _Values, variances: _Values, *, factor: bool = False) -> Any:
        """Return the value of the expression; see `Expression.value`."""
        return reduce(add, [part.value(leaves, variances) for part in self.parts])


@dataclass(frozen=True)
class Product(Expression):
    """Product of two or more parts that are not products, in canonical order; the result of *."""

    parts: tuple[Expression, ...]

    def __str__(self) -> str:
        return "×".join(f"({p})" if isinstance(p, Sum) else str(p) for p in self.parts)

    @property
    def terms(self) -> tuple[Expression, ...]:
        """Additive terms; see `Expression.terms`."""
        sums = [part for part in self.parts if isinstance(part, Sum)]
        return tuple(term for part in sums for term in part.terms) or (self,)

    def value(self, leaves: _Values, variances: _Values, *, factor: bool = False) -> Any:
        """Return the value of the expression; see `Expression.value`."""
        total = next(variances) if self.terms == (self,) else None
        for part in self.parts:
            value = part.value(leaves, variances, factor=True)
            total = value if total is None else total * value
        return total


@dataclass(frozen=True)
class BaseKernel(Expression):
    """Leaf of an expression: a function of the inputs w that `warped` returns."""

    name: ClassVar[str]
    """Name in configurations and expressions, in lower case."""
    rank: ClassVar[int]
    """Position in the canonical order of the base kernels."""
    parameters: ClassVar[tuple[str, ...]] = ("length_scale",)
    """Kinds of hyper-parameters. There is one length_scale and one period for each input, but one
    alpha for all inputs."""

    def __str__(self) -> str:
        return self.name.upper()

    @property
    def leaves(self) -> tuple[BaseKernel, ...]:
        """The kernel itself as the only leaf."""
        return (self,)

    def value(self, leaves: _Values, variances: _Values, *, factor: bool = False) -> Any:
        """Return the value of the expression; see `Expression.value`."""
        return next(leaves) if factor else next(variances) * next(leaves)

    def warped(self, X: Any, lengths: Any, periods: Any = None, xp: Any = np) -> Any:
        """Return the inputs w of the kernel function, (…, n, d), or (…, n, 2d) if it is periodic.

        Args:
            X: (…, n, d) normalised inputs.
            lengths: (d,) or (…, 1, d) length-scales.
            periods: (d,) or (…, 1, d) periods, for a periodic kernel only.
            xp: numpy or torch.
        """
        return X / lengths

    def of_square(self, square: Any, xp: Any = np, alpha: Any = 1.0) -> Any:
        """Return the kernel's values at squared distances |w - w'|² of any shape."""
        raise NotImplementedError

    def between(self, A: Any, B: Any, xp: Any = np, alpha: Any = 1.0) -> Any:
        """Return the values (…, n, m) for inputs w in the rows of A (…, n, q) and B (…, m, q)."""
        square = (A * A).sum(-1)[..., :, None] + (B * B).sum(-1)[..., None, :]
        square = square - 2.0 * (A @ B.swapaxes(-1, -2))
        return self.of_square(xp.clip(square, 0.0 if xp is np else _LEAST, None), xp, alpha)

    def variance(self, W: Any, xp: Any = np) -> Any:
        """Return the variances (…, n) at the inputs w in the rows of W (…, n, q)."""
        return xp.ones_like(W[..., 0])


class Stationary(BaseKernel, ABC):
    """Kernel that depends only on the scaled distance ``r = |(x - x') / l|``.

    A new stationary kernel overrides `of_distance`.
    """

    @abstractmethod
    def of_distance(self, r: Any, xp: Any = np) -> Any:
        """Return the correlation at scaled distances `r` of any shape."""

    def of_square(self, square: Any, xp: Any = np, alpha: Any = 1.0) -> Any:
        """Return the kernel's values at squared scaled distances."""
        return self.of_distance(xp.sqrt(square), xp)

    def correlation(self, X1: FloatArray, X2: FloatArray, length_scales: FloatArray) -> FloatArray:
        """Return the (n, m) correlations; see `Kernel.correlation`."""
        return np.asarray(self.correlations(X1, X2, np.atleast_2d(length_scales))[0])

    def correlations(self, X1: FloatArray, X2: FloatArray, length_scales: FloatArray) -> FloatArray:
        """Return the (L, n, m) correlations; see `Kernel.correlations`."""
        p = X1.shape[1]
        if length_scales.ndim != 2 or length_scales.shape[1] not in (1, p):
            msg = f"length_scales must be (L, 1) or (L, {p}), got {length_scales.shape}"
            raise ValueError(msg)
        if length_scales.shape[1] == 1:
            r = _distances(X1, X2)
            return np.asarray(self.of_distance(r[None] / length_scales[:, :, None]))
        scaled = [_distances(X1 / ell, X2 / ell) for ell in length_scales]
        return np.asarray(self.of_distance(np.stack(scaled)))


def _distances(X1: FloatArray, X2: FloatArray) -> FloatArray:
    from scipy.spatial.distance import cdist  # here, since it is slow to import

    # |x|^2 + |x'|^2 - 2xx' would lose digits for large coordinates close together.
    return np.asarray(cdist(X1, X2))


class Periodic(BaseKernel):
    r"""Kernel of fields that repeat along each input. [Teng2020, App. E].

    .. math:: k = \exp\Big(-2 \sum_d \sin^2(\pi (x_d - x'_d)/p_d)/\ell_d^2\Big)
    """

    name = "per"
    rank = 0
    parameters = ("length_scale", "period")

    def warped(self, X: Any, lengths: Any, periods: Any = None, xp: Any = np) -> Any:
        """Return the inputs as points on circles, (…, n, 2d)."""
        angle = (2.0 * np.pi) * X / periods
        return xp.concatenate([xp.cos(angle) / lengths, xp.sin(angle) / lengths], -1)

    def of_square(self, square: Any, xp: Any = np, alpha: Any = 1.0) -> Any:
        """Return the kernel's values at squared scaled distances."""
        return xp.exp(-0.5 * square)


class Linear(BaseKernel):
    r"""Kernel of linear functions through the origin; it is not stationary. [Teng2020, App. E].

    .. math:: k = \sum_d x_d x'_d/\ell_d^2
    """

    name = "lin"
    rank = 1

    def between(self, A: Any, B: Any, xp: Any = np, alpha: Any = 1.0) -> Any:
        """Return the inner products of inputs."""
        return A @ B.swapaxes(-1, -2)

    def variance(self, W: Any, xp: Any = np) -> Any:
        """Return the squared norms of inputs."""
        return (W * W).sum(-1)


class RationalQuadratic(Stationary):
    r"""Kernel of fields with a mixture of length-scales. [Rasmussen2006, Eq. 4.19].

    .. math:: k(r) = (1 + r^2/2a)^{-a}
    """

    name = "rq"
    rank = 2
    parameters = ("length_scale", "alpha")

    def of_distance(self, r: Any, xp: Any = np) -> Any:
        """Return the correlation for a = 1."""
        return self.of_square(r * r, xp)

    def of_square(self, square: Any, xp: Any = np, alpha: Any = 1.0) -> Any:
        """Return the kernel's values at squared scaled distances."""
        return xp.exp(-alpha * xp.log1p(square / (2.0 * alpha)))


class SquaredExponential(Stationary):
    r"""Kernel of very smooth fields. [Hoang2014, Sec. 2].

    .. math:: k(r) = \exp(-r^2/2), \quad r^2 = \sum_i (x_i - x'_i)^2 / \ell_i^2
    """

    name = "se"
    rank = 3

    def of_distance(self, r: Any, xp: Any = np) -> Any:
        """Return ``exp(-r**2/2)``."""
        return xp.exp(-0.5 * r * r)

    def of_square(self, square: Any, xp: Any = np, alpha: Any = 1.0) -> Any:
        """Return the kernel's values at squared scaled distances."""
        return xp.exp(-0.5 * square)


class Matern12(Stationary):
    r"""Kernel of rough, continuous fields. [Rasmussen2006, Eq. 4.18].

    .. math:: k(r) = \exp(-r)
    """

    name = "matern12"
    rank = 4

    def of_distance(self, r: Any, xp: Any = np) -> Any:
        """Return ``exp(-r)``."""
        return xp.exp(-r)


class Matern32(Stationary):
    r"""Kernel of fields that are once differentiable. [Rasmussen2006, Eq. 4.17].

    .. math:: k(r) = (1 + \sqrt{3}\,r)\,\exp(-\sqrt{3}\,r)
    """

    name = "matern32"
    rank = 5

    def of_distance(self, r: Any, xp: Any = np) -> Any:
        """Return ``(1 + sqrt(3)*r) * exp(-sqrt(3)*r)``."""
        s = 3.0**0.5 * r
        return (1.0 + s) * xp.exp(-s)


class Matern52(Stationary):
    r"""Kernel of fields that are twice differentiable. [Rasmussen2006, Eq. 4.17].

    .. math:: k(r) = (1 + \sqrt{5}\,r + 5 r^2/3)\,\exp(-\sqrt{5}\,r)
    """

    name = "matern52"
    rank = 6

    def of_distance(self, r: Any, xp: Any = np) -> Any:
        """Return ``(1 + sqrt(5)*r + 5*r**2/3) * exp(-sqrt(5)*r)``."""
        s = 5.0**0.5 * r
        return (1.0 + s + s * s / 3.0) * xp.exp(-s)


@dataclass(frozen=True)
class GraphMatern:
    r"""Whittle-Matérn kernel on a graph. [Borovitskiy2021, Eq. 9; Whittle1963; Lindgren2011].

    .. math:: K \propto \left(2\nu/\ell^2 + \Delta\right)^{-(\nu + 1/2)}

    Δ is the Laplacian of the graph of places and links [1/m²]. On a long row of places, K is the
    Matérn kernel with the same ν and length-scale ℓ [m].

    Args:
        smoothness: ν. On a road, the values 0.5, 1.5 and 2.5 give the kernels matern12, matern32
            and matern52.
    """

    smoothness: float = 1.5

    def density(self, eigenvalues: Any, length_scale: Any) -> Any:
        """Return the spectral densities (1 at eigenvalue 0) for arrays or tensors."""
        scaled = eigenvalues * (length_scale**2 / (2.0 * self.smoothness))
        return (1.0 + scaled) ** -(self.smoothness + 0.5)
