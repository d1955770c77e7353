"""Follow the directory of a run that another process writes to."""

from __future__ import annotations

import dataclasses
import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from pathlib import Path

import numpy as np

from gp_active_sensing.errors import ActiveSensingError, RunError
from gp_active_sensing.records.event_lines import parse_event
from gp_active_sensing.records.events import JournalGap, MapChanged
from gp_active_sensing.records.journal import unseal
from gp_active_sensing.records.run_directory import (
    CONFIG,
    JOURNAL,
    RECORDS,
    SUMMARY,
    TRUTH,
    RunDirectory,
)
from gp_active_sensing.report.facts import RunTotals
from gp_active_sensing.report.reconstruction import GrowingReconstruction
from gp_active_sensing.report.source import RunData, load_run, truth_of
from gp_active_sensing.report.track import GrowingTracks
from gp_active_sensing.util.files import LOCK, cannot, is_unlocked, json_object, open_file
from gp_active_sensing.web.mission_state import MissionState

BLOCK = 1 << 16
"""Largest number of bytes per read operation."""
MOST_OF_LINE = 1 << 26
"""Largest accepted length of a line [bytes]."""
ABANDONED_SECONDS = 60.0
"""Time without a write after which the run's lock is checked [s]."""

Stamp = tuple[int, int, int]
"""Identity and modification time of a file: device, inode, time [ns]."""


