"""Log of the questions to an expert, with checks of the answers and a time-out."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gp_active_sensing.errors import ReadingError
from gp_active_sensing.experts.base import AnswersConfig
from gp_active_sensing.topology.base import SAME_DISTANCE, Topology
from gp_active_sensing.topology.lookup import place_of
from gp_active_sensing.types import Reading
from gp_active_sensing.util.wording import moment

REJECTED = "rejected_"
"""Prefix of the counts of rejected answers."""


class QueryLog:
    """Log of the questions to an expert and of the answers; at most one question is open.

    A question is open from `begin` to `settle`. A later answer is still used as a reading, but
    counted as late. Times are seconds of the driver's clock.

    =====================  =========================================================================
    reason                 reason why an answer is not used
    =====================  =========================================================================
    not_asked              no question contained its place
    answered_already       an earlier answer has the same value and stamp
    too_old, stamp_ahead   its stamp is too old or too new (`AnswersConfig.max_age`, `max_ahead`)
    not_finite             its value is not a finite number
    bad_variance           its noise variance is not above 0
    off_map, bad_position  its position is missing, or far from every place
    =====================  =========================================================================

    Args:
        topology: the map.
        config: places of the expert, and limits on its answers.
        snap_distance: largest distance of an answer's position from its place [m].
    """

    def __init__(
        self, topology: Topology, config: AnswersConfig, snap_distance: float = math.inf
    ) -> None:
        self.config = config
        self.snap_distance = snap_distance
        self.counts: Counter[str] = Counter()
        """Counts of questions (``questions``), places (``asked``, ``answered`` in time,
        ``unanswered`` at the decision) and answers (``used``, ``late``, ``rejected_…``)."""
        self.begun: float | None = None
        """Time of the open question [s]; None = no open question."""
        self.places: tuple[int, ...] = ()
        """Places of the open question."""
        self.missing: tuple[int, ...] = ()
        """Places of the open question that have no answer yet."""
        self._topology = topology
        self._known: dict[int, set[tuple[int, float]]] = {}
        """Stamps [ns] and values of the used answers, for each place that has been asked about."""

    def move_to(self, topology: Topology) -> None:
        """Replace the map by a map whose first places are the present places."""
        self._topology = topology

    @property
    def open(self) -> bool:
        """True if a question is open."""
        return self.begun is not None

    def begin(self, places: Sequence[int], seconds: float) -> None:
        """Record a question; if `places` is empty, the decision does not wait for answers."""
        self.begun = seconds
        self.places = self.missing = tuple(dict.fromkeys(int(place) for place in places))
        if self.places:
            self.counts["questions"] += 1
            self.counts["asked"] += len(self.places)
        for place in self.places:
            self._known.setdefault(place, set())

    @property
    def until(self) -> float | None:
        """Time at which the wait for answers ends [s]; None if no answer is awaited."""
        if self.begun is None or not self.missing:
            return None
        return self.begun + self.config.timeout

    def waits(self, seconds: float) -> bool:
        """Return whether the decision still waits for answers at the time `seconds`.

        If the clock goes back, the wait begins again with the full time-out.
        """
        if self.begun is None or not self.missing:
            return False
        self.begun = min(self.begun, seconds)
        return seconds - self.begun < self.config.timeout

    def settle(self) -> None:
        """Close the question when its decision is made; later answers count as late."""
        if self.open:
            self.counts["unanswered"] += len(self.missing)
        self.cancel()

    def cancel(self) -> None:
        """Drop the open question of a cancelled decision without changing the counts."""
        self.begun, self.places, self.missing = None, (), ()

    def check(self, reading: Reading, seconds: float) -> Reading:
        """Check an answer, and return it with its place as `location`.

        Raises:
            ReadingError: the answer cannot be used; its `reason` is listed in the class docstring.
        """
        place = place_of(reading, self._topology, self.snap_distance)
        if reading.location is None:
            place = self._meant(place)
        where = f"answer for {self._topology.names[place]!r} at {moment(reading.stamp_ns)}"
        if place not in self._known:
            msg = f"{where}: nobody asked for this place"
            raise ReadingError("not_asked", msg)
        age = seconds - 1e-9 * reading.stamp_ns
        if self.config.max_age is not None and age > self.config.max_age:
            msg = f"{where}: its value is {age:.3g} s old, at most {self.config.max_age:g} s count"
            raise ReadingError("too_old", msg)
        if -age > self.config.max_ahead:
            msg = (
                f"{where}: its stamp is {-age:.3g} s ahead of the clock, at most "
                f"{self.config.max_ahead:g} s count; compare the clocks"
            )
            raise ReadingError("stamp_ahead", msg)
        if (reading.stamp_ns, float(reading.value)) in self._known[place]:
            msg = f"{where}: it has come before"
            raise ReadingError("answered_already", msg)
        return replace(reading, location=place)

    def note(self, reading: Reading) -> bool:
        """Record an answer that passed the checks and is used. Return whether it is late."""
        place = reading.location
        assert place is not None
        self._known.setdefault(place, set()).add((reading.stamp_ns, float(reading.value)))
        self.counts["used"] += 1
        late = place not in self.places
        if late:
            self.counts["late"] += 1
        elif place in self.missing:
            self.counts["answered"] += 1
            self.missing = tuple(p for p in self.missing if p != place)
        return late

    def reject(self, reason: str) -> int:
        """Count a rejected answer. Return the number of rejections with this reason."""
        self.counts[f"{REJECTED}{reason}"] += 1
        return self.counts[f"{REJECTED}{reason}"]

    def forget_before(self, seconds: float) -> None:
        """Forget the used answers that are older than `max_age` at the time `seconds`.

        A repetition of such an answer is rejected as too old.
        """
        if self.config.max_age is None:
            return
        oldest = round(1e9 * (seconds - self.config.max_age))
        for used in self._known.values():
            used.difference_update([answer for answer in used if answer[0] < oldest])

    def to_mapping(self) -> dict[str, Any]:
        """Return the counts as plain data; {} = there were no questions and no answers."""
        if not self.counts:
            return {}
        words = ("questions", "asked", "answered", "unanswered", "used", "late")
        rejected = {
            word.removeprefix(REJECTED): number
            for word, number in sorted(self.counts.items())
            if word.startswith(REJECTED)
        }
        return {**{w: self.counts[w] for w in words}, "rejected": rejected}

    def _meant(self, place: int) -> int:
        """Return the place to which an answer belongs, given a place at the answer's position.

        Several places may have one position, such as both directions of a road. Places that still
        lack an answer take precedence.
        """
        apart = self._topology.points - self._topology.points[place]
        here = set(np.flatnonzero(np.linalg.norm(apart, axis=1) <= SAME_DISTANCE).tolist())
        return next((p for p in (*self.missing, place, *self._known) if p in here), place)
