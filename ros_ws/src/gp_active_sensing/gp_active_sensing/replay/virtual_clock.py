"""Virtual clock of a replay: it shows the time of the recording."""

from __future__ import annotations

__all__ = ["VirtualClock"]

_TICK = 1e-9


class VirtualClock:
    """A monotonic clock that is set; a little later each time it is looked at.

    So that what happened one after the other keeps its order, as with a real clock.
    """

    def __init__(self) -> None:
        self._seconds = 0.0

    def set(self, seconds: float) -> None:
        """Set it; never back."""
        self._seconds = max(self._seconds, seconds)

    def __call__(self) -> float:
        """Return the time [s]."""
        self._seconds += _TICK
        return self._seconds
