"""Ask the expert of a simulated mission before a decision, and wait for its answers.

While it waits time passes, for the field, the budget of seconds and the second probe alike; with a
time-out of 0 it goes by what has come. So a wait costs what it costs a robot.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from typing import Any

from gp_active_sensing.errors import ReadingError
from gp_active_sensing.experts import QueryLog, SimulatedExpert, build_expert
from gp_active_sensing.loop import SensingLoop
from gp_active_sensing.planning.budget import BudgetConstraint, in_metres
from gp_active_sensing.records.events import expert_event, finite, reading_event, reading_of
from gp_active_sensing.sim.scenario import Scenario
from gp_active_sensing.sim.world import World
from gp_active_sensing.types import Cost, FloatArray, IntArray, Reading

__all__ = ["SimulatedQueries", "expert_of"]

logger = logging.getLogger(__name__)


def expert_of(scenario: Scenario, world: World) -> SimulatedExpert | None:
    """Return the expert of a scenario, who knows its truth; None where there is none.

    Raises:
        ConfigError: stations or a start that are no places of the map.
    """

    def field(places: IntArray, seconds: float) -> FloatArray:
        return world.truth.at(seconds)[places]

    return build_expert(scenario.expert, world.topology, field, scenario.seed)


class SimulatedQueries:
    """Asks an expert before each decision of a simulated mission.

    Args:
        expert: the one of the scenario.
        scenario: how long it is waited for.
        loop: the engine, which is informed.
    """

    def __init__(self, expert: SimulatedExpert, scenario: Scenario, loop: SensingLoop) -> None:
        self.books = QueryLog(loop.topology, scenario.expert)
        self.waited = 0.0
        """In all [s]."""
        self._expert = expert
        self._loop = loop
        self._last: dict[str, int] = {}

    def consult(self, at: int | None, seconds: float) -> dict[str, Any] | None:
        """Use what has come, ask, and wait; return the event of it, None when nothing happened.

        Once a decision: nothing happens until it was taken (`settle`).

        Args:
            at: where the probe stands.
            seconds: time of the mission.
        """
        if self.books.open or self._loop.remaining.readings == 0:
            return None
        rejected: list[str] = []
        used = self._take(seconds, rejected)
        late = len(used)
        self._look(seconds)
        places = self._loop.queries(self._expert.places)
        if not (places or used or rejected):
            return None
        self._ask(places, seconds)
        now, until = seconds, seconds + min(self.books.config.timeout, _spare(self._loop, at))
        used += self._take(now, rejected)
        while self.books.missing and now < until:
            due = self._expert.due
            now = until if due is None else min(until, due)
            used += self._take(now, rejected)
        self._look(now)
        self._wait(now - seconds)
        return expert_event(
            places,
            [reading_event(reading) for reading in used],
            late=late,
            waited=now - seconds,
            rejected=rejected,
            stamp_ns=round(1e9 * seconds),
        )

    def replay(self, event: Mapping[str, Any], seconds: float) -> float:
        """Take the event of an earlier run; return how long was waited [s].

        The expert is asked again, so that what is on its way to the mission still comes.

        Raises:
            RunError, KeyError, TypeError, ValueError: it is none.
        """
        waited, late = finite(event, "waited"), int(event["late"])
        answers = [reading_of(answer) for answer in event["answers"]]
        self._expert.answers(seconds)
        for reading in answers[:late]:
            self._use(reading)
        self._look(seconds)
        self._ask(tuple(int(place) for place in event["places"]), seconds)
        self._expert.answers(seconds + waited)
        for reading in answers[late:]:
            self._use(reading)
        for reason in event["rejected"]:
            self.books.reject(str(reason))
        self._look(seconds + waited)
        self._wait(waited)
        return waited

    def settle(self) -> None:
        """Record that the decision was taken."""
        self.books.settle()

    def record(self) -> dict[str, int]:
        """Return the counts since this was last asked, for the record of a stage."""
        counts, words = self.books.counts, ("asked", "used")
        new = {f"expert_{w}": counts[w] - self._last.get(w, 0) for w in words}
        self._last = {w: counts[w] for w in words}
        return new

    def to_mapping(self) -> dict[str, Any]:
        """Return what came of all questions, for the summary."""
        counts = self.books.to_mapping()
        return {**counts, "waited_seconds": self.waited} if counts else {}

    def _ask(self, places: tuple[int, ...], seconds: float) -> None:
        self.books.forget_before(seconds)
        self.books.begin(places, seconds)
        if places:
            self._expert.ask(places, seconds)

    def _take(self, seconds: float, rejected: list[str]) -> list[Reading]:
        """Use what has come by a time; return what was used."""
        used: list[Reading] = []
        for answer in self._expert.answers(seconds):
            try:
                reading = self.books.check(answer, seconds)
                self._loop.belief.check(_place(reading), reading.value, reading.noise_variance)
            except ReadingError as error:
                rejected.append(error.reason)
                count = self.books.reject(error.reason)
                level = logging.WARNING if count == 1 else logging.DEBUG
                logger.log(level, "an answer of the expert is not used: %s", error)
                continue
            self._use(reading)
            used.append(reading)
        return used

    def _use(self, reading: Reading) -> None:
        self._loop.inform([reading])
        self.books.note(reading)

    def _look(self, seconds: float) -> None:
        """Bring the belief up to a time now, live and from a journal alike: equal to the bit."""
        self._loop.advance(round(1e9 * seconds))
        self._loop.belief.weights  # noqa: B018  computed on being asked

    def _wait(self, seconds: float) -> None:
        self.waited += seconds
        self._loop.moved(Cost(0.0, seconds))


def _place(reading: Reading) -> int:
    assert reading.location is not None  # checked
    return reading.location


def _spare(loop: SensingLoop, at: int | None) -> float:
    """Return how long may be waited at most for the way to the end place to be driven in time."""
    left = loop.remaining.seconds
    if left is None:
        return math.inf
    if at is None or loop.remaining.end is None:
        return max(0.0, left)
    home = BudgetConstraint(loop.topology, in_metres(loop.remaining, loop.speed)).way_home(at)
    if home is None:
        return max(0.0, left)
    taken = home.cost.seconds if loop.speed is None else home.cost.metres / loop.speed
    return max(0.0, left - taken)
