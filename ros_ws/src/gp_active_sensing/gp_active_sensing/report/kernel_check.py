"""Check a kernel model against rows: errors, log density and coverage of intervals."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from gp_active_sensing.errors import ConfigError
from gp_active_sensing.kernel_model import KernelModel
from gp_active_sensing.learning.data.dataset import Dataset
from gp_active_sensing.types import FloatArray

__all__ = ["LEVELS", "MOST_ROWS", "Check", "Coverage", "arranged", "check"]

MOST_ROWS = 1500
"""Rows that are predicted."""
LEVELS = (0.50, 0.90, 0.95)
"""Of the intervals whose coverage is counted."""


@dataclass(frozen=True)
class Coverage:
    """How many of the values an interval holds.

    Args:
        level: how many it should hold, as a share.
        share: how many it holds.
        error: standard error of the share, as of independent rows.
    """

    level: float
    share: float
    error: float


@dataclass(frozen=True, eq=False)
class Check:
    """Predictions of rows beside their values.

    Args:
        total: rows there are.
        inputs: (m, d) of those predicted.
        observed: (m,) their values.
        mean, std: (m,) of the prediction of a new reading, noise included.
        seen: the model was learned from these rows.
    """

    total: int
    inputs: FloatArray
    observed: FloatArray
    mean: FloatArray
    std: FloatArray
    seen: bool

    @property
    def residuals(self) -> FloatArray:
        """(m,) observed less predicted, in standard deviations of the prediction."""
        return np.asarray((self.observed - self.mean) / self.std)

    @property
    def rmse(self) -> float:
        """Root mean squared error, in the unit of the outputs."""
        return float(np.sqrt(np.mean((self.observed - self.mean) ** 2)))

    @property
    def nlpd(self) -> float:
        """Mean negative log predictive density of the values [nat]."""
        terms = 0.5 * math.log(2.0 * math.pi) + np.log(self.std) + 0.5 * self.residuals**2
        return float(np.mean(terms))

    @property
    def spread(self) -> float:
        """Standard deviation of the values: the error of a constant."""
        return float(np.std(self.observed))

    @property
    def coverage(self) -> tuple[Coverage, ...]:
        """Of central intervals of a normal with the predicted mean and deviation."""
        distance = np.abs(self.residuals)
        found = []
        for level in LEVELS:
            share = float(np.mean(distance <= ndtri(0.5 + 0.5 * level)))
            error = math.sqrt(level * (1.0 - level) / len(distance))
            found.append(Coverage(level, share, error))
        return tuple(found)


def check(
    model: KernelModel, rows: Dataset, kernels: list[int] | None = None, *, samples: int, seed: int
) -> Check:
    """Predict rows, at most `MOST_ROWS` of them, drawn by the seed.

    Args:
        model: that predicts.
        rows: of which those with a number in every column are used.
        kernels: that are averaged over, None = all.
        samples: of θ.
        seed: of the rows and the samples.

    Raises:
        ConfigError: inputs of other names than the model's, or no row that can be used.
    """
    order = arranged(model, rows)
    inputs, observed = rows.sample(MOST_ROWS, seed)
    inputs = inputs[:, order]
    whole = np.isfinite(inputs).all(axis=1) & np.isfinite(observed)
    if not whole.any():
        msg = f"{rows.source}: expected rows with a number in every column, got none"
        raise ConfigError(msg)
    inputs, observed = inputs[whole], observed[whole]
    mean, variance = model.predict(inputs, noisy=True, samples=samples, kernels=kernels, seed=seed)
    return Check(
        total=len(rows),
        inputs=inputs,
        observed=observed,
        mean=mean,
        std=np.sqrt(variance),
        seen=_seen(model, rows, order),
    )


def _seen(model: KernelModel, rows: Dataset, order: list[int]) -> bool:
    """Return whether the model was learned from these rows: the same numbers, from any file.

    Of an older model, which does not know its rows: as many, from a file of the same name.
    """
    if len(rows) != model.rows:
        return False
    digest = model.settings.get("rows_digest")
    if digest is None:
        return rows.source == model.source
    if order != sorted(order):
        names = model.input_names
        rows = dataclasses.replace(rows, inputs=rows.inputs[:, order], input_names=names)
    return bool(rows.digest() == digest)


def arranged(model: KernelModel, rows: Dataset) -> list[int]:
    """Return which column of the rows is which input of the model.

    Raises:
        ConfigError: their names are not those of the model.
    """
    if sorted(rows.input_names) != sorted(model.input_names):
        msg = (
            f"{rows.source}: expected the inputs of the model, {', '.join(model.input_names)}; "
            f"got {', '.join(rows.input_names)}"
        )
        raise ConfigError(msg)
    return [rows.input_names.index(name) for name in model.input_names]
