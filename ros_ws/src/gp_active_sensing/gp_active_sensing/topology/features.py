"""Columns of a road map: attributes of its segments, and what a covariance is a function of."""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gp_active_sensing.errors import ConfigError, MapError, suggest
from gp_active_sensing.topology.links import (
    Embedding,
    Links,
    embed,
    join_parts,
    manhattan_weights,
)
from gp_active_sensing.topology.segments import RoadMap, Segment
from gp_active_sensing.types import FloatArray

logger = logging.getLogger(__name__)

_FAR = 3.0
"""Standardised columns are cut at ± this: a few places must not outweigh all others."""
_RARE = 0.02
"""A category of a smaller share of the places has no column of its own."""
_LEVELS = 12
"""Most columns of one attribute."""


@dataclass(frozen=True)
class Attributes:
    """Attributes of n places as columns that a mean may be linear in."""

    names: tuple[str, ...]  # (a,) of the attributes
    # (n, q) standardised: mean 0, standard deviation 1 over the places that have it, and 0 where a
    # place has none. Of a number its rank among the places: one very long road must not decide the
    # slope. A category has a column for each frequent value
    columns: FloatArray
    owners: tuple[int, ...]  # (q,) number of the attribute that each column belongs to

    @classmethod
    def none(cls, n: int) -> Attributes:
        """Return the attributes of n places about which the map says nothing."""
        return cls((), np.zeros((n, 0)), ())

    @classmethod
    def of_numbers(cls, n: int, numbers: Mapping[str, FloatArray]) -> Attributes:
        """Return the attributes of n places by numbers, as far as they vary; NaN = none.

        A number that some places lack has a column more, which says so.
        """
        return cls._of(n, {name: _of_numbers(values) for name, values in numbers.items()})

    @classmethod
    def _of(cls, n: int, columns: Mapping[str, Sequence[FloatArray]]) -> Attributes:
        found = {name: each for name, each in columns.items() if each}
        if not found:
            return cls.none(n)
        owners = tuple(k for k, each in enumerate(found.values()) for _ in each)
        return cls(tuple(found), np.column_stack([c for e in found.values() for c in e]), owners)

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
        """Return (n, q) columns; the squares of a row sum to 1 on average.

        Each attribute has the same share of it, however many columns stand for it.
        """
        sizes = Counter(self.owners)
        weights = [1.0 / math.sqrt(len(self.names) * sizes[owner]) for owner in self.owners]
        return np.asarray(self.columns * np.array(weights))


def attributes_of(segments: Sequence[Segment]) -> Attributes:
    """Return length, lanes, speed limit, class and other numbers of segments, as far as they vary.

    A number that some segments lack has a column more, which says so.
    """
    columns = {name: _of_numbers(values) for name, values in numbers_of(segments).items()}
    columns["class"] = _of_categories([s.road_class for s in segments])
    return Attributes._of(len(segments), columns)


def numbers_of(segments: Sequence[Segment]) -> dict[str, FloatArray]:
    """Return (n,) length, lanes, speed limit and the other numbers of segments, NaN = none."""
    others = dict.fromkeys(name for segment in segments for name in segment.extra)
    values = {key: [getattr(s, key) for s in segments] for key in _OWN}
    values |= {key: [s.extra.get(key) for s in segments] for key in others if key not in _OWN}
    return {key: np.array(given, dtype=np.float64) for key, given in values.items()}


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


FEATURES: tuple[str, ...] = ("x", "y", "length", "lanes", "speed_limit", "direction")
"""Columns of a segment: middle [m], length [m], lanes, limit [m/s], direction (cosine, sine)."""
RELATIONAL = "relational"
"""Instead of columns: the coordinates of an embedding of the road graph."""
DEFAULT: tuple[str, ...] = ("length", "lanes", "speed_limit", "direction")
"""Features that weigh the links of the embedded graph, if the map has them."""

AXIS = "mds_"
"""Names of an embedding's coordinates begin so."""
_OWN = ("length", "lanes", "speed_limit")


def available(road_map: RoadMap) -> tuple[str, ...]:
    """Return the names of the columns that every segment of a map has a number for."""
    numbers = numbers_of(road_map.segments)
    return ("x", "y", "direction", *(k for k, v in numbers.items() if np.isfinite(v).all()))


