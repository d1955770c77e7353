"""Mean and covariance of the places from a table of earlier readings at many times."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from gp_active_sensing.belief.prior import IDENTITY, HyperParameters, SignalCovariance, Transform
from gp_active_sensing.errors import ConfigError, ReadingError, listed, suggest
from gp_active_sensing.types import FloatArray, IntArray
from gp_active_sensing.util.tables import Table

logger = logging.getLogger(__name__)

MOST = 10_000
"""Largest number of places, limited by the memory of the covariance matrix."""
_FEWEST = 3
"""Each place needs readings at this number of times or more."""
_SHOWN = 5
_LEAST = 1e-9
"""Smallest eigenvalue of a correlation matrix; smaller eigenvalues are raised to this value."""
_ROUNDING = 1e-9
"""Asymmetries and negative eigenvalues up to this value count as rounding errors. The value is
relative to the largest entry of the matrix."""


def read_history(path: Path, places: Sequence[str], transform: Transform = IDENTITY) -> FloatArray:
    """Return the (T, n) values of a CSV table: a line for each time, a column for each place.

    Args:
        path: the table; other columns, such as the time, are ignored. Empty cells and ``nan`` are
            missing values.
        places: (n,) names of the map's places; each needs a column.
        transform: transform of the values.

    Raises:
        ConfigError: the table cannot be used; the message names the line.
    """
    parts = [np.empty((0, len(places)))]
    with Table(path, ConfigError) as table:
        known = set(table.header)
        lacking = [name for name in places if name not in known]
        if lacking:
            msg = (
                f"{path}: expected a column for every place of the map, none for {len(lacking)} of "
                f"{len(places)} ({listed(lacking, _SHOWN)}).{suggest(lacking[0], table.header)} It "
                f"has: {listed(table.header, _SHOWN)}"
            )
            raise ConfigError(msg)
        for values, _, lines in table.chunks(places, measured=known):
            if transform is not IDENTITY:
                for row, column in np.argwhere(~np.isnan(values)).tolist():
                    try:
                        values[row, column] = transform.forward(values[row, column], None)[0]
                    except ReadingError as error:
                        msg = f"{path}, line {lines[row]}, column {places[column]!r}: {error}"
                        raise ConfigError(msg) from error
            parts.append(values)
    return np.concatenate(parts)


def empirical(
    values: FloatArray, places: Sequence[str], shrinkage: float | None = None
) -> tuple[FloatArray, FloatArray]:
    r"""Return mean (n,) and covariance (n, n) of the columns, with correlations shrunk towards 0.

    The shrinkage ``r_ij ← (1 - ρ) r_ij`` keeps the variances. For ρ > 0 the result is positive
    definite, even with fewer times than places. The default

    .. math:: \rho = \min\Big(1, \sum_{i \ne j} \widehat{Var}(r_{ij}) \Big/
        \sum_{i \ne j} r_{ij}^2 \Big)

    minimises the expected squared error of the correlations if the times are independent
    [Ledoit2004; Schafer2005, Table 2, target D]. Correlated times need a larger ρ.

    Each correlation uses the times at which both places were read. Missing readings may cause
    negative eigenvalues, which are raised to a small positive value. A place with constant readings
    gets the smallest variance of the other places.

    Args:
        values: (T, n), NaN where missing.
        places: (n,) names, for messages.
        shrinkage: ρ, 0 … 1; None = default.

    Raises:
        ConfigError: a place has too few times, or all places have constant readings.
    """
    present = np.isfinite(values)
    count = present.sum(axis=0)
    if (count < _FEWEST).any():
        few = int(np.argmin(count))
        msg = (
            f"history: expected at least {_FEWEST} values of every place, got {count[few]} of "
            f"{places[few]!r}; give more times, or leave the place out of the map"
        )
        raise ConfigError(msg)
    mean = np.where(present, values, 0.0).sum(axis=0) / count
    centred = np.where(present, values - mean, 0.0)
    variance = (centred**2).sum(axis=0) / (count - 1)
    varies = variance > 1e-24 * np.maximum(mean * mean, 1e-300)
    if not varies.any():
        msg = "history: expected values that change in time, got constant ones in every column"
        raise ConfigError(msg)
    if not varies.all():
        still = [places[i] for i in np.flatnonzero(~varies).tolist()]
        logger.warning(
            "history: %d places never changed (%s); they get the smallest variance of the other "
            "places",
            len(still),
            listed(still, _SHOWN),
        )
        variance[~varies] = variance[varies].min()
    scale = np.sqrt(variance)
    together, r, error = _correlations(np.where(varies, centred / scale, 0.0), present)
    if shrinkage is None:
        squares = float((r[together] ** 2).sum())
        noise = float(error[together].sum())
        shrinkage = min(1.0, noise / squares) if squares > 0.0 else 1.0
        logger.info("history: correlations of %d times shrunk by %.2g", len(values), shrinkage)
    r *= 1.0 - shrinkage
    np.fill_diagonal(r, 1.0)
    if not present.all():
        r = _positive(r)
    return mean, r * np.outer(scale, scale)


def _correlations(x: FloatArray, present: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return (n, n) arrays: mask of pairs read together, correlations and their variances."""
    both = present.T.astype(np.float64) @ present
    together = both >= _FEWEST
    np.fill_diagonal(together, False)
    times = np.where(together, both, float(_FEWEST))
    average = (x.T @ x) / times
    spread = np.maximum((x * x).T @ (x * x) - times * average**2, 0.0)
    r = np.where(together, times / (times - 1.0) * average, 0.0)
    error = np.where(together, times / (times - 1.0) ** 3 * spread, 0.0)
    return together, np.clip(r, -1.0, 1.0), error


