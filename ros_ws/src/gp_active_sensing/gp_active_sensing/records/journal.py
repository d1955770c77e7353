"""Read, check and repair a journal, whose lines have a number and a checksum.

An example is ``{"event": "moved", …, "n": 17, "crc": "5d41402a"}``. The number `n` counts from 1.
The checksum `crc` is the CRC-32 of the line without `crc`. Both reveal changed, missing and
repeated lines.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import logging
import math
import re
import sys
import zlib
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, overload

from gp_active_sensing.errors import RunError
from gp_active_sensing.records.event_lines import to_line
from gp_active_sensing.records.events import JournalGap
from gp_active_sensing.util.files import (
    cannot,
    cut_off,
    keep_beside,
    read_whole,
    refuse_link,
    write_whole,
)

logger = logging.getLogger(__name__)

Event = dict[str, Any]


class Events(Sequence[Event]):
    """Events in the text of a journal, parsed on demand to save memory."""

    def __init__(self, data: bytes = b"") -> None:
        self.kinds: list[str] = []
        self._data = data
        self._begins, self._ends = array("q"), array("q")
        self._added: dict[int, Event] = {}

    def add_line(self, begin: int, end: int, kind: str) -> None:
        """Add the event of the intact line from byte `begin` to byte `end` of the text."""
        self._begins.append(begin)
        self._ends.append(end)
        self.kinds.append(kind)

    def add(self, event: Event) -> None:
        """Add an event that is not in the text."""
        self._added[len(self)] = event
        self.add_line(0, 0, str(event.get("event")))

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
        found = unseal(self._data[self._begins[index] : self._ends[index]])
        return {} if found is None else found[0]  # None = nested too deeply for the present stack

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Events({list(self)!r})"


def kinds_of(events: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the kind of each event."""
    if isinstance(events, Events):
        return events.kinds
    return [str(event.get("event")) for event in events]


_SEAL = len(b', "crc": "01234567"}')
_HUGE = re.compile(rb"[eE]\+?\d{3}|\d{200}")
"""Pattern of lines that may have a number beyond the range of floats, such as 1e999."""


@dataclass
class JournalContents:
    """Contents of a journal.

    Args:
        events: events in order, with an event ``gap`` for missing lines.
        number: number of the last event.
        damage: a sentence on each damaged, missing or repeated part.
        lines: lines of a sound journal with the same events, if requested.
        sound: length before the first damage or the half-written end [bytes].
        rest: bytes after the last whole line.
    """

    events: Events = field(default_factory=Events)
    number: int = 0
    damage: list[str] = field(default_factory=list)
    lines: list[bytes] = field(default_factory=list)
    sound: int = 0
    rest: bytes = b""


def seal(item: Mapping[str, Any], number: int) -> bytes:
    """Return a line of a journal. Raises ValueError for a number that is not finite."""
    body = json.dumps({**item, "n": number}, allow_nan=False).encode("utf-8")
    return b'%s, "crc": "%08x"}\n' % (body[:-1], zlib.crc32(body))


def unseal(line: bytes) -> tuple[dict[str, Any], int] | None:
    """Return the event and the number in a line; None = damaged. `line` has no newline."""
    body = line[:-_SEAL] + b"}"
    if line[-_SEAL:-10] != b', "crc": "' or line[-10:] != b'%08x"}' % zlib.crc32(body):
        return None
    line = body
    try:
        decoder = _STRICT if _HUGE.search(line) else _DECODER
        item = decoder.decode(line.decode("utf-8"))
    except (ValueError, RecursionError):
        return None
    if not isinstance(item, dict):
        return None
    number = item.pop("n", None)
    return (item, number) if isinstance(number, int) and number > 0 else None


def _finite(word: str) -> float:
    """Return a number. Raises ValueError for NaN, Infinity and 1e999, which are damage."""
    number = float(word)
    if not math.isfinite(number):
        msg = f"expected a finite number, got {word}"
        raise ValueError(msg)
    return number


_DECODER = json.JSONDecoder(parse_constant=_finite)
_STRICT = json.JSONDecoder(parse_constant=_finite, parse_float=_finite)


