"""Estimate the delay of a sensor from the journal of a mission."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gp_active_sensing.mission.ingestion.delay_estimate import CANDIDATES, DelayMonitor
from gp_active_sensing.records.event_lines import parse_events
from gp_active_sensing.records.events import Event, ReadingGated, ReadingUsed, StatusNoted
from gp_active_sensing.records.run_directory import RunDirectory

__all__ = ["Delays", "delays_in", "watches_of"]

GAP = 2.5
"""Longest time between two known positions, in between which the probe drove straight on [s]."""


@dataclass(frozen=True)
class Delays:
    """What the journal of a run says about the delay.

    Args:
        watches: of each probe that has readings with a position; the name of an only one is "".
        delay: `reading.delay` of the run [s], which is taken off the stamps in the journal.
        averages: readings that are an average of several.
    """

    watches: Mapping[str, DelayMonitor]
    delay: float
    averages: int

    @property
    def left_out(self) -> str:
        """What is to be said of readings that tell nothing; "" = nothing."""
        if self.averages:
            return (
                f"{self.averages} readings are averages (reading.window), in which no delay can be "
                "found: leave reading.window unset, or set 0"
            )
        if not self.watches:
            return (
                "the journal has no readings with a position: a delay is found in missions of a "
                "node, not in simulated runs"
            )
        return ""


def delays_in(run_dir: Path) -> Delays:
    """Return what the journal of a run says about the delay.

    Raises:
        RunError: there is no run, or its journal is damaged.
    """
    run = RunDirectory.open(run_dir)
    lines = run.journal()
    reading = run.config.get("reading")
    delay = float(reading.get("delay", 0.0)) if isinstance(reading, Mapping) else 0.0
    averages = sum(isinstance(e, ReadingUsed) and e.count > 1 for e in parse_events(lines))
    return Delays(watches_of(parse_events(lines)), delay, averages)


def watches_of(events: Iterable[Event]) -> dict[str, DelayMonitor]:
    """Return what readings and positions of a journal's events say about the delay, by probe.

    Positions are those of the readings, and where the probe was at each event of its status.
    """
    track: dict[str, dict[int, tuple[float, float]]] = defaultdict(dict)
    readings: dict[str, list[tuple[int, float]]] = defaultdict(list)
    for event in events:
        if isinstance(event, ReadingUsed | ReadingGated) and event.reading.position is not None:
            reading = event.reading
            x, y = event.reading.position[:2]
            track[event.probe][reading.stamp_ns] = x, y
            if isinstance(event, ReadingGated) or (event.count == 1 and not event.taken_back):
                readings[event.probe].append((reading.stamp_ns, reading.value))
        elif isinstance(event, StatusNoted):
            for name, (where, _) in event.probes.items():
                if where.pose is not None:
                    stamp_ns, x, y = where.pose
                    track[name][stamp_ns] = x, y
    return {name: _watched(track[name], found) for name, found in readings.items()}


def _watched(
    track: Mapping[int, tuple[float, float]], readings: Sequence[tuple[int, float]]
) -> DelayMonitor:
    stamps = np.array(sorted(track), dtype=np.int64)
    positions = np.array([track[stamp] for stamp in stamps.tolist()])

    def position_at(stamp_ns: int) -> tuple[float, float] | None:
        after = int(np.searchsorted(stamps, stamp_ns))
        if after < len(stamps) and stamps[after] == stamp_ns:
            x, y = positions[after].tolist()
            return x, y
        if not 0 < after < len(stamps) or stamps[after] - stamps[after - 1] > 1e9 * GAP:
            return None
        part = (stamp_ns - stamps[after - 1]) / (stamps[after] - stamps[after - 1])
        x, y = (positions[after - 1] + part * (positions[after] - positions[after - 1])).tolist()
        return x, y

    watch = DelayMonitor(position_at)
    for stamp_ns, value in sorted(set(readings)):
        watch.read(stamp_ns, value)
        watch.moved(stamp_ns)
        while watch.busy:
            watch.work()
    if len(stamps):
        watch.moved(int(stamps[-1]) - round(1e9 * CANDIDATES[0]))
    while watch.busy:
        watch.work()
    return watch
