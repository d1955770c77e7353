"""Means with their standard errors; differences paired by seed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

__all__ = ["Estimate", "mean_of", "paired_difference"]


class Estimate(NamedTuple):
    """A mean and its standard error (NaN for a single value)."""

    mean: float
    error: float

    def __str__(self) -> str:
        return f"{self.mean:.2f} ± {self.error:.2f}"


def mean_of(values: Sequence[float]) -> Estimate:
    """Return the mean of independent values and its standard error ``sd / sqrt(n)``.

    Raises:
        ValueError: no values, or one that is not finite.
    """
    array = np.asarray(values, dtype=np.float64)
    if not array.size or not np.isfinite(array).all():
        msg = f"expected at least one value, all finite, got {array.tolist()}"
        raise ValueError(msg)
    error = math.nan if array.size == 1 else float(array.std(ddof=1) / math.sqrt(array.size))
    return Estimate(float(array.mean()), error)


def paired_difference(first: Sequence[float], second: Sequence[float]) -> Estimate:
    """Return the mean of ``first - second`` over the same seeds, with its standard error.

    Raises:
        ValueError: sequences of different length.
    """
    return mean_of([a - b for a, b in zip(first, second, strict=True)])