def read_journal(path: Path, *, lines: bool = False) -> JournalContents:
    """Return the contents of a journal, including its `lines` if requested.

    A missing file counts as an empty journal.

    Raises:
        RunError: the journal cannot be read, or two processes wrote to it.
    """
    try:
        data = read_whole(path)
    except FileNotFoundError:
        data = b""
    except OSError as error:
        raise cannot(path, "read", error) from error
    found = JournalContents(Events(data))
    for line in _walk(path, data, found):
        if lines:
            found.lines.append(line)
    return found


def repair_journal(path: Path, *, until_damage: bool = False) -> JournalContents:
    """Remove damaged lines and a half-written end from a journal; return the new contents.

    A damaged journal, or an end with zeros, is first copied to another file.

    Args:
        path: path of the journal; no other process writes to it.
        until_damage: also remove all lines after the first damage. Otherwise an event ``gap``
            replaces damaged lines.

    Raises:
        RunError: the journal cannot be read or written, or two processes wrote to it.
    """
    refuse_link(path)
    found = read_journal(path)
    if found.damage:
        kept = keep_beside(path, "damaged")
        what = "; ".join(found.damage[:5]) + (" …" if len(found.damage) > 5 else "")
        logger.error("%s is damaged: %s. The damaged file is kept in %s", path, what, kept)
        if not until_damage:
            write_whole(path, b"".join(read_journal(path, lines=True).lines))
            return dataclasses.replace(found, damage=[], rest=b"")
    if found.damage or found.rest:
        cut_off(path, len(found.rest), found.sound if until_damage else None)
    return read_journal(path) if found.damage else dataclasses.replace(found, rest=b"")


def _walk(path: Path, data: bytes, found: JournalContents) -> Iterator[bytes]:
    """Yield the intact lines of a journal; set the other fields of `found`."""
    damaged: list[int] = []
    lost, position = 0, 0
    if data.startswith(b"{") and b"crc" not in (first := data.partition(b"\n")[0]):
        if first.endswith(b"}") and b'"n": ' not in first:
            msg = (
                f"{path}: its lines have no checksums, so this version did not write it; begin in "
                "another directory"
            )
            raise RunError(msg)
    for at in itertools.count(1):
        end = data.find(b"\n", position)
        if end < 0:
            break
        line = data[position:end]
        got = unseal(line)
        if got is None:
            damaged.append(at)
            lost += max(1, line.count(b'"event": '))  # two, if the newline between them is damaged
        elif got[1] <= found.number:
            if _first_of(data, got[1]) != line:
                msg = (
                    f"{path}, line {at}: expected event {found.number + 1}, got another event "
                    f"{got[1]}: two processes wrote to this journal; begin in another directory"
                )
                raise RunError(msg)
            found.damage.append(f"line {at} is there twice")
        else:
            item, number = got
            yield from _gap(found, damaged, number - 1)
            damaged, lost = [], 0
            found.number = number
            found.events.add_line(position, end, sys.intern(str(item.get("event"))))
            yield line + b"\n"
        position = end + 1
        if not damaged and not found.damage:
            found.sound = position
    found.rest = data[position:]
    if damaged:
        yield from _gap(found, damaged, found.number + lost)


def _gap(found: JournalContents, damaged: list[int], before: int) -> Iterator[bytes]:
    """Add an event ``gap`` for the events missing up to number `before`; yield its line."""
    missing = before - found.number
    if damaged:
        where = f"line {damaged[0]}" if len(damaged) == 1 else f"lines {damaged[0]}-{damaged[-1]}"
        found.damage.append(f"{where} cannot be read ({missing} events are missing)")
    elif missing:
        found.damage.append(f"{missing} events are missing before event {before + 1}")
    if missing:
        event = to_line(JournalGap(failures=missing, damaged=True))
        found.events.add(event)
        found.number = before
        yield seal(event, before)


def _first_of(data: bytes, number: int) -> bytes:
    mark = data.find(b', "n": %d, "crc": "' % number)
    if mark < 0:
        return b""
    return data[data.rfind(b"\n", 0, mark) + 1 : data.find(b"\n", mark)]
