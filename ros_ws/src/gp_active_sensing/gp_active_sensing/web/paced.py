"""What costs much to work out: again only where it may have changed, and seldom enough."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

__all__ = ["SHARE", "Paced"]

SHARE = 0.05
"""Share of the time that working it out may take."""

T = TypeVar("T")


class Paced(Generic[T]):
    """Keeps what was worked out last, and lets it be worked out again when its time has come.

    What took one second is worked out again 19 seconds later at the earliest, whatever changes
    meanwhile. The first time is at once, and so is the last one, which the caller knows of.

    Args:
        clock: monotonic seconds.
        share: of the time, at most.
    """

    def __init__(self, clock: Callable[[], float], share: float = SHARE) -> None:
        self._clock, self._share = clock, share
        self._value: T | None = None
        self._of: Hashable = None
        self._wanted: Hashable = None
        self._next = 0.0
        self.times = 0
        """How often it was worked out."""

    def get(self, of: Hashable, work: Callable[[], T], *, last: bool = False) -> T | None:
        """Return it as it is, or as it was.

        Args:
            of: what it is worked out of; the same as before: it cannot have changed.
            work: works it out.
            last: nothing comes any more, so it is worked out whatever that costs.
        """
        self._wanted = of
        if of != self._of and (last or not self.times or self._clock() >= self._next):
            began = self._clock()
            self._value = work()
            ended = self._clock()
            self._of, self._next = of, ended + (ended - began) * (1.0 / self._share - 1.0)
            self.times += 1
        return self._value

    @property
    def due(self) -> bool:
        """Whether it is not as it should be, and its time has come."""
        return self._wanted != self._of and self._clock() >= self._next
