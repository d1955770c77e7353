"""Worth of a reading as it ages: one class for all kinds but the forgetting kernel."""

from __future__ import annotations

import math

import numpy as np

from gp_active_sensing.belief.drift.config import DriftConfig
from gp_active_sensing.types import BoolArray, FloatArray

__all__ = ["FRACTION", "Ageing"]

FRACTION = 128.0
"""Readings of one place within this part of the time constant are collapsed: what they are worth
differs by less than 2 %. A power of two, so that no such slot crosses a restart."""
_ROUNDING = 1e-9
"""Part of a window by which an age may miss its end and is still taken to be there."""
_LEAST = 1e-30
"""Weight below which a reading is dropped: it changes nothing within rounding."""
_MOST = 1e100
"""Largest variance added by age: years at any rate stay finite."""
_OLD = 1e50
"""Largest age, in time constants."""
_MOST_ROWS = 1024
"""Forgetting kernel: slots that are kept."""
_FADED = 12.0
"""Forgetting kernel: age, in time scales, from which on a reading may be dropped."""


class Ageing:
    """How readings lose their worth.

    Args:
        config: of the drift.
        noise_std: least standard deviation of a reading's noise, for the time constant of `rate`.
    """

    def __init__(self, config: DriftConfig, noise_std: float) -> None:
        self.config = config
        constants = (config.doubling, config.time_scale, config.window)
        given = [value for value in constants if value is not None]
        self.constant = given[0] if given else noise_std / (config.rate or math.inf)
        """Seconds over which a reading loses much of its worth."""

    @property
    def slot(self) -> float:
        """Length of time whose readings of one place are collapsed [s]."""
        return self.constant / FRACTION

    @property
    def lasting(self) -> bool:
        """Readings of any age stay in use, however little they are worth."""
        return self.config.kind == "injection" and self.config.discard_step is None

    @property
    def most_slots(self) -> int:
        """How many slots are kept at most: under the kernel the cost grows with their cube."""
        return _MOST_ROWS if self.config.kind == "kernel" else 10**9

    def used(self, times: FloatArray, now: float, first: float) -> BoolArray:
        """Say which readings count, the newest of all aside.

        Args:
            times: (S,) when they were taken [s].
            now: [s].
            first: when the first of all was taken [s].
        """
        config, age = self.config, np.maximum(now - times, 0.0)
        if config.kind == "window":
            # Without its far end: of one reading a second, a window of W seconds holds W.
            end = (1.0 - _ROUNDING) * self.constant - 4.0 * math.ulp(now)
            return np.asarray(age < end)
        if config.kind == "restart":
            return np.asarray(times >= math.floor(now / self.constant) * self.constant)
        if config.kind == "kernel":
            return np.asarray(age <= _FADED * self.constant)
        if config.discard_step is None:
            return np.asarray(self.shares(age) > _LEAST)
        # [Mauduit2025, Algorithm 1, line 4]; at steps 1 and 2 their rule drops everything. Readings
        # of the step that is under way are of no age yet.
        length = config.discard_step
        step = 1.0 + math.floor((now - first) / length) if now > first else 1.0
        whole = np.floor(np.minimum(age / length, _OLD)) * length
        return np.asarray(self._growth(whole) <= max(math.log(step), 1.0))

    def shares(self, age: FloatArray) -> FloatArray:
        """Return the weight of readings of such ages, in (0, 1]: 1 = as good as new."""
        if self.config.kind == "weights":
            return np.asarray(np.exp(-np.minimum(age / self.constant, 700.0)))
        if self.config.doubling is not None:
            return np.asarray(1.0 / self._growth(age))
        return np.ones_like(age)

    def added(self, age: FloatArray) -> FloatArray | None:
        """Return the variance that the field's change adds, None where there is none to add."""
        if self.config.rate is None:
            return None
        return np.asarray(np.minimum(self.config.rate * age, math.sqrt(_MOST)) ** 2)

    def _growth(self, age: FloatArray) -> FloatArray:
        """Return by what a noise variance has grown."""
        return np.asarray(1.0 + (np.minimum(age / self.constant, _OLD)) ** 2)
