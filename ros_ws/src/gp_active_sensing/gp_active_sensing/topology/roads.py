"""Directed road segments: a place is a segment, observed by driving along it."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from gp_active_sensing.topology.base import (
    SAME_DISTANCE,
    Components,
    GraphTopology,
    components_of,
    frozen_array,
)
from gp_active_sensing.topology.features import Attributes, RoadFeatures, attributes_of
from gp_active_sensing.topology.links import MIDDLE, Embedding, move_links, segment_links
from gp_active_sensing.topology.search import Move
from gp_active_sensing.topology.segments import RoadMap, Segment, successors_of
from gp_active_sensing.types import Cost, FloatArray

if TYPE_CHECKING:
    import networkx as nx

logger = logging.getLogger(__name__)


class Roads(GraphTopology):
    """A road network, one place a directed segment.

    The position of a place is the middle of its segment; its waypoint is the far end, heading along
    it. A move onto a segment costs driving its whole length. The reverse twin of a segment may
    follow it at dead ends only, unless `u_turns` allows more. A reverse twin leads back to where
    the segment came from, with a turn of more than 150°. Successors that the map itself lists are
    taken as they are.

    Args:
        road_map: the segments.
        features: names out of `FEATURES`, or of the map's own numbers; ("relational",) = an
            embedding of the road graph.
        anchor: where along a segment its value belongs, for its features and for `links`: 0 its
            start, 0.5 its middle, 1 its end.
        u_turns: one of `U_TURNS`.
        speed: on segments without a limit [m/s].
        frame: metric frame; "" = the map's own.
        reach: distance of driving within which segments may be next [m]; 0 = adjacent ones.

    Raises:
        ConfigError: unknown feature.
        MapError: a feature that a segment lacks.
    """

    roads = True

    def __init__(
        self,
        road_map: RoadMap,
        *,
        features: Sequence[str] = ("x", "y"),
        anchor: float = MIDDLE,
        u_turns: str = "dead_ends",
        speed: float = 1.0,
        frame: str = "",
        reach: float = 0.0,
    ) -> None:
        segments = road_map.segments
        lines = [frozen_array(segment.line) for segment in segments]
        steps = (np.hypot(*np.diff(line, axis=0).T) for line in lines)
        along = [np.concatenate([[0.0], np.cumsum(step)]) for step in steps]
        middles = [_at(line, s, 0.5) for line, s in zip(lines, along, strict=True)]
        successors = successors_of(segments, u_turns)
        self._columns = RoadFeatures(
            road_map,
            [_at(line, s, anchor) for line, s in zip(lines, along, strict=True)],
            partial(move_links, segments, successors, anchor),
            features,
        )
        costs = [Cost(s.length, s.length / (s.speed_limit or speed)) for s in segments]
        goals = [(*line[-1], _heading(line, s, 1.0)) for line, s in zip(lines, along, strict=True)]
        super().__init__(
            road_map.name,
            frame or road_map.frame,
            [segment.id for segment in segments],
            [middle[:2] for middle in middles],
            [[Move(b, *costs[b]) for b in out] for out in successors],
            features=self._columns.values,
            feature_names=self._columns.names,
            goals=goals,
            entry=costs,
            stay=False,
            reach=reach,
        )
        self.road_map = road_map
        self.links = segment_links(segments, successors, anchor)
        self.datum, self.notes = road_map.datum, road_map.notes
        self._lines = tuple(lines)
        import shapely  # for snapping; loaded only with a road map

        owner = np.repeat(np.arange(self.n), [len(line) for line in lines])
        made: Any = shapely.linestrings(np.concatenate(lines), indices=owner)  # typed as one line
        self._tree = shapely.STRtree(made)
        unlimited = sum(segment.speed_limit is None for segment in segments)
        if unlimited:
            logger.warning(
                "map %r: %d of %d segments have no speed limit; taking %g m/s",
                self.name,
                unlimited,
                self.n,
                speed,
            )
        parts = self.components
        if parts.outside:
            logger.warning(
                "map %r: %d of %d segments lie outside the largest part with a way from each to "
                "each (%s%d segments lead nowhere); map.largest_component: true leaves them out, "
                "map.u_turns: always may join them",
                self.name,
                len(parts.outside),
                self.n,
                f"{parts.weak} parts are not joined at all; " if parts.weak > 1 else "",
                len(parts.traps),
            )

    @classmethod
    def from_networkx(
        cls,
        graph: nx.Graph[Any],
        *,
        name: str = "",
        crs: str = "",
        largest_component: bool = False,
        **settings: Any,
    ) -> Roads:
        """Return the road network of a graph of networkx, see `loaders.graph.road_map_of`.

        `settings` are those of `Roads`. With `largest_component` only the largest part with a way
        from each segment to each is kept.

        Raises:
            ConfigError: unknown feature.
            MapError: no edges or no positions; several nodes at one place; and other problems,
                each with its node or edge.
            MissingDependencyError: coordinates are not metres, and pyproj is missing.
        """
        from gp_active_sensing.topology.loaders.graph import road_map_of

        road_map = road_map_of(graph, name=name, crs=crs)
        if largest_component:
            road_map = keep_largest(road_map, settings.get("u_turns", "dead_ends"))
        return cls(road_map, **settings)

    @property
    def segments(self) -> tuple[Segment, ...]:
        """(n,) the segments as the map gives them."""
        return self.road_map.segments

    @property
    def embedding(self) -> Embedding | None:
        """How good the relational features are; None where the features are columns."""
        return self._columns.embedding

    @cached_property
    def attributes(self) -> Attributes:
        """Return the segments' attributes: length, lanes, speed limit, class, other numbers."""
        return attributes_of(self.segments)

    def columns(self, names: Sequence[str] | None = None) -> tuple[FloatArray, tuple[str, ...]]:
        """Return (n, p) columns of the map by name; see `Topology.columns`."""
        return self._columns.columns(names)

    def geometry(self, location: int) -> FloatArray:
        """(m, 2) the line of a segment in driving direction, metres; read-only."""
        return self._lines[location]

    def snap(self, x: float, y: float, max_distance: float, z: float | None = None) -> int | None:
        """Return the segment nearest to a position, the first of equally near ones; z is unused.

        None when it is farther than `max_distance` [m] or the position is not finite.
        """
        import shapely

        if not (math.isfinite(x) and math.isfinite(y)):
            return None
        point = shapely.Point(x, y)
        _, distances = self._tree.query_nearest(point, return_distance=True, all_matches=False)
        if not (len(distances) and distances[0] <= max_distance):  # nor NaN
            return None
        reach = float(distances[0]) + SAME_DISTANCE
        near = self._tree.query(point, predicate="dwithin", distance=reach)
        return int(near.min()) if near.size else None