def stamp_of(path: Path) -> Stamp | None:
    """Return the stamp of a file; None if the file is missing."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns


class LineTail:
    """Reader of a growing file; each call of `read` returns the new complete lines."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._offset = 0
        self._rest = b""
        self._file: tuple[int, int] | None = None

    def read(self) -> tuple[bool, list[bytes]]:
        """Return whether the file was replaced, and the next lines without line ends.

        A file that has become shorter also counts as replaced.

        Raises:
            RunError: the file cannot be read, or a line is too long.
        """
        try:
            with open_file(self.path) as stream:
                there = os.fstat(stream.fileno())
                again = self._file not in (None, (there.st_dev, there.st_ino))
                again = again or there.st_size < self._offset
                if again:
                    self._offset, self._rest = 0, b""
                self._file = there.st_dev, there.st_ino
                stream.seek(self._offset)
                data = stream.read(BLOCK)
        except FileNotFoundError:
            again = self._file is not None
            self._offset, self._rest, self._file = 0, b"", None
            return again, []
        except OSError as error:
            raise cannot(self.path, "read", error) from error
        self._offset += len(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > MOST_OF_LINE:
            msg = (
                f"{self.path}: expected lines of at most {MOST_OF_LINE} bytes, got a longer one at "
                f"byte {self._offset - len(self._rest)}: this is no journal or record of a mission"
            )
            raise RunError(msg)
        return again, lines

    def blocks(self) -> Iterator[tuple[bool, list[bytes]]]:
        """Yield the results of `read` until no lines are left."""
        while True:
            before = self._offset
            again, lines = self.read()
            if lines or again:
                yield again, lines
            if self._offset == before and not again:
                return


@dataclasses.dataclass
class FollowedData:
    """Data of the mission that a `RunFollower` reads.

    Args:
        data: the run without events, except the first event.
        growing: steps of the main quantity so far.
        mission: state of the mission.
        lines: number of lines of the journal so far.
        damaged: number of unusable lines of the journal.
        tracks: tracks of the robots; None for a simulation.
        further: steps of each further quantity so far, by name.
        tally: totals of the events so far.
    """

    data: RunData
    growing: GrowingReconstruction
    mission: MissionState
    lines: int = 0
    damaged: int = 0
    tracks: GrowingTracks | None = None
    further: dict[str, GrowingReconstruction] = dataclasses.field(default_factory=dict)
    tally: RunTotals = dataclasses.field(default_factory=RunTotals)

    @property
    def all_growing(self) -> tuple[GrowingReconstruction, ...]:
        """Steps of each quantity, main quantity first."""
        return (self.growing, *self.further.values())

    def renew(self, data: RunData) -> None:
        """Use newer records, summary or truth of the same run."""
        self.data = self.growing.data = data
        for name, growing in self.further.items():
            growing.data = data.for_quantity(name)


class RunFollower:
    """Incremental reader of a run directory that another process writes to.

    The run is read again from its beginning if the mission is replaced, the journal is repaired, or
    the map grows. Each time, `number` increases. After the map has grown, `found` stays the same
    until the run has been read again.

    Args:
        path: the directory, which may not exist yet; None = `to` sets the directory later.
    """

    def __init__(self, path: Path | None, clock: Callable[[], float] = time.monotonic) -> None:
        self.path = path
        self._wanted: tuple[Path | None, str] = path, ""
        self.found: FollowedData | None = None
        """Followed mission; None = no mission is followed."""
        self.problem = ""
        """Reason why no mission is followed; "" = a mission is followed."""
        self.number = 0
        """Number of times that `found` has been set to a mission."""
        self.abandoned_ns: int | None = None
        """Time of the last write [ns] if no process writes the unfinished run any more."""
        self._reading: FollowedData | None = None
        """Mission that is being read: `found`, or the mission that will replace `found`."""
        self._goal = 0
        """Number of journal lines after which the mission in `_reading` is put into `found`."""
        self._clock = clock
        self._config: Stamp | None = None
        self._outgrown = False
        """True if the map has grown and the run must be read again."""
        self._summary: Stamp | None = None
        self._truth: Stamp | None = None
        self._journal = self._records = LineTail(Path())
        self._lines: deque[bytes] = deque()
        """Lines of the journal that were read but not applied yet."""

    @property
    def loading(self) -> bool:
        """True while the journal of a run that has ended is being read."""
        return bool(self._lines and self.found and self.found.data.summary)

    def to(self, path: Path | None, problem: str = "") -> None:
        """Follow another directory from the next `advance` on.

        If `path` is None, no directory is followed, and `problem` is the reason.
        """
        self._wanted = path, problem

    def _move(self) -> bool:
        """Switch to the requested directory; return whether the page changes."""
        path, problem = self._wanted
        if path is None:
            changed = self.problem != problem or self.found is not None
            self._forget()
            self.path, self.problem = None, problem
            return changed
        if path != self.path:
            self._forget()
            self.path = path
        return False

    def _forget(self, goal: int = 0) -> None:
        """Follow no mission; the next mission is put into `found` after `goal` journal lines."""
        self.found = self._reading = self._config = None
        self._goal = goal

    def advance(self, seconds: float) -> bool:
        """Read new data for at most about `seconds`; return whether the page changes."""
        changed = self._move()
        if self.path is None:
            return changed
        before = self.problem
        try:
            changed = self._advance(self.path, self._clock() + seconds)
        except ActiveSensingError as error:
            self._forget(0 if self._reading is None else self._reading.lines)
            self.problem = str(error)
            return self.problem != before
        self.problem = "" if self.found is not None else self.problem
        return self._check_writer(self.path) or changed or self.problem != before

    def _check_writer(self, path: Path) -> bool:
        """Update `abandoned_ns`; return whether it changed."""
        before, self.abandoned_ns, found = self.abandoned_ns, None, self.found
        if found is not None and not (found.mission.over or found.data.summary):
            stamps = (stamp_of(path / name) for name in (JOURNAL, LOCK))
            newest = max((stamp[2] for stamp in stamps if stamp), default=0)
            age = datetime.now(timezone.utc).timestamp() - 1e-9 * newest
            # The lock is tested once per write, so that a new writer is not disturbed.
            if newest == before or (age > ABANDONED_SECONDS and is_unlocked(path)):
                self.abandoned_ns = newest
        return self.abandoned_ns != before

    def _advance(self, path: Path, until: float) -> bool:
        config = stamp_of(path / CONFIG)
        if config is None:
            changed = self.found is not None
            self._forget()
            lacks = f"has no {CONFIG}" if path.is_dir() else "does not exist"
            self.problem = f"waiting for a mission: {path} {lacks} yet"
            return changed
        reading, changed = self._reading, False
        if reading is None or config != self._config or self._outgrown:
            if reading is not None:
                self._goal = reading.lines if self._outgrown else 0
            reading = self._begin(path, config)
            changed = reading is self.found
        records = self._apply_records(reading)
        changed = self._apply_events(reading, until) or changed or records
        changed = self._apply_summary() or changed
        return changed and self._reading is self.found

    def _begin(self, path: Path, config: Stamp | None) -> FollowedData:
        data = load_run(path, follow=True)
        self._config, self._outgrown = config, False
        self._journal, self._records = LineTail(path / JOURNAL), LineTail(path / RECORDS)
        self._lines.clear()
        self._summary = None
        self._truth = stamp_of(path / TRUTH)
        reading = FollowedData(
            data, GrowingReconstruction(data), MissionState.of_config(data.config)
        )
        for name in data.quantities[1:]:
            reading.further[name] = GrowingReconstruction(data.for_quantity(name))
        self._reading = reading
        self._find(reading)
        return reading

    def _find(self, reading: FollowedData, *, whole: bool = False) -> bool:
        """Put `reading` into `found` if `_goal` lines or the `whole` journal were read.

        Return True if `found` was changed.
        """
        if reading is self.found or not (whole or reading.lines >= self._goal):
            return False
        self.found, self._goal = reading, 0
        self.number += 1
        return True

    def _apply_events(self, reading: FollowedData, until: float) -> bool:
        """Apply journal events until a monotonic time [s]; return whether the page may change."""
        changed = False
        while self._clock() < until or not changed:
            if not self._lines:
                again, lines = self._journal.read()
                if again:  # the next call reads the file from its beginning
                    self._goal = 0
                    self._begin(reading.data.path, self._config)
                    return True
                if not lines:
                    changed = self._find(reading, whole=True) or changed
                    break
                self._lines.extend(lines)
            self._apply_line(reading, self._lines.popleft())
            if self._outgrown:  # later events need the larger map
                return True
            self._find(reading)
            changed = True
        return changed

    def _apply_line(self, found: FollowedData, line: bytes) -> None:
        found.lines += 1
        unsealed = unseal(line)
        if unsealed is None:
            found.damaged += 1
            return
        item, _ = unsealed
        if item.get("event") == "start":
            found.data = dataclasses.replace(found.data, events=(item,))
            if item.get("driver") != "sim":
                extent = float(np.ptp(found.data.topology.positions, axis=0).max())
                found.tracks = GrowingTracks(extent)
        try:
            event = parse_event(item)
        except RunError:
            found.damaged += 1
            return
        if isinstance(event, JournalGap):
            found.damaged += event.failures
        if isinstance(event, MapChanged) and event.places > found.data.topology.n:
            if found is not self.found:  # the newest stored map was loaded
                msg = (
                    f"{found.data.path}: the journal says that map {event.number} has "
                    f"{event.places} places, and the newest that is kept has "
                    f"{found.data.topology.n}; put the missing files map-{event.number}.yaml and "
                    f"map-{event.number}.pgm there"
                )
                raise RunError(msg)
            self._outgrown = True
        found.tally.add(event)
        if found.tracks is not None:
            found.tracks.add(event)
        found.mission.apply(event)
        for growing in found.all_growing:
            growing.add([event])

    def _apply_records(self, found: FollowedData) -> bool:
        changed, records = False, list(found.data.records)
        for again, lines in self._records.blocks():
            new = [item for line in lines if (item := json_object(line)) is not None]
            if again:
                records.clear()
            records += new
            for growing in found.all_growing:
                growing.records(new, again=again)
            changed = True
        if changed:
            found.data = dataclasses.replace(found.data, records=tuple(records))
            self._reload_truth(found)
            found.renew(found.data)
        return changed

    def _reload_truth(self, found: FollowedData) -> None:
        path = found.data.path
        stamp = stamp_of(path / TRUTH)
        if stamp == self._truth:
            return
        self._truth = stamp
        truth, _ = truth_of(RunDirectory.open(path), found.data.topology)
        found.data = dataclasses.replace(found.data, truth=truth)

    def _apply_summary(self) -> bool:
        found = self._reading
        assert found is not None  # its configuration was read
        stamp = stamp_of(found.data.path / SUMMARY)
        if stamp == self._summary:
            return False
        self._summary = stamp
        summary = RunDirectory.open(found.data.path).summary()
        found.renew(dataclasses.replace(found.data, summary=summary))
        return True
