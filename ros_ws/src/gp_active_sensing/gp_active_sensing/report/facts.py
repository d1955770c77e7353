"""Time, duration, sensor and rejected readings of a run, for its page."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from gp_active_sensing.records.events import Event, LimitsMoved, ReadingGated, ReadingUsed
from gp_active_sensing.report.source import RunData, section_of
from gp_active_sensing.util.wording import in_words, moment, symbol

_CALENDAR = 1_000_000_000 * 10**9
"""Smallest stamp of a calendar time [ns]; stamps of simulations are smaller."""


@dataclass
class RunTotals:
    """Totals of the events of a run.

    Args:
        first_ns, last_ns: earliest and latest time of an event [ns]; 0 = not known.
        used: number of used readings.
        moved: number of times that limits on the field closed or opened a place; keys "closed" and
            "opened".
    """

    first_ns: int = 0
    last_ns: int = 0
    used: int = 0
    moved: Counter[str] = field(default_factory=Counter)
    _gated: dict[tuple[str, int], list[ReadingGated]] = field(default_factory=dict)
    """Outliers that were set aside and not used later, by probe and stamp."""

    @classmethod
    def of(cls, events: Iterable[Event]) -> RunTotals:
        """Return the totals of events, which must be in journal order."""
        found = cls()
        for event in events:
            found.add(event)
        return found

    def add(self, event: Event) -> None:
        """Add an event."""
        if (time_ns := event.time_ns) > 0:
            self.first_ns = min(self.first_ns or time_ns, time_ns)
            self.last_ns = max(self.last_ns, time_ns)
        if isinstance(event, ReadingUsed):
            self.used += event.count
            if event.taken_back:
                self._gated.pop((event.probe, event.reading.stamp_ns), None)
        elif isinstance(event, LimitsMoved):
            self.moved.update(closed=len(event.closed), opened=len(event.opened))
        elif isinstance(event, ReadingGated):
            self._gated.setdefault((event.probe, event.reading.stamp_ns), []).append(event)

    @property
    def set_aside(self) -> int:
        """Number of readings that were set aside as outliers and not used later."""
        return sum(map(len, self._gated.values()))

    def outliers(self, most: int) -> list[ReadingGated]:
        """Return up to `most` outliers that were set aside and not used later, largest first."""
        gated = (event for events in self._gated.values() for event in events)
        return heapq.nsmallest(most, gated, key=lambda event: -(event.off or 0.0))


def facts_of(data: RunData, tally: RunTotals) -> list[tuple[str, str]]:
    """Return the label and the value of each known fact, in the order of the page."""
    return [fact for fact in _facts(data, tally) if fact[1]]


def headline(data: RunData, tally: RunTotals) -> str:
    """Return date, duration and sensor in one line; "" if all are unknown."""
    known = dict(facts_of(data, tally))
    return " · ".join(known[key] for key in ("date", "duration", "sensor") if key in known)


def _facts(data: RunData, tally: RunTotals) -> Iterator[tuple[str, str]]:
    if first := tally.first_ns:
        calendar = first >= _CALENDAR
        yield "date", _date(first, tally.last_ns) if calendar else ""
        yield "duration", _duration(1e-9 * (tally.last_ns - (first if calendar else 0)))
    yield "sensor", _sensor(data.config)
    yield "poses", _topic(section_of(data.config, "pose"))
    topology = data.topology
    yield "map", f"{topology.name}, {topology.n} places, frame {topology.frame}"
    if topology.datum is not None:
        longitude, latitude = topology.datum
        yield "datum", f"latitude {latitude:.6f}, longitude {longitude:.6f}"
    yield "readings used", str(tally.used)
    yield "readings set aside", _gated(tally)
    yield "messages not used", in_words(section_of(data.summary, "rejected_by_reason"))
    yield "sorties", str(data.summary.get("sorties") or "")
    if aside := data.summary.get("set_aside"):
        yield "places set aside", ", ".join(map(str, aside))
    yield "limits", _limits(data, tally)
    yield "software", ", ".join(f"{name} {version}" for name, version in data.versions.items())


def time_of(stamp_ns: int) -> str:
    """Return a stamp [ns] as date and time in UTC, or a simulation's stamp in seconds."""
    if stamp_ns < _CALENDAR:
        return moment(stamp_ns)
    seconds, rest = divmod(stamp_ns, 10**9)
    when = datetime.fromtimestamp(seconds, timezone.utc)
    return f"{when:%Y-%m-%d %H:%M:%S}.{rest // 10**8} UTC"


def _date(first_ns: int, last_ns: int) -> str:
    first, last = (
        datetime.fromtimestamp(stamp // 10**9, timezone.utc) for stamp in (first_ns, last_ns)
    )
    end = f"{last:%H:%M}" if first.date() == last.date() else f"{last:%Y-%m-%d %H:%M}"
    return f"{first:%Y-%m-%d %H:%M} to {end} UTC"


def _duration(seconds: float) -> str:
    if seconds < 60.0:
        return f"{seconds:.0f} s"
    hours, minutes = divmod(round(seconds / 60.0), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


def _sensor(config: Mapping[str, Any]) -> str:
    if reading := section_of(config, "reading"):
        return _topic(reading)
    noise_std = section_of(config, "sensor").get("noise_std")
    if noise_std is None:
        return ""
    unit = symbol(str(section_of(config, "field").get("unit", "")))
    return f"simulated, noise {noise_std:g} {unit}".rstrip()


def _topic(section: Mapping[str, Any]) -> str:
    if not section.get("topic"):
        return ""
    field = f", field {section['field']}" if section.get("field") else ""
    kind = f" ({section['type']}{field})" if section.get("type") else ""
    return f"{section['topic']}{kind}"


def _limits(data: RunData, tally: RunTotals) -> str:
    if not tally.moved:
        return ""
    closed, opened = tally.moved["closed"], tally.moved["opened"]
    left = f"{data.topology.n - closed + opened} of {data.topology.n} places open"
    found = f"{left}; closed {closed} times, opened {opened} times"
    beyond = section_of(data.summary, "limits").get("read_beyond")
    return found if beyond is None else f"{found}; {beyond} places read beyond the limits"


def _gated(tally: RunTotals) -> str:
    if not tally.set_aside:
        return ""
    [farthest] = tally.outliers(1)
    off = "" if farthest.off is None else f", {farthest.off:.1f} standard deviations off"
    return f"{tally.set_aside}; the farthest off was {farthest.reading.value:.4g}{off}"