class RoadFeatures:
    """The features of a map's segments: columns by name, or an embedding of the road graph.

    `points` are x, y [m] and heading [rad] of where each segment's value belongs; `moves` say how
    segments follow one another; `names` are of columns, or `RELATIONAL` alone. The links of the
    embedded graph weigh by length, lanes, speed_limit and direction, as far as the map has them.

    Raises:
        ConfigError: a name that is no feature of the map.
        MapError: a feature that a segment lacks, or that is not a number there.
    """

    def __init__(
        self,
        road_map: RoadMap,
        points: Sequence[tuple[float, float, float]],
        moves: Callable[[], Links],
        names: Sequence[str],
    ) -> None:
        self._map, self._points = road_map, points
        self._numbers = numbers_of(road_map.segments)
        self.embedding: Embedding | None = None
        """Embedding of the relational features, None where the features are columns."""
        if RELATIONAL not in names:
            self._plain = tuple(names)
            self.values, self.names = self.columns(names)
            return
        if len(names) > 1:
            msg = f"features: {RELATIONAL} stands alone, got {', '.join(names)}"
            raise ConfigError(msg)
        have = available(road_map)
        self._plain = tuple(name for name in DEFAULT if name in have)
        if missing := [name for name in DEFAULT if name not in have]:
            logger.warning(
                "map %r: not every segment has %s; the relational features are made of %s",
                road_map.name,
                ", ".join(missing),
                ", ".join(self._plain),
            )
        self.embedding = self._embed(moves())
        self.values = self.embedding.points
        self.names = tuple(f"{AXIS}{k + 1}" for k in range(self.values.shape[1]))

    def columns(self, names: Sequence[str] | None = None) -> tuple[FloatArray, tuple[str, ...]]:
        """Return the (n, p) columns named, and their titles; see `Topology.columns`."""
        names = self._plain if names is None else names
        known = dict.fromkeys((*FEATURES, *self._numbers))
        unknown = [name for name in names if name not in known]
        if unknown or not names:
            shown = repr(unknown[0]) if unknown else "none"
            hint = suggest(unknown[0], known) if unknown else ""
            msg = f"features: expected some of {', '.join(known)}, got {shown}.{hint}"
            raise ConfigError(msg)
        x, y, headings = zip(*self._points, strict=True)
        found: list[Sequence[float]] = []
        titles: list[str] = []
        for name in names:
            if name == "direction":
                found += [list(map(math.cos, headings)), list(map(math.sin, headings))]
                titles += ["direction_cos", "direction_sin"]
            else:
                found.append(x if name == "x" else y if name == "y" else self._number(name))
                titles.append(name)
        return np.array(found, dtype=np.float64).T, tuple(titles)

    def _number(self, name: str) -> list[float]:
        values = self._numbers[name]
        if len(lacking := np.flatnonzero(~np.isfinite(values))):
            first, segments = int(lacking[0]), self._map.segments
            what = "none" if math.isnan(values[first]) else f"{values[first]}"
            msg = (
                f"map {self._map.name!r}: feature {name!r} was asked for, but segment "
                f"{segments[first].id!r} has {what} ({len(lacking)} of {len(segments)} "
                "segments are so); add it to the map or leave the feature out"
            )
            raise MapError(msg)
        found: list[float] = values.tolist()
        return found

    def _embed(self, links: Links) -> Embedding:
        """Return the embedding of the graph of segments. [Chen2012; Hoang2014, Sec. 4.2].

        A link weighs the range-normalised Manhattan distance of its segments' features; direction
        is an angle.
        """
        title, names = self._map.name, self._plain
        plain = [name for name in names if name != "direction"]
        columns = self.columns(plain)[0] if plain else np.zeros((links.n, 0))
        same = [name for name, span in zip(plain, np.ptp(columns, axis=0), strict=True) if not span]
        if same:
            logger.warning(
                "map %r: %s the same for all segments: the relational features are not affected",
                title,
                f"{same[0]!r} is" if len(same) == 1 else f"{', '.join(same)} are",
            )
        points = np.array(self._points)
        weights = manhattan_weights(links, columns, points[:, 2:])
        parts = int(links.parts.max(initial=0)) + 1
        if parts > 1:
            logger.warning(
                "map %r: no move joins its %d parts; for the relational features each is joined to "
                "the largest where it comes nearest",
                title,
                parts,
            )
        made = embed(*join_parts(links, weights, points[:, :2]))
        logger.info("map %r: relational features made of %s: %s", title, ", ".join(names), made)
        return made
