"""Places that a probe could not get to: not chosen again for a while, then tried again."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from gp_active_sensing.events import blocked_event
from gp_active_sensing.loop import SensingLoop

__all__ = ["Blocked"]

logger = logging.getLogger(__name__)


class Blocked:
    """Keeps `SensingLoop.blocked`; used under the mission's lock.

    Args:
        loop: the engine.
        journal: takes the events.
    """

    def __init__(self, loop: SensingLoop, journal: Callable[[dict[str, Any]], None]) -> None:
        self._loop = loop
        self._journal = journal
        self.until_ns: dict[int, int] = {}
        """By place."""
        self.count = 0
        """How often a place was blocked."""

    def add(self, place: int, now_ns: int, seconds: float, why: str, probe: str = "") -> None:
        """Block a place for a time [s]."""
        until_ns = now_ns + round(1e9 * seconds)
        self._journal(
            blocked_event(place, until_ns=until_ns, why=why, stamp_ns=now_ns, probe=probe)
        )
        self.replay(place, until_ns)
        logger.warning(
            "%s%s cannot be reached (%s); it is not chosen again for %g s",
            f"{probe}: " if probe else "",
            self._loop.topology.names[place],
            why,
            seconds,
        )

    def replay(self, place: int, until_ns: int) -> None:
        """Take note of a place that was blocked before a restart."""
        self.count += 1
        self.until_ns[place] = until_ns
        self._loop.blocked.add(place)

    def expire(self, now_ns: int) -> bool:
        """Free the places whose time is over; say whether there was one."""
        over = [place for place, until in self.until_ns.items() if until <= now_ns]
        for place in over:
            del self.until_ns[place]
            self._loop.blocked.discard(place)
        return bool(over)
