"""Requests and outputs of a mission: decisions to compute, waypoints, finished stages."""

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
        value: mean of the readings of its place (of `went`); None when it was set aside.
        driven: by its probe, since the mission began.
        stamp_ns: when it ended, on the node's clock.
        probe: its name, "" where there is one.
        went: place that was observed instead of the waypoint, when the mission follows the probe.
        visits: readings of the budget that the mission has spent, where the policy may choose
            observed places again.
        again: no reading of the place came, and it may be visited again.
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
    """A decision to be taken beside the mission, on a copy of the engine.

    It is a job for the planner thread. What the policy is asked with is a
    `planning.base.PlanRequest`, which `loop` makes of it.

    Args:
        loop: the copy; only the planner uses it.
        at: where the probe stands.
        number: of this job; an answer to an older one is not used.
        decide: take a decision; otherwise the copy is only there to be shown.
        finished: the stage that ended, which the copy's belief includes.
        since: when the message that made the decision necessary came (monotonic seconds).
        last: the mission is over when the copy has been shown.
        probe: which one it is for.
        pending: waypoints of the other probes, and `passed`.
        passed: places that were left again, and whose readings are still to come.
        waiting: other probes that wait for a decision, and where each of them stands.
        now_ns: when the decision was asked for, on the node's clock; None = nothing depends on it.
        heading: of the probe [rad]; None = not known.
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
    """Where an expert is to be asked before the next decision, to be found beside the mission.

    Args:
        loop: a copy of the engine; only the planner uses it.
        places: where the expert can be asked; None = anywhere.
        number: of this job; an answer to an older one is not used.
        now_ns: when it was asked for, on the node's clock.
    """

    loop: SensingLoop
    places: tuple[int, ...] | None
    number: int
    now_ns: int

    def ask(self) -> tuple[int, ...]:
        """Find the places on the copy."""
        self.loop.advance(self.now_ns)
        return self.loop.queries(self.places)


@dataclass(frozen=True)
class MissionOutput:
    """Action after a step.

    Args:
        job: for the planner.
        again: a place whose waypoint is to be sent again.
        leg: the next waypoint on the way under way, for a robot that is not told the whole way.
        hold: the probe is to stay where it is.
        probe: which one `again`, `leg` and `hold` are for.
        query: places that an expert is to be asked for.
    """

    job: DecisionRequest | ExpertRequest | None = None
    again: int | None = None
    leg: int | None = None
    hold: bool = False
    probe: str = ""
    query: tuple[int, ...] = ()
