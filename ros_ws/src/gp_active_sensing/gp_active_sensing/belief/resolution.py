"""Resolution of a sensor, found from its readings: what lies between two steps it cannot tell."""

from __future__ import annotations

from copy import copy

import numpy as np

from gp_active_sensing.types import FloatArray

_DECIMAL: FloatArray = np.array(
    [f * 10.0**k for k in (2, 1, 0, -1, -2, -3) for f in (1.0, 0.5, 0.25, 0.2)]
)
"""Steps that sensors and their drivers round to, in any unit, the largest first."""
_ON = 0.8
"""Share of the readings that have to lie on the steps; averages over a stay may lie between."""
_EXACT = 4e-7
"""Relative rounding of a message of single precision."""
_APART = 10.0
"""A step is so many roundings at least."""
_FEW = 8
"""Different values with which a step above 1, or one of no decimal size, is believed."""
_LEAST = 3
"""Different values on a step, where there are as many."""
_MANY = 256
"""Different values that are looked at."""


class Resolution:
    """Find the step in which readings come.

    A reading rounded to a step d is off by up to d/2: a variance of d²/12 that no further reading
    of the same value removes.

    Args:
        used: False where values are no readings but their logarithms: then no step is found.
    """

    def __init__(self, *, used: bool = True) -> None:
        self.used = used
        """Values are readings as they came."""
        self._counts: dict[float, int] = {}
        self._step: float | None = 0.0

    def copy(self) -> Resolution:
        """Return an independent copy."""
        other = copy(self)
        other._counts = dict(self._counts)
        return other

    def add(self, value: float) -> None:
        """Take a reading into account; O(1)."""
        if not self.used:
            return
        if value in self._counts or len(self._counts) < _MANY:
            self._counts[value] = self._counts.get(value, 0) + 1
            self._step = None

    def remove(self, value: float) -> None:
        """Forget a reading that was added."""
        if not self.used:
            return
        count = self._counts.pop(value, 1)
        if count > 1:
            self._counts[value] = count - 1
        self._step = None

    @property
    def step(self) -> float:
        """The step, in the unit of the readings; 0 = none is seen."""
        if self._step is None:
            self._step = self._find()
        return self._step

    @property
    def variance(self) -> float:
        """Least variance of what is known of a place: d²/12."""
        return self.step**2 / 12.0

    def _find(self) -> float:
        values = np.array(sorted(value for value in self._counts if value))  # 0 is on any step
        if not values.size:
            return 0.0
        counts = np.array([self._counts[value] for value in values.tolist()], dtype=np.float64)
        # A value that is most frequent by far may be where the sensor saturates.
        counts = np.minimum(counts, np.sort(counts)[-2:].min())
        rounding = _EXACT * float(np.abs(values).max())
        return max(_rounded(values, counts, rounding), _even(values, rounding))


def _rounded(values: FloatArray, counts: FloatArray, rounding: float) -> float:
    """Return the largest of the usual steps that nearly all readings lie on; 0 = none."""
    for step in _DECIMAL[_DECIMAL > _APART * rounding].tolist():
        on = np.abs(values / step - np.round(values / step)) * step <= rounding
        share, different = float(counts[on].sum() / counts.sum()), int(np.count_nonzero(on))
        if share >= _ON and different >= (_FEW if step > 1.0 else min(len(values), _LEAST)):
            return float(step)
    return 0.0


def _even(values: FloatArray, rounding: float) -> float:
    """Return the step that divides all differences, such as a converter's; 0 = none."""
    if len(values) < _FEW:
        return 0.0
    apart = np.diff(values)
    step = float(apart.min())
    if step <= _APART * rounding:
        return 0.0
    whole = np.round(apart / step)
    if not (np.abs(apart - whole * step) <= 2.0 * rounding + 1e-3 * step).all():
        return 0.0
    return float(apart.sum() / whole.sum())
