"""What a reader asks first of a mission: when, how long, with which sensor, what was refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

from gp_active_sensing.records.events import Event, ReadingGated, ReadingUsed
from gp_active_sensing.report.source import RunData

__all__ = ["Fact", "facts_of", "gated_of", "headline"]

Fact = tuple[str, str]
"""What it is, and what it says."""

_CALENDAR = 1_000_000_000 * 10**9
"""Stamps from here on are times of the calendar (after 2001), not of a simulation [ns]."""


def facts_of(data: RunData, events: Sequence[Event]) -> list[Fact]:
    """Return what is known of a run besides its map, in the order in which it is asked."""
    return [fact for fact in _facts(data, events) if fact[1]]


def headline(data: RunData, events: Sequence[Event]) -> str:
    """Return date, duration and sensor as one sentence, "" where nothing of it is known."""
    known = dict(facts_of(data, events))
    return " · ".join(known[key] for key in ("date", "duration", "sensor") if key in known)


def gated_of(events: Sequence[Event]) -> list[ReadingGated]:
    """Return the readings that were set aside and not taken back."""
    back = {
        (event.probe, event.reading.stamp_ns)
        for event in events
        if isinstance(event, ReadingUsed) and event.taken_back
    }
    gated = (event for event in events if isinstance(event, ReadingGated))
    return [event for event in gated if (event.probe, event.reading.stamp_ns) not in back]


def _facts(data: RunData, events: Sequence[Event]) -> Iterator[Fact]:
    times = [event.time_ns for event in events if event.time_ns > 0]
    if times:
        first, last = min(times), max(times)
        yield "date", _date(first, last) if first >= _CALENDAR else ""
        yield "duration", _duration(1e-9 * (last - (first if first >= _CALENDAR else 0)))
    yield "sensor", _sensor(data.config)
    yield "poses", _topic(data.config.get("pose"))
    topology = data.topology
    yield "map", f"{topology.name}, {topology.n} places, frame {topology.frame}"
    if topology.datum is not None:
        longitude, latitude = topology.datum
        yield "datum", f"latitude {latitude:.6f}, longitude {longitude:.6f}"
    used = sum(event.count for event in events if isinstance(event, ReadingUsed))
    yield "readings used", str(used)
    yield "readings set aside", _gated(gated_of(events))
    rejected = data.summary.get("rejected_by_reason")
    if isinstance(rejected, Mapping):
        yield "messages not used", ", ".join(f"{word} {n}" for word, n in rejected.items())
    if aside := data.summary.get("set_aside"):
        yield "places set aside", ", ".join(map(str, aside))


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
    """Return type, field and topic of a robot's readings, or what a simulation says."""
    reading = config.get("reading")
    if isinstance(reading, Mapping):
        return _topic(reading)
    sensor = config.get("sensor")
    if isinstance(sensor, Mapping) and sensor.get("noise_std") is not None:
        unit = (config.get("field") or {}).get("unit", "")
        return f"simulated, noise {sensor['noise_std']:g} {unit}".rstrip()
    return ""


def _topic(section: Any) -> str:
    """Return where a stream of messages comes from."""
    if not isinstance(section, Mapping) or not section.get("topic"):
        return ""
    field = f", field {section['field']}" if section.get("field") else ""
    kind = f" ({section['type']}{field})" if section.get("type") else ""
    return f"{section['topic']}{kind}"


def _gated(gated: Sequence[ReadingGated]) -> str:
    """Return how many readings were set aside, and the wildest of them."""
    if not gated:
        return ""
    wildest = max(gated, key=lambda event: event.off or 0.0)
    off = "" if wildest.off is None else f", {wildest.off:.1f} standard deviations off"
    return f"{len(gated)}; the wildest was {wildest.reading.value:.4g}{off}"
