"""What the mission thread hands out: a stage that ended, a decision to take, a step's result."""

from __future__ import annotations

from dataclasses import dataclass

from gp_active_sensing.loop import SensingLoop
from gp_active_sensing.types import Cost, Plan

__all__ = ["PlanJob", "Stage", "Step"]


@dataclass(frozen=True)
class Stage:
    """A decision and what came of it.

    Args:
        number: 1 for the first.
        plan: the decision.
        value: mean of the readings of its place; None when it was set aside.
        driven: since the mission began.
        stamp_ns: when it ended, on the node's clock.
    """

    number: int
    plan: Plan
    value: float | None
    driven: Cost
    stamp_ns: int


@dataclass(frozen=True)
class PlanJob:
    """A decision to be taken beside the mission, on a copy of the engine.

    Args:
        loop: the copy; only the planner uses it.
        at: where the probe stands.
        number: of this job; an answer to an older one is not used.
        decide: take a decision; otherwise the copy is only there to be shown.
        finished: the stage that ended, which the copy's belief includes.
        since: when the message that made the decision necessary came (monotonic seconds).
    """

    loop: SensingLoop
    at: int | None
    number: int
    finished: Stage | None
    since: float
    decide: bool = True


@dataclass(frozen=True)
class Step:
    """What is to be done after a step: a decision to take, a waypoint to send again."""

    job: PlanJob | None = None
    again: int | None = None
