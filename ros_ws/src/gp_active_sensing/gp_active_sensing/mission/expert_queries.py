"""Ask the expert before a decision, and wait for the answers until a timeout.

Queries and used answers are journalled before they take effect. A killed mission therefore takes
the same decision after a restart. A late answer is used as a reading at the time of its stamp.
`experts.QueryLog` decides which answers are used.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from gp_active_sensing.errors import ActiveSensingError, ReadingError
from gp_active_sensing.experts.base import SOURCE, AnswersConfig
from gp_active_sensing.experts.query_log import QueryLog
from gp_active_sensing.loop import SensingLoop
from gp_active_sensing.mission.inbox import RawAnswer
from gp_active_sensing.mission.requests import ExpertRequest
from gp_active_sensing.records.events import Event, ExpertAnswered, ExpertAsked
from gp_active_sensing.types import Reading
from gp_active_sensing.util.wording import is_reported, moment

logger = logging.getLogger(__name__)

_MOMENT = 1e-6
"""A decision does not wait for answers if there is no more than this time to spare [s]."""


class ExpertQueries:
    """Queries of a mission to an expert; used under the mission's lock.

    Args:
        config: rules for the use of answers.
        places: places at which the expert can answer; None = all.
        journal: function that writes an event to the journal.
    """

    def __init__(
        self,
        loop: SensingLoop,
        config: AnswersConfig,
        places: Sequence[int] | None,
        journal: Callable[[Event], None],
    ) -> None:
        self.books = QueryLog(loop.topology, config, loop.snap_distance)
        self.open = True
        """True until the mission is over; later answers are counted and not used."""
        self._loop = loop
        self._places = None if places is None else tuple(places)
        self._journal = journal
        self._outgoing: tuple[int, ...] = ()
        self._job: ExpertRequest | None = None
        self._finding = False
        """True while a job chooses the places to ask about."""
        self._number = 0
        self._now_ns = 0
        self.until: float | None = None
        """Time at which the wait for answers ends [s]; None = no answer is awaited."""
        self._times_missing = 0
        self._ask_again = False
        """True after a restart if a query must be repeated for the places without an answer."""

    def outgoing(self) -> tuple[int, ...]:
        """Remove and return the places to ask about now; () = none."""
        places, self._outgoing = self._outgoing, ()
        return places

    def next_job(self) -> ExpertRequest | None:
        """Remove and return the job that chooses the places of the next query; None = no job."""
        job, self._job = self._job, None
        return job

    @property
    def rejected(self) -> dict[str, int]:
        """Number of unused answers for each reason."""
        return dict(self.books.to_mapping().get("rejected", {}))

    # -- before a decision -----------------------------------------------------------------------

    def ready(
        self, now_ns: int, left: int | None = None, spare: Callable[[], float] = lambda: math.inf
    ) -> bool:
        """Return whether a due decision may be taken; the first call prepares a query.

        Args:
            now_ns: time of the node's clock [ns].
            left: remaining readings of the probe; 0 = make no query, None = no limit.
            spare: returns how long the probe may wait and still reach its end place in time [s].
        """
        seconds, self._now_ns = 1e-9 * now_ns, now_ns
        if not self.books.open:
            if left is not None and left <= 0:
                return True
            if not self._finding:
                self._finding = True
                copy = self._loop.snapshot()
                self._job = ExpertRequest(copy, self._places, self._number, now_ns)
            return False
        if self._ask_again:
            self._ask_again = False
            self.books.begun = seconds
            self._outgoing = self.books.missing
        self.until = None
        if self.books.waits(seconds) and (most := spare()) > _MOMENT:
            self.until = min(self.books.until or math.inf, seconds + most)
            return False
        if self.books.missing and self.books.begun is not None:
            self._log_missing()
        return True

    def ask(self, job: ExpertRequest, places: Sequence[int], now_ns: int) -> None:
        """Ask about the places that a job has chosen, unless the job is obsolete."""
        if job.number != self._number or self.books.open:
            return
        self._finding = False
        can = range(self._loop.topology.n) if self._places is None else self._places
        asked = tuple(place for place in dict.fromkeys(places) if place in can)
        if len(asked) < len(places):
            logger.error(
                "the policy asks for %d places; the expert can answer at %d of them",
                len(places), len(asked),
            )  # fmt: skip
        self._journal(ExpertAsked(places=asked, stamp_ns=now_ns))
        self._begin(asked, now_ns)
        self._outgoing = asked

    def _begin(self, places: Sequence[int], now_ns: int) -> None:
        self.books.forget_before(1e-9 * now_ns)
        self.books.begin(places, 1e-9 * now_ns)

    def _log_missing(self) -> None:
        timeout = self.books.config.timeout
        if timeout == 0.0:
            return  # without a timeout, decisions do not wait for answers
        self._times_missing += 1
        if not is_reported(self._times_missing):
            return
        names, missing = self._loop.topology.names, self.books.missing
        shown = ", ".join(names[place] for place in missing[:5])
        logger.warning(
            "%d of %d places have no answer of the expert within %g s (%s%s): deciding without "
            "these answers (%d decisions so far)",
            len(missing), len(self.books.places), timeout, shown,
            ", …" if len(missing) > 5 else "", self._times_missing,
        )  # fmt: skip

    def settle(self) -> None:
        """End the query for a decision that has been taken."""
        self.books.settle()
        self._outgoing = ()

    def cancel(self) -> None:
        """Discard the query for a decision that will not be taken."""
        self._number += 1
        self._finding, self._job = False, None
        if self.books.open and self.books.places:
            self._journal(ExpertAsked(given_up=True, stamp_ns=self._now_ns))
        self.books.cancel()
        self._outgoing, self.until = (), None

    # -- answers -----------------------------------------------------------------------------------

    def process_answer(self, raw: RawAnswer, now_ns: int) -> bool:
        """Use an answer, or count its rejection; return whether it is used."""
        try:
            reading = self._checked(raw, now_ns)
        except ReadingError as error:
            count = self.books.reject(error.reason)
            if is_reported(count):
                logger.warning(
                    "an answer of the expert is not used (%s, %d so far): %s",
                    *(error.reason, count, error),
                )
            return False
        late = reading.location not in self.books.places
        self._journal(ExpertAnswered(reading=reading, late=late))
        self.use(reading)
        return True

    def _checked(self, raw: RawAnswer, now_ns: int) -> Reading:
        """Return a valid answer as a reading; raise ReadingError for an invalid answer."""
        if not self.open:
            msg = f"answer at {moment(raw.stamp_ns)}: the mission is over"
            raise ReadingError("mission_over", msg)
        frame = self._loop.topology.frame
        if raw.frame.lstrip("/") != frame:
            msg = f"answer in frame {raw.frame[:100]!r}, the map is in {frame!r}"
            raise ReadingError("wrong_frame", msg)
        where = raw.x, raw.y, *([] if self._loop.topology.heights is None else [raw.z])
        plain = Reading(raw.stamp_ns, None, raw.value, raw.noise_variance, SOURCE, position=where)
        reading = self.books.check(plain, 1e-9 * now_ns)
        assert reading.location is not None  # checked
        self._loop.belief.check(reading.location, reading.value, reading.noise_variance)
        return replace(reading, position=None)

    def use(self, reading: Reading) -> None:
        """Use an answer that has been journalled."""
        self._loop.inform([reading])
        self.books.note(reading)
        if not self.books.missing:
            self._advance_belief(reading.stamp_ns)

    def _advance_belief(self, now_ns: int) -> None:
        """Update the belief to the time of an answer."""
        self._loop.advance(now_ns)
        try:
            self._loop.belief.weights  # noqa: B018  computed on being asked
        except ActiveSensingError as error:
            self.books.reject("belief_error")
            logger.error("the belief cannot be computed: %s", error)

    # -- from the journal --------------------------------------------------------------------------

    def replay_query(self, event: ExpertAsked) -> None:
        """After a restart, restore a journalled query."""
        if event.given_up:
            self.books.cancel()
        else:
            self._begin(event.places, event.time_ns)

    def restore(self, rejected: Mapping[str, int]) -> None:
        """After a restart, restore the number of rejected answers for each reason."""
        for reason, number in rejected.items():
            self.books.counts[f"rejected_{reason}"] = number

    def ask_for_missing(self) -> None:
        """After a restart, repeat the query for the places without an answer."""
        self._ask_again = self.books.open and bool(self.books.missing)
