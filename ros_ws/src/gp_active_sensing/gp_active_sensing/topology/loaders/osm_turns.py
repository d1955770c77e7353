"""Turn restrictions of OpenStreetMap, as lists of the segments that may follow."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from gp_active_sensing.topology.segments import RoadMap
from gp_active_sensing.topology.turns import successors_of

__all__ = ["Restriction", "apply_restrictions"]


class Restriction(NamedTuple):
    """A turn from one way to another at a node: forbidden, or the only one allowed."""

    first: int
    via: int
    second: int
    only: bool


def apply_restrictions(road_map: RoadMap, restrictions: Iterable[Restriction]) -> RoadMap:
    """Return the map with successors listed where a restriction speaks.

    The other successors of such a segment are those it has by default, with U-turns at dead ends
    and where nothing else is allowed.
    """
    listed = list(restrictions)
    if not listed:
        return road_map
    segments = road_map.segments
    by_end: dict[tuple[str, str], list[int]] = {}
    for i, segment in enumerate(segments):
        by_end.setdefault((_way(segment.id), segment.end), []).append(i)
    every = successors_of(segments, "always")
    allowed: dict[int, list[int]] = {}
    applied = 0
    for first, via, second, only in listed:
        arriving = by_end.get((str(first), str(via)), [])
        applied += bool(arriving)
        for i in arriving:
            out = allowed.get(i, every[i])
            allowed[i] = [b for b in out if (_way(segments[b].id) == str(second)) == only]
    usual = successors_of(segments, "dead_ends")
    changed = {
        i: [b for b in out if b in usual[i]] or [b for b in out if b not in usual[i]]
        for i, out in allowed.items()
    }
    new = tuple(
        replace(segment, successors=tuple(segments[b].id for b in changed[i]))
        if i in changed
        else segment
        for i, segment in enumerate(segments)
    )
    note = f"{applied} turn restriction(s) applied"
    return replace(road_map, segments=new, notes=(*road_map.notes, note))


def _way(identity: str) -> str:
    """Return the way that a segment is a part of."""
    return identity.removeprefix("-").rpartition(".")[0]
