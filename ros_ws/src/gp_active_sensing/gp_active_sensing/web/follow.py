"""Follow the directory of a run that another process writes; nothing is written there."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gp_active_sensing.errors import ActiveSensingError, RunError
from gp_active_sensing.records.event_lines import parse_event
from gp_active_sensing.records.events import JournalGap
from gp_active_sensing.records.journal import unseal
from gp_active_sensing.records.run_directory import (
    CONFIG,
    JOURNAL,
    RECORDS,
    SUMMARY,
    TRUTH,
    RunDirectory,
)
from gp_active_sensing.report.growing import GrowingReconstruction
from gp_active_sensing.report.source import RunData, load_run, truth_of
from gp_active_sensing.web.mission_state import MissionState
from gp_active_sensing.web.tail import LineTail, Stamp, stamp_of

__all__ = ["Followed", "RunFollower"]


@dataclasses.dataclass
class Followed:
    """A mission that is followed.

    Args:
        data: its configuration, map and truth; no events.
        growing: its steps so far.
        mission: its state.
        damaged: lines of the journal that could not be used.
        records: one a stage.
    """

    data: RunData
    growing: GrowingReconstruction
    mission: MissionState
    damaged: int = 0
    records: list[dict[str, Any]] = dataclasses.field(default_factory=list)


class RunFollower:
    """Takes in what is new in a run directory, step by step.

    Where the mission in it is replaced by another one, or its journal was mended, it is followed
    from the beginning again: `number` then grows.

    Args:
        path: the directory, which need not exist yet.
        clock: monotonic seconds.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self.path = path
        self.found: Followed | None = None
        """None while there is nothing to follow."""
        self.problem = ""
        """Why there is nothing to follow; "" = there is."""
        self.number = 0
        """How often following was begun."""
        self.changed_at: float | None = None
        """When the journal was last written to, by the calendar [s]."""
        self._clock = clock
        self._config: Stamp | None = None
        self._summary: Stamp | None = None
        self._truth: Stamp | None = None
        self._journal = LineTail(path / JOURNAL)
        self._records = LineTail(path / RECORDS)

    def go_on(self, seconds: float) -> bool:
        """Take in what is new, for about so long; say whether anything changed."""
        before = self.problem
        try:
            changed = self._go_on(self._clock() + seconds)
        except ActiveSensingError as error:
            self.found, self._config = None, None
            self.problem = str(error)
            return self.problem != before
        self.problem = "" if self.found is not None else self.problem
        return changed or self.problem != before

    def _go_on(self, until: float) -> bool:
        config = stamp_of(self.path / CONFIG)
        if config is None:
            changed = self.found is not None
            self.found, self._config = None, None
            self.problem = f"waiting for a mission: {self.path} has no {CONFIG} yet"
            return changed
        changed = False
        if config != self._config or self.found is None:
            self._begin(config)
            changed = True
        records = self._take_records()
        changed = self._take_events(until) or changed or records
        return self._take_summary() or changed

    def _begin(self, config: Stamp) -> None:
        data = load_run(self.path, follow=True)
        self._config = config
        self._journal, self._records = LineTail(self.path / JOURNAL), LineTail(self.path / RECORDS)
        self._summary = None
        self._truth = stamp_of(self.path / TRUTH)
        mission = MissionState.of_config(data.config)
        self.found = Followed(data, GrowingReconstruction(data), mission)
        self.number += 1

    def _take_events(self, until: float) -> bool:
        """Take in events until the time is over; say whether there were any."""
        changed = False
        for again, lines in self._journal.blocks():
            if again:
                self._begin(self._config or (0, 0, 0))
                self._take_records()
            found = self.found
            assert found is not None  # as long as there is a configuration
            for line in lines:
                self._take_line(found, line)
            changed = True
            if self._clock() > until:
                break
        if changed:
            stamp = stamp_of(self.path / JOURNAL)
            self.changed_at = None if stamp is None else 1e-9 * stamp[2]
        return changed

    def _take_line(self, found: Followed, line: bytes) -> None:
        unsealed = unseal(line)
        if unsealed is None:
            found.damaged += 1
            return
        item, _ = unsealed
        if item.get("event") == "start":
            found.data = dataclasses.replace(found.data, events=(item,))
        try:
            event = parse_event(item)
        except RunError:
            found.damaged += 1
            return
        if isinstance(event, JournalGap):
            found.damaged += event.failures
        found.mission.apply(event)
        found.growing.take([event])

    def _take_records(self) -> bool:
        changed = False
        found = self.found
        assert found is not None  # as long as there is a configuration
        for again, lines in self._records.blocks():
            new = [item for line in lines if (item := _object(line)) is not None]
            if again:
                found.records.clear()
            found.records += new
            found.growing.records(new, again=again)
            changed = True
        if changed:
            found.data = dataclasses.replace(found.data, records=tuple(found.records))
            self._take_truth(found)
            found.growing.data = found.data
        return changed

    def _take_truth(self, found: Followed) -> None:
        """Take in a truth that is written as the mission goes on (live traffic)."""
        stamp = stamp_of(self.path / TRUTH)
        if stamp == self._truth:
            return
        self._truth = stamp
        truth, _ = truth_of(RunDirectory.open(self.path), found.data.topology)
        found.data = dataclasses.replace(found.data, truth=truth)

    def _take_summary(self) -> bool:
        stamp = stamp_of(self.path / SUMMARY)
        if stamp == self._summary or self.found is None:
            return False
        self._summary = stamp
        summary = RunDirectory.open(self.path).summary()
        self.found.data = dataclasses.replace(self.found.data, summary=summary)
        self.found.growing.data = self.found.data
        return True


def _object(line: bytes) -> dict[str, Any] | None:
    """Return the object of a line; None where it is none."""
    try:
        item = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return item if isinstance(item, dict) else None
