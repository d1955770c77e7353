"""Events of a journal, each parsed from the text when it is asked for."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, overload

__all__ = ["Events", "kinds_of"]

Event = dict[str, Any]


class Events(Sequence[Event]):
    """Events as they stand in the text of a journal; made of it they would be ten times as large.

    Args:
        data: the text.
        read: makes the event of a line.
    """

    def __init__(self, data: bytes = b"", read: Callable[[bytes], Event] = lambda line: {}) -> None:
        self.kinds: list[str] = []
        """The word ``event`` of each."""
        self._data = data
        self._read = read
        self._begins, self._ends = array("q"), array("q")
        self._added: dict[int, Event] = {}

    def take(self, begin: int, end: int, kind: str) -> None:
        """Add the event of a line of the text, which is from byte `begin` to `end`."""
        self._begins.append(begin)
        self._ends.append(end)
        self.kinds.append(kind)

    def add(self, event: Event) -> None:
        """Add an event that is not in the text."""
        self._added[len(self)] = event
        self.take(0, 0, str(event.get("event")))

    def __len__(self) -> int:
        return len(self._begins)

    @overload
    def __getitem__(self, index: int) -> Event: ...

    @overload
    def __getitem__(self, index: slice) -> list[Event]: ...

    def __getitem__(self, index: int | slice) -> Event | list[Event]:
        if isinstance(index, slice):
            return [self._at(i) for i in range(len(self))[index]]
        return self._at(range(len(self))[index])

    def __iter__(self) -> Iterator[Event]:
        return map(self._at, range(len(self)))

    def _at(self, index: int) -> Event:
        if index in self._added:
            return self._added[index]
        return self._read(self._data[self._begins[index] : self._ends[index]])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Events({list(self)!r})"


def kinds_of(events: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the word ``event`` of each."""
    if isinstance(events, Events):
        return events.kinds
    return [str(event.get("event")) for event in events]
