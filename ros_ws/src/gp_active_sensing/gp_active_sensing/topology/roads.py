"""Road networks: a place is a directed segment, observed by driving along it.

A relational feature is a coordinate of an embedding of the graph of segments [Chen2012; Hoang2014,
Sec. 4.2].
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gp_active_sensing.errors import ConfigError, MapError, suggest
from gp_active_sensing.topology.base import (
    SAME_DISTANCE,
    Components,
    GraphTopology,
    components_of,
    frozen_array,
)
from gp_active_sensing.topology.search import Move
from gp_active_sensing.topology.segments import (
    FEATURES,
    MIDDLE,
    RELATIONAL,
    Links,
    RoadMap,
    Segment,
    available,
    move_links,
    numbers_of,
    segment_links,
    successors_of,
)
from gp_active_sensing.types import Cost, FloatArray, IntArray
from gp_active_sensing.util.cache import cached_arrays
from gp_active_sensing.util.ties import first_best

if TYPE_CHECKING:
    import networkx as nx

logger = logging.getLogger(__name__)

_DEFAULT: tuple[str, ...] = ("length", "lanes", "speed_limit", "direction")
"""Features that determine the weights of the embedded graph's links, if the map has them."""


class Roads(GraphTopology):
    """Road network, in which each place is a directed segment.

    The position of a place is the middle of the segment. The waypoint is the end of the segment,
    with the heading at this end. The cost of a move is the cost of driving the whole next segment.
    A segment may list its successors. By default, these are all segments that start where it ends.
    A U-turn is a turn of more than 150° back to the start of the segment.

    Args:
        road_map: segments.
        features: entries of `FEATURES` and keys of `Segment.extra`, or only `RELATIONAL`.
        anchor: point of each segment to which its measured value belongs, from 0 (start) to 1
            (end); used by features and `links`.
        u_turns: one of `U_TURNS`, the rules for U-turns.
        speed: speed on segments without a limit [m/s].
        frame: metric frame; "" = the map's own.
        reach: largest driving distance to the next segment [m]; 0 = adjacent segments only.

    Raises:
        ConfigError: a feature is unknown.
        MapError: a segment has no number for a feature.
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
        self.road_map, self.name = road_map, road_map.name
        lines = [frozen_array(segment.line) for segment in segments]
        steps = (np.hypot(*np.diff(line, axis=0).T) for line in lines)
        along = [np.concatenate([[0.0], np.cumsum(step)]) for step in steps]
        middles = [_at(line, s, 0.5) for line, s in zip(lines, along, strict=True)]
        successors = successors_of(segments, u_turns)
        self._anchors = [_at(line, s, anchor) for line, s in zip(lines, along, strict=True)]
        self._chosen = tuple(features)
        if RELATIONAL in features:
            values, titles = self._embedded(move_links(segments, successors, anchor), features)
        else:
            values, titles = self.columns(features)
        costs = [Cost(s.length, s.length / (s.speed_limit or speed)) for s in segments]
        goals = [(*line[-1], _heading(line, s, 1.0)) for line, s in zip(lines, along, strict=True)]
        super().__init__(
            road_map.name,
            frame or road_map.frame,
            [segment.id for segment in segments],
            [middle[:2] for middle in middles],
            [[Move(b, *costs[b]) for b in out] for out in successors],
            features=values,
            feature_names=titles,
            goals=goals,
            entry=costs,
            stay=False,
            reach=reach,
        )
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
                "map %r: %d of %d segments lie outside the largest part in which each segment can "
                "be reached from each (%s%d segments lead nowhere); map.largest_component: true "
                "leaves them out, map.u_turns: always may join them",
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

        `settings` are further arguments of `Roads`. With `largest_component`, only the largest
        strongly connected part is kept.

        Raises:
            ConfigError: a feature is unknown.
            MapError: the graph cannot be used. For example, it has no edges or no positions.
            MissingDependencyError: coordinates are not metres, and pyproj is missing.
        """
        from gp_active_sensing.topology.loaders.graph import road_map_of

        road_map = road_map_of(graph, name=name, crs=crs)
        if largest_component:
            road_map = keep_largest(road_map, settings.get("u_turns", "dead_ends"))
        return cls(road_map, **settings)

    @property
    def segments(self) -> tuple[Segment, ...]:
        """(n,) segments of the map."""
        return self.road_map.segments

    def columns(self, names: Sequence[str] | None = None) -> tuple[FloatArray, tuple[str, ...]]:
        """Return columns (n, p) of numbers by name, and their titles; see `Topology.columns`."""
        names = self._chosen if names is None else names
        numbers = numbers_of(self.segments)
        known = dict.fromkeys((*FEATURES, *numbers))
        unknown = [name for name in names if name not in known]
        if unknown or not names:
            shown = repr(unknown[0]) if unknown else "none"
            hint = suggest(unknown[0], known) if unknown else ""
            msg = f"features: expected some of {', '.join(known)}, got {shown}.{hint}"
            raise ConfigError(msg)
        x, y, headings = zip(*self._anchors, strict=True)
        found: list[Sequence[float]] = []
        titles: list[str] = []
        for name in names:
            if name == "direction":
                found += [list(map(math.cos, headings)), list(map(math.sin, headings))]
                titles += ["direction_cos", "direction_sin"]
                continue
            values: Any = {"x": x, "y": y}.get(name, numbers.get(name))
            if len(lacking := np.flatnonzero(~np.isfinite(values))):
                first = int(lacking[0])
                what = "none" if math.isnan(values[first]) else f"{values[first]}"
                msg = (
                    f"map {self.name!r}: feature {name!r} was asked for, but segment "
                    f"{self.segments[first].id!r} has {what} ({len(lacking)} of "
                    f"{len(self.segments)} segments are so); add it to the map or leave the "
                    "feature out"
                )
                raise MapError(msg)
            found.append(values)
            titles.append(name)
        return np.array(found, dtype=np.float64).T, tuple(titles)

    def _embedded(
        self, links: Links, features: Sequence[str]
    ) -> tuple[FloatArray, tuple[str, ...]]:
        """Return coordinates (n, d) of an embedding of the graph of segments, and their names.

        The weights of the links are those of `manhattan_weights`. The feature "direction" counts as
        an angle.
        """
        if len(features) > 1:
            msg = f"features: {RELATIONAL} stands alone, got {', '.join(features)}"
            raise ConfigError(msg)
        have = available(self.road_map)
        self._chosen = tuple(name for name in _DEFAULT if name in have)
        if missing := [name for name in _DEFAULT if name not in have]:
            logger.warning(
                "map %r: not every segment has %s; the relational features are made of %s",
                self.name,
                ", ".join(missing),
                ", ".join(self._chosen),
            )
        plain = [name for name in self._chosen if name != "direction"]
        columns = self.columns(plain)[0] if plain else np.zeros((links.n, 0))
        same = [name for name, span in zip(plain, np.ptp(columns, axis=0), strict=True) if not span]
        if same:
            logger.warning(
                "map %r: %s the same for all segments: the relational features are not affected",
                self.name,
                f"{same[0]!r} is" if len(same) == 1 else f"{', '.join(same)} are",
            )
        points = np.array(self._anchors)
        weights = manhattan_weights(links, columns, points[:, 2:])
        if parts := int(links.parts.max(initial=0)):
            logger.warning(
                "map %r: no move joins its %d parts; for the relational features each part is "
                "joined to the largest part at the closest points",
                self.name,
                parts + 1,
            )
        made, share = embed(*join_parts(links, weights, points[:, :2]))
        n, d = made.shape
        logger.info(
            "map %r: relational features made of %s: %d places in %d dimensions, which explain "
            "%.1f %% of the squared distances",
            self.name,
            ", ".join(self._chosen),
            n,
            d,
            100.0 * share,
        )
        return made, tuple(f"mds_{k + 1}" for k in range(d))

    def geometry(self, location: int) -> FloatArray:
        """Return the read-only line (m, 2) [m] of a segment in driving direction."""
        return self._lines[location]

    def snap(self, x: float, y: float, max_distance: float, z: float | None = None) -> int | None:
        """Return the segment nearest to a position; see `Topology.snap`. z is unused."""
        import shapely

        if not (math.isfinite(x) and math.isfinite(y)):
            return None
        point = shapely.Point(x, y)
        _, distances = self._tree.query_nearest(point, return_distance=True, all_matches=False)
        if not (len(distances) and distances[0] <= max_distance):  # also for NaN
            return None
        reach = float(distances[0]) + SAME_DISTANCE
        near = self._tree.query(point, predicate="dwithin", distance=reach)
        return int(near.min()) if near.size else None


