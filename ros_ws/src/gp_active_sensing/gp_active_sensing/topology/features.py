"""Columns of a road map: what a covariance, or a mean, may be a function of."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence

import numpy as np

from gp_active_sensing.errors import ConfigError, MapError, suggest
from gp_active_sensing.topology.embedding import (
    Embedding,
    embed,
    floored,
    join_parts,
    manhattan_weights,
)
from gp_active_sensing.topology.links import Links
from gp_active_sensing.topology.segments import RoadMap, Segment
from gp_active_sensing.types import FloatArray

__all__ = ["FEATURES", "RELATIONAL", "ROAD_DISTANCE", "SHARE", "RoadFeatures", "available"]

logger = logging.getLogger(__name__)

FEATURES: tuple[str, ...] = ("x", "y", "length", "lanes", "speed_limit", "direction")
"""Of a segment: its middle [m], length [m], lanes, limit [m/s], direction as cosine and sine."""
RELATIONAL = "relational"
"""Instead of columns: the coordinates of an embedding of the road graph."""
ROAD_DISTANCE = "road_distance"
"""Weight of a link of the embedded graph: metres between its segments; see `segment_links`."""
DEFAULT: tuple[str, ...] = ("length", "lanes", "speed_limit", "direction")
"""What the links of the embedded graph weigh by, as far as the map has it."""

SHARE = 0.95
"""Of the squared distances that an embedding must explain, unless told otherwise."""
AXIS = "mds_"
"""Names of an embedding's coordinates begin so."""


def available(road_map: RoadMap) -> tuple[str, ...]:
    """Return the names of the columns that every segment of a map has a number for."""
    optional = ["length", "lanes", "speed_limit", *_extra_names(road_map)]
    have = [name for name in optional if all(_has(s, name) for s in road_map.segments)]
    return ("x", "y", "direction", *have)


class RoadFeatures:
    """The features of a map's segments: columns by name, or an embedding of the road graph.

    Args:
        road_map: the n segments.
        points: x, y [m] and heading [rad] of the point of each segment that its value belongs to.
        links: how segments meet at junctions, for weights with road distance.
        moves: returns how segments follow one another, for weights of features alone.
        names: of columns, or `RELATIONAL` alone.
        relational: what the links of the embedded graph weigh by; None = what the map has of
            length, lanes, speed_limit and direction.
        share: of the squared distances that the embedding must explain.

    Raises:
        ConfigError: a name that is no feature of the map.
        MapError: a feature that a segment lacks, or that is not a number there.
    """

    def __init__(
        self,
        road_map: RoadMap,
        points: Sequence[tuple[float, float, float]],
        links: Links,
        moves: Callable[[], Links],
        names: Sequence[str],
        *,
        relational: Sequence[str] | None = None,
        share: float = SHARE,
    ) -> None:
        self._map, self._points = road_map, points
        self.embedding: Embedding | None = None
        """Of the relational features, None where the features are columns."""
        if RELATIONAL not in names:
            self._plain = tuple(names)
            self.values, self.names = self.columns(names)
            return
        if len(names) > 1:
            msg = f"features: {RELATIONAL} stands alone, got {', '.join(names)}"
            raise ConfigError(msg)
        made_of = self._relational_names(relational)
        self._plain = tuple(n for n in made_of if n != ROAD_DISTANCE) or ("x", "y")
        graph = links if ROAD_DISTANCE in made_of else moves()
        self.embedding = self._embed(graph, made_of, share)
        self.values = self.embedding.points
        self.names = tuple(f"{AXIS}{k + 1}" for k in range(self.values.shape[1]))

    def columns(self, names: Sequence[str] | None = None) -> tuple[FloatArray, tuple[str, ...]]:
        """Return the (n, p) columns named, and their titles; see `Topology.columns`."""
        names = self._plain if names is None else names
        self._check(names, "features")
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

    def _relational_names(self, names: Sequence[str] | None) -> tuple[str, ...]:
        """Return what the links weigh by: the names given, or what the map has of `DEFAULT`."""
        if names is not None:
            self._check([name for name in names if name != ROAD_DISTANCE] or ["x"], "relational")
            return tuple(names)
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

    def _embed(self, links: Links, names: Sequence[str], share: float) -> Embedding:
        """Return the embedding of the graph of segments. [Chen2012; Hoang2014, Sec. 4.2].

        A link weighs the range-normalised Manhattan distance of its segments' features; direction
        is an angle. `ROAD_DISTANCE` alone weighs metres, so that distances in the embedding are
        metres by road; together with features it is one of them, as a share of the longest link.
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
        made = embed(*join_parts(links, weights, positions), share=share)
        logger.info(
            "map %r: relational features made of %s: %s", self._map.name, ", ".join(names), made
        )
        return made

    def _weights(self, links: Links, names: Sequence[str]) -> FloatArray:
        if tuple(names) == (ROAD_DISTANCE,):
            return floored(links.metres)
        plain = [name for name in names if name not in ("direction", ROAD_DISTANCE)]
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
        further = links.metres if ROAD_DISTANCE in names else None
        return manhattan_weights(links, columns, circular, further)

    def _check(self, names: Sequence[str], key: str) -> None:
        known = (*FEATURES, *_extra_names(self._map))
        if key == "relational":
            known = (*known, ROAD_DISTANCE)
        unknown = [name for name in names if name not in known]
        if unknown or not names:
            shown = repr(unknown[0]) if unknown else "none"
            hint = suggest(unknown[0], known) if unknown else ""
            msg = f"{key}: expected some of {', '.join(known)}, got {shown}.{hint}"
            raise ConfigError(msg)

    def _property(self, name: str) -> list[float]:
        segments = self._map.segments
        values = [_value(segment, name) for segment in segments]
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


def _value(segment: Segment, name: str) -> float | None:
    if name in ("length", "lanes", "speed_limit"):
        value: float | None = getattr(segment, name)
        return value
    return segment.extra.get(name)


def _has(segment: Segment, name: str) -> bool:
    value = _value(segment, name)
    return value is not None and math.isfinite(value)
