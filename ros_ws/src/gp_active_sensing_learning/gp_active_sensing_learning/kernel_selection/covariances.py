"""Covariances of many composite kernels in torch, computed in batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from gp_active_sensing.kernels.base import BaseKernel, Expression
from gp_active_sensing.kernels.composite import Composite
from gp_active_sensing_learning.kernel_selection.group import shape_of


@dataclass(frozen=True)
class _Leaves:
    """All l terms with the same base kernel. The terms may belong to different kernels.

    For each term, the fields are the index of its kernel, and the indices of its parameters in θ.
    """

    kernels: Any  # (l,)
    lengths: Any  # (l, d)
    periods: Any  # (l, d)
    alphas: Any  # (l,)


@dataclass(frozen=True)
class _Shape:
    """Kernels with indices `first` … `last` - 1, which differ only in their base kernels."""

    expression: Expression
    first: int
    last: int
    scales: Any  # (k, scales of each)


class Covariances:
    """Differentiable covariances of K kernels.

    P is the largest number of hyper-parameters of a kernel. The vectors θ of all other kernels are
    padded to length P. The kernels must be in the order of `order_by_shape`.
    """

    def __init__(self, composites: Sequence[Composite], device: Any) -> None:
        self.composites = tuple(composites)
        self.leaves = sum(len(c.leaves) for c in composites)
        found: dict[BaseKernel, list[tuple[int, int]]] = {}
        for k, composite in enumerate(composites):
            for j, base in enumerate(composite.leaves):
                found.setdefault(base, []).append((k, j))
        self._leaves = {base: self._of_kind(where, device) for base, where in found.items()}
        place: dict[tuple[int, int], int] = {}
        for leaves in found.values():
            for where in leaves:
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
        """Return the (K, n, m) covariances between `A` and `B`.

        Args:
            theta: (K, P) hyper-parameters.
            A: (K, n, d) inputs of each kernel.
            B: (K, m, d) inputs of each kernel, or (1, m, d) inputs of all kernels.
        """
        parts = []
        for base, leaves in self._leaves.items():
            here = self._warped(base, leaves, theta, A)
            there = here if B is A else self._warped(base, leaves, theta, B)
            alpha = torch.exp(theta[leaves.kernels[:, None], leaves.alphas])[:, :, None]
            parts.append(base.between(here, there, torch, alpha))
        return self._joined(theta, torch.cat(parts) if len(parts) > 1 else parts[0])

    def variance(self, theta: Any, X: Any) -> Any:
        """Return the (K, m) prior variances at X (K, m, d) or (1, m, d)."""
        parts = []
        for base, leaves in self._leaves.items():
            parts.append(base.variance(self._warped(base, leaves, theta, X), torch))
        return self._joined(theta, torch.cat(parts))

    def _warped(self, base: BaseKernel, leaves: _Leaves, theta: Any, X: Any) -> Any:
        """Return the scaled inputs (l, n, d or 2d), whose squared distances are the kernel's r²."""
        rows = leaves.kernels[:, None]
        lengths = torch.exp(theta[rows, leaves.lengths])[:, None, :]
        periods = torch.exp(theta[rows, leaves.periods])[:, None, :]
        return base.warped(X if X.shape[0] == 1 else X[leaves.kernels], lengths, periods, torch)

    def _joined(self, theta: Any, stack: Any) -> Any:
        """Return the values (K, …) of the composite kernels from the values (l, …) of all terms."""
        ones = (1,) * (stack.dim() - 1)
        # The derivatives of one permutation and one split access each entry once.
        parts = iter(stack.index_select(0, self._order).split(self._sizes))
        joined = []
        for shape in self._shapes:
            rows = torch.arange(shape.first, shape.last, device=stack.device)[:, None]
            scale = torch.exp(2.0 * theta[rows, shape.scales])
            scales = [s.reshape(-1, *ones) for s in scale.unbind(1)]
            joined.append(shape.expression.value(parts, iter(scales)))
        return torch.cat(joined) if len(joined) > 1 else joined[0]
