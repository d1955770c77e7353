"""Where callbacks leave what came: bounded, under a lock held for an append only."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from gp_active_sensing.mission.poses import Pose

__all__ = ["Arrival", "Inbox", "RawReading"]


@dataclass(frozen=True)
class RawReading:
    """A reading as it came, before it is known where it belongs."""

    stamp_ns: int
    value: float
    noise_variance: float | None
    source: str = "reading"


class Arrival(NamedTuple):
    """A pose or a reading, when it came (monotonic seconds), and of which probe it is."""

    what: Pose | RawReading
    received: float
    probe: str = ""


class Inbox:
    """Hands poses and readings from the callbacks to the mission, in the order they came.

    When it is full the oldest entry goes, and is counted.

    Args:
        capacity: most entries.
    """

    def __init__(self, capacity: int = 20_000) -> None:
        self._entries: deque[Arrival] = deque()
        self._capacity = capacity
        self._condition = threading.Condition()
        self._awake = False
        self.received: Counter[str] = Counter()
        self.dropped: Counter[str] = Counter()

    def put(self, what: Pose | RawReading, received: float, probe: str = "") -> None:
        """Leave something of a probe; never waits for the mission."""
        kind = "poses" if isinstance(what, Pose) else "readings"
        with self._condition:
            self.received[kind] += 1
            if len(self._entries) >= self._capacity:
                oldest = self._entries.popleft()
                self.dropped["poses" if isinstance(oldest.what, Pose) else "readings"] += 1
            self._entries.append(Arrival(what, received, probe))
            self._condition.notify()

    def wake(self) -> None:
        """End a wait although nothing came."""
        with self._condition:
            self._awake = True
            self._condition.notify()

    def wait(self, seconds: float) -> None:
        """Wait until there is something, or for a time."""
        with self._condition:
            self._condition.wait_for(lambda: self._entries or self._awake, timeout=seconds)
            self._awake = False

    def take(self) -> list[Arrival]:
        """Take everything."""
        with self._condition:
            entries = list(self._entries)
            self._entries.clear()
        return entries

    def put_back(self, entries: Sequence[Arrival]) -> None:
        """Leave what was taken too early, ahead of everything else."""
        with self._condition:
            self._entries.extendleft(reversed(entries))

    def __len__(self) -> int:
        return len(self._entries)
