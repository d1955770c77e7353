"""Block places that a probe could not reach, and moves, for a while; then allow them again."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable

from gp_active_sensing.loop import SensingLoop
from gp_active_sensing.mission.config import MissionConfig
from gp_active_sensing.mission.probe import ProbeState
from gp_active_sensing.mission.shut_moves import ShutMoves
from gp_active_sensing.records.events import Event, PlaceBlocked

__all__ = ["BlockedPlaces"]

logger = logging.getLogger(__name__)


class BlockedPlaces:
    """Keeps `SensingLoop.blocked`; used under the mission's lock.

    A place that was blocked more often than a visit is repeated (`mission.retries`) is set aside:
    a mission must not come back to it for ever.

    Args:
        loop: the engine.
        config: how long to wait, and how long a place is blocked.
        journal: takes the events.
    """

    def __init__(
        self,
        loop: SensingLoop,
        config: MissionConfig,
        journal: Callable[[Event], None],
    ) -> None:
        self.config = config
        self.moves = ShutMoves(loop, config, journal)
        """Those that nobody gets through."""
        self.until_ns: dict[int, int] = {}
        """By place."""
        self._loop = loop
        self._journal = journal
        self._times: Counter[int] = Counter()

    def watch(self, probe: ProbeState, now_ns: int) -> bool:
        """Block the waypoint of a stalled probe; return whether a move was shut."""
        config = self.config
        plan = probe.plan or probe.stages.home
        if plan is None or config.follow == "probe":
            return False
        if self.moves.look(probe, now_ns):
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
        shut = self.moves.stalled(probe, now_ns, why)
        if probe.plan is not None:
            self.give_up(probe, now_ns, why)
            return shut
        probe.progress.forget()  # there is no other end place: said again after the same time
        logger.warning(
            "%scomes no nearer to the end place %s for %g s; ~/finish ends the mission here",
            f"{probe.name} " if probe.name else "the probe ",
            self._loop.topology.names[plan.path[-1]],
            patience,
        )
        return shut

    def refuse(self, probe: ProbeState, now_ns: int, why: str) -> bool:
        """Give up a drive that a controller refuses; return whether a move was shut."""
        shut = self.moves.stalled(probe, now_ns, why)
        self.give_up(probe, now_ns, why)
        return shut

    def give_up(self, probe: ProbeState, now_ns: int, why: str) -> None:
        """Drop the decision that a probe carries out, and block its place.

        A place that has been read (`mission.arrival: radius`) is done without being reached.
        """
        assert probe.plan is not None
        place = probe.plan.waypoints[0]
        if self._loop.belief.observed[place] and not self._loop.reservations.is_due(place):
            name = self._loop.topology.names[place]
            logger.warning("%s was read, and is left without being reached (%s)", name, why)
            probe.complete(now_ns)
            return
        probe.give_up(now_ns)
        self.add(place, now_ns, why, probe.name)

    def add(self, place: int, now_ns: int, why: str, probe: str) -> None:
        """Block a place that a probe cannot get to."""
        seconds = self.config.block_seconds
        until_ns = now_ns + round(1e9 * seconds)
        set_aside = self._times[place] + 1 > self._loop.retries
        self._journal(
            PlaceBlocked(
                location=place,
                until_ns=until_ns,
                why=why,
                set_aside=set_aside,
                stamp_ns=now_ns,
                probe=probe,
            )
        )
        self.replay(place, until_ns, set_aside=set_aside)
        times = self._times[place]
        then = (
            f"it is not chosen again for {seconds:g} s"
            if place in self._loop.blocked
            else f"that was {times} times, and it is set aside"
        )
        name = self._loop.topology.names[place]
        whose = f"{probe}: " if probe else ""
        logger.warning("%s%s cannot be reached (%s); %s", whose, name, why, then)

    def replay(self, place: int, until_ns: int, *, set_aside: bool) -> None:
        """Record a place that was blocked, or set aside, before a restart."""
        self._times[place] += 1
        if set_aside:
            self._loop.set_aside.add(place)
            return
        self.until_ns[place] = until_ns
        self._loop.blocked.add(place)

    def expire(self, now_ns: int) -> bool:
        """Free the places whose time is over or that were read; say whether there was one.

        Where the policy chooses places again, having been read does not make one reachable.
        """
        done = self._loop.belief.observed & (not self._loop.revisits)
        over = [p for p, until in self.until_ns.items() if until <= now_ns or done[p]]
        for place in over:
            del self.until_ns[place]
            self._loop.blocked.discard(place)
        return bool(over)

    def waits(self, now_ns: int) -> str:
        """Return in words when a place or move is tried again, "" when none is blocked."""
        n = len(self.until_ns) + len(self.moves.until_ns)
        if not n:
            return ""
        until_ns = min([*self.until_ns.values(), *self.moves.until_ns.values()])
        seconds = 1e-9 * (until_ns - now_ns)
        places = "a blocked place is" if n == 1 else f"{n} blocked places are"
        return f"{places} waited for, {max(0.0, seconds):.0f} s until the next may be tried again"
