"""How many independent runs several starts on the same fields are worth.

With m starts on each of F fields, the error of start s on field f is taken as
``d_fs = mean + field_f + start_fs`` with independent parts. What two starts on one field have in
common is the correlation ``rho = Var(field) / (Var(field) + Var(start))``, the intra-class
correlation. The mean over m starts on one field then has the variance of the mean over

    m / (1 + (m - 1) rho)

fields with a start each [Kish1965]: never more than ``1 / rho``, however many starts there are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

LEVEL = 0.95
"""Of the interval of a correlation."""


@dataclass(frozen=True)
class Correlation:
    """What starts on the same field have in common.

    Args:
        value: estimate, at least 0.
        low: lower end of its 95 % interval, at least 0.
        high: upper end, at most 1.
        fields: how many.
        starts: on each field.
    """

    value: float
    low: float
    high: float
    fields: int
    starts: int

    def worth(self, starts: int) -> tuple[float, float, float]:
        """Return how many fields so many starts on one are worth: estimate, least, most."""
        least, most = effective_number(starts, self.high), effective_number(starts, self.low)
        return effective_number(starts, self.value), least, most


def within_fields(values: np.ndarray) -> Correlation:
    """Estimate the correlation of starts on the same field by one-way analysis of variance.

    The interval is that of normal values [Searle1971].

    Args:
        values: (F, m) errors, or paired differences; a row a field.

    Raises:
        ValueError: fewer than two fields or two starts, a value that is not finite, or values that
            are all the same.
    """
    from scipy.stats import f as ratio

    values = np.asarray(values, dtype=np.float64)
    if values.ndim != 2 or min(values.shape) < 2 or not np.isfinite(values).all():
        msg = (
            "expected finite values (F, m) of at least two fields with two starts each, got shape "
            f"{values.shape}"
        )
        raise ValueError(msg)
    fields, starts = values.shape
    means = values.mean(axis=1)
    between = starts * float(means.var(ddof=1))
    within = float(((values - means[:, None]) ** 2).sum()) / (fields * (starts - 1))
    if between + within == 0.0:
        msg = "the values are all the same: nothing can be said of what starts have in common"
        raise ValueError(msg)
    tail, free = 0.5 * (1.0 + LEVEL), fields * (starts - 1)
    quotient = between / within if within > 0.0 else math.inf
    low = quotient / float(ratio.ppf(tail, fields - 1, free))
    high = quotient * float(ratio.ppf(tail, free, fields - 1))
    return Correlation(
        *(_share(one, starts) for one in (quotient, low, high)), fields=fields, starts=starts
    )


def _share(quotient: float, starts: int) -> float:
    """Return rho of a quotient of mean squares, cut to 0 … 1."""
    if math.isinf(quotient):
        return 1.0
    return min(max((quotient - 1.0) / (quotient + starts - 1.0), 0.0), 1.0)


def effective_number(starts: int, correlation: float) -> float:
    """Return how many fields with a start each the starts on one field are worth.

    Raises:
        ValueError: no starts, or a correlation outside 0 … 1.
    """
    if starts < 1 or not 0.0 <= correlation <= 1.0:
        msg = f"expected at least 1 start and a correlation in 0 … 1, got {starts}, {correlation}"
        raise ValueError(msg)
    return starts / (1.0 + (starts - 1) * correlation)
