"""Track places that a probe has passed before their readings arrived.

With `waypoint.ahead` above 1 a probe drives on when it arrives. Its stage then waits in
`PassedPlaces`. The next decisions are planned as if the place had been read. A reading is assigned
to the probe's place at the reading's stamp, not at its arrival. If no reading comes in time, the
visit counts as missed, and the place may be chosen again.
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

    Probes do so if `waypoint.ahead` is above 1. There are four exceptions: a sensor that has to
    settle, decisions in rounds, `mission.follow: probe`, and a policy that reads places repeatedly.
    """
    mission = config.mission
    stops = mission.settle > 0.0 or mission.together or mission.follow == "probe"
    return config.waypoint.ahead > 1 and not stops and not loop.revisits


@dataclass
class _PassedPlace:
    stage: Stage
    since_ns: int

    @property
    def place(self) -> int:
        return self.stage.plan.waypoints[0]


class PassedPlaces:
    """Stages of a probe that wait for a reading; used under the mission's lock.

    Args:
        loop: the engine, which reserves a reading for each waiting stage.
        lead: name of the quantity whose readings complete a visit; "" = the main quantity.
    """

    def __init__(self, loop: SensingLoop, probe: str, lead: str) -> None:
        self._loop, self._probe, self._lead = loop, probe, lead
        self._visits: list[_PassedPlace] = []

    def __len__(self) -> int:
        return len(self._visits)

    @property
    def numbers(self) -> list[int]:
        """Numbers of the waiting stages, oldest first."""
        return [visit.stage.number for visit in self._visits]

    @property
    def ways(self) -> list[int]:
        """Places on the ways of the waiting stages; each way ends at the stage's place."""
        return [place for visit in self._visits for place in visit.stage.plan.path]

    def pending(self) -> set[int]:
        """Return the unread places of the stages, and the available unread places on their ways."""
        observed = self._loop.belief_of(self._lead).observed
        waiting = [visit for visit in self._visits if not observed[visit.place]]
        unread = {p for v in waiting for p in v.stage.plan.path if not observed[p]}
        return unread.difference(self._loop.unavailable) | {visit.place for visit in waiting}

    def add(self, stage: Stage, now_ns: int) -> None:
        """Add a stage whose place the probe has reached."""
        self._visits.append(_PassedPlace(stage, now_ns))
        self._loop.reservations.hand_on(self._probe, self._key(stage))

    def note(self, reading: Reading) -> None:
        """Record a reading that was used."""
        for visit in self._visits:
            if visit.place == reading.location and visit.stage.value is None:
                visit.stage = replace(visit.stage, value=reading.value)

    def pop_read(self) -> list[Stage]:
        """Remove and return the stages whose place has been read."""
        observed = self._loop.belief_of(self._lead).observed
        return self._pop([visit for visit in self._visits if observed[visit.place]])

    def pop_all(self) -> list[Stage]:
        """Remove and return all stages."""
        return self._pop(self._visits)

    def overdue(self, now_ns: int, seconds: float) -> list[int]:
        """Return the places whose stages have waited for `seconds`, oldest first."""
        return [v.place for v in self._visits if now_ns - v.since_ns >= 1e9 * seconds]

    def places_of(self, numbers: Collection[int]) -> list[int]:
        """Return the places of the stages with the given numbers."""
        return [visit.place for visit in self._visits if visit.stage.number in numbers]

    def miss(self, place: int, *, again: bool) -> Stage:
        """Remove and return the stage of a place whose visit was missed."""
        visit = next(visit for visit in self._visits if visit.place == place)
        self._pop([visit])
        return replace(visit.stage, again=again)

    def wait_again(self, now_ns: int) -> None:
        """Restart the waiting time of all stages."""
        for visit in self._visits:
            visit.since_ns = now_ns

    def skip(self, step_ns: int) -> None:
        """Exclude a jump of the node's clock [ns] from the waiting times."""
        for visit in self._visits:
            visit.since_ns += step_ns

    def _pop(self, visits: list[_PassedPlace]) -> list[Stage]:
        gone = {visit.stage.number for visit in visits}
        self._visits = [visit for visit in self._visits if visit.stage.number not in gone]
        for visit in visits:
            self._loop.reservations.drop(self._key(visit.stage))
        return [visit.stage for visit in visits]

    def _key(self, stage: Stage) -> str:
        return f"{self._probe} passed {stage.number}"  # names of probes contain no blank
