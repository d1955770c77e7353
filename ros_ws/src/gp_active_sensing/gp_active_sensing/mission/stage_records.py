"""Records of the stages of a mission: complete on disk, a few figures in memory."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Collection
from functools import partial
from typing import Any

from gp_active_sensing.records.run_directory import RunDirectory

__all__ = ["StageRecords"]

FIGURES = (
    "stage", "plan_seconds", "expanded", "deadline_hit", "explained", "explained_places",
    "promised_error",
    "regret", "cumulative_regret", "regret_bound", "recommended",
)  # fmt: skip
"""What the summary of a mission is made of; the rest of a record (its candidates above all) would
let the memory of a long mission grow."""
MOST_UNWRITTEN = 2_000
"""Records kept for a disk that is full; of more the oldest are forgotten."""


class StageRecords:
    """Writes the record of each stage to ``records.jsonl`` and remembers its figures.

    Args:
        run: the directory, whose records of earlier processes count; None = nothing is written.
        guard: calls what it is given; says whether that succeeded.
    """

    def __init__(
        self, run: RunDirectory | None, guard: Callable[[Callable[[], None]], bool]
    ) -> None:
        self.newest: dict[str, Any] = {}
        """The whole record of the newest stage of this process; {} = none yet."""
        self.figures: list[dict[str, Any]] = []
        """Of every stage, oldest first: those of `FIGURES` that its record has."""
        self.lost = 0
        """Records for which there was no room for so long that they were forgotten."""
        self._run = run
        self._guard = guard
        self._lock = threading.RLock()
        self._unwritten: deque[dict[str, Any]] = deque()
        if run is not None:
            self.figures = run.records(_figures)

    @property
    def stages(self) -> set[int]:
        """Numbers of the stages that have a record."""
        return {int(record["stage"]) for record in self.figures}

    @property
    def unwritten(self) -> int:
        """Records that could not be written yet."""
        return len(self._unwritten)

    def add(self, record: dict[str, Any]) -> None:
        """Add a record; one that cannot be written now is with the next one, or by `catch_up`."""
        with self._lock:
            self.newest = record
            self.figures.append(_figures(record))
            if self._run is not None:
                self._unwritten.append(record)
            self.catch_up()
            while len(self._unwritten) > MOST_UNWRITTEN:
                self._unwritten.popleft()
                self.lost += 1

    def catch_up(self) -> None:
        """Write the records that could not be written before, until one cannot be again."""
        with self._lock:
            while self._run is not None and self._unwritten:
                if not self._guard(partial(self._run.append_record, self._unwritten[0])):
                    return
                self._unwritten.popleft()

    def keep(self, stages: Collection[int]) -> None:
        """Drop the records of other stages: a power cut took their end from the journal."""
        if self._run is None or self.stages <= set(stages):
            return
        with self._lock:
            kept = [record for record in self._run.records() if int(record["stage"]) in stages]
            self._run.forget_records()
            self.figures = [_figures(record) for record in kept]
            self._unwritten.extend(kept)
            self.catch_up()


def _figures(record: dict[str, Any]) -> dict[str, Any]:
    return {key: record[key] for key in FIGURES if key in record}
