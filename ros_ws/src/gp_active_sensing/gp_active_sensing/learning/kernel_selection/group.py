"""Kernels that are optimised together, and what comes of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gp_active_sensing.kernel_model.model import KernelFit
from gp_active_sensing.kernels.composite import Composite
from gp_active_sensing.kernels.grammar import BaseKernel, Expression, Sum
from gp_active_sensing.learning.kernel_selection.data import Data

__all__ = ["FinishedGroup", "KernelGroup", "memory_of", "order_by_shape", "shape_of"]


@dataclass(frozen=True, eq=False)
class KernelGroup:
    """Kernels that are optimised together.

    Args:
        names: of the kernels.
        data: what from.
        earlier: fits to begin with, by name.
        checkpoint: file, None = none is written.
        resume: go on from it, where it is there.
    """

    names: tuple[str, ...]
    data: Data
    earlier: Mapping[str, KernelFit]
    checkpoint: Path | None = None
    resume: bool = False


@dataclass
class FinishedGroup:
    """What came of a group.

    Args:
        fits: by name.
        dropped: why, by name.
        bounds: (stages,) local ELBOs of each kernel, by name; NaN once it is dropped.
    """

    fits: dict[str, KernelFit] = field(default_factory=dict)
    dropped: dict[str, str] = field(default_factory=dict)
    bounds: dict[str, list[float]] = field(default_factory=dict)


def memory_of(composites: Sequence[Composite], inducing: int, batch: int) -> float:
    """Return about how many bytes the optimisation of kernels needs at once."""
    leaves = sum(len(c.leaves) for c in composites)
    blocks = inducing**2 + inducing * min(batch, 100_000)
    return 8.0 * (8.0 * leaves + 14.0 * len(composites)) * blocks


def shape_of(expression: Expression) -> str:
    """Return the expression without names: kernels of one shape are joined by one operation."""
    if isinstance(expression, BaseKernel):
        return "k"
    inside = [shape_of(part) for part in expression.parts]
    if isinstance(expression, Sum):
        return "+".join(inside)
    return "".join(f"({s})" if "+" in s else s for s in inside)


def order_by_shape(composites: Sequence[Composite]) -> list[int]:
    """Return an order of kernels in which those of one shape follow one another."""
    return sorted(range(len(composites)), key=lambda k: shape_of(composites[k].expression))
