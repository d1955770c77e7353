"""Normalised rows of a data set, for the stages and mini-batches of the optimisation."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gp_active_sensing.errors import ReadingError
from gp_active_sensing.kernel_model.model import Scaling
from gp_active_sensing.types import FloatArray, IntArray
from gp_active_sensing_learning.data.dataset import Dataset
from gp_active_sensing_learning.kernel_selection.config import VbksConfig

logger = logging.getLogger(__name__)

_SAMPLE = 100_000
"""Largest number of rows from which means and standard deviations are computed."""
_CLUSTERED = 20_000
"""Largest number of rows that are clustered for the inducing inputs."""
_PASS = 65_536
"""Number of rows that are read at a time."""
_BLOCK = 64
"""Number of mini-batches that one random generator draws."""


def scaling_of(rows: Dataset, config: VbksConfig) -> Scaling:
    """Return the scaling of inputs and outputs to mean 0 and standard deviation 1.

    With ``centre: false`` the mean is kept, and the root mean square is scaled to 1.

    Raises:
        ReadingError: all outputs are equal.
    """
    rng = np.random.default_rng([config.seed, 0x5CA1])
    n = len(rows.outputs)
    chosen = np.arange(n) if n <= _SAMPLE else np.sort(rng.choice(n, _SAMPLE, replace=False))
    X = np.asarray(rows.inputs[chosen], dtype=np.float64)
    y = np.asarray(rows.outputs[chosen], dtype=np.float64)
    if np.ptp(y) <= 1e-9 * np.abs(y).max():
        msg = (
            f"{rows.source}: all values of {rows.output_name} are {y[0]:g}; a field that does not "
            "vary tells nothing about its kernel"
        )
        raise ReadingError("constant", msg)
    if config.centre:
        # Rounding gives a constant column a small spread.
        varies = np.ptp(X, axis=0) > 1e-9 * np.abs(X).max(axis=0)
        unit = np.where(varies, X.std(axis=0), 1.0)
        return Scaling(X.mean(axis=0), unit, float(y.mean()), float(y.std()))
    unit = np.sqrt((X * X).mean(axis=0))
    return Scaling(
        np.zeros(X.shape[1]), np.where(unit > 0, unit, 1.0), 0.0, float(np.sqrt((y * y).mean()))
    )


@dataclass(frozen=True, eq=False)
class Data:
    """Rows in random order. Stage s uses a fraction ``stages[s]`` of the rows.

    Args:
        rows: rows in their original units.
        scaling: normalisation of the rows.
        order: (n,) indices of the rows in random order.
        config: seed, stages and sizes.
    """

    rows: Dataset
    scaling: Scaling
    order: IntArray
    config: VbksConfig

    @cached_property
    def inducing(self) -> FloatArray:
        """Normalised initial inducing inputs (M, d) of all kernels."""
        return inducing_inputs(self, self.config.inducing)

    @staticmethod
    def of(rows: Dataset, scaling: Scaling, config: VbksConfig) -> Data:
        """Return the rows in an order drawn with the seed of `config`."""
        rng = np.random.default_rng([config.seed, 0x0DE8])
        return Data(rows, scaling, rng.permutation(len(rows.outputs)), config)

    def rows_of(self, stage: int) -> int:
        """Return the number of rows in a stage. Stages are counted from 0."""
        n = len(self.order)
        return max(1, min(n, round(self.config.stages[stage] * n)))

    def take(self, chosen: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return normalised inputs (b, d) and outputs (b,) of the rows `chosen` (b,)."""
        s = self.scaling
        X = (np.asarray(self.rows.inputs[chosen], dtype=np.float64) - s.input_shift) / s.input_scale
        y = np.asarray(self.rows.outputs[chosen], dtype=np.float64)
        return X, (y - s.output_shift) / s.output_scale

    def whole(self, stage: int) -> bool:
        """Return whether a mini-batch has all rows of a stage."""
        return self.config.batch >= self.rows_of(stage)

    def batches(self, stage: int, start: int) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Yield an endless sequence of random mini-batches of a stage, from index `start` on."""
        n = self.rows_of(stage)
        if self.whole(stage):
            everything = self.take(np.sort(self.order[:n]))
            while True:
                yield everything
        while True:
            rng = np.random.default_rng([self.config.seed, 0xBA7C, stage, start // _BLOCK])
            block = self.order[rng.integers(0, n, (_BLOCK, self.config.batch))]
            for chosen in block[start % _BLOCK :]:
                yield self.take(np.sort(chosen))
            start += _BLOCK - start % _BLOCK

    def sample(self, stage: int, size: int) -> tuple[FloatArray, FloatArray]:
        """Return `size` random rows of a stage. Equal arguments give equal rows."""
        n = self.rows_of(stage)
        chosen = self.order[:n]
        if size < n:
            rng = np.random.default_rng([self.config.seed, 0xE57, stage])
            chosen = chosen[rng.choice(n, size, replace=False)]
        return self.take(np.sort(chosen))

    def everything(self, stage: int) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Yield all rows of a stage in parts, in the order of the data set."""
        chosen = np.sort(self.order[: self.rows_of(stage)])
        for first in range(0, len(chosen), _PASS):
            yield self.take(chosen[first : first + _PASS])


def inducing_inputs(data: Data, count: int) -> FloatArray:
    """Return at most `count` normalised inducing inputs (M, d), the centres of clusters of rows.

    Log a warning if the data set has fewer distinct inputs than `count`.
    """
    from scipy.cluster.vq import kmeans2

    rng = np.random.default_rng([data.config.seed, 0x1DC])
    n = len(data.order)
    chosen = np.arange(n) if n <= _CLUSTERED else rng.choice(n, _CLUSTERED, replace=False)
    X = np.unique(data.take(np.sort(chosen))[0], axis=0)
    if count >= len(X):
        if count > len(X):
            logger.warning(
                "%s: %d inducing inputs asked for, %d distinct inputs there are; %d are used",
                data.rows.source,
                count,
                len(X),
                len(X),
            )
        return X
    start = X[np.sort(rng.choice(len(X), count, replace=False))]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "One of the clusters is empty", UserWarning)
        centres, label = kmeans2(X, start, iter=10, minit="matrix", missing="warn")
    # A cluster without rows keeps its initial centre.
    empty = np.bincount(label, minlength=count) == 0
    return np.where(empty[:, None], start, centres)
