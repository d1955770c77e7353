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
    def of_numbers(
        cls, n: int, numbers: Mapping[str, FloatArray | Sequence[float | None]]
    ) -> Attributes:
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
    numbers: dict[str, list[float | None]] = {
        "length": [s.length for s in segments],
        "lanes": [s.lanes for s in segments],
        "speed_limit": [s.speed_limit for s in segments],
    }
    for name in dict.fromkeys(name for s in segments for name in s.extra):
        numbers[name] = [s.extra.get(name) for s in segments]
    columns = {name: _of_numbers(values) for name, values in numbers.items()}
    columns["class"] = _of_categories([s.road_class for s in segments])
    return Attributes._of(len(segments), columns)


def _of_numbers(values: FloatArray | Sequence[float | None]) -> list[FloatArray]:
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


FEATURES: tuple[str, ...] = ("x", "y", "length", "lanes", "speed_limit", "direction")
"""Columns of a segment: middle [m], length [m], lanes, limit [m/s], direction (cosine, sine)."""
RELATIONAL = "relational"
"""Instead of columns: the coordinates of an embedding of the road graph."""
DEFAULT: tuple[str, ...] = ("length", "lanes", "speed_limit", "direction")
"""Features that weigh the links of the embedded graph, if the map has them."""

AXIS = "mds_"
"""Names of an embedding's coordinates begin so."""


def available(road_map: RoadMap) -> tuple[str, ...]:
    """Return the names of the columns that every segment of a map has a number for."""
    optional = ["length", "lanes", "speed_limit", *_extra_names(road_map)]
    have = [name for name in optional if all(_has(s, name) for s in road_map.segments)]
    return ("x", "y", "direction", *have)


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
        self.embedding: Embedding | None = None
        """Embedding of the relational features, None where the features are columns."""
        if RELATIONAL not in names:
            self._plain = tuple(names)
            self.values, self.names = self.columns(names)
            return
        if len(names) > 1:
            msg = f"features: {RELATIONAL} stands alone, got {', '.join(names)}"
            raise ConfigError(msg)
        self._plain = self._relational_names()
        self.embedding = self._embed(moves(), self._plain)
        self.values = self.embedding.points
        self.names = tuple(f"{AXIS}{k + 1}" for k in range(self.values.shape[1]))

    def columns(self, names: Sequence[str] | None = None) -> tuple[FloatArray, tuple[str, ...]]:
        """Return the (n, p) columns named, and their titles; see `Topology.columns`."""
        names = self._plain if names is None else names
        self._check(names)
        found: list[list[float]] = []
        titles: list[str] = []
        for name in names:
            if name == "direction":
                found.append([math.cos(heading) for _, _, heading in self._points])
                found.append([math.sin(heading) for _, _, heading in self._points])
                titles += ["direction_cos", "direction_sin"]
                continue
            if name in ("x", "y"):
                found.append([point["xy".index(name)] for point in self._points])
            else:
                found.append(self._property(name))
            titles.append(name)
        return np.array(found, dtype=np.float64).T, tuple(titles)

    def _relational_names(self) -> tuple[str, ...]:
        """Return what the links weigh by: what the map has of `DEFAULT`."""
        have = available(self._map)
        missing = [name for name in DEFAULT if name not in have]
        if missing:
            logger.warning(
                "map %r: not every segment has %s; the relational features are made of %s",
                self._map.name,
                ", ".join(missing),
                ", ".join(name for name in DEFAULT if name in have),
            )
        return tuple(name for name in DEFAULT if name in have)

    def _embed(self, links: Links, names: Sequence[str]) -> Embedding:
        """Return the embedding of the graph of segments. [Chen2012; Hoang2014, Sec. 4.2].

        A link weighs the range-normalised Manhattan distance of its segments' features; direction
        is an angle.
        """
        weights = self._weights(links, names)
        positions = np.array([point[:2] for point in self._points])
        parts = int(links.parts.max(initial=0)) + 1
        if parts > 1:
            logger.warning(
                "map %r: no move joins its %d parts; for the relational features each is joined to "
                "the largest where it comes nearest",
                self._map.name,
                parts,
            )
        made = embed(*join_parts(links, weights, positions))
        logger.info(
            "map %r: relational features made of %s: %s", self._map.name, ", ".join(names), made
        )
        return made

    def _weights(self, links: Links, names: Sequence[str]) -> FloatArray:
        plain = [name for name in names if name != "direction"]
        columns = self.columns(plain)[0] if plain else np.zeros((links.n, 0))
        same = [name for name, span in zip(plain, np.ptp(columns, axis=0), strict=True) if not span]
        if same:
            logger.warning(
                "map %r: %s the same for all segments: the relational features are not affected",
                self._map.name,
                f"{same[0]!r} is" if len(same) == 1 else f"{', '.join(same)} are",
            )
        headings = np.array([heading for _, _, heading in self._points])
        circular = headings[:, None] if "direction" in names else np.zeros((links.n, 0))
        return manhattan_weights(links, columns, circular)

    def _check(self, names: Sequence[str]) -> None:
        known = (*FEATURES, *_extra_names(self._map))
        unknown = [name for name in names if name not in known]
        if unknown or not names:
            shown = repr(unknown[0]) if unknown else "none"
            hint = suggest(unknown[0], known) if unknown else ""
            msg = f"features: expected some of {', '.join(known)}, got {shown}.{hint}"
            raise ConfigError(msg)

    def _property(self, name: str) -> list[float]:
        segments = self._map.segments
        values = [value_of(segment, name) for segment in segments]
        lacking = [i for i, v in enumerate(values) if v is None or not math.isfinite(v)]
        if lacking:
            what = "none" if values[lacking[0]] is None else f"{values[lacking[0]]}"
            msg = (
                f"map {self._map.name!r}: feature {name!r} was asked for, but segment "
                f"{segments[lacking[0]].id!r} has {what} ({len(lacking)} of {len(segments)} "
                "segments are so); add it to the map or leave the feature out"
            )
            raise MapError(msg)
        return [float(v) for v in values if v is not None]


def _extra_names(road_map: RoadMap) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for s in road_map.segments for name in s.extra))


def value_of(segment: Segment, name: str) -> float | None:
    """Return a number of a segment by its name, None where it has none."""
    if name in ("length", "lanes", "speed_limit"):
        value: float | None = getattr(segment, name)
        return value
    return segment.extra.get(name)


def _has(segment: Segment, name: str) -> bool:
    value = value_of(segment, name)
    return value is not None and math.isfinite(value)