def _at(line: FloatArray, along: FloatArray, fraction: float) -> tuple[float, float, float]:
    """Return x, y [m] and heading [rad] at a fraction of a line's length."""
    s = fraction * along[-1]
    x, y = (float(np.interp(s, along, line[:, k])) for k in (0, 1))
    return x, y, _heading(line, along, fraction)


def _heading(line: FloatArray, along: FloatArray, fraction: float) -> float:
    """Return the direction of the leg at a fraction of a line's length [rad]."""
    # The first point at or after s that has a leg of some length before it.
    k = int(np.searchsorted(along, fraction * along[-1] * (1 - 1e-12)))
    while along[k] <= 0.0:
        k += 1
    before = k - 1
    while along[before] >= along[k]:
        before -= 1
    dx, dy = line[k] - line[before]
    return math.atan2(dy, dx)


def parts_of(road_map: RoadMap, u_turns: str = "dead_ends") -> Components:
    """Return the parts of a map, with U-turns as one of `U_TURNS` says. O(segments and moves)."""
    return components_of(successors_of(road_map.segments, u_turns))


def keep_largest(road_map: RoadMap, u_turns: str = "dead_ends") -> RoadMap:
    """Return the map without the segments outside its largest strongly connected part.

    A note says what was dropped.
    """
    parts = parts_of(road_map, u_turns)
    if not parts.outside:
        return road_map
    segments = road_map.segments
    ids = {segments[i].id for i in parts.largest}
    chosen = tuple(
        segment
        if segment.successors is None
        else replace(segment, successors=tuple(b for b in segment.successors if b in ids))
        for segment in (segments[i] for i in parts.largest)
    )
    metres = sum(segments[i].length for i in parts.outside)
    note = (
        f"kept the largest part with a way from each segment to each: {len(chosen)} of "
        f"{len(segments)} segments; {len(parts.outside)} ({metres / 1000:.1f} km) were dropped"
    )
    return replace(road_map, segments=chosen, notes=(*road_map.notes, note))
