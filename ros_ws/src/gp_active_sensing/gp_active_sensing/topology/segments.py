"""Road maps as data: directed segments, their successors, and the graph of joined places."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from gp_active_sensing.types import FloatArray, IntArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Point: TypeAlias = tuple[float, float]

FEATURES: tuple[str, ...] = ("x", "y", "length", "lanes", "speed_limit", "direction")
"""Features of a segment: x and y [m] of its anchor, and its direction as cosine and sine."""
RELATIONAL = "relational"
"""Name of the features that are coordinates of an embedding of the road graph."""


@dataclass(frozen=True)
class Segment:
    """Directed road segment."""

    id: str  # unique in the map
    start: str  # junction at the start
    end: str  # junction at the end
    line: tuple[Point, ...]  # two or more points, in driving direction [m]
    length: float  # driven distance from start to end [m]
    lanes: float | None = None  # number of lanes, None when unknown
    speed_limit: float | None = None  # speed limit [m/s], None when unknown
    # ids of the segments that may follow; None = all that start at `end`, except forbidden U-turns
    successors: tuple[str, ...] | None = None
    name: str = ""  # name of the road
    road_class: str = ""  # class of the road, such as "arterial"
    # further numbers of the segment by name; they can be features
    extra: Mapping[str, float] = field(default_factory=dict, hash=False)

    def reversed(self) -> Segment:
        """Return the segment in the opposite direction; its id has the prefix "-"."""
        return replace(
            self,
            id=f"-{self.id}",
            start=self.end,
            end=self.start,
            line=self.line[::-1],
            successors=None,
        )


@dataclass(frozen=True)
class RoadMap:
    """Segments in a metric frame, as a loader returns them."""

    name: str  # name of the map
    frame: str  # metric frame of the coordinates
    segments: tuple[Segment, ...]  # at least one, with unique ids and known successors
    # longitude and latitude of the frame's origin [degree], with x east and y north; None = unknown
    datum: tuple[float, float] | None = None
    notes: tuple[str, ...] = ()  # assumptions, changes and omissions of the loader
    crs: str = "local"  # coordinate system of the file; "local" = metres in the map's own frame


def length_of(line: Sequence[Point]) -> float:
    """Return the length of a line [m]."""
    return math.fsum(math.dist(a, b) for a, b in pairwise(line))


# -- which segments may follow ---------------------------------------------------------------------

U_TURNS: tuple[str, ...] = ("dead_ends", "always", "never")
"""Rules for turning back onto the opposite direction of a road."""
_U_TURN_ANGLE = math.radians(150.0)


def successors_of(segments: Sequence[Segment], u_turns: str) -> list[list[int]]:
    """Return, for each of the n segments, the indices of the segments that may follow it.

    A segment may list its successors. By default, these are all segments that start where it ends.
    `u_turns`, one of `U_TURNS`, then restricts U-turns.
    """
    by_id = {segment.id: i for i, segment in enumerate(segments)}
    leaving: dict[str, list[int]] = defaultdict(list)
    for i, segment in enumerate(segments):
        leaving[segment.start].append(i)
    result: list[list[int]] = []
    for segment in segments:
        if segment.successors is not None:
            result.append(sorted({by_id[b] for b in segment.successors}))
            continue
        out = leaving[segment.end]
        if u_turns == "always":
            result.append(out)
            continue
        back = [b for b in out if segments[b].end == segment.start]
        turns = {b for b in back if _turn_angle(segment, segments[b]) > _U_TURN_ANGLE}
        onward = [b for b in out if b not in turns]
        result.append(onward if onward or u_turns == "never" else out)
    return result


def _turn_angle(first: Segment, second: Segment) -> float:
    """Return the turning angle from one segment to a following segment [rad, 0…π]."""
    before = np.subtract(*_last_leg(first.line))
    after = np.subtract(*_last_leg(second.line[::-1])) * -1.0
    cross = float(before[0] * after[1] - before[1] * after[0])
    return abs(math.atan2(cross, float(before @ after)))


def _last_leg(line: Sequence[Point]) -> tuple[Point, Point]:
    """Return the end of a line, and the last point that is not at the end."""
    end = line[-1]
    return end, next(point for point in reversed(line) if point != end)


# -- joined places ---------------------------------------------------------------------------------

MIDDLE = 0.5
"""Default anchor: point to which a segment's value belongs, as a fraction of its length."""
_SHORTEST = 0.01
"""Smallest distance of an anchor from either end, as a fraction of the segment's length."""


