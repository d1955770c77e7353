"""Resolution of a sensor, estimated from its readings."""

from __future__ import annotations

from copy import copy

import numpy as np

from gp_active_sensing.types import FloatArray

_DECIMAL: FloatArray = np.array(
    [f * 10.0**k for k in (2, 1, 0, -1, -2, -3) for f in (1.0, 0.5, 0.25, 0.2)]
)
"""Common rounding steps of sensors and drivers, in the readings' unit, the largest first."""
_ON = 0.8
"""Smallest fraction of readings that must be multiples of a step. The others may be averages."""
_EXACT = 4e-7
"""Relative rounding error of a value that a message stores in single precision."""
_APART = 10.0
"""Smallest step that is detected, in multiples of the rounding error of the largest reading."""
_FEW = 8
"""A step above 1 or outside of `_DECIMAL` is detected only with this number of different values."""
_LEAST = 3
"""A step of at most 1 in `_DECIMAL` requires this number of different values that are multiples of
the step. If there are fewer different values, all must be multiples."""
_MANY = 256
"""Largest number of different values that are counted."""


class Resolution:
    """Estimator of the step to which a sensor rounds its readings.

    A reading rounded to a step d has an error variance of d²/12. Repeated equal readings do not
    reduce this variance. If the added values are logarithms, `used` is False, and the step is 0.
    """

    def __init__(self, *, used: bool = True) -> None:
        self.used = used
        """False if the added values are logarithms of readings."""
        self._counts: dict[float, int] = {}
        self._step: float | None = 0.0

    def copy(self) -> Resolution:
        """Return an independent copy."""
        other = copy(self)
        other._counts = dict(self._counts)
        return other

    def add(self, value: float) -> None:
        """Add a reading; O(1)."""
        if not self.used:
            return
        if value in self._counts or len(self._counts) < _MANY:
            self._counts[value] = self._counts.get(value, 0) + 1
            self._step = None

    def remove(self, value: float) -> None:
        """Remove a reading that was added."""
        if not self.used:
            return
        count = self._counts.pop(value, 1)
        if count > 1:
            self._counts[value] = count - 1
        self._step = None

    @property
    def step(self) -> float:
        """Estimated rounding step, in the unit of the readings; 0 = no rounding."""
        if self._step is None:
            self._step = self._find()
        return self._step

    @property
    def variance(self) -> float:
        """Lower limit of the field's variance at a place: d²/12 for the step d."""
        return self.step**2 / 12.0

    def _find(self) -> float:
        values = np.array(sorted(value for value in self._counts if value))  # 0 fits any step
        if not values.size:
            return 0.0
        counts = np.array([self._counts[value] for value in values.tolist()], dtype=np.float64)
        # The sensor may saturate at the most frequent value: limit the count of that value.
        counts = np.minimum(counts, np.sort(counts)[-2:].min())
        rounding = _EXACT * float(np.abs(values).max())
        return max(_rounded(values, counts, rounding), _even(values, rounding))


def _rounded(values: FloatArray, counts: FloatArray, rounding: float) -> float:
    """Return the largest step in `_DECIMAL` that divides nearly all readings; 0 = none."""
    for step in _DECIMAL[_DECIMAL > _APART * rounding].tolist():
        on = np.abs(values / step - np.round(values / step)) * step <= rounding
        share, different = float(counts[on].sum() / counts.sum()), int(np.count_nonzero(on))
        if share >= _ON and different >= (_FEW if step > 1.0 else min(len(values), _LEAST)):
            return float(step)
    return 0.0


def _even(values: FloatArray, rounding: float) -> float:
    """Return the step that divides all differences between readings; 0 = none."""
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
