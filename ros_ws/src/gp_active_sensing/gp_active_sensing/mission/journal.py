"""Durable journal of a mission: each event is written before it takes effect.

`append` returns when the operating system has the line, so that a killed process loses nothing. A
thread flushes new lines to disk at least every `period` seconds. A power cut can lose the lines
since the last flush. A truncated last line is removed when the mission is resumed. The thread also
checks every second that the files exist, see `RunDirectory.check`.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from typing import Any

from gp_active_sensing.errors import ActiveSensingError
from gp_active_sensing.records.run_directory import RunDirectory

logger = logging.getLogger(__name__)

SYNC_SECONDS = 0.1
"""Longest time between an event and its flush to disk [s]."""

LOOK_SECONDS = 1.0
"""Interval between checks for removed or renamed files [s]."""


class Journal:
    """Writer of the journal of a run directory; may be used from several threads."""

    def __init__(self, run: RunDirectory, period: float = SYNC_SECONDS) -> None:
        self.synced = 0
        """Number of flushes to disk."""
        self._run = run
        self._period = period
        self._lock = threading.Lock()
        self._dirty = threading.Event()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._keep_synced, name="journal", daemon=True)
        self._thread.start()

    def append(self, event: Mapping[str, Any]) -> None:
        """Pass an event to the operating system for writing; raise RunError on a failure."""
        with self._lock:
            self._run.append_event(event)
        self._dirty.set()

    def sync(self) -> None:
        """Flush all appended events to disk; raise RunError on a failure."""
        self._dirty.clear()
        self._run.sync()
        self.synced += 1

    def close(self) -> None:
        """Flush all events to disk and stop the thread; raise RunError on a failure."""
        self._closing.set()
        self._dirty.set()
        self._thread.join(10.0)
        self.sync()

    def _keep_synced(self) -> None:
        failed = False
        while True:
            dirty = self._dirty.wait(LOOK_SECONDS)
            if self._closing.wait(self._period if dirty else 0.0):
                return
            try:
                if dirty:
                    self.sync()
                else:
                    self._run.check()
                failed = False
            except ActiveSensingError as error:
                if not failed:  # log only the first of several failures in a row
                    logger.error("%s; later events may be lost", error)
                failed = True
