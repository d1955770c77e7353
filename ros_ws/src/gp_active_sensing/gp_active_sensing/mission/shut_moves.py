"""Shut the moves that nobody gets through, for a while; then plan ways through them again."""

from __future__ import annotations

import logging
from collections.abc import Callable

import numpy as np

from gp_active_sensing.loop import SensingLoop
from gp_active_sensing.mission.config import MissionConfig
from gp_active_sensing.mission.drives import move_before, move_left_out
from gp_active_sensing.mission.probe import ProbeState
from gp_active_sensing.planning.budget import BudgetConstraint, allowed
from gp_active_sensing.records.events import Event, MoveShut
from gp_active_sensing.topology.shut import is_doorway, with_shut
from gp_active_sensing.types import BoolArray

__all__ = ["ShutMoves"]

logger = logging.getLogger(__name__)


class ShutMoves:
    """Keeps `SensingLoop.shut`; used under the mission's lock.

    A move is shut when a probe stands before it and comes no nearer, and when a controller has
    taken another way that is far longer than the planned one.

    Args:
        loop: the engine.
        config: how long a move stays shut.
        journal: takes the events.
    """

    def __init__(
        self, loop: SensingLoop, config: MissionConfig, journal: Callable[[Event], None]
    ) -> None:
        self.config = config
        self.until_ns: dict[tuple[int, int], int] = {}
        """By move (from, to)."""
        self._loop = loop
        self._journal = journal

    def stalled(self, probe: ProbeState, now_ns: int, why: str) -> bool:
        """Shut the move before a probe that comes no nearer; return whether that is known."""
        topology = self._loop.topology
        move = move_before(topology, probe)
        if move is None or not (is_doorway(topology, *move) or self._leaves(move, probe)):
            return False
        self._shut(move, probe, now_ns, why)
        return True

    def _leaves(self, move: tuple[int, int], probe: ProbeState) -> bool:
        """Return whether a probe still gets to an unread place, and home, without a move.

        On open ground a place that nobody gets to is more likely than a way that is cut off.
        """
        ways = with_shut(self._loop.topology, [move]).ways_from(probe.standing())
        there, end = np.isfinite(ways.seconds), probe.purse.end
        return bool(there[self._unread()].any()) and (end is None or bool(there[end]))

    def _unread(self) -> BoolArray:
        unread = ~self._loop.belief.observed
        unread[list(self._loop.unavailable)] = False
        return unread

    def look(self, probe: ProbeState, now_ns: int) -> bool:
        """See whether a probe was led round a shut move; return whether one is shut for it."""
        if self.config.follow == "probe" or probe.target is None:
            return False
        here, metres = probe.standing(), probe.ingestion.metres
        drive = probe.drive
        drive.note(here)
        if not drive.far(metres):
            return False
        move = move_left_out(self._loop.topology, drive, here, metres)
        if move is None:
            return False
        assert drive.plan is not None
        driven, planned = metres - drive.metres, drive.plan.cost.metres
        self._shut(move, probe, now_ns, f"{driven:.0f} m driven where {planned:.0f} m were planned")
        return True

    def _shut(self, move: tuple[int, int], probe: ProbeState, now_ns: int, why: str) -> None:
        until_ns = now_ns + round(1e9 * self.config.block_seconds)
        start, goal = move
        event = MoveShut(
            start=start, goal=goal, until_ns=until_ns, why=why, stamp_ns=now_ns, probe=probe.name
        )
        self._journal(event)
        self.replay(event)
        logger.warning(
            "%s%s (%s): ways are planned round it for %g s",
            f"{probe.name}: " if probe.name else "",
            self._named(move),
            why,
            self.config.block_seconds,
        )

    def replay(self, event: MoveShut) -> None:
        """Record a move that was shut, now or before a restart.

        Raises:
            ValueError: the map has no such places.
        """
        if not all(0 <= place < self._loop.whole.n for place in (event.start, event.goal)):
            msg = "no such places"
            raise ValueError(msg)
        self.until_ns[event.start, event.goal] = event.until_ns
        self._loop.shut_moves(self.until_ns)

    def expire(self, now_ns: int) -> bool:
        """Open the moves whose time is over; return whether there was one."""
        over = [move for move, until_ns in self.until_ns.items() if until_ns <= now_ns]
        for move in over:
            del self.until_ns[move]
        if over:
            self._loop.shut_moves(self.until_ns)
        return bool(over)

    @property
    def words(self) -> tuple[str, ...]:
        """Return the moves that are shut now."""
        return tuple(self._named(move) for move in self.until_ns)

    def _named(self, move: tuple[int, int]) -> str:
        names = self._loop.whole.names
        return f"the way from {names[move[0]]} to {names[move[1]]} is shut"

    def hide_places(self, probe: ProbeState) -> bool:
        """Return whether a probe could read more if nothing were shut."""
        loop, at = self._loop, probe.standing()
        if not self.until_ns or at is None:
            return False
        unread = self._unread()
        ways = loop.whole.ways_from(at)
        unread &= np.isfinite(ways.seconds) & ~np.isfinite(loop.topology.ways_from(at).seconds)
        fits = allowed(BudgetConstraint(loop.whole, probe.left), ways, unread.astype(np.int64))
        return bool((unread & fits).any())