def _positive(r: FloatArray) -> FloatArray:
    values, vectors = np.linalg.eigh(r)
    if values[0] >= _LEAST:
        return r
    raised = (vectors * np.maximum(values, _LEAST)) @ vectors.T
    scale = 1.0 / np.sqrt(raised.diagonal())
    return np.asarray(raised * np.outer(scale, scale))


class EmpiricalCovariance(SignalCovariance):
    """Covariance ``(σ_s² / s²) K`` of a matrix K with mean variance s².

    Candidates λ differ only in signal σ_s and noise; their length-scale has no effect.

    Args:
        matrix: (n, n) K, symmetric and positive semidefinite.
        hyperparameters: the candidates; `signal_std` is the root of the places' mean variance.

    Raises:
        ValueError: there is no candidate, or the matrix is not a covariance.
    """

    def __init__(self, matrix: FloatArray, hyperparameters: Sequence[HyperParameters]) -> None:
        K = np.array(matrix, dtype=np.float64)
        if K.ndim != 2 or K.shape[0] != K.shape[1] or not K.size:
            msg = f"expected a covariance (n, n) of at least one place, got shape {K.shape}"
            raise ValueError(msg)
        if not np.isfinite(K).all():
            msg = "expected a covariance of finite numbers"
            raise ValueError(msg)
        super().__init__(len(K), hyperparameters)
        largest = float(np.abs(K).max())
        if not largest > 0.0:
            msg = "expected a covariance with a variance above 0 somewhere"
            raise ValueError(msg)
        if float(np.abs(K - K.T).max()) > _ROUNDING * largest:
            msg = "expected a symmetric covariance"
            raise ValueError(msg)
        least = float(np.linalg.eigvalsh(K)[0])
        if least < -_ROUNDING * largest * len(K):
            msg = f"expected a covariance without negative eigenvalues, got {least:g}"
            raise ValueError(msg)
        K = 0.5 * (K + K.T)
        self._unit = K / float(np.diagonal(K).mean())

    def between(self, rows: IntArray, columns: IntArray) -> FloatArray:
        """Return the (L, r, c) prior covariance of `rows` and `columns` under each candidate λ."""
        block = self._unit[np.ix_(rows, columns)]
        return np.asarray(self._signal[:, None, None] * block)

    def variance(self, locations: IntArray) -> FloatArray:
        """Return the (L, m) prior variance at `locations` under each candidate λ."""
        return np.asarray(self._signal[:, None] * self._unit.diagonal()[locations])
