"""Transforms of the readings: the field may be Gaussian only after a logarithm."""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np

from gp_active_sensing.errors import ReadingError
from gp_active_sensing.types import FloatArray

__all__ = ["IDENTITY", "LOG", "TRANSFORMS", "Transform"]


class Transform(Protocol):
    """Between values in the sensor's unit and values the Gaussian process sees."""

    def forward(self, value: float, variance: float | None) -> tuple[float, float | None]:
        """Transform a reading and its noise variance.

        Raises:
            ReadingError: a value outside the transform's domain.
        """
        ...

    def seen(self, values: FloatArray) -> FloatArray:
        """Return values as the Gaussian process sees them, -inf below the transform's domain."""
        ...

    def seen_variance(self, values: FloatArray, variance: float) -> FloatArray:
        """Return the noise variance of readings of some values, as the Gaussian process sees it."""
        ...

    def inverse(self, values: FloatArray) -> FloatArray:
        """Return values in the sensor's unit."""
        ...

    def moments(self, mean: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return mean and variance, in the sensor's unit, of Gaussians given by theirs."""
        ...


class _Identity:
    def forward(self, value: float, variance: float | None) -> tuple[float, float | None]:
        return value, variance

    def seen(self, values: FloatArray) -> FloatArray:
        return values

    def seen_variance(self, values: FloatArray, variance: float) -> FloatArray:
        return np.full(values.shape, variance)

    def inverse(self, values: FloatArray) -> FloatArray:
        return values

    def moments(self, mean: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
        return mean, variance


class _Log:
    def forward(self, value: float, variance: float | None) -> tuple[float, float | None]:
        if value <= 0.0:
            msg = f"expected a value above 0 (the belief takes its logarithm), got {value}"
            raise ReadingError("not_positive", msg)
        # First order: sd of log z = sd of z / z.
        return math.log(value), None if variance is None else variance / value / value

    def seen(self, values: FloatArray) -> FloatArray:
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.maximum(values, 0.0)))

    def seen_variance(self, values: FloatArray, variance: float) -> FloatArray:
        return np.asarray(variance / np.square(np.maximum(values, 1e-100)))

    def inverse(self, values: FloatArray) -> FloatArray:
        return np.asarray(np.exp(np.minimum(values, 300.0)))

    def moments(self, mean: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
        # Log-normal: E = exp(m + v/2), Var = (exp(v) - 1) E²; capped so that a prior with a huge
        # variance gives a huge number, not infinity.
        expectation = np.exp(np.minimum(mean + 0.5 * variance, 300.0))
        return expectation, np.expm1(np.minimum(variance, 50.0)) * expectation**2


IDENTITY: Transform = _Identity()
LOG: Transform = _Log()
TRANSFORMS: dict[str, Transform] = {"identity": IDENTITY, "log": LOG}
