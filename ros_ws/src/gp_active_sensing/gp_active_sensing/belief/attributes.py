"""Attributes of places as columns for a linear mean: numbers, and the classes of road segments."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gp_active_sensing.errors import ConfigError, suggest
from gp_active_sensing.topology.base import Topology
from gp_active_sensing.topology.roads import Roads
from gp_active_sensing.topology.segments import numbers_of
from gp_active_sensing.types import FloatArray

_CLIPPED = 3.0
"""Largest absolute value in a standardised column; the limit reduces the effect of outliers."""
_RARE = 0.02
"""Smallest fraction of the places for each of the two values of a column of zeros and ones."""
_LEVELS = 12
"""Largest number of columns of one category."""


@dataclass(frozen=True)
class Attributes:
    """Attributes of n places as columns for a linear mean."""

    names: tuple[str, ...]  # (a,) names of the attributes
    # (n, q) standardised: mean 0, standard deviation 1 over the places with a value, 0 elsewhere. A
    # number is replaced by its rank among the places, so that outliers do not decide the slope. A
    # category has a column for each frequent value
    columns: FloatArray
    owners: tuple[int, ...]  # (q,) number of the attribute of each column

    @classmethod
    def of(
        cls,
        n: int,
        numbers: Mapping[str, FloatArray],
        categories: Mapping[str, Sequence[str]] | None = None,
    ) -> Attributes:
        """Return the attributes of n places; those that do not vary are left out.

        Numbers are (n,), NaN where a place has none. A number that some places lack gets a second
        column of ones (places with a value) and zeros.
        """
        made = {name: _of_numbers(values) for name, values in numbers.items()}
        made |= {name: _of_categories(words) for name, words in (categories or {}).items()}
        found = {name: each for name, each in made.items() if each}
        columns = [column for each in found.values() for column in each]
        owners = tuple(k for k, each in enumerate(found.values()) for _ in each)
        table = np.column_stack(columns) if columns else np.zeros((n, 0))
        return cls(tuple(found), table, owners)

    def only(self, names: Sequence[str]) -> Attributes:
        """Return the attributes with these `names`.

        Raises:
            ConfigError: unknown name.
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
        """Return (n, q) columns in which the squares of a row sum to 1 on average.

        Each attribute contributes equally to that sum, whatever its number of columns.
        """
        sizes = Counter(self.owners)
        weights = [1.0 / math.sqrt(len(self.names) * sizes[owner]) for owner in self.owners]
        return np.asarray(self.columns * np.array(weights))


def attributes_of(topology: Topology) -> Attributes:
    """Return the attributes of the places of a map.

    They are the map's additional numbers; on roads they are length, lanes, speed limit, class and
    other numbers of each segment.
    """
    if not isinstance(topology, Roads):
        return Attributes.of(topology.n, topology.numbers)
    classes = {"class": [segment.road_class for segment in topology.segments]}
    return Attributes.of(topology.n, numbers_of(topology.segments), classes)


def _of_numbers(numbers: FloatArray) -> list[FloatArray]:
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
    everywhere = np.ones(len(values), dtype=np.bool_)
    # An array of texts would give each the length of the longest.
    columns = [
        _standardised(np.array([float(value == level) for value in values]), everywhere)
        for level in sorted(frequent)
    ]
    return [column for column in columns if column.any()]


def _standardised(numbers: FloatArray, known: np.ndarray) -> FloatArray:
    """Return (n,) numbers with mean 0 and deviation 1 over known places; 0 if all are equal."""
    column = np.zeros(len(numbers))
    inside = numbers[known]
    spread = float(inside.std())
    if spread > 1e-9 * max(1.0, float(np.abs(inside).max())):
        column[known] = np.clip((inside - inside.mean()) / spread, -_CLIPPED, _CLIPPED)
    return column
