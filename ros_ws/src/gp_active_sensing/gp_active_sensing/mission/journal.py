"""Durable journal of a mission: each event is written before it takes effect.

A line is handed to the operating system before `append` returns: a process that is killed at any
instant loses nothing. A thread then asks for the disk, all lines since the last time together, at
least every `period` seconds: a power cut can lose the lines of that time, and of the time that the
disk needs. A last line that was cut short is removed when the mission goes on. The thread also
looks every second whether the files are still where they were, see `RunDirectory.check`.
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
"""Longest time until what was written is asked to be on disk [s]."""

LOOK_SECONDS = 1.0
"""Longest time until it is noticed that somebody removed or renamed the files [s]."""


class Journal:
    """Appends events to the journal of a run directory; may be used from several threads."""

    def __init__(self, run: RunDirectory, period: float = SYNC_SECONDS) -> None:
        self.synced = 0
        """How often the disk was asked."""
        self._run = run
        self._period = period
        self._lock = threading.Lock()
        self._dirty = threading.Event()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._keep_synced, name="journal", daemon=True)
        self._thread.start()

    def append(self, event: Mapping[str, Any]) -> None:
        """Add an event; it is with the operating system afterwards. Raises RunError."""
        with self._lock:
            self._run.append_event(event)
        self._dirty.set()

    def sync(self) -> None:
        """Flush all appended events to disk. Raises RunError."""
        self._dirty.clear()
        self._run.sync()
        self.synced += 1

    def close(self) -> None:
        """Flush everything to disk and stop. Raises RunError when that fails."""
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
                if not failed:  # once; appending will say so as well when the disk is gone
                    logger.error("%s; what follows may be lost", error)
                failed = True
