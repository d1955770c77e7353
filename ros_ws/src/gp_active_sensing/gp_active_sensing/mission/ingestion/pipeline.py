"""Gate and average the readings that have a place; pass them to the journal and the belief."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np

from gp_active_sensing.belief.drift import FRACTION
from gp_active_sensing.errors import ActiveSensingError, ReadingError, RunError
from gp_active_sensing.loop import Receiver
from gp_active_sensing.mission.clocks import Latency
from gp_active_sensing.mission.ingestion.outlier_gate import AGREEING, AGREEING_SECONDS, OutlierGate
from gp_active_sensing.mission.ingestion.stays import Stays, StoredAverage
from gp_active_sensing.mission.ingestion.visits import AveragingWindow, PendingReading
from gp_active_sensing.records.events import Event, ReadingGated, ReadingUsed
from gp_active_sensing.types import Clock, Reading
from gp_active_sensing.util.wording import is_reported

logger = logging.getLogger(__name__)

AGREED, ASKED = "agreed", "asked"
"""Reasons to use a gated reading: other readings agree, or an operator accepted it."""
REPEATS = 32
"""The belief is updated after this number of readings, even if no place is new."""


class ReadingPipeline:
    """Pipeline that takes the readings with a known place into the belief.

    Args:
        window: averages over a time window; None = the readings of each stay are averaged.
        journal: function that writes an event before a reading is used or set aside.
        unit: unit of the readings, for log messages.
    """

    def __init__(
        self,
        loop: Receiver,
        gate: OutlierGate,
        window: AveragingWindow | None,
        *,
        clock: Clock,
        journal: Callable[[Event], None],
        unit: str = "",
    ) -> None:
        self.loop = loop
        self.gate = gate
        self.window = AveragingWindow(0.0) if window is None else window
        self.by_stay = window is None
        """True if the readings of one stay at a place are averaged."""
        self.stays = Stays(
            self._noise_of_one,
            self._place_at,
            lambda: loop.belief.tick,
            loop.belief.place,
            self._parts,
        )
        if self.by_stay:
            gate.noise = lambda: self.stays.noise
        self._points: dict[int, tuple[float, ...]] = {}
        self.latency = Latency()
        self.rejected: Counter[str] = Counter()
        self.used = 0
        """Number of used readings; each reading of an average counts as one."""
        self.newest_place: int | None = None
        """Last place that was observed for the first time; None = no such place since the reset."""
        self.open = True
        """True until the mission is over; later readings are counted and not used."""
        self._clock = clock
        self._journal = journal
        self._unit = f" {unit}" if unit else ""
        self._repeats = 0

    def process(self, ready: Iterable[PendingReading]) -> list[Reading]:
        """Use or reject readings with a place; return the used readings."""
        due: list[PendingReading] = []
        for pending in ready:
            if self.open:
                due += self._accept(pending)
            else:
                self.rejected["mission_over"] += pending.count
        return self._use_all(due)

    def pass_time(self, now_ns: int, here: int | None) -> list[Reading]:
        """Use the window's average if the window has ended or the probe has left the place."""
        return self._use_all(self.window.pass_time(now_ns, here))

    def close(self) -> list[Reading]:
        """Use the average of the present window."""
        return self._use_all(self.window.close())

    def accept_gated(self) -> tuple[int, list[Reading]]:
        """Use all gated readings; return how many were gated, and the used readings."""
        if not self.open:
            return 0, []
        kept = self.gate.pop_all()
        due = self.window.close() + self._reinstate(kept, ASKED) + self.window.close()
        return len(kept), self._use_all(due)

    def _accept(self, pending: PendingReading) -> list[PendingReading]:
        """Pass a reading through the gate; return the readings and averages to use now."""
        try:
            placed = self.loop.place(pending.reading)
            self.loop.check_budget(placed)
        except ReadingError as error:
            self._reject(pending, error)
            return []
        reading = placed.reading
        off = self.gate.off(reading)
        if off is None:
            self.gate.passed(placed.place)
            return self.window.add(replace(pending, reading=reading, placed=placed))
        self._journal(ReadingGated(reading=reading, off=off))
        back = self.gate.keep(reading)
        self._count_gated()
        if back:
            logger.warning(
                "%d readings of %s were set aside and agree with each other for %g s or more: they "
                "are used now",
                len(back), self.loop.topology.names[placed.place], AGREEING_SECONDS,
            )  # fmt: skip
            return self.window.close() + self._reinstate(back, AGREED, pending.received)
        self._log_gated(reading, off)
        return []

    def _reject(self, pending: PendingReading, error: ReadingError) -> None:
        self.loop.reject(pending.reading, error)
        self.rejected[error.reason] += pending.count

    def _log_gated(self, reading: Reading, off: float) -> None:
        count = self.rejected["gated"]
        if not is_reported(count):
            return
        place = reading.location
        logger.warning(
            "reading %g%s at %s is %.1f standard deviations off its prediction: set aside (gated, "
            "%d so far). It is used when %d readings agree, or after ~/accept_gated. If this "
            "happens often, noise_std is too small or the sensor is faulty",
            reading.value, self._unit,
            "?" if place is None else self.loop.topology.names[place],
            off, count, AGREEING,
        )  # fmt: skip

    def _reinstate(
        self, readings: list[Reading], why: str, received: float | None = None
    ) -> list[PendingReading]:
        now = self._clock() if received is None else received
        due: list[PendingReading] = []
        for reading in readings:
            due += self.window.add(PendingReading(reading, now, taken_back=why))
        self._count_gated()
        return due

    def _count_gated(self) -> None:
        self.rejected["gated"] = len(self.gate) + self.gate.forgotten
        if not self.rejected["gated"]:
            del self.rejected["gated"]

    def restore(self, event: ReadingUsed | ReadingGated) -> None:
        """Restore the gate from an event of the journal."""
        self.gate.restore(event)
        self._count_gated()

    def _use_all(self, due: list[PendingReading]) -> list[Reading]:
        used = [pending for pending in due if self._use(pending)]
        now = self._clock()
        for pending in used:
            self.latency.add(now - pending.received)
        return [pending.reading for pending in used]

    def _use(self, pending: PendingReading) -> bool:
        try:
            placed = pending.placed or self.loop.place(pending.reading)
            self.loop.check_budget(placed)  # the budget may have been spent meanwhile
        except ReadingError as error:
            self._reject(pending, error)
            return False
        if self.by_stay:
            stored = self.stays.add(placed, begins=self.loop.costs(placed.place))
        else:
            stored = StoredAverage(self.stays.widened(placed), None, 1)
        self._journal(
            ReadingUsed(
                reading=placed.reading,
                count=pending.count,
                first_ns=pending.first_ns if pending.count > 1 else None,
                taken_back=pending.taken_back,
                stay=stored.to_record(),
            )
        )
        return self._use_average(stored, pending.count)

    def replay_reading(self, event: ReadingUsed, *, gap: bool = False) -> None:
        """Use a journalled reading after a restart; `gap` True = earlier events may be missing.

        Raises:
            RunError: the reading contradicts earlier events.
        """
        place = event.reading.location
        if place is None or not 0 <= place < self.loop.topology.n:
            msg = f"journal: a reading of a place that is not on the map: {event.reading}"
            raise RunError(msg)
        try:
            stored = self.stays.restore_reading(event, gap=gap, begins=self.loop.costs(place))
            self.loop.check_budget(stored.placed)
        except ReadingError as error:
            msg = f"journal: a reading that was used is refused now: {error}"
            raise RunError(msg) from error
        self._use_average(stored, event.count)

    def _use_average(self, stored: StoredAverage, count: int) -> bool:
        if stored.before is None:
            report = self.loop.tell([stored.placed])
        else:
            report = self.loop.amend(stored.before, stored.placed)
        for rejection in report.rejected:
            self.rejected[rejection.reason] += count
        if report.new_places:
            self.newest_place = report.new_places[-1]
        if not report.accepted:
            return False
        self.used += count
        self._repeats += 1
        if report.new_places or self._repeats >= REPEATS:
            self._follow_up()
        return True

    def _noise_of_one(self, reading: Reading) -> float | None:
        """Return the noise variance for readings without one; 0 = unknown, None = no averaging."""
        belief = self.loop.belief
        if not belief.scale_known:
            return None if belief.drift.changing else 0.0
        noise = belief.noise_variance
        if float(noise.max()) > float(noise.min()):
            return 0.0
        try:
            own = belief.transform.forward(reading.value, 1.0)[1]
        except ReadingError:
            return None
        return float(noise[0]) / own if own else None

    def _parts(self) -> float:
        # With the drift kind `kernel`, a new reading nearly replaces the previous reading.
        return 1.0 if self.loop.belief.drift.kind == "kernel" else FRACTION

    def _place_at(self, place: int) -> tuple[float, ...]:
        """Return the point of a place, for a road segment its centroid [m]."""
        if place not in self._points:
            line = np.asarray(self.loop.topology.geometry(place), dtype=np.float64)
            lengths = np.hypot(*np.diff(line, axis=0).T)
            point = self.loop.topology.points[place]
            if lengths.sum() > 0.0:
                point = lengths @ (0.5 * (line[1:] + line[:-1])) / lengths.sum()
            self._points[place] = tuple(point.tolist())
        return self._points[place]

    def _follow_up(self) -> None:
        """Update the belief; called after each new place, and after every `REPEATS` readings.

        Readings cause the updates, and not a clock, so that a replay gives the same belief.
        """
        self._repeats = 0
        try:
            self.loop.belief.weights  # noqa: B018  computed on being asked
        except ActiveSensingError as error:
            self.rejected["belief_error"] += 1
            logger.error("the belief cannot be computed: %s", error)
