"""Accept or reject readings, update the belief, and charge the budget."""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Iterable

from gp_active_sensing.belief import Belief
from gp_active_sensing.engine.reservations import BudgetReservations
from gp_active_sensing.errors import ReadingError
from gp_active_sensing.topology.base import Topology
from gp_active_sensing.topology.lookup import place_of
from gp_active_sensing.types import Budget, Reading, Rejection, TellReport

__all__ = ["Observations"]

logger = logging.getLogger(__name__)

AHEAD = 60.0
"""How far ahead of the driver's clock a stamp may be, where the field changes [s]."""


class Observations:
    """Takes readings into a belief and off a budget.

    It is the base of `SensingLoop`: `loop.tell` and `loop.check` are here, `loop.ask` is there.

    Args:
        topology: where a probe may go.
        belief: what is known before the first reading; owned and changed here.
        budget: limit of the mission, and where it has to end.
        retries: how often a visit that gave no reading is tried again before it is set aside.
        snap_distance: farthest distance of a reading's position from its place [m].
    """

    def __init__(
        self,
        topology: Topology,
        belief: Belief,
        *,
        budget: Budget = Budget(),
        retries: int = 2,
        snap_distance: float = math.inf,
    ) -> None:
        self.topology = topology
        self.belief = belief
        self.retries = retries
        self.snap_distance = snap_distance
        self.remaining = budget
        self.spent = 0
        """Readings of the budget spent: new places, and visits of observed ones."""
        self.decisions = 0
        self.returning_home = False
        """Nothing more is chosen: the last plan leads to where the mission has to end."""
        self.restoring = False
        """Readings come from a journal: those that were used are used again, whatever is kept."""
        self.counts: Counter[str] = Counter()
        self.set_aside: set[int] = set()
        """Places that gave no reading."""
        self.reservations = BudgetReservations()
        self.clock_ns: int | None = None
        """Time of the driver's clock, where it has one: no stamp can be far ahead of it."""
        self._misses: Counter[int] = Counter()
        self._newest_ns: int | None = None

    def tell(self, readings: Iterable[Reading]) -> TellReport:
        """Use readings in any order; each is either used or rejected and counted.

        A newly observed place costs one reading of the budget, once; so does the
        visit of an observed place that a policy chose again. Late readings are used like any other
        (the belief does not depend on order) and counted.
        """
        accepted = late = 0
        new_places: list[int] = []
        rejected: list[Rejection] = []
        for reading in readings:
            try:
                location = self.check(reading)
                is_new = self.costs(location)
                self._observe(location, reading)
            except ReadingError as error:
                rejected.append(self._refused(reading, error))
                continue
            accepted += 1
            late += self._is_late(reading)
            if is_new:
                self.reservations.pay(location)
                self.remaining = self.remaining.minus(readings=1)
                self.spent += 1
                new_places.append(location)
                self.set_aside.discard(location)
                self._misses.pop(location, None)
                # After each new place, not each batch: what a journal gives back is the same.
                if why := self.belief.adapt():
                    logger.info("the candidate length-scales follow the readings: %s", why)
        self.counts["accepted"] += accepted
        self.counts["late"] += late
        return TellReport(accepted, tuple(new_places), tuple(rejected), late)

    def amend(self, before: Reading, reading: Reading) -> TellReport:
        """Use a reading in the place of one that was told: both are of one stay at one place.

        Args:
            before: as it was told; of one that was itself amended, with the stamp of the first.
            reading: what is to count instead.
        """
        try:
            location = self.check(reading)
            self.belief.amend(
                location,
                (float(before.value), before.noise_variance, 1e-9 * before.stamp_ns, before.off),
                float(reading.value),
                reading.noise_variance,
                seconds=1e-9 * reading.stamp_ns,
                off=reading.off,
            )
        except ReadingError as error:
            return TellReport(rejected=(self._refused(reading, error),))
        late = self._is_late(reading)
        self.counts["accepted"] += 1
        self.counts["late"] += late
        return TellReport(1, late=int(late))

    def _refused(self, reading: Reading, error: ReadingError) -> Rejection:
        self.counts[f"rejected_{error.reason}"] += 1
        level = logging.DEBUG if error.reason == "budget_spent" else logging.WARNING
        logger.log(level, "reading rejected: %s", error)
        return Rejection(reading, error.reason, str(error))

    def _is_late(self, reading: Reading) -> bool:
        """Return whether a reading is older than one used before; its time counts for the next."""
        newest_ns = reading.stamp_ns if self._newest_ns is None else self._newest_ns
        self._newest_ns = max(newest_ns, reading.stamp_ns)
        return reading.stamp_ns < newest_ns

    def _observe(self, location: int, reading: Reading, *, expert: bool = False) -> None:
        seconds = 1e-9 * reading.stamp_ns
        self.belief.observe(
            location,
            float(reading.value),
            reading.noise_variance,
            seconds=seconds,
            expert=expert,
            off=reading.off,
        )

    def advance(self, now_ns: int) -> None:
        """Let time pass; it matters where the belief is about a field that changes."""
        self.belief.advance(1e-9 * now_ns)

    def inform(self, readings: Iterable[Reading]) -> TellReport:
        """Use an expert's readings: they tell about the field and cost nothing of the budget."""
        rejected: list[Rejection] = []
        accepted = 0
        for reading in readings:
            try:
                location = place_of(reading, self.topology, self.snap_distance)
                self.belief.check(location, float(reading.value), reading.noise_variance)
                self._observe(location, reading, expert=True)
            except ReadingError as error:
                rejected.append(Rejection(reading, error.reason, str(error)))
                self.counts[f"expert_rejected_{error.reason}"] += 1
                logger.warning("answer of an expert rejected: %s", error)
                continue
            accepted += 1
        self.counts["expert_accepted"] += accepted
        return TellReport(accepted, (), tuple(rejected))

    def check(self, reading: Reading) -> int:
        """Return the place of a reading that would be used now; nothing changes.

        Raises:
            ReadingError: it would be rejected, with the word that it would be counted under.
        """
        location = place_of(reading, self.topology, self.snap_distance)
        self._check_stamp(reading)
        if not self.wants(location):
            raise ReadingError("budget_spent", self._not_wanted(location))
        self.belief.check(location, float(reading.value), reading.noise_variance)
        return location

    def costs(self, location: int) -> bool:
        """Return whether the next reading of a place costs one of the budget."""
        return not self.belief.observed[location] or self.reservations.is_due(location)

    def _check_stamp(self, reading: Reading) -> None:
        """Refuse a stamp far ahead: where the field changes, it would make all else out of date.

        Raises:
            ReadingError: it is.
        """
        if self.clock_ns is None or self.restoring or not self.belief.drift.changing:
            return
        ahead = 1e-9 * (reading.stamp_ns - self.clock_ns)
        if ahead > AHEAD:
            msg = (
                f"a reading of {reading.source or 'the sensor'} is stamped {ahead:.0f} s ahead of "
                "the clock here; set the clocks alike"
            )
            raise ReadingError("stamp_ahead", msg)

    def wants(self, location: int) -> bool:
        """Return whether a reading of a place would be used now.

        Once decisions are taken, the budget of readings is never exceeded: the last readings are
        kept for what lies on the way that was planned, whatever else is read there. A place that
        is observed already costs nothing.
        """
        left = self.remaining.readings
        if (
            left is None
            or self.belief.observed[location]
            or not (self.decisions or self.returning_home)
        ):
            return True
        if self.restoring:
            return True
        observed = self.belief.observed
        promised = self.reservations.kept(observed, self.set_aside)
        if location not in promised:
            return left > len(promised)
        # A way may cross a place that was blocked, from which no reading was expected.
        return left > len(self.reservations.goals(observed, self.set_aside) - {location})

    def _not_wanted(self, location: int) -> str:
        spent = "the budget of readings is spent, or kept for where the probe is going"
        return f"a reading of {self.topology.names[location]}: {spent}"

    def miss(self, location: int) -> bool:
        """Count a visit that gave no reading.

        Returns:
            True to try the place again; False when it has now been set aside.

        Raises:
            ValueError: the place is not on the map.
        """
        if not 0 <= location < self.topology.n:
            msg = f"missed place {location}; the map has places 0 … {self.topology.n - 1}"
            raise ValueError(msg)
        again = self._misses[location] < self.retries
        self.replay_miss(location, again=again)
        if not again:
            logger.warning(
                "place %s gave no reading in %d visits and is set aside",
                self.topology.names[location],
                self._misses[location],
            )
        return again

    def replay_miss(self, location: int, *, again: bool) -> None:
        """Count a visit that gave no reading before a restart, and what followed from it."""
        self._misses[location] += 1
        self.counts["missed"] += 1
        if not again:
            self.set_aside.add(location)

    def _copy_into(self, other: Observations) -> None:
        """Make a shallow copy independent: what this one takes from now on does not reach it."""
        other.belief = self.belief.copy()
        other.counts = self.counts.copy()
        other.set_aside = set(self.set_aside)
        other.reservations = self.reservations.copy()
        other._misses = self._misses.copy()
