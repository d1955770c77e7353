"""Requests and outputs of a mission: decisions to compute, waypoints, stages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gp_active_sensing.loop import SensingLoop
from gp_active_sensing.types import Cost, Plan


@dataclass(frozen=True)
class Stage:
    """Decision and its result.

    Args:
        number: 1 for the first.
        plan: the decision.
        value: mean of the readings of the place (or of `went`); None = there was no reading.
        driven: total cost of the probe's drives since the start of the mission.
        stamp_ns: end of the stage on the node's clock [ns].
        probe: name of the probe; "" for a single probe.
        went: place that was observed instead of the waypoint, with `mission.follow: probe`.
        visits: number of readings of the mission, if its policy reads places repeatedly; else None.
        again: the place had no reading and may be visited again.
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
    """Job of the planner thread: decision to compute, or belief to show, on a copy of the engine.

    Args:
        loop: copy of the engine, used by the planner thread only.
        at: place of the probe; None = not on the map.
        number: number of the job; the plan of an older job is not used.
        finished: stage that ended before the decision; the copy's belief includes its readings.
        since: arrival of the message that caused the decision (monotonic seconds).
        decide: True = compute a decision; False = show the belief.
        last: True = the mission is over after this display.
        probe: name of the probe.
        pending: waypoints of the other probes, and `passed`.
        passed: places that were left and whose readings are still to come.
        waiting: place of each other probe that waits for a decision, by name.
        now_ns: time of the request on the node's clock [ns]; None for a display.
        heading: heading of the probe [rad]; None = not known.
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
        """Compute the decision on the copy."""
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
    """Job of the planner thread: choose the places to ask an expert about.

    Args:
        loop: copy of the engine, used by the planner thread only.
        places: places at which the expert can answer; None = all.
        number: number of the job; the result of an older job is not used.
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
    """Action that follows a step.

    Args:
        job: job for the planner thread.
        again: place whose waypoint is sent again.
        leg: next waypoint on the present way.
        hold: True = the probe must stop.
        probe: name of the probe of `again`, `leg` and `hold`.
        query: places to ask the expert about.
    """

    job: DecisionRequest | ExpertRequest | None = None
    again: int | None = None
    leg: int | None = None
    hold: bool = False
    probe: str = ""
    query: tuple[int, ...] = ()
