"""Stages of a probe: each has a decision, a drive, readings, a cost and a record."""

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
    """Log of a probe's decisions, drives and readings; used under the mission's lock.

    Time and distance are counted from the first decision on, except during a pause.
    """

    def __init__(self, probe: str) -> None:
        self.number = 0
        self.plan: Plan | None = None
        """Decision that the probe carries out; None = none."""
        self.home: Plan | None = None
        """Plan of the present drive to the end place; None = none."""
        self.driven = Cost(0.0, 0.0)
        self._probe = probe
        self._values: dict[int, list[float]] = {}
        self._charged: tuple[int, float] | None = None
        self._unrecorded: list[Stage] = []

    @property
    def target(self) -> int | None:
        """Place that the probe drives to; None = none."""
        plan = self.plan or self.home  # read each once: another thread may change them
        return None if plan is None else plan.path[-1]

    def begin(self, plan: Plan, number: int, now_ns: int, metres: float) -> None:
        """Start a stage with a decision."""
        self.number = number
        self.plan, self.home = plan, None
        self._values = {}
        if self._charged is None:
            self._charged = now_ns, metres

    def note(self, readings: Collection[Reading]) -> None:
        """Record the values of used readings for each place."""
        for reading in readings:
            if self.target is not None and reading.location is not None:
                self._values.setdefault(reading.location, []).append(reading.value)

    def complete(
        self,
        plan: Plan,
        now_ns: int,
        metres: float,
        *,
        went: int | None = None,
        visits: int | None = None,
        cost: Cost | None = None,
    ) -> tuple[Stage, Cost]:
        """End the stage; return the stage and its cost.

        `metres` is the odometer. `went` and `visits` are fields of `Stage`. After a restart, `cost`
        is the cost in the journal; None = compute the cost since the last stage.
        """
        values = self._values.get(plan.path[-1] if went is None else went, [])
        value = sum(values) / len(values) if values else None
        stage, cost = self.pass_by(plan, now_ns, metres, cost)
        stage = replace(stage, value=value, went=went, visits=visits)
        self.settle(stage)
        return stage, cost

    def pass_by(
        self, plan: Plan, now_ns: int, metres: float, cost: Cost | None = None
    ) -> tuple[Stage, Cost]:
        """End the stage at the arrival, before the reading has come; return stage and cost.

        The caller calls `settle` when the reading has come. For the arguments see `complete`.
        """
        cost = self.owed(now_ns, metres) if cost is None else cost
        self.add_cost(cost, now_ns, metres)
        self.plan = None
        return Stage(self.number, plan, None, self.driven, now_ns, probe=self._probe), cost

    def settle(self, stage: Stage) -> None:
        """Queue an ended stage for recording."""
        self._unrecorded.append(stage)

    def drop(self) -> None:
        """Drop the present decision."""
        self.plan = self.home = None

    def charge(self, now_ns: int, metres: float) -> Cost:
        """Add the cost since the last call to the total cost; return the added cost."""
        cost = self.owed(now_ns, metres)
        self.add_cost(cost, now_ns, metres)
        return cost

    def add_cost(self, cost: Cost, now_ns: int, metres: float) -> None:
        """Add a cost to the total; the next charge begins at this time and odometer value [m]."""
        self._charged = now_ns, metres
        self.driven = self.driven.plus(cost)

    def skip(self, step_ns: int) -> None:
        """Exclude a jump of the node's clock [ns] from the counted time."""
        if self._charged is not None:
            then_ns, metres = self._charged
            self._charged = then_ns + step_ns, metres

    def owed(self, now_ns: int, metres: float) -> Cost:
        """Return the cost since the last call of `charge`."""
        then_ns, then_metres = (now_ns, metres) if self._charged is None else self._charged
        # The odometer may decrease when it corrects metres that were noise.
        return Cost(max(0.0, metres - then_metres), max(0.0, 1e-9 * (now_ns - then_ns)))

    def skip_drive(self, now_ns: int, metres: float) -> None:
        """Do not charge the time and the distance since the last call of `charge`."""
        self._charged = None if self.target is None else (now_ns, metres)

    @property
    def unrecorded(self) -> list[Stage]:
        """Ended stages that `claim` has not removed yet."""
        return list(self._unrecorded)

    def claim(self, stage: Stage) -> bool:
        """Claim a stage for recording; return False if the stage was claimed before."""
        if stage not in self._unrecorded:
            return False
        self._unrecorded.remove(stage)
        return True


FIGURES = (
    "stage", "plan_seconds", "expanded", "deadline_hit", "explained", "explained_places",
    "promised_error",
    "regret", "cumulative_regret", "regret_bound", "recommended",
)  # fmt: skip
"""Fields of a stage's record that the summary needs; only these fields are kept in memory."""
MOST_UNWRITTEN = 2_000
"""Largest number of records kept in memory while the disk is full. The oldest are dropped."""


class StageRecords:
    """Writer of the records of stages to ``records.jsonl``.

    Args:
        run: run directory, with the records of earlier processes; None = nothing is written.
        guard: calls a function that writes, and returns whether the function succeeded.
    """

    def __init__(
        self, run: RunDirectory | None, guard: Callable[[Callable[[], None]], bool]
    ) -> None:
        self.newest: dict[str, Any] = {}
        """Record of the newest stage since the start of the process; {} = none yet."""
        self.figures: list[dict[str, Any]] = []
        """The fields `FIGURES` of each stage's record, oldest first."""
        self.lost = 0
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
        """Number of records that wait to be written."""
        return len(self._unwritten)

    def add(self, record: dict[str, Any]) -> None:
        """Write a record. After a failure, the next call of `add` or `catch_up` tries again."""
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
        """Write the waiting records in order; stop at the first failure."""
        with self._lock:
            while self._run is not None and self._unwritten:
                if not self._guard(partial(self._run.append_record, self._unwritten[0])):
                    return
                self._unwritten.popleft()

    def keep(self, stages: Collection[int]) -> None:
        """Drop the records of all stages that are not in `stages`.

        After a power cut, a record may exist without its stage in the journal.
        """
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
