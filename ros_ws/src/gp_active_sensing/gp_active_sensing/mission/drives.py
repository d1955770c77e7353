"""Compare a probe's drive with its plan, to find moves that are possible only on the map."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from gp_active_sensing.topology.base import Topology
from gp_active_sensing.topology.search import Ways
from gp_active_sensing.topology.shut import is_doorway, with_shut
from gp_active_sensing.types import Budget, Plan

_FAR, _FAR_STEPS = 1.5, 2.0
"""Limit of a drive's length: `_FAR` times the planned length plus `_FAR_STEPS` times `spacing`."""
_AGAIN = 1.25
"""Factor by which a drive must become longer before its length is checked again."""
_MOST_TRIED = 32
"""Largest number of moves that the search for a blocked move tries."""
_DIFFERS = 0.35
"""A driven length matches a way if they differ by at most this fraction plus one `spacing`."""
_LONGER = 1.25
"""A move can count as blocked only if the way without it is longer by this factor."""
_AHEAD = 3
"""Number of moves ahead of a stalled probe that are checked for a doorway."""


@dataclass
class DriveRecord:
    """Present drive of a probe; used under the mission's lock.

    Args:
        plan: the decision, or the plan of the drive to the end place.
        start: place where the drive began; None = unknown.
        metres: odometer at the start [m].
    """

    plan: Plan | None = None
    start: int | None = None
    metres: float = 0.0
    passed: int = -1
    """Index of the last passed place in the plan's path; -1 = no place yet."""
    spacing: float = 1.0
    """Distance between neighbouring places [m]."""
    left: Budget = Budget()
    """Remaining budget at the start of the drive."""
    begun_ns: int = 0
    _next: float = field(default=0.0, init=False)

    def begin(self, plan: Plan, probe: Any, now_ns: int) -> None:
        """Start the record of a drive of `probe`, a `mission.probe.ProbeState`."""
        self.plan, self.passed, self.begun_ns = plan, -1, now_ns
        self.start = probe.standing() if probe.at is None else probe.at
        self.metres, self.spacing = probe.ingestion.metres, probe.ingestion.matcher.spacing
        self.left = probe.remaining.minus(cost=probe.stages.owed(now_ns, self.metres))
        self._next = _FAR * plan.cost.metres + _FAR_STEPS * self.spacing

    def note(self, place: int | None) -> None:
        """Record the probe's present place."""
        if self.plan is not None and place in self.plan.path[self.passed + 1 :]:
            self.passed = self.plan.path.index(place, self.passed + 1)

    def is_too_long(self, metres: float) -> bool:
        """Return whether the drive is far longer than planned; `metres` is the odometer [m]."""
        driven = metres - self.metres
        if self.plan is None or driven < self._next:
            return False
        self._next = _AGAIN * driven
        return True


def move_before(topology: Topology, probe: Any) -> tuple[int, int] | None:
    """Return the planned move (from, to) that a stalled probe cannot make; None = unknown.

    This is the next move through a doorway, or the next move if no doorway is ahead. The move is
    unknown if no doorway is ahead of a probe that is still at the start of a path with several
    places: the goal itself may be unreachable.
    """
    here, plan = probe.standing(), probe.plan or probe.stages.home
    if here is None or plan is None or topology.free:
        return None
    way = [here]
    if here in plan.path:
        way += plan.path[plan.path.index(here) + 1 :]
    elif here == probe.drive.start:
        way += plan.path
    elif (route := topology.ways_to(plan.path[-1], "metres").route(here)) is not None:
        way += route.path
    moves = [(a, b) for a, b in pairwise(way[: _AHEAD + 1]) if a != b]
    doors = [move for move in moves if is_doorway(topology, *move)]
    set_out = here != probe.drive.start or len(plan.path) == 1
    return next(iter(doors or (moves if set_out else ())), None)


def move_left_out(
    topology: Topology, drive: DriveRecord, here: int | None, metres: float
) -> tuple[int, int] | None:
    """Return the planned move (from, to) that a probe probably drove around; None = no such move.

    Each move after the last passed place is removed from the map in turn. The driven length plus
    the remaining way is compared with the whole way from the start. Both ways avoid the removed
    move. If the two lengths are about equal, the move counts as blocked.
    """
    plan, start = drive.plan, drive.start
    if plan is None or start is None or here is None or topology.free:
        return None
    goal, driven = plan.path[-1], metres - drive.metres
    way = (start, *plan.path)
    moves = [(a, b) for a, b in pairwise(way) if a != b]
    moves = moves[drive.passed + 1 :] if here in plan.path else moves[max(0, drive.passed) :]
    if len(moves) > _MOST_TRIED:  # the first moves, and evenly spaced later moves
        half = _MOST_TRIED // 2
        rest = np.linspace(half, len(moves) - 1, half).astype(int).tolist()
        moves = [*moves[:half], *(moves[k] for k in dict.fromkeys(rest))]
    planned = _metres(topology.ways_to(goal, "metres"), start)
    best: tuple[float, tuple[int, int]] | None = None
    for move in moves:
        ways = with_shut(topology, [move]).ways_to(goal, "metres")
        round_it, rest_of_it = _metres(ways, start), _metres(ways, here)
        if not np.isfinite(round_it) or round_it < _LONGER * planned + drive.spacing:
            continue
        off = abs(driven + rest_of_it - round_it)
        if off <= _DIFFERS * round_it + drive.spacing and (best is None or off < best[0]):
            best = off, move
    return None if best is None else best[1]


def _metres(ways: Ways, place: int) -> float:
    cost = ways.costs[place]
    return float("inf") if cost is None else cost.metres
