"""Columns for a linear mean from the attributes of places, such as numbers and road classes."""

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
"""Largest absolute value in a standardised column; larger values are clipped."""
_RARE = 0.02
"""A column of zeros and ones must be 1 at this fraction of the places or more. A column that marks
places with a known value must also be 0 at this fraction of the places or more."""
_LEVELS = 12
"""Largest number of columns for one categorical attribute."""


@dataclass(frozen=True)
class Attributes:
    """Attributes of n places, encoded as columns for a linear mean."""

    names: tuple[str, ...]  # (a,) names of the attributes
    # (n, q) columns, standardised over the places with a value; 0 for places without a value.
    # Ranks replace numbers to reduce the effect of outliers. A category has one column for each
    # frequent value.
    columns: FloatArray
    owners: tuple[int, ...]  # (q,) index in `names` of each column's attribute

    @classmethod
    def of(
        cls,
        n: int,
        numbers: Mapping[str, FloatArray],
        categories: Mapping[str, Sequence[str]] | None = None,
    ) -> Attributes:
        """Return the attributes of n places as columns; leave out attributes without variation.

        `numbers` are (n,) arrays; NaN = no value. If a numerical attribute has no value at some
        places, it gets a second column: 1 at the places with a value, and 0 elsewhere.
        """
        made = {name: _of_numbers(values) for name, values in numbers.items()}
        made |= {name: _of_categories(words) for name, words in (categories or {}).items()}
        found = {name: each for name, each in made.items() if each}
        columns = [column for each in found.values() for column in each]
        owners = tuple(k for k, each in enumerate(found.values()) for _ in each)
        table = np.column_stack(columns) if columns else np.zeros((n, 0))
        return cls(tuple(found), table, owners)

    def only(self, names: Sequence[str]) -> Attributes:
        """Return the attributes that have these names.

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
        """Return the (n, q) columns, scaled so that the squares of a row sum to 1 on average.

        Each attribute contributes equally to this sum, whatever its number of columns.
        """
        sizes = Counter(self.owners)
        weights = [1.0 / math.sqrt(len(self.names) * sizes[owner]) for owner in self.owners]
        return np.asarray(self.columns * np.array(weights))


def attributes_of(topology: Topology) -> Attributes:
    """Return the attributes of the places of a map.

    Without roads, the attributes are `topology.numbers`. With roads, they are the class and the
    numbers of each segment, such as length, lanes and speed limit.
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
    # Compare in Python: an array of strings would pad each string to the longest one.
    columns = [
        _standardised(np.array([float(value == level) for value in values]), everywhere)
        for level in sorted(frequent)
    ]
    return [column for column in columns if column.any()]


def _standardised(numbers: FloatArray, known: np.ndarray) -> FloatArray:
    column = np.zeros(len(numbers))
    inside = numbers[known]
    spread = float(inside.std())
    if spread > 1e-9 * max(1.0, float(np.abs(inside).max())):
        column[known] = np.clip((inside - inside.mean()) / spread, -_CLIPPED, _CLIPPED)
    return column