def _at(line: FloatArray, along: FloatArray, fraction: float) -> tuple[float, float, float]:
    s = fraction * along[-1]
    x, y = (float(np.interp(s, along, line[:, k])) for k in (0, 1))
    return x, y, _heading(line, along, fraction)


def _heading(line: FloatArray, along: FloatArray, fraction: float) -> float:
    # The first point at or after s with a line of positive length before it.
    k = int(np.searchsorted(along, fraction * along[-1] * (1 - 1e-12)))
    while along[k] <= 0.0:
        k += 1
    before = k - 1
    while along[before] >= along[k]:
        before -= 1
    dx, dy = line[k] - line[before]
    return math.atan2(dy, dx)


def parts_of(road_map: RoadMap, u_turns: str = "dead_ends") -> Components:
    """Return the connected parts of a road map; `u_turns` is one of `U_TURNS`."""
    return components_of(successors_of(road_map.segments, u_turns))


def keep_largest(road_map: RoadMap, u_turns: str = "dead_ends") -> RoadMap:
    """Return the largest strongly connected part of a map, with a note on the dropped segments."""
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


# -- embedding of the road graph -------------------------------------------------------------------

VERSION = 2
"""Version of the algorithm that computes an embedding; it is part of the key in the cache."""
FLOOR = 0.01
"""Smallest weight of a link, relative to the median of the weights above zero."""
EXACT = 3000
"""Largest number of places for which the paths between all pairs are computed."""
LANDMARKS = 600
"""Number of landmark places in the embedding of a map with more than `EXACT` places."""
KEPT = 300
"""Smallest number of places for which an embedding is cached on disk."""
MOST = 24
"""Largest number of dimensions of an embedding."""


