"""Block unreachable places and moves for a limited time."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable

import numpy as np

from gp_active_sensing.loop import SensingLoop
from gp_active_sensing.mission.config import MissionConfig
from gp_active_sensing.mission.drives import move_before, move_left_out
from gp_active_sensing.mission.probe import ProbeState
from gp_active_sensing.planning.budget import BudgetConstraint, allowed
from gp_active_sensing.records.events import Event, MoveShut, PlaceBlocked
from gp_active_sensing.topology.shut import is_doorway, with_shut

logger = logging.getLogger(__name__)


class BlockedPlaces:
    """Blocker of places and moves in a `SensingLoop`; used under the mission's lock.

    A place that was blocked more than `mission.retries` times is not chosen any more. A move is
    blocked if a probe stalls before it. It is also blocked if a controller drives around it.
    """

    def __init__(
        self, loop: SensingLoop, config: MissionConfig, journal: Callable[[Event], None]
    ) -> None:
        self.config = config
        self.until_ns: dict[int, int] = {}
        """Time at which each blocked place is allowed again [ns], keyed by place."""
        self.moves_until_ns: dict[tuple[int, int], int] = {}
        """Time at which each blocked move is allowed again [ns], keyed by move (from, to)."""
        self._loop = loop
        self._journal = journal
        self._times: Counter[int] = Counter()

    def watch(self, probe: ProbeState, now_ns: int) -> bool:
        """Block the waypoint or the move of a stalled probe; return whether a move was blocked."""
        config = self.config
        plan = probe.plan or probe.stages.home
        if plan is None or config.follow == "probe":
            return False
        if self._blocks_avoided_move(probe, now_ns):
            return True
        if config.drive_timeout <= 0.0:
            return False
        if probe.arrival.inside(plan.path[-1]):
            probe.progress.forget()
            return False
        patience = config.drive_timeout
        if not probe.progress.stalled(plan, step=probe.arrival.radius, patience=patience):
            return False
        why = f"no nearer for {patience:g} s"
        shut = self._shut_before(probe, now_ns, why)
        if probe.plan is not None:
            self.abandon(probe, now_ns, why)
            return shut
        probe.progress.forget()  # the end place cannot be blocked: warn again after the same time
        logger.warning(
            "%scomes no nearer to the end place %s for %g s; ~/finish ends the mission here",
            f"{probe.name} " if probe.name else "the probe ",
            self._loop.topology.names[plan.path[-1]],
            patience,
        )
        return shut

    def refuse(self, probe: ProbeState, now_ns: int, why: str) -> bool:
        """Abandon a drive that a controller refuses; return whether a move was blocked."""
        shut = self._shut_before(probe, now_ns, why)
        self.abandon(probe, now_ns, why)
        return shut

    def abandon(self, probe: ProbeState, now_ns: int, why: str) -> None:
        """Drop the probe's present decision, and block its place."""
        assert probe.plan is not None
        place = probe.plan.waypoints[0]
        probe.drop_decision(now_ns)
        self.add(place, now_ns, why, probe.name)

    def add(self, place: int, now_ns: int, why: str, probe: str) -> None:
        """Block a place that a probe cannot reach."""
        seconds = self.config.block_seconds
        event = PlaceBlocked(
            location=place,
            until_ns=now_ns + round(1e9 * seconds),
            why=why,
            set_aside=self._times[place] + 1 > self._loop.retries,
            stamp_ns=now_ns,
            probe=probe,
        )
        self._journal(event)
        self.replay(event)
        then = (
            f"it is not chosen again for {seconds:g} s"
            if place in self._loop.blocked
            else f"that was {self._times[place]} times, and it is set aside"
        )
        name = self._loop.topology.names[place]
        whose = f"{probe}: " if probe else ""
        logger.warning("%s%s cannot be reached (%s); %s", whose, name, why, then)

    def replay(self, event: PlaceBlocked) -> None:
        """Apply an event that blocks a place, also after a restart."""
        self._times[event.location] += 1
        if event.set_aside:
            self._loop.set_aside.add(event.location)
            return
        self.until_ns[event.location] = event.until_ns
        self._loop.blocked.add(event.location)

    def expire(self, now_ns: int) -> bool:
        """Unblock the places whose blocking time is over; return whether a place was unblocked.

        A place with a reading is also unblocked, unless the policy chooses observed places.
        """
        read = [self._loop.observed_of(lead) for lead in self._loop.leads]
        done = np.all(read, axis=0) & (not self._loop.revisits)
        over = [p for p, until in self.until_ns.items() if until <= now_ns or done[p]]
        for place in over:
            del self.until_ns[place]
            self._loop.blocked.discard(place)
        return bool(over)

    def waits(self, now_ns: int) -> str:
        """Return a text on the next retry of a blocked place; "" = no place is blocked."""
        times = [*self.until_ns.values(), *self.moves_until_ns.values()]
        if not (n := len(times)):
            return ""
        seconds = 1e-9 * (min(times) - now_ns)
        places = "a blocked place is" if n == 1 else f"{n} blocked places are"
        return f"{places} waited for, {max(0.0, seconds):.0f} s until the next may be tried again"

    # -- blocked moves -------------------------------------------------------------------------

    def _shut_before(self, probe: ProbeState, now_ns: int, why: str) -> bool:
        """Block the move that stops a stalled probe; return whether this move is known."""
        topology = self._loop.topology
        move = move_before(topology, probe)
        if move is None or not (is_doorway(topology, *move) or self._leaves(move, probe)):
            return False
        self._shut(move, probe, now_ns, why)
        return True

    def _leaves(self, move: tuple[int, int], probe: ProbeState) -> bool:
        """Return whether the probe can reach its end place and an unread place without `move`."""
        ways = with_shut(self._loop.topology, [move]).ways_from(probe.standing())
        there, end = np.isfinite(ways.seconds), probe.own_budget.end
        return bool(there[probe.unread].any()) and (end is None or bool(there[end]))

    def _blocks_avoided_move(self, probe: ProbeState, now_ns: int) -> bool:
        """Block the move that a controller drove around; return whether there was such a move."""
        here, metres = probe.standing(), probe.ingestion.metres
        drive = probe.drive
        drive.note(here)
        if not drive.is_too_long(metres):
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
        self.replay_move(event)
        logger.warning(
            "%s%s (%s): for %g s, ways are planned around it",
            f"{probe.name}: " if probe.name else "",
            self._named(move),
            why,
            self.config.block_seconds,
        )

    def replay_move(self, event: MoveShut) -> None:
        """Apply an event that blocks a move; raise ValueError for places not on the map."""
        if not all(0 <= place < self._loop.whole.n for place in (event.start, event.goal)):
            msg = "no such places"
            raise ValueError(msg)
        self.moves_until_ns[event.start, event.goal] = event.until_ns
        self._loop.shut_moves(self.moves_until_ns)

    def open_moves(self, now_ns: int) -> bool:
        """Unblock the moves whose blocking time is over; return whether a move was unblocked."""
        left = {move: until for move, until in self.moves_until_ns.items() if until > now_ns}
        over = len(left) < len(self.moves_until_ns)
        if over:
            self.moves_until_ns = left
            self._loop.shut_moves(left)
        return over

    @property
    def shut_moves(self) -> tuple[str, ...]:
        """Descriptions of the moves that are blocked now."""
        return tuple(self._named(move) for move in self.moves_until_ns)

    def _named(self, move: tuple[int, int]) -> str:
        names = self._loop.whole.names
        return f"the way from {names[move[0]]} to {names[move[1]]} is shut"

    def hide_places(self, probe: ProbeState) -> bool:
        """Return whether the probe could read more places if no move were blocked."""
        loop, at = self._loop, probe.standing()
        if not self.moves_until_ns or at is None:
            return False
        ways = loop.whole.ways_from(at)
        hidden = np.isfinite(ways.seconds) & ~np.isfinite(loop.topology.ways_from(at).seconds)
        hidden &= probe.unread
        fits = allowed(BudgetConstraint(loop.whole, probe.remaining), ways, hidden.astype(np.int64))
        return bool((hidden & fits).any())
