"""The kernel and length-scale that a belief over candidates says are most probable."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

__all__ = ["Probable", "most_probable"]

Key = TypeVar("Key")


@dataclass(frozen=True)
class Probable:
    """What is most probable; the same wherever it is shown: console, log, report.

    Args:
        kernel: the kernel whose candidates have most weight; "" where they have no names.
        kernel_weight: of it.
        length_scale: of the candidates with that kernel, the one with most weight.
        weight: of it, with that kernel.
    """

    kernel: str
    kernel_weight: float
    length_scale: tuple[float, ...]
    weight: float


def most_probable(candidates: Iterable[tuple[str, Sequence[float], float]]) -> Probable:
    """Return the most probable kernel, and the most probable length-scale with that kernel.

    Candidates that differ in signal, noise or shares only are added up.

    Args:
        candidates: kernel, length-scale and weight of each; one at least.
    """
    kernels: dict[str, float] = {}
    scales: dict[tuple[str, tuple[float, ...]], float] = {}
    for kernel, scale, weight in candidates:
        key = kernel, tuple(scale)
        kernels[kernel] = kernels.get(kernel, 0.0) + float(weight)
        scales[key] = scales.get(key, 0.0) + float(weight)
    kernel, kernel_weight = _largest(kernels)
    (_, scale), weight = _largest({key: w for key, w in scales.items() if key[0] == kernel})
    return Probable(kernel, kernel_weight, tuple(scale), weight)


def _largest(weights: dict[Key, float]) -> tuple[Key, float]:
    """Return the key with the largest weight, of equal ones the first; and the weight."""
    return max(weights.items(), key=lambda item: item[1])
