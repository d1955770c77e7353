"""Connected components of a road map, and the largest strongly connected one."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gp_active_sensing.topology.segments import RoadMap
from gp_active_sensing.topology.turns import successors_of
from gp_active_sensing.types import IntArray

__all__ = ["Parts", "keep_largest", "parts_of"]


@dataclass(frozen=True)
class Parts:
    """The parts of a map.

    Args:
        weak: number of parts that no move joins, in either direction.
        strong: number of parts with a way from each segment to each.
        largest: (k,) the segments of the largest of those, sorted; of equally large ones, that with
            the first segment of the map.
        outside: (n - k,) the other segments, sorted.
        traps: (t,) segments that no other one may follow.
    """

    weak: int
    strong: int
    largest: IntArray
    outside: IntArray
    traps: IntArray


def parts_of(road_map: RoadMap, u_turns: str = "dead_ends") -> Parts:
    """Return the parts of a map. O(segments and moves).

    Args:
        road_map: the map.
        u_turns: one of `turns.U_TURNS`.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    out = successors_of(road_map.segments, u_turns)
    n = len(out)
    # scipy 1.11 takes no longer indices in a graph.
    to = np.array([b for following in out for b in following], dtype=np.intc)
    starts = np.cumsum([0, *(len(following) for following in out)], dtype=np.intc)
    matrix = csr_array((np.ones(len(to)), to, starts), shape=(n, n))
    weak, _ = connected_components(matrix, directed=True, connection="weak")
    strong, labels = connected_components(matrix, directed=True, connection="strong")
    sizes = np.bincount(labels)
    first = np.unique(labels, return_index=True)[1]
    best = min(range(strong), key=lambda part: (-sizes[part], first[part]))
    traps = [i for i, following in enumerate(out) if not set(following) - {i}]
    return Parts(
        int(weak),
        int(strong),
        np.flatnonzero(labels == best),
        np.flatnonzero(labels != best),
        np.array(traps, dtype=np.int64),
    )


def keep_largest(road_map: RoadMap, u_turns: str = "dead_ends") -> RoadMap:
    """Return the map without the segments outside its largest strongly connected part.

    A note says what was dropped.
    """
    parts = parts_of(road_map, u_turns)
    if not len(parts.outside):
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
