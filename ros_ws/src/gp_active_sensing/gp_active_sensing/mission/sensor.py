"""Detect a silent sensor: never heard, or without readings at place after place."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from gp_active_sensing.mission.inbox import Envelope, RawReading
from gp_active_sensing.types import Reading

__all__ = ["MUTE", "SensorMonitor", "speaks"]

MUTE = "no reading"
"""How the reason begins of a pause, or of a probe that takes no part: its sensor is silent."""
SHOWN = 5
"""Places that are named."""


def speaks(message: Envelope) -> bool:
    """Return whether a message is a reading with a value, wherever it was taken."""
    return isinstance(message.what, RawReading) and math.isfinite(message.what.value)


class SensorMonitor:
    """Counts silent places; used under the mission's lock."""

    def __init__(self) -> None:
        self.heard = False
        """A reading with a finite value has come, whether it could be placed or not."""
        self.silent: list[int] = []
        """Places set aside in a row since a reading was used last."""
        self._heard_since = False
        """A reading has come since then."""
        self._used_ns: int | None = None

    def hear(self, messages: Collection[Envelope]) -> None:
        """Record what came."""
        if any(speaks(message) for message in messages):
            self.heard = self._heard_since = True

    def note(self, used: Sequence[Reading]) -> None:
        """Record readings that were used."""
        if used:
            self.heard = True
            self._used_ns = max(self._used_ns or 0, *(reading.stamp_ns for reading in used))
            self.forget()

    def miss(self, place: int) -> None:
        """Record a place that was set aside without a reading."""
        self.silent.append(place)

    def forget(self) -> None:
        """Count silent places from here on."""
        self.silent = []
        self._heard_since = False

    def complaint(self, names: Sequence[str], now_ns: int) -> str:
        """Return in words what is wrong.

        Args:
            names: of the map's places.
            now_ns: time of the node's clock.
        """
        since = "yet" if self._used_ns is None else f"for {1e-9 * (now_ns - self._used_ns):.0f} s"
        n = len(self.silent)
        which = ", ".join([*(names[place] for place in self.silent[:SHOWN]), *["…"][: n > SHOWN]])
        where = "1 place" if n == 1 else f"{n} places in a row"
        look = (
            "readings come and none is used, see rejected_… in /diagnostics"
            if self._heard_since
            else "check the sensor"
        )
        return f"{MUTE} {since}, at {where} ({which}): {look}"
