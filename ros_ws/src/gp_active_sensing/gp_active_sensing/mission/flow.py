"""Keep the places that a probe has passed and whose readings are still to come.

A probe that need not stop (`waypoint.ahead` above 1) is sent on when it arrives. Its stage then
waits here, while the next decisions are planned as if its place had been read. Readings find the
place by the time at which they were taken, so that one that is seconds late is placed behind the
probe. Without a reading in time the visit counts as missed, and the place may be chosen again.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from gp_active_sensing.loop import SensingLoop
from gp_active_sensing.mission.config import ActiveSensingConfig
from gp_active_sensing.mission.requests import Stage
from gp_active_sensing.types import Reading


def flows(config: ActiveSensingConfig, loop: SensingLoop) -> bool:
    """Return whether probes drive on before their readings have arrived.

    Not where a sensor has to settle, where they are decided for in rounds, and where a policy reads
    places again, since it has to know what it has read.
    """
    mission = config.mission
    stops = mission.settle > 0.0 or mission.together or mission.follow == "probe"
    return config.waypoint.ahead > 1 and not stops and not loop.revisits


@dataclass
class _PassedPlace:
    """A place that a probe has left again."""

    stage: Stage
    since_ns: int

    @property
    def place(self) -> int:
        """The place to be read."""
        return self.stage.plan.waypoints[0]


class PassedPlaces:
    """Stages of a probe that wait for the reading of their place; used under the mission's lock.

    Args:
        loop: the engine; what it keeps for these places is kept under names of their own.
        lead: name of the quantity whose readings complete a visit; "" = the main one.
    """

    def __init__(self, loop: SensingLoop, probe: str, lead: str = "") -> None:
        self._loop = loop
        self._lead = lead
        self._probe = probe
        self._visits: list[_PassedPlace] = []

    def __len__(self) -> int:
        return len(self._visits)

    @property
    def numbers(self) -> list[int]:
        """Numbers of the stages, the oldest first."""
        return [visit.stage.number for visit in self._visits]

    @property
    def ways(self) -> list[int]:
        """These places and those on the ways to them."""
        return [place for visit in self._visits for place in visit.stage.plan.path]

    def pending(self) -> set[int]:
        """Return the places whose readings are still to come, those on the ways included."""
        loop = self._loop
        observed = loop.belief_of(self._lead).observed
        waiting = [visit for visit in self._visits if not observed[visit.place]]
        unread = {p for v in waiting for p in v.stage.plan.path if not observed[p]}
        return unread.difference(loop.unavailable) | {visit.place for visit in waiting}

    def add(self, stage: Stage, now_ns: int) -> None:
        """Wait for the reading of a stage whose place has been reached."""
        self._visits.append(_PassedPlace(stage, now_ns))
        self._loop.reservations.hand_on(self._probe, self._key(stage))

    def note(self, reading: Reading) -> None:
        """Record a reading that was used."""
        for visit in self._visits:
            if visit.place == reading.location and visit.stage.value is None:
                visit.stage = replace(visit.stage, value=reading.value)

    def take_read(self) -> list[Stage]:
        """Return the stages whose place has been read by now; they wait no more."""
        observed = self._loop.belief_of(self._lead).observed
        read = [visit.stage for visit in self._visits if observed[visit.place]]
        for stage in read:
            self._drop(stage)
        return read

    def take_all(self) -> list[Stage]:
        """Return every stage and stop waiting for all."""
        found = [visit.stage for visit in self._visits]
        for stage in found:
            self._drop(stage)
        return found

    def overdue(self, now_ns: int, seconds: float) -> list[int]:
        """Return the places that have been waited for long enough, the oldest first."""
        return [v.place for v in self._visits if now_ns - v.since_ns >= 1e9 * seconds]

    def places_of(self, numbers: Collection[int]) -> list[int]:
        """Return the places of some stages."""
        return [visit.place for visit in self._visits if visit.stage.number in numbers]

    def miss(self, place: int, *, again: bool) -> Stage:
        """Return the stage of a place and stop waiting for it."""
        stage = next(visit.stage for visit in self._visits if visit.place == place)
        self._drop(stage)
        return replace(stage, again=again)

    def wait_again(self, now_ns: int) -> None:
        """Wait for all readings from now on."""
        for visit in self._visits:
            visit.since_ns = now_ns

    def skip(self, step_ns: int) -> None:
        """Ignore a jump of the clock [ns] in the waiting times."""
        for visit in self._visits:
            visit.since_ns += step_ns

    def _drop(self, stage: Stage) -> None:
        self._visits = [v for v in self._visits if v.stage.number != stage.number]
        self._loop.reservations.drop(self._key(stage))

    def _key(self, stage: Stage) -> str:
        return f"{self._probe} passed {stage.number}"  # no probe has a name with blanks