def manhattan_weights(links: Links, columns: FloatArray, circular: FloatArray) -> FloatArray:
    """Return the weights (m,) of links: scaled Manhattan distances between places [Chen2012].

    ``w_ij = Σ_k |s_ik - s_jk| / range_k + Σ_l angle_l(i, j) / π``, with s = `columns` (n, p), and
    angles between the directions `circular` (n, c) [rad]. A constant column adds 0. The smallest
    weight is `FLOOR` times the median of the positive weights, so that places with equal features
    stay distinct. If all places have equal features, each link has the weight 1.
    """
    i, j = links.first, links.second
    span = np.ptp(columns, axis=0)
    varying = span > 1e-12 * np.abs(columns).max(axis=0, initial=0.0)
    scaled = columns[:, varying] / span[varying]
    weights = np.abs(scaled[i] - scaled[j]).sum(axis=1)
    turn = np.abs(circular[i] - circular[j]) % (2.0 * np.pi)
    weights += (np.minimum(turn, 2.0 * np.pi - turn) / np.pi).sum(axis=1)
    positive = weights[weights > 1e-12 * weights.max(initial=0.0)]
    if not positive.size:
        return np.ones_like(weights)
    return np.asarray(np.maximum(weights, FLOOR * np.median(positive)))


def join_parts(
    links: Links, weights: FloatArray, positions: FloatArray
) -> tuple[Links, FloatArray]:
    """Join every part of a graph to its largest part; return the links and their weights (m,).

    A new link joins the two nearest places of both parts. Its weight is the median weight times a
    factor of at least 1: the length of the new link divided by the median length of the links.
    `positions` are (n, 2) [m].
    """
    from scipy.spatial import cKDTree

    parts = links.parts
    if not parts.any():
        return links, weights
    largest = np.flatnonzero(parts == 0)
    others = np.flatnonzero(parts > 0)
    found = cKDTree(positions[largest]).query(positions[others])
    gap, nearest = np.asarray(found[0]), np.asarray(found[1])
    order = np.lexsort((gap, parts[others]))
    _, first = np.unique(parts[others][order], return_index=True)
    chosen = order[first]
    typical = float(np.median(links.metres)) if links.metres.size else float(np.median(gap)) or 1.0
    metres = np.maximum(gap[chosen], typical)
    unit = float(np.median(weights)) if weights.size else 1.0
    pairs = np.sort(np.column_stack([others[chosen], largest[nearest[chosen]]]), axis=1)
    joined = replace(
        links,
        first=np.concatenate([links.first, pairs[:, 0]]),
        second=np.concatenate([links.second, pairs[:, 1]]),
        metres=np.concatenate([links.metres, metres]),
        conductance=np.concatenate([links.conductance, 1.0 / metres]),
    )
    return joined, np.concatenate([weights, unit * metres / typical])


