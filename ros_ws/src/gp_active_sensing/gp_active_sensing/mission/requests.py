"""Requests of a mission to the planner thread, and the resulting actions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gp_active_sensing.loop import SensingLoop
from gp_active_sensing.types import Cost, Plan


@dataclass(frozen=True)
class Stage:
    """Decision and its result.

    Args:
        number: 1 for the first stage of the mission.
        value: mean of the readings at the place (or at `went`); None = there was no reading.
        driven: cost of all drives of the probe since the start of the mission.
        stamp_ns: end of the stage on the node's clock [ns].
        probe: name of the probe; "" for a single probe.
        went: place that was observed instead of the waypoint, with `mission.follow: probe`.
        visits: readings of the mission so far; None = the policy never chooses observed places.
        again: True = the place had no reading and may be visited again.
    """

    number: int
    plan: Plan
    value: float | None
    driven: Cost
    stamp_ns: int
    probe: str = ""
    went: int | None = None
    visits: int | None = None
    again: bool = False


@dataclass(frozen=True)
class DecisionRequest:
    """Job for the planner thread: compute a decision or show the belief, on a copy of the engine.

    Args:
        at: place of the probe; None = not on the map.
        number: number of the job; the plan of an outdated job is not used.
        finished: stage that ended before the job; the belief of `loop` includes its readings.
        since: arrival of the message that caused the decision (monotonic seconds).
        decide: True = compute a decision; False = show the belief.
        last: True = the mission is over after this display of the belief.
        pending: waypoints of the other probes, and the places in `passed`.
        passed: places that probes have passed and whose readings have not come yet.
        waiting: for each other probe that waits for a decision, its name and its place.
        now_ns: time of the request on the node's clock [ns]; None if `decide` is False.
        heading: heading of the probe [rad]; None = unknown.
        carried: names of the quantities that the probe measures; None = all.
    """

    loop: SensingLoop
    at: int | None
    number: int
    finished: Stage | None
    since: float
    decide: bool = True
    last: bool = False
    probe: str = ""
    pending: tuple[int, ...] = ()
    passed: tuple[int, ...] = ()
    waiting: Mapping[str, int | None] = field(default_factory=dict)
    now_ns: int | None = None
    heading: float | None = None
    carried: tuple[str, ...] | None = None

    def ask(self) -> Plan:
        """Compute the decision on the copy of the engine."""
        return self.loop.ask(
            self.at,
            pending=self.pending,
            passed=self.passed,
            probe=self.probe,
            waiting=self.waiting,
            now_ns=self.now_ns,
            heading=self.heading,
            carried=self.carried,
        )


@dataclass(frozen=True)
class ExpertRequest:
    """Job for the planner thread: choose the places to ask an expert about.

    Args:
        loop: copy of the engine, used by the planner thread only.
        places: places at which the expert can answer; None = all.
        number: number of the job; the result of an outdated job is not used.
        now_ns: time of the request on the node's clock [ns].
    """

    loop: SensingLoop
    places: tuple[int, ...] | None
    number: int
    now_ns: int

    def ask(self) -> tuple[int, ...]:
        """Return the places to ask about."""
        self.loop.advance(self.now_ns)
        return self.loop.queries(self.places)


@dataclass(frozen=True)
class MissionOutput:
    """Action that results from a step of the mission.

    Args:
        job: job for the planner thread.
        again: place whose waypoint is published again.
        leg: next waypoint on the way to the target.
        hold: True = the probe must stop.
        probe: name of the probe to which `again`, `leg` and `hold` apply.
        query: places to ask the expert about.
    """

    job: DecisionRequest | ExpertRequest | None = None
    again: int | None = None
    leg: int | None = None
    hold: bool = False
    probe: str = ""
    query: tuple[int, ...] = ()
