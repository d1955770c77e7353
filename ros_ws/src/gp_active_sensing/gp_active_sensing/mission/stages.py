"""Stages of a probe: decision, cost, outcome and record of each, and the way to the end place."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial
from typing import Any

from gp_active_sensing.mission.requests import Stage
from gp_active_sensing.records.run_directory import RunDirectory
from gp_active_sensing.types import Cost, Plan, Reading


class StageLog:
    """Adds up a probe's decisions, drives and readings; used under the mission's lock.

    Time and distance count from the first decision on, also while the next plan is computed; what
    is driven while the mission is paused is free.
    """

    def __init__(self) -> None:
        self.number = 0
        """Number of the newest decision, among all of the mission."""
        self.plan: Plan | None = None
        """The decision being carried out."""
        self.home: Plan | None = None
        """The last plan, on the way to the end place."""
        self.driven = Cost(0.0, 0.0)
        self._values: dict[int, list[float]] = {}
        """Values read in the current stage, by place."""
        self._charged: tuple[int, float] | None = None
        self._unrecorded: list[Stage] = []

    @property
    def target(self) -> int | None:
        """The place being driven to."""
        plan = self.plan or self.home  # once: another thread may change it in between
        return None if plan is None else plan.path[-1]

    def begin(self, plan: Plan, number: int, now_ns: int, metres: float) -> None:
        """Carry out a decision."""
        self.number = number
        self.plan, self.home = plan, None
        self._values = {}
        if self._charged is None:
            self._charged = now_ns, metres

    def note(self, readings: Collection[Reading]) -> None:
        """Record readings that were used."""
        for reading in readings:
            if self.target is not None and reading.location is not None:
                self._values.setdefault(reading.location, []).append(reading.value)

    def complete(
        self,
        plan: Plan,
        now_ns: int,
        metres: float,
        *,
        probe: str = "",
        went: int | None = None,
        visits: int | None = None,
        cost: Cost | None = None,
    ) -> tuple[Stage, Cost]:
        """End the stage; return it, and its cost.

        `metres` were driven since the node began; for `went` and `visits` see `Stage`. The cost is
        what was charged before a restart; None = what was driven since the stage before ended.
        """
        values = self._values.get(plan.path[-1] if went is None else went, [])
        value = sum(values) / len(values) if values else None
        stage, cost = self.pass_by(plan, now_ns, metres, probe=probe, cost=cost)
        stage = replace(stage, value=value, went=went, visits=visits)
        self.settle(stage)
        return stage, cost

    def pass_by(
        self, plan: Plan, now_ns: int, metres: float, *, probe: str = "", cost: Cost | None = None
    ) -> tuple[Stage, Cost]:
        """End the stage before its reading has come; `settle` it then. See `complete`."""
        if cost is None:
            cost = self.charge(now_ns, metres)
        else:
            self.restore_charges(cost, now_ns, metres)
        self.plan = None
        return Stage(self.number, plan, None, self.driven, now_ns, probe=probe), cost

    def settle(self, stage: Stage) -> None:
        """Queue a stage for recording."""
        self._unrecorded.append(stage)

    def drop(self) -> None:
        """Drop the current decision."""
        self.plan = self.home = None

    def charge(self, now_ns: int, metres: float) -> Cost:
        """Return the cost since the last call, and add it to the total."""
        then_ns, then_metres = (now_ns, metres) if self._charged is None else self._charged
        self._charged = now_ns, metres
        # Metres that turn out to have been noise are taken back, see `Odometer`.
        cost = Cost(max(0.0, metres - then_metres), max(0.0, 1e-9 * (now_ns - then_ns)))
        self.driven = self.driven.plus(cost)
        return cost

    def restore_charges(self, cost: Cost, now_ns: int, metres: float) -> None:
        """Restore the charged cost from before a restart."""
        self._charged = now_ns, metres
        self.driven = self.driven.plus(cost)

    def skip(self, step_ns: int) -> None:
        """Ignore a jump of the clock [ns] in the charged time."""
        if self._charged is not None:
            then_ns, metres = self._charged
            self._charged = then_ns + step_ns, metres

    def owed(self, now_ns: int, metres: float) -> Cost:
        """Return the cost that is not charged yet."""
        then_ns, then_metres = (now_ns, metres) if self._charged is None else self._charged
        return Cost(max(0.0, metres - then_metres), max(0.0, 1e-9 * (now_ns - then_ns)))

    def skip_drive(self, now_ns: int, metres: float) -> None:
        """Ignore the distance and time since the last stage ended."""
        self._charged = None if self.target is None else (now_ns, metres)

    @property
    def unrecorded(self) -> list[Stage]:
        """Stages that nobody has claimed for recording."""
        return list(self._unrecorded)

    def claim(self, stage: Stage) -> bool:
        """Claim a stage for recording; return whether nobody has claimed it before."""
        if stage not in self._unrecorded:
            return False
        self._unrecorded.remove(stage)
        return True


FIGURES = (
    "stage", "plan_seconds", "expanded", "deadline_hit", "explained", "explained_places",
    "promised_error",
    "regret", "cumulative_regret", "regret_bound", "recommended",
)  # fmt: skip
"""Fields of the summary of a mission; the rest of a record (its candidates above all) would
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
        """Figures of every stage, oldest first: those of `FIGURES` that its record has."""
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
        """Drop records of stages whose end a power cut removed from the journal."""
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
