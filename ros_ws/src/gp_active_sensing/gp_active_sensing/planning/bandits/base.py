"""What all searches for hot spots share: goals in reach, scores, and the way to the best one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from gp_active_sensing.belief import Belief
from gp_active_sensing.config import param
from gp_active_sensing.planning.bandits.view import View, view_of
from gp_active_sensing.planning.base import PlanRequest, PolicyState, candidates_of, no_plan
from gp_active_sensing.planning.reachability import ReachableGoals, reachable_goals
from gp_active_sensing.topology.base import Topology
from gp_active_sensing.types import Budget, CandidateValue, FloatArray, IntArray, Plan, Route
from gp_active_sensing.util.ties import by_size, first_best, ties

__all__ = ["Bandit", "best_of", "candidate_values", "next_state", "stage_of", "way_toward"]

MOST_CANDIDATES = 100
"""Candidates that a plan tells of: the best ones."""


@dataclass(frozen=True)
class Bandit(ABC):
    """A policy that goes to the place with the largest score, observed or not.

    Of equals, as all places may be before the first reading, to the one that is reached first.

    A new one overrides `scores`. Places may be read again: where the field is highest, another
    reading there is what a search for it wants.
    """

    revisits: ClassVar[bool] = True
    """Observed places may be chosen again; a visit costs one reading of the budget."""

    objective: str = param(
        "maximise",
        help="what is looked for: the highest or the lowest value of the field",
        choices=("maximise", "minimise"),
    )
    toward: str = param(
        "route",
        help="where places are joined: drive to the goal, or to the next place that tells most "
        "about it",
        choices=("route", "step"),
    )

    @property
    def sign(self) -> float:
        """1 where the field is maximised, -1 where it is minimised."""
        return 1.0 if self.objective == "maximise" else -1.0

    @abstractmethod
    def scores(self, view: View, belief: Belief, rng: np.random.Generator) -> FloatArray:
        """Return the (m,) score of visiting each of ``view.locations`` next; finite."""

    def view(
        self, belief: Belief, locations: IntArray, pending: Collection[int], stage: int
    ) -> View:
        """Return what is seen of a belief; see `view_of`."""
        return view_of(belief, locations, pending, stage=stage, sign=self.sign)

    def plan(self, request: PlanRequest, state: PolicyState = None) -> tuple[Plan, PolicyState]:
        """Choose the next place; see `Policy.plan`. The state counts the decisions so far."""
        belief, topology, at = request.belief, request.topology, request.at
        pending = request.pending
        started = request.clock()
        reach = reachable_goals(
            belief, topology, at, pending, request.unavailable, request.remaining
        )
        if reach.reason:
            return no_plan(reach.reason), state
        view = self.view(belief, reach.locations, pending, stage_of(state))
        values = self.scores(view, belief, request.rng)
        best = best_of(values, reach.seconds)
        waypoints, route = self.way(
            reach, best, belief, topology, at, pending, request.unavailable, request.remaining
        )
        plan = Plan(
            waypoints=waypoints,
            lower=float(values[best]),
            upper=float(values[best]),
            expanded=1,
            seconds=request.clock() - started,
            deadline_hit=False,
            path=route.path,
            cost=route.cost,
            candidates=candidate_values(reach.locations, values, best),
        )
        return plan, next_state(state)

    def way(
        self,
        reach: ReachableGoals,
        index: int,
        belief: Belief,
        topology: Topology,
        at: int | None,
        pending: Collection[int],
        unavailable: Collection[int],
        remaining: Budget,
    ) -> tuple[tuple[int, ...], Route]:
        """Return waypoints and way to goal number `index`, as `toward` says."""
        if self.toward == "step" and not topology.free:
            return way_toward(reach, index, belief, topology, at, pending, unavailable, remaining)
        return (int(reach.locations[index]),), reach.route(index)


def stage_of(state: PolicyState) -> int:
    """Return the number t ≥ 1 of the decision that is to be taken, from a policy's state."""
    return 1 if state is None else int(state["stage"]) + 1


def next_state(state: PolicyState, **more: Any) -> dict[str, Any]:
    """Return the state after one more decision; what else is in it stays, or is as given."""
    return {**(state or {}), "stage": stage_of(state), **more}


def best_of(values: FloatArray, seconds: FloatArray) -> int:
    """Return the number of the largest of (m,) scores; of ties that of the shortest drive."""
    equals = np.flatnonzero(ties(values))
    return int(equals[first_best(-seconds[equals])])


def candidate_values(
    locations: IntArray, values: FloatArray, chosen: int | None = None
) -> tuple[CandidateValue, ...]:
    """Return the scores (m,) of the best candidates, by place.

    Args:
        locations: (m,) places.
        values: (m,) their scores.
        chosen: number of the one that was chosen; it is told of whatever its score.
    """
    kept = np.arange(locations.size)
    if locations.size > MOST_CANDIDATES:
        kept = by_size(values)[:MOST_CANDIDATES]
        if chosen is not None and chosen not in kept:
            kept[-1] = chosen
        kept.sort()
    return tuple(
        CandidateValue(x, v, v)
        for x, v in zip(locations[kept].tolist(), values[kept].tolist(), strict=True)
    )


def way_toward(
    reach: ReachableGoals,
    index: int,
    belief: Belief,
    topology: Topology,
    at: int | None,
    pending: Collection[int],
    unavailable: Collection[int],
    remaining: Budget,
) -> tuple[tuple[int, ...], Route]:
    """Return waypoints and way to the next place that is nearest in information to a goal.

    Of the unobserved places that a probe may observe next (`Topology.candidates`), the one with the
    largest ``Σ_λ b(λ) |ρ_λ|``, ρ its posterior correlation with the goal. A goal that is next
    itself, or the lack of any such place, leads straight to the goal.

    Returns:
        ``(step, goal)`` and the way to the step; ``(goal,)`` and the way to the goal.
    """
    goal = int(reach.locations[index])
    straight = (goal,), reach.route(index)
    if len(straight[1].path) == 1:
        return straight
    options = candidates_of(belief, topology, at, pending, unavailable, remaining)
    if not options.locations.size or goal in options.locations:
        return straight
    steps = options.locations
    joint = belief.cross(np.array([goal], dtype=np.int64))[:, 0]
    _, variance = belief.marginals()
    scale = np.sqrt(np.maximum(variance[:, steps] * variance[:, [goal]], np.finfo(float).tiny))
    nearness = belief.weights @ np.abs(joint[:, steps] / scale)
    best = int(first_best(nearness))
    return (int(steps[best]), goal), options.routes[best]