def embed(
    links: Links, weights: FloatArray, *, share: float = 0.95, exact: int = EXACT
) -> tuple[FloatArray, float]:
    """Return a point (n, d) for each place of a graph, and the explained fraction (see `share`).

    Distances between points approximate the lengths δ (n, n) of the shortest paths. By classical
    scaling [Torgerson1952] with J = I - 11ᵀ/n, the points are the eigenvectors of ``-½ J δ² J``
    times the roots of their eigenvalues. Negative eigenvalues are left out. Any stationary kernel
    of the points is therefore positive semi-definite. With more than `exact` places, only landmarks
    are scaled. Each landmark is the place farthest from the earlier landmarks. The points of the
    other places are computed from their paths to the landmarks [deSilva2004]. O(n³), or
    O(k n log n + k³) with k landmarks. Large results are cached on disk.

    Args:
        links: links of a connected graph, see `join_parts`.
        weights: (m,) weights of the links, above 0.
        share: smallest explained fraction. This fraction is the sum of the d used eigenvalues,
            divided by the sum of all positive eigenvalues.
        exact: number of places up to which all paths are computed.
    """
    key = {
        "n": links.n,
        "first": links.first,
        "second": links.second,
        "weights": weights,
        "share": share,
        "settings": (exact, LANDMARKS, MOST),
    }

    def compute() -> dict[str, FloatArray]:
        points, explained = _embed(links, weights, share, exact)
        return {"points": points, "numbers": np.array([explained])}

    kept = cached_arrays("embedding", VERSION, key, compute, keep=links.n >= KEPT)
    return kept["points"], float(kept["numbers"][0])


def _embed(links: Links, weights: FloatArray, share: float, exact: int) -> tuple[FloatArray, float]:
    n = links.n
    if n <= exact:
        sources: IntArray = np.arange(n)
        paths = links.shortest_paths(weights)
    else:
        count = min(LANDMARKS, n)  # each is the farthest from the earlier ones
        sources, paths = np.zeros(count, dtype=np.int64), np.empty((count, n))
        nearest = np.full(n, np.inf)
        for k in range(count):
            sources[k] = nearest.argmax() if k else 0
            paths[k] = links.shortest_paths(weights, sources[k : k + 1])[0]
            nearest = np.minimum(nearest, paths[k])
    squares = paths[:, sources] ** 2
    row = squares.mean(axis=0)
    values, vectors = np.linalg.eigh(-0.5 * (squares - row - row[:, None] + row.mean()))
    values, vectors = values[::-1], vectors[:, ::-1]
    positive = values > 1e-9 * max(values[0], 0.0)
    if not positive.any():  # a single place, or all at one point
        return np.zeros((n, 1)), 1.0
    shares = np.cumsum(values[positive]) / values[positive].sum()
    d = min(int(np.searchsorted(shares, share - 1e-12)) + 1, MOST, int(positive.sum()))
    # Fix the sign of each eigenvector, since it differs between libraries.
    axes = vectors[:, :d] * np.sign(vectors[first_best(np.abs(vectors[:, :d]).T), np.arange(d)])
    if n <= exact:
        points = axes * np.sqrt(values[:d])
    else:
        points = -0.5 * ((paths**2).T - row) @ (axes / np.sqrt(values[:d]))
    return points, float(shares[d - 1])
