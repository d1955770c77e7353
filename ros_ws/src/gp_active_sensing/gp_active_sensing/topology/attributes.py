"""What a map says of its places beside where they are: numbers and categories, as columns."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gp_active_sensing.errors import ConfigError, suggest
from gp_active_sensing.topology.segments import Segment
from gp_active_sensing.types import FloatArray

__all__ = ["Attributes", "attributes_of"]

_FAR = 3.0
"""Standardised columns are cut at ± this: a few places must not outweigh all others."""
_RARE = 0.02
"""A category of a smaller share of the places has no column of its own."""
_LEVELS = 12
"""Most columns of one attribute."""


@dataclass(frozen=True)
class Attributes:
    """Attributes of n places as columns that a mean may be linear in.

    Args:
        names: (a,) of the attributes.
        columns: (n, q) standardised: mean 0, standard deviation 1 over the places that have it, and
            0 where a place has none. Of a number its rank among the places: one very long road
            must not decide the slope. A category has a column for each frequent value.
        owners: (q,) number of the attribute that each column belongs to.
    """

    names: tuple[str, ...]
    columns: FloatArray
    owners: tuple[int, ...]

    @classmethod
    def none(cls, n: int) -> Attributes:
        """Return those of n places of which the map says nothing."""
        return cls((), np.zeros((n, 0)), ())

    def only(self, names: Sequence[str]) -> Attributes:
        """Return some of them, by name.

        Raises:
            ConfigError: a name that is not there.
        """
        for name in names:
            if name not in self.names:
                known = ", ".join(self.names) or "none"
                hint = suggest(name, self.names)
                msg = f"attributes: the map has no attribute {name!r}.{hint} It has: {known}"
                raise ConfigError(msg)
        kept = [k for k, name in enumerate(self.names) if name in names]
        which = [c for c, owner in enumerate(self.owners) if owner in kept]
        return Attributes(
            tuple(self.names[k] for k in kept),
            self.columns[:, which],
            tuple(kept.index(self.owners[c]) for c in which),
        )

    def weighted(self) -> FloatArray:
        """Return (n, q) columns, of which the squares of a row sum to 1 on average.

        Each attribute has the same share of it, however many columns stand for it.
        """
        sizes = Counter(self.owners)
        weights = [1.0 / math.sqrt(len(self.names) * sizes[owner]) for owner in self.owners]
        return np.asarray(self.columns * np.array(weights))


def attributes_of(segments: Sequence[Segment]) -> Attributes:
    """Return length, lanes, speed limit, class and other numbers of segments, as far as they vary.

    A number that some segments lack has a column more, which says so.
    """
    numbers: dict[str, list[float | None]] = {
        "length": [s.length for s in segments],
        "lanes": [s.lanes for s in segments],
        "speed_limit": [s.speed_limit for s in segments],
    }
    for name in dict.fromkeys(name for s in segments for name in s.extra):
        numbers[name] = [s.extra.get(name) for s in segments]
    found = {name: _of_numbers(values) for name, values in numbers.items()}
    found["class"] = _of_categories([s.road_class for s in segments])
    found = {name: columns for name, columns in found.items() if columns}
    owners = tuple(k for k, columns in enumerate(found.values()) for _ in columns)
    columns = [column for each in found.values() for column in each]
    if not columns:
        return Attributes.none(len(segments))
    return Attributes(tuple(found), np.column_stack(columns), owners)


def _of_numbers(values: Sequence[float | None]) -> list[FloatArray]:
    numbers = np.array([math.nan if v is None else float(v) for v in values])
    known = np.isfinite(numbers)
    columns = []
    if known.any():
        ranks = np.zeros(len(numbers))
        _, which, counts = np.unique(numbers[known], return_inverse=True, return_counts=True)
        ranks[known] = (np.cumsum(counts) - 0.5 * counts)[which.reshape(-1)]
        columns.append(_standardised(ranks, known))
    if _RARE <= float(known.mean()) <= 1.0 - _RARE:
        columns.append(_standardised(known.astype(np.float64), np.ones_like(known)))
    return [column for column in columns if column.any()]


def _of_categories(values: Sequence[str]) -> list[FloatArray]:
    counts = Counter(values)
    frequent = [v for v, count in counts.most_common(_LEVELS) if count >= _RARE * len(values)]
    if len(counts) < 2:
        return []
    everywhere = np.ones(len(values), dtype=np.bool_)
    columns = [
        _standardised(np.array([v == level for v in values], dtype=np.float64), everywhere)
        for level in sorted(frequent)
    ]
    return [column for column in columns if column.any()]


def _standardised(numbers: FloatArray, known: np.ndarray) -> FloatArray:
    """Return (n,) with mean 0 and deviation 1 over the known ones; zeros where all are the same."""
    column = np.zeros(len(numbers))
    inside = numbers[known]
    spread = float(inside.std())
    if spread > 1e-9 * max(1.0, float(np.abs(inside).max())):
        column[known] = np.clip((inside - inside.mean()) / spread, -_FAR, _FAR)
    return column
