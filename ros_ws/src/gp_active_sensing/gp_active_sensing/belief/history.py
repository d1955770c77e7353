"""Earlier readings of every place at many times: their mean and covariance."""

from __future__ import annotations

import csv
import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gp_active_sensing.belief.transform import IDENTITY, Transform
from gp_active_sensing.errors import ConfigError, ReadingError, suggest
from gp_active_sensing.types import FloatArray

__all__ = ["History", "empirical", "read_history"]

logger = logging.getLogger(__name__)

MOST = 10_000
"""Places beyond which a matrix of them all does not fit into a usual memory."""
_FEWEST = 3
"""Times at which a place must have been read."""
_MISSING = frozenset({"", "nan", "na", "null"})
_SHOWN = 5
_LEAST = 1e-9
"""Least eigenvalue of the correlation that is left, where places miss readings."""


@dataclass(frozen=True)
class History:
    """What earlier readings say about the field.

    Args:
        mean: (n,) of each place.
        covariance: (n, n), shrunk.
        shrinkage: by how much, 0 … 1.
    """

    mean: FloatArray
    covariance: FloatArray
    shrinkage: float


def read_history(path: Path, places: Sequence[str], transform: Transform = IDENTITY) -> FloatArray:
    """Return the (T, n) values of a CSV table: a line for each time, a column for each place.

    Args:
        path: the table; columns with other names, such as the time, are left out. An empty cell or
            ``nan`` is a missing value.
        places: (n,) names of the map's places, each of which needs a column.
        transform: applied to the values.

    Raises:
        ConfigError: a table that cannot be used; the message says the line.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            table = csv.reader(stream)
            head = [cell.strip() for cell in next(table, [])]
            columns = _columns(path, head, places)
            rows = []
            for row in table:
                if not any(cell.strip() for cell in row):
                    continue
                where = f"{path}, line {table.line_num}"
                if len(row) != len(head):
                    msg = f"{where}: expected {len(head)} cells as in line 1, got {len(row)}"
                    raise ConfigError(msg)
                rows.append(
                    [
                        _number(row[column], transform, f"{where} (place {name!r})")
                        for name, column in zip(places, columns, strict=True)
                    ]
                )
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        msg = f"{path}: cannot be read as a CSV table: {error}"
        raise ConfigError(msg) from error
    return np.array(rows, dtype=np.float64).reshape(len(rows), len(places))


def empirical(values: FloatArray, places: Sequence[str], shrinkage: float | None = None) -> History:
    r"""Return mean and covariance of the columns, with the correlations shrunk towards none.

    ``r_ij ← (1 - ρ) r_ij``, which leaves the variances and is positive definite for ρ > 0 even
    where there are fewer times than places. With ρ unset

    .. math:: \rho = \min\Big(1, \sum_{i \ne j} \widehat{Var}(r_{ij}) \Big/
        \sum_{i \ne j} r_{ij}^2 \Big)

    which minimises the expected squared error where the times are independent [Ledoit2004;
    Schafer2005, Table 2, target D]. Neighbouring times seldom are: then more is better.

    Every pair of places is compared at the times when both were read. Where places miss readings
    the result may have negative eigenvalues, which are raised. A place that never changed gets the
    least variance of the others.

    Args:
        values: (T, n), NaN where missing.
        places: (n,) names, for messages.
        shrinkage: ρ, 0 … 1; None = from the values.

    Raises:
        ConfigError: too few times, or nothing ever changed.
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
            "history: %d places never changed (%s); they get the least variance of the others",
            len(still),
            _few(still),
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
    return History(mean, r * np.outer(scale, scale), shrinkage)


def _correlations(x: FloatArray, present: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return which pairs (n, n) were read together, their correlation and its variance."""
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
    """Return the correlations with no eigenvalue below what can be computed with."""
    values, vectors = np.linalg.eigh(r)
    if values[0] >= _LEAST:
        return r
    raised = (vectors * np.maximum(values, _LEAST)) @ vectors.T
    scale = 1.0 / np.sqrt(raised.diagonal())
    return np.asarray(raised * np.outer(scale, scale))


def _columns(path: Path, head: Sequence[str], places: Sequence[str]) -> list[int]:
    where = {name: i for i, name in enumerate(head)}
    lacking = [name for name in places if name not in where]
    if lacking:
        hint = suggest(lacking[0], head)
        msg = (
            f"{path}: expected a column for every place of the map, none for {len(lacking)} of "
            f"{len(places)} ({_few(lacking)}).{hint} It has: {_few(head) or 'none'}"
        )
        raise ConfigError(msg)
    wanted = set(places)
    twice = sorted({name for name in head if name in wanted and head.count(name) > 1})
    if twice:
        msg = f"{path}: column {twice[0]!r} comes more than once; keep one for each place"
        raise ConfigError(msg)
    return [where[name] for name in places]


def _number(text: str, transform: Transform, where: str) -> float:
    word = text.strip()
    if word.lower() in _MISSING:
        return math.nan
    try:
        value = float(word)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        msg = f"{where}: expected a finite number or nothing, got {word!r}"
        raise ConfigError(msg)
    try:
        return transform.forward(value, None)[0]
    except ReadingError as error:
        msg = f"{where}: {error}"
        raise ConfigError(msg) from error


def _few(names: Sequence[str]) -> str:
    rest = ", …" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + rest
