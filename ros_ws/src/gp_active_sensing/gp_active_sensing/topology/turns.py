"""Which segments may follow which, where the map itself does not say."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

from gp_active_sensing.topology.segments import Segment, turn_angle

__all__ = ["U_TURNS", "successors_of"]

U_TURNS: tuple[str, ...] = ("dead_ends", "always", "never")
"""Where a probe may turn back onto the opposite side of the road it came by."""

_U_TURN_ANGLE = math.radians(150.0)


def successors_of(segments: Sequence[Segment], u_turns: str) -> list[list[int]]:
    """(n,) the segments that may follow each, as indices.

    Args:
        segments: of a map; the successors that one lists are taken as they are.
        u_turns: one of `U_TURNS`, for those that list none.
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
        onward = [b for b in out if not _is_u_turn(segment, segments[b])]
        result.append(onward if onward or u_turns == "never" else out)
    return result


def _is_u_turn(first: Segment, second: Segment) -> bool:
    return second.end == first.start and turn_angle(first, second) > _U_TURN_ANGLE
