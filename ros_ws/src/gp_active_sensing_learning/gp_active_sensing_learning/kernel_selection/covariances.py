"""Composite kernels in torch, many at once: one tensor for all leaves of a kind."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from gp_active_sensing.kernels.composite import Composite, evaluate
from gp_active_sensing.kernels.grammar import Expression
from gp_active_sensing_learning.kernel_selection.group import shape_of

__all__ = ["Covariances"]

_LEAST = 1e-20
"""Squared distance below which a Matérn kernel has no slope: that of its root is infinite at 0."""


@dataclass(frozen=True)
class _Leaves:
    """Leaves of one kind: their kernels, and the places of their parameters in θ."""

    kernels: Any  # (l,)
    lengths: Any  # (l, d)
    periods: Any  # (l, d)
    alphas: Any  # (l,)


@dataclass(frozen=True)
class _Shape:
    """Kernels of one shape: rows first … last, and where their scales are in θ."""

    expression: Expression
    first: int
    last: int
    scales: Any  # (k, scales of each)


class Covariances:
    """Covariances of K kernels under K vectors θ, with derivatives.

    θ is (K, P), P the most parameters of one, the rest padding that nothing depends on. Kernels
    must come in the order of `order_by_shape`: those of one shape follow one another.

    Args:
        composites: the kernels, all of the same dimensions.
        device: of torch.
    """

    def __init__(self, composites: Sequence[Composite], device: Any) -> None:
        self.composites = tuple(composites)
        self.leaves = sum(len(c.leaves) for c in composites)
        found: dict[str, list[tuple[int, int]]] = {}
        for k, composite in enumerate(composites):
            for j, base in enumerate(composite.leaves):
                found.setdefault(base, []).append((k, j))
        bases = [base for base in ("PER", "SE", "RQ", "MAT12", "MAT32", "MAT52") if base in found]
        self._bases = [*bases, *(["LIN"] if "LIN" in found else [])]
        self._leaves = {base: self._of_kind(found[base], device) for base in self._bases}
        place: dict[tuple[int, int], int] = {}
        for base in self._bases:
            for where in found[base]:
                place[where] = len(place)
        self._shapes: list[_Shape] = []
        self._sizes: list[int] = []
        order: list[int] = []
        start = 0
        for k in range(len(composites)):
            here = shape_of(composites[k].expression)
            after = shape_of(composites[k + 1].expression) if k + 1 < len(composites) else ""
            if here != after:
                rows = range(start, k + 1)
                for j in range(len(composites[start].leaves)):
                    order += [place[r, j] for r in rows]
                    self._sizes.append(len(rows))
                scales = [composites[r].where("scale").tolist() for r in rows]
                self._shapes.append(
                    _Shape(
                        composites[start].expression,
                        start,
                        k + 1,
                        torch.tensor(scales, device=device),
                    )
                )
                start = k + 1
        self._order = torch.tensor(order, device=device)

    def _of_kind(self, where: Sequence[tuple[int, int]], device: Any) -> _Leaves:
        lengths, periods, alphas = [], [], []
        for k, j in where:
            composite = self.composites[k]
            lengths.append(composite.where("length_scale", j))
            periods.append(composite.where("period", j))
            alphas.append(composite.where("alpha", j))
        kernels = torch.tensor([k for k, _ in where], device=device)

        def tensor(rows: list[Any]) -> Any:
            return torch.tensor(np.array(rows, dtype=np.int64), device=device)

        return _Leaves(kernels, tensor(lengths), tensor(periods), tensor(alphas))

    def between(self, theta: Any, A: Any, B: Any) -> Any:
        """Return the (K, n, m) covariances.

        Args:
            theta: (K, P).
            A: (K, n, d) inputs of each kernel.
            B: (K, m, d), or (1, m, d) the same for all.
        """
        parts = []
        for base in self._bases:
            leaf = self._leaves[base]
            here = self._warped(base, leaf, theta, A)
            there = here if B is A else self._warped(base, leaf, theta, B)
            product = here @ there.transpose(1, 2)
            if base == "LIN":
                parts.append(product)
                continue
            square = (here * here).sum(2)[:, :, None] + (there * there).sum(2)[:, None, :]
            square = (square - 2.0 * product).clamp_min(0.0)
            parts.append(_correlation(base, square, self._alphas(base, leaf, theta)))
        return self._joined(theta, torch.cat(parts) if len(parts) > 1 else parts[0])

    def variance(self, theta: Any, X: Any) -> Any:
        """Return the (K, m) prior variances at X (K, m, d) or (1, m, d)."""
        parts = []
        for base in self._bases:
            leaf = self._leaves[base]
            if base == "LIN":
                parts.append((self._warped(base, leaf, theta, X) ** 2).sum(2))
            else:
                parts.append(X.new_ones((len(leaf.kernels), X.shape[1])))
        return self._joined(theta, torch.cat(parts))

    def _warped(self, base: str, leaf: _Leaves, theta: Any, X: Any) -> Any:
        """Return inputs (l, n, d or 2d) of each leaf, such that r² is their squared distance."""
        rows = leaf.kernels[:, None]
        inverse = torch.exp(-theta[rows, leaf.lengths])[:, None, :]
        own = X if X.shape[0] == 1 else X[leaf.kernels]
        if base != "PER":
            return own * inverse
        angle = own * (2.0 * math.pi * torch.exp(-theta[rows, leaf.periods]))[:, None, :]
        return torch.cat([torch.cos(angle) * inverse, torch.sin(angle) * inverse], dim=2)

    def _alphas(self, base: str, leaf: _Leaves, theta: Any) -> Any:
        if base != "RQ":
            return None
        return torch.exp(theta[leaf.kernels[:, None], leaf.alphas])[:, :, None]

    def _joined(self, theta: Any, stack: Any) -> Any:
        """Return the sums and products (K, …) of the leaves in the stack (l, …)."""
        ones = (1,) * (stack.dim() - 1)
        # One permutation and one split: their derivatives touch every entry once.
        parts = iter(stack.index_select(0, self._order).split(self._sizes))
        joined = []
        for shape in self._shapes:
            rows = torch.arange(shape.first, shape.last, device=stack.device)[:, None]
            scale = torch.exp(2.0 * theta[rows, shape.scales])
            scales = [s.reshape(-1, *ones) for s in scale.unbind(1)]
            joined.append(evaluate(shape.expression, parts, iter(scales)))
        return torch.cat(joined) if len(joined) > 1 else joined[0]


def _correlation(base: str, square: Any, alpha: Any) -> Any:
    """Return the correlation at squared scaled distances; see `correlation_of_square`."""
    if base in ("SE", "PER"):
        return torch.exp(-0.5 * square)
    if base == "RQ":
        return torch.exp(-alpha * torch.log1p(square / (2.0 * alpha)))
    r = torch.sqrt(square.clamp_min(_LEAST))
    if base == "MAT12":
        return torch.exp(-r)
    s = math.sqrt(3.0 if base == "MAT32" else 5.0) * r
    near = 1.0 + s if base == "MAT32" else 1.0 + s + s * s / 3.0
    return near * torch.exp(-s)
