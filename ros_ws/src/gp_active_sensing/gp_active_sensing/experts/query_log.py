"""Log of the questions to an expert: which answers count, and when to stop waiting."""

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
"""Prefix of the counts of answers that were not used."""


class QueryLog:
    """Records the questions to an expert and their answers; one question is open at a time.

    A question is open from `begin` to `settle`, when its decision is taken. An answer that comes
    later is a reading of its time like any other, and counted as late. Times are seconds of the
    driver's clock.

    =====================  =========================================================================
    reason                 an answer is not used because
    =====================  =========================================================================
    not_asked              nobody asked for its place, or its place is not the one it should be
    answered_already       the same value of the same time came before
    too_old, stamp_ahead   its stamp is far off (`AnswersConfig.max_age`, `max_ahead`)
    not_finite             its value is not a finite number
    bad_variance           its noise variance is not above 0
    off_map, bad_position  its position is none, or far from every place
    =====================  =========================================================================

    Args:
        topology: the map.
        config: where the expert can be asked, and which answers are used.
        snap_distance: farthest distance of an answer's position from its place [m].
    """

    def __init__(
        self, topology: Topology, config: AnswersConfig, snap_distance: float = math.inf
    ) -> None:
        self.config = config
        self.snap_distance = snap_distance
        self.counts: Counter[str] = Counter()
        """``questions``, ``asked`` (places), ``answered`` (of these, in time), ``used``, ``late``,
        ``unanswered`` (when the decision was taken), and ``rejected_…`` by reason."""
        self.begun: float | None = None
        """When the open question was asked; None = none is open."""
        self.places: tuple[int, ...] = ()
        """Places of the open question."""
        self.missing: tuple[int, ...] = ()
        """Those of them without an answer."""
        self._topology = topology
        self._known: dict[int, set[tuple[int, float]]] = {}
        """Places asked for, now or before, with stamp [ns] and value of the answers used."""

    def move_to(self, topology: Topology) -> None:
        """Go on with a map that has changed; its first places are those so far."""
        self._topology = topology

    @property
    def open(self) -> bool:
        """A question was asked and its decision is not taken."""
        return self.begun is not None

    def begin(self, places: Sequence[int], seconds: float) -> None:
        """Record a question.

        Without places nothing is waited for.
        """
        self.begun = seconds
        self.places = self.missing = tuple(dict.fromkeys(int(place) for place in places))
        if self.places:
            self.counts["questions"] += 1
            self.counts["asked"] += len(self.places)
        for place in self.places:
            self._known.setdefault(place, set())

    @property
    def until(self) -> float | None:
        """When the wait for answers is over, whatever has come [s]; None = nothing is awaited."""
        if self.begun is None or not self.missing:
            return None
        return self.begun + self.config.timeout

    def waits(self, seconds: float) -> bool:
        """Return whether the decision is to wait for answers at a time.

        A clock that goes back ends no wait and makes none longer than the time-out.
        """
        if self.begun is None or not self.missing:
            return False
        self.begun = min(self.begun, seconds)
        return seconds - self.begun < self.config.timeout

    def settle(self) -> None:
        """Record that the decision was taken: what comes now is late."""
        if self.begun is not None:
            self.counts["unanswered"] += len(self.missing)
        self.begun, self.places, self.missing = None, (), ()

    def give_up(self) -> None:
        """Drop the open question: its decision will not be taken, and is asked about again."""
        self.begun, self.places, self.missing = None, (), ()

    def check(self, reading: Reading, seconds: float) -> Reading:
        """Return an answer with its place, if it can be used; nothing changes.

        Raises:
            ReadingError: why it cannot be used, with the word that it is counted under.
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
        """Record a checked answer that is used; say whether it is late."""
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
        """Count an answer that is not used; return how many there are of its reason."""
        self.counts[f"{REJECTED}{reason}"] += 1
        return self.counts[f"{REJECTED}{reason}"]

    def forget_before(self, seconds: float) -> None:
        """Forget which answers were used that are older than `max_age`: none such is any more."""
        if self.config.max_age is None:
            return
        oldest = round(1e9 * (seconds - self.config.max_age))
        for used in self._known.values():
            used.difference_update([answer for answer in used if answer[0] < oldest])

    def to_mapping(self) -> dict[str, Any]:
        """Return the counts as plain data; {} when nothing was ever asked or said."""
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
        """Return the place asked for at a position; of the two directions of a road are both there.

        One that still waits for an answer comes before the others, in the order of the question.
        """
        apart = self._topology.points - self._topology.points[place]
        here = set(np.flatnonzero(np.linalg.norm(apart, axis=1) <= SAME_DISTANCE).tolist())
        return next((p for p in (*self.missing, place, *self._known) if p in here), place)
