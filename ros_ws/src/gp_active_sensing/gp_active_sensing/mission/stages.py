"""Stages of a probe: decision, cost, outcome and record of each, and the way to the end place."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from gp_active_sensing.loop import SensingLoop
from gp_active_sensing.mission.requests import Stage
from gp_active_sensing.records.events import Event, Moved, ReturnBegun
from gp_active_sensing.records.run_directory import RunDirectory
from gp_active_sensing.types import Cost, Plan, Reading

if TYPE_CHECKING:
    from gp_active_sensing.mission.probe import ProbeState

__all__ = [
    "ReturnHome",
    "StageLog",
    "StageRecords",
]


class StageLog:
    """Adds up a probe's decisions, drives and readings; used under the mission's lock.

    Time and distance count from the first decision on, also while the next plan is computed; what
    is driven while the mission is paused is free.
    """

    def __init__(self) -> None:
        self.number = 0
        """Of the newest decision, among all of the mission."""
        self.plan: Plan | None = None
        """The decision being carried out."""
        self.home: Plan | None = None
        """The last plan, on the way to the end place."""
        self.driven = Cost(0.0, 0.0)
        self.noise_variance: float | None = None
        """What the newest reading brought along."""
        self._values: dict[int, list[float]] = {}
        """Of the stage, by place."""
        self._foreseen = False
        self._charged: tuple[int, float] | None = None
        self._unrecorded: list[Stage] = []

    @property
    def has_read(self) -> bool:
        """The place being driven to has been read by this probe."""
        return bool(self._values)

    @property
    def target(self) -> int | None:
        """The place being driven to."""
        plan = self.plan or self.home  # once: another thread may change it in between
        return None if plan is None else plan.path[-1]

    def begin(self, plan: Plan, number: int, now_ns: int, metres: float, *, foreseen: bool) -> None:
        """Carry out a decision.

        Args:
            plan: the decision.
            number: among all of the mission.
            now_ns: time of the node's clock.
            metres: driven since the node began.
            foreseen: it was made on the way.
        """
        self.number = number
        self.plan, self.home = plan, None
        self._foreseen = foreseen
        self._values = {}
        if self._charged is None:
            self._charged = now_ns, metres

    def note(self, readings: Collection[Reading]) -> None:
        """Record readings that were used."""
        for reading in readings:
            self.noise_variance = reading.noise_variance
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
    ) -> tuple[Stage, Cost]:
        """End the stage; return it, and what was driven since the one before it ended."""
        cost = self.charge(now_ns, metres)
        return self._ended(plan, now_ns, probe, went, visits), cost

    def complete_again(
        self,
        plan: Plan,
        cost: Cost,
        now_ns: int,
        metres: float,
        *,
        probe: str = "",
        went: int | None = None,
        visits: int | None = None,
    ) -> Stage:
        """End a stage that ended before a restart, at a known cost."""
        self.charge_again(cost, now_ns, metres)
        return self._ended(plan, now_ns, probe, went, visits)

    def _ended(
        self, plan: Plan, now_ns: int, probe: str, went: int | None, visits: int | None
    ) -> Stage:
        values = self._values.get(plan.path[-1] if went is None else went, [])
        value = sum(values) / len(values) if values else None
        stage = Stage(
            self.number,
            plan,
            value,
            self.driven,
            now_ns,
            self._foreseen,
            probe=probe,
            went=went,
            visits=visits,
        )
        self._unrecorded.append(stage)
        self.plan = None
        return stage

    def drop(self) -> None:
        """Carry out nothing any more."""
        self.plan = self.home = None

    def charge(self, now_ns: int, metres: float) -> Cost:
        """Return what was driven since this was last asked, and add it up."""
        then_ns, then_metres = (now_ns, metres) if self._charged is None else self._charged
        self._charged = now_ns, metres
        cost = Cost(metres - then_metres, max(0.0, 1e-9 * (now_ns - then_ns)))
        self.driven = self.driven.plus(cost)
        return cost

    def charge_again(self, cost: Cost, now_ns: int, metres: float) -> None:
        """Add up what was charged before a restart."""
        self._charged = now_ns, metres
        self.driven = self.driven.plus(cost)

    def skip(self, step_ns: int) -> None:
        """Charge nothing for a time that did not pass [ns]: the clock was set."""
        if self._charged is not None:
            then_ns, metres = self._charged
            self._charged = then_ns + step_ns, metres

    def owed(self, now_ns: int, metres: float) -> Cost:
        """Return what was driven since it was last charged."""
        then_ns, then_metres = (now_ns, metres) if self._charged is None else self._charged
        return Cost(max(0.0, metres - then_metres), max(0.0, 1e-9 * (now_ns - then_ns)))

    def go_on(self, now_ns: int, metres: float) -> None:
        """Charge nothing of what was driven since the last stage ended."""
        self._charged = None if self.target is None else (now_ns, metres)

    @property
    def unrecorded(self) -> list[Stage]:
        """Stages that nobody has claimed for recording."""
        return list(self._unrecorded)

    def claim(self, stage: Stage) -> bool:
        """Return whether a stage is still to be recorded, and leave that to anyone who asks."""
        if stage not in self._unrecorded:
            return False
        self._unrecorded.remove(stage)
        return True


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


logger = logging.getLogger(__name__)


class ReturnHome:
    """Keeps a probe able to get to its end place; used under the mission's lock.

    Args:
        probe: whose end place it is.
        journal: takes the events.
        from_start: the end place is the one where the probe stands at its first decision.
    """

    def __init__(
        self, probe: ProbeState, journal: Callable[[Event], None], *, from_start: bool
    ) -> None:
        self._probe = probe
        self._journal = journal
        self._from_start = from_start

    @property
    def needs_start(self) -> bool:
        """The end place is not known yet."""
        return self._from_start and self._probe.purse.end is None

    def note_start(self, at: int | None) -> None:
        """Record where the probe begins."""
        if self.needs_start:
            self._probe.purse = replace(self._probe.purse, end=at)

    def rest(self, at: int | None) -> Cost:
        """Return what is still to be driven to the end of the place where the probe is.

        On a road the next decision is taken when half a segment is driven; the other half is driven
        in any case, and charged with what follows.
        """
        here = self._probe.ingestion.here
        if here is None or at is None or here.place != at:
            return Cost(0.0, 0.0)
        loop = self._probe.loop
        metres, seconds = loop.topology.route(None, at, loop.belief.observed).cost
        if loop.speed is not None:
            seconds = metres / loop.speed
        return Cost((1.0 - here.fraction) * metres, (1.0 - here.fraction) * seconds)

    def snapshot(self, at: int | None, now_ns: int) -> SensingLoop:
        """Return a copy of the engine to take the next decision on.

        What was driven and waited since the last stage ended is taken off what is left, and what is
        still to be driven in any case.

        Args:
            at: where the probe stands.
            now_ns: time of the node's clock.
        """
        copy = self._probe.snapshot()
        owed = self._probe.stages.owed(now_ns, self._probe.ingestion.metres)
        copy.remaining = copy.remaining.minus(cost=owed.plus(self.rest(at)))
        return copy

    def begin(self, plan: Plan, at: int | None, now_ns: int) -> None:
        """Drive to the end place, since nothing more is chosen."""
        probe = self._probe
        self._journal(
            ReturnBegun(
                reason=plan.reason,
                path=plan.path,
                cost=plan.cost,
                at=at,
                where=probe.whereabouts(),
                stamp_ns=now_ns,
            )
        )
        probe.set_out_home(plan, now_ns)
        logger.info(
            "nothing more is chosen%s (%s); on the way to the end place %s, %.0f m",
            f" for {probe.name}" if probe.name else "",
            plan.reason,
            probe.loop.topology.names[plan.path[-1]],
            plan.cost.metres,
        )

    def arrive(self, now_ns: int) -> None:
        """Charge the way to the end place."""
        probe = self._probe
        probe.stages.home = None
        probe.home = True
        cost = probe.stages.charge(now_ns, probe.ingestion.metres)
        probe.purse = probe.purse.minus(cost=cost)
        self._journal(Moved(cost=cost, where=probe.whereabouts(), stamp_ns=now_ns))