def part_of(pairs: IntArray, n: int) -> IntArray:
    """Return the index (n,) of the connected part to which each place belongs.

    `pairs` (m, 2) are the pairs of places that are joined.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    joined = coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(n, n))
    return np.asarray(connected_components(joined, directed=False)[1])


@dataclass(frozen=True, eq=False)
class Links:
    """Undirected graph of n places: the pairs of joined places, and the distance of each pair."""

    n: int  # number of places
    first: IntArray  # (m,) smaller place of each pair
    second: IntArray  # (m,) larger place of each pair
    metres: FloatArray  # (m,) distance between the two places, above 0 [m]
    conductance: FloatArray  # (m,) conductance of each pair [1/m], see `segment_links`
    mass: FloatArray  # (n,) length of road, or of moves, that each place represents [m]

    @classmethod
    def between(
        cls, n: int, pairs: Iterable[tuple[int, int, float, float]], mass: FloatArray | None = None
    ) -> Links:
        """Return the links of undirected pairs (i, j, metres, conductance).

        A pair with i = j is left out. If a pair is repeated, the smallest metres and the largest
        conductance count. `mass` (n,) is the length of road that each place represents [m]; None =
        the mean metres of its links.

        Raises:
            ValueError: a place is outside 0 … n-1, or metres or a conductance is not above 0.
        """
        data = np.array(list(pairs), dtype=np.float64).reshape(-1, 4)
        ends, values = np.sort(data[:, :2].astype(np.int64), axis=1), data[:, 2:]
        inside = ((ends >= 0) & (ends < n) & (values > 0.0) & (values < np.inf)).all(axis=1)
        if not inside.all():
            i, j, metres, conductance = data[~inside][0].tolist()
            msg = (
                f"expected places 0 … {n - 1}, metres and conductance above 0, "
                f"got ({i:g}, {j:g}, {metres}, {conductance})"
            )
            raise ValueError(msg)
        apart = ends[:, 0] != ends[:, 1]
        ends, values = ends[apart], values[apart]
        both, number = np.unique(ends, axis=0, return_inverse=True)
        lengths, conductances = np.full(len(both), np.inf), np.zeros(len(both))
        np.minimum.at(lengths, number, values[:, 0])
        np.maximum.at(conductances, number, values[:, 1])
        if mass is None:
            count = np.bincount(both.ravel(), minlength=n)
            total = np.bincount(both.ravel(), np.repeat(lengths, 2), minlength=n)
            # A place without links has a mass of 1.
            mass = np.where(count > 0, total, 1.0) / np.maximum(count, 1)
        mass = np.asarray(mass, dtype=np.float64)
        return cls(n, both[:, 0], both[:, 1], lengths, conductances, mass)

    def matrix(self, weights: FloatArray) -> csr_array:
        """Return the symmetric (n, n) sparse matrix with `weights` (m,) at the links."""
        from scipy.sparse import coo_array

        # scipy 1.11 accepts only 32-bit indices in a graph.
        rows = np.concatenate([self.first, self.second]).astype(np.intc)
        columns = np.concatenate([self.second, self.first]).astype(np.intc)
        data = np.concatenate([weights, weights])
        return coo_array((data, (rows, columns)), shape=(self.n, self.n)).tocsr()

    def shortest_paths(self, weights: FloatArray, sources: IntArray | None = None) -> FloatArray:
        """Return the lengths (k, n) of shortest paths from k `sources` (None = all places).

        `weights` (m,) are the lengths of the links.
        """
        from scipy.sparse.csgraph import dijkstra

        return np.asarray(dijkstra(self.matrix(weights), directed=False, indices=sources))

    @cached_property
    def parts(self) -> IntArray:
        """Index (n,) of the connected part to which each place belongs; 0 is the largest part."""
        labels = part_of(np.column_stack([self.first, self.second]), self.n)
        order = np.argsort(-np.bincount(labels), kind="stable")
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order))
        return np.asarray(rank[labels])


def move_links(
    segments: Sequence[Segment], successors: Sequence[Sequence[int]], anchor: float = MIDDLE
) -> Links:
    """Return undirected links between segments that follow one another [Chen2012].

    `anchor` is the point of a segment to which its value belongs: 0 = start, 1 = end.
    """
    share = _share(anchor)

    def pairs() -> Iterable[tuple[int, int, float, float]]:
        for i, out in enumerate(successors):
            for j in out:
                metres = (1.0 - share) * segments[i].length + share * segments[j].length
                yield i, j, metres, 1.0 / metres

    return Links.between(len(segments), pairs())


def segment_links(
    segments: Sequence[Segment], successors: Sequence[Sequence[int]], anchor: float = MIDDLE
) -> Links:
    r"""Return the links of segments that share a junction, whatever their directions.

    A segment's value belongs to its anchor: `anchor` 0 = start, 1 = end. The distance between two
    segments at a junction J is the distance between their anchors via J. The roads from the anchors
    to J count as wires with a resistance of 1 per metre. The conductance of a pair follows by
    eliminating J (the star-mesh transform):

    .. math:: w_{ij} = g_i g_j / \sum_{k \in J} g_k, \quad g_k = 1 / (\text{metres from k to J})

    On a road without crossings, the conductance is 1 over the distance between the anchors. This
    also holds for segments that follow one another without a common junction.
    """
    arms: dict[str, list[tuple[int, float]]] = defaultdict(list)
    share = _share(anchor)
    for i, segment in enumerate(segments):
        arms[segment.start].append((i, share * segment.length))
        arms[segment.end].append((i, (1.0 - share) * segment.length))

    metres: dict[tuple[int, int], float] = {}
    conductance: dict[tuple[int, int], float] = defaultdict(float)
    for meeting in arms.values():
        total = sum(1.0 / a for _, a in meeting)
        for (i, a), (j, b) in combinations(meeting, 2):
            pair = (min(i, j), max(i, j))
            metres[pair] = min(a + b, metres.get(pair, np.inf))
            # The two directions of a road meet at both ends, as parallel wires.
            conductance[pair] += 1.0 / (a * b * total)
    for i, out in enumerate(successors):
        for j in out:
            pair = (min(i, j), max(i, j))
            if segments[i].end != segments[j].start and pair not in metres:
                metres[pair] = (1.0 - share) * segments[i].length + share * segments[j].length
                conductance[pair] = 1.0 / metres[pair]
    mass = np.array([segment.length for segment in segments])
    joined = ((i, j, d, conductance[i, j]) for (i, j), d in metres.items())
    return Links.between(len(segments), joined, mass)


def _share(anchor: float) -> float:
    """Keep the anchor off the ends of a segment, so that joined segments have different points."""
    return min(max(anchor, _SHORTEST), 1.0 - _SHORTEST)


def numbers_of(segments: Sequence[Segment]) -> dict[str, FloatArray]:
    """Return the length, lanes, speed limit and other numbers (n,) of segments; NaN = not given."""
    own = ("length", "lanes", "speed_limit")
    others = dict.fromkeys(name for segment in segments for name in segment.extra)
    values: dict[str, list[Any]] = {key: [getattr(s, key) for s in segments] for key in own}
    values |= {key: [s.extra.get(key) for s in segments] for key in others if key not in own}
    return {key: np.array(given, dtype=np.float64) for key, given in values.items()}


def available(road_map: RoadMap) -> tuple[str, ...]:
    """Return the names of the columns for which every segment of a map has a number."""
    numbers = numbers_of(road_map.segments)
    return ("x", "y", "direction", *(k for k, v in numbers.items() if np.isfinite(v).all()))
