"""Tell the readings of a journal to a belief again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from gp_active_sensing.belief import Belief
from gp_active_sensing.errors import ReadingError
from gp_active_sensing.records.events import average_of, reading_of
from gp_active_sensing.topology import Topology
from gp_active_sensing.types import Reading

__all__ = ["JournalTeller", "Read"]


class Read(NamedTuple):
    """A reading of the journal.

    Args:
        reading: as it came.
        average: what the belief holds of its stay from then on; None = the reading as it came.
        number: of how many readings the average is.
        probe: of which it is.
    """

    reading: Reading
    average: Reading | None = None
    number: int = 1
    probe: str = ""

    @classmethod
    def of(cls, event: Mapping[str, Any]) -> Read:
        """Return that of an event.

        Raises:
            RunError: the event cannot be used.
        """
        reading = reading_of(event)
        average, number = average_of(event, reading) or (None, 1)
        return cls(reading, average, number, str(event.get("probe", "")))


class JournalTeller:
    """Tells a belief readings in their order.

    Args:
        belief: is changed.
        topology: the map.
    """

    def __init__(self, belief: Belief, topology: Topology) -> None:
        self._belief, self._topology = belief, topology
        self._stays: dict[tuple[str, int], tuple[Reading, int]] = {}
        """By probe and place: what the belief holds of the last stay, of how many readings."""

    def tell(
        self, readings: Sequence[Read], *, expert: bool = False
    ) -> Iterator[tuple[int, float]]:
        """Take in readings; yield (place, value) of those that could be used."""
        for read in readings:
            reading, place = read.reading, read.reading.location
            if place is None and reading.position is not None:
                place = self._topology.snap(*reading.position, np.inf)
            if place is None:
                continue
            try:
                is_new = self._tell(read, place, expert=expert)
            except (ReadingError, IndexError):
                continue
            if is_new:
                self._belief.adapt()
            yield place, reading.value

    def _tell(self, read: Read, place: int, *, expert: bool) -> bool:
        """Tell the belief a reading; say whether its place is new."""
        belief, stay = self._belief, (read.probe, place)
        now = read.reading if read.average is None else read.average
        before, number = self._stays.get(stay, (now, read.number))
        seconds = 1e-9 * now.stamp_ns
        if read.number > number:  # otherwise it begins a stay, or what it goes on with is lost
            gone = before.value, before.noise_variance, 1e-9 * before.stamp_ns, before.off
            belief.amend(place, gone, now.value, now.noise_variance, seconds=seconds, off=now.off)
            self._stays[stay] = replace(now, stamp_ns=before.stamp_ns), read.number
            return False
        is_new = not expert and not belief.observed[place]
        belief.observe(
            place, now.value, now.noise_variance, seconds=seconds, expert=expert, off=now.off
        )
        if not expert:
            self._stays[stay] = now, read.number
        return is_new
