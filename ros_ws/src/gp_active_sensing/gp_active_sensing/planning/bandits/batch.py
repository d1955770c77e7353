"""Base class of policies that choose goals for several probes together."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple, TypeAlias

import numpy as np

from gp_active_sensing.belief import Belief
from gp_active_sensing.planning.bandits.acquisition import MaximumEstimate, gap_width
from gp_active_sensing.planning.bandits.base import (
    Bandit,
    View,
    next_state,
    plan_to,
    stage_of,
    view_of,
)
from gp_active_sensing.planning.bandits.gp_ucb import Schedule
from gp_active_sensing.planning.base import PolicyState, no_plan
from gp_active_sensing.planning.budget import ReachableGoals, reachable_goals
from gp_active_sensing.planning.request import PlanRequest
from gp_active_sensing.topology.base import Topology
from gp_active_sensing.types import Budget, FloatArray, IntArray, Plan

Widths: TypeAlias = Callable[[int, IntArray, FloatArray], float]
"""Function that returns √β_t for a stage t ≥ 1, places (m,), and standard deviations (m,)."""


@dataclass(frozen=True)
class BySchedule(Schedule):
    """Configuration keys for the confidence widths ``√β_t`` of GP-UCB. [Srinivas2010]."""

    def widths(self, view: View, belief: Belief) -> Widths:
        """Return the function that computes √β_t; see `Schedule`."""
        return lambda stage, places, std: self.width(stage, view.size, belief)


@dataclass(frozen=True)
class ByEstimate(MaximumEstimate):
    """Configuration keys for the confidence widths of EST. [Kathuria2016, Lemma 3.1].

    The width is ``√β_t = min_x (m̂ - μ(x))/σ(x)``, where x runs over the places to choose from. The
    estimate m̂ of the maximum over the whole map is computed at the start of the batch. The place x
    with the minimum also has the largest ``μ + √β_t σ``.
    """

    def widths(self, view: View, belief: Belief) -> Widths:
        """Return the function that computes √β_t; see `MaximumEstimate`."""
        highest, mean = self.highest(view), view.everywhere[0]
        return lambda stage, places, std: max(gap_width(highest, mean[places], std), 0.0)


def assign(costs: FloatArray) -> list[int | None]:
    """Assign goals to as many probes as possible, so that the total cost is least. [Kuhn1955].

    Args:
        costs: (k, g) cost for each probe to drive to each goal; infinite if there is no route.

    Returns:
        Index of the goal of each probe; None for a probe without a goal.

    Raises:
        ValueError: a cost is negative or not a number.
    """
    from scipy.optimize import linear_sum_assignment

    costs = np.asarray(costs, dtype=np.float64)
    if costs.ndim != 2 or np.isnan(costs).any() or (costs < 0.0).any():
        msg = f"expected costs (k, g), zero or more each, got {costs.tolist()}"
        raise ValueError(msg)
    possible = np.isfinite(costs)
    # An impossible drive costs more than all possible drives together, so it is the last resort.
    expensive = 1.0 + float(costs[possible].sum())
    rows, columns = linear_sum_assignment(np.where(possible, costs, expensive))
    goals: list[int | None] = [None] * costs.shape[0]
    for row, column in zip(rows.tolist(), columns.tolist(), strict=True):
        if possible[row, column]:
            goals[row] = column
    return goals


class Start(NamedTuple):
    """Data for the choice of a batch.

    Args:
        view: means and standard deviations of the field; pending places have no effect on them.
            ``view.stage`` is the index t of the reading of the first member. If `Batch.in_rounds`
            is True, it is the index t of the batch instead.
        belief: belief over the field before any member is observed.
        topology: the map.
        members: places of the batch so far; they are the waypoints of other probes.
        lead: first member of the batch; None = not chosen yet.
        widths: function that computes the confidence width √β_t.
    """

    view: View
    belief: Belief
    topology: Topology
    members: tuple[int, ...]
    lead: int | None
    widths: Widths

    @property
    def stage(self) -> int:
        """Index t ≥ 1 of the reading of the next member, for policies whose t counts readings."""
        return self.view.stage + len(self.members)

    def upper(self) -> FloatArray:
        """Return the upper confidence bounds ``f⁺ = μ + √β_t σ`` (m,) for the first member."""
        mean, std = self.view.mean, self.view.std
        return mean + self.widths(self.view.stage, self.view.locations, std) * std


@dataclass(frozen=True)
class Batch(Bandit):
    """Base class of policies that choose a batch of goals for several probes.

    Probes that wait at the same time get their goals together, so that the total driving time is
    minimal. A probe that waits alone gets the next member of the current batch. A new policy
    overrides `choose`.
    """

    in_rounds: ClassVar[bool] = False
    """True: t of β_t counts batches. False: t counts readings."""

    @abstractmethod
    def choose(self, start: Start, size: int, rng: np.random.Generator) -> list[int]:
        """Choose the next `size` members of the batch, as indices into ``start.view.locations``."""

    @abstractmethod
    def widths(self, view: View, belief: Belief) -> Widths:
        """Return the function that computes √β_t, for a batch that starts with `belief`."""

    def scores(self, view: View, belief: Belief, rng: np.random.Generator) -> FloatArray:
        """Return ``μ + √β_t σ`` [unit of the readings]."""
        width = self.widths(view, belief)(view.stage, view.locations, view.std)
        return view.mean + width * view.std

    def plan(self, request: PlanRequest, state: PolicyState = None) -> tuple[Plan, PolicyState]:
        """Choose the next member of the current batch; see `Policy.plan`."""
        plans, state = self.plan_batch(request, [request.at], state)
        return plans[0], state

    def plan_batch(
        self,
        request: PlanRequest,
        at: Sequence[int | None],
        state: PolicyState = None,
    ) -> tuple[list[Plan], PolicyState]:
        """Choose the next places of several probes together; see `BatchPolicy`.

        The choice ignores ``request.limit``.
        """
        clock = request.clock
        started = clock()
        asked = _BatchQuestion(self, request, state)
        goals = asked.together(at)
        plans: list[Plan | None] = [None] * len(at)
        spent, taken = 0, list(asked.members)
        # Probes without an assigned goal choose last.
        for i in sorted(range(len(at)), key=lambda i: goals[i] is None):
            others = [goal for goal in goals if goal is not None and goal != goals[i]]
            closed = tuple(dict.fromkeys([*taken, *others]))
            left = request.remaining.minus(readings=spent)
            plan, reads = asked.send(at[i], goals[i], closed, left)
            plans[i] = replace(plan, seconds=clock() - started)
            taken += plan.waypoints
            spent += reads
            if plan.waypoints:
                state = next_state(state, lead=asked.lead, round=asked.round)
        return [plan for plan in plans if plan is not None], state


class _BatchQuestion:
    def __init__(self, policy: Batch, request: PlanRequest, state: PolicyState) -> None:
        self.policy, self.request, self.belief = policy, request, request.belief
        pending = tuple(request.pending)
        self.members = tuple(dict.fromkeys(pending))
        """Members of the batch so far, which must not be chosen again."""
        lead = None if state is None else state.get("lead")
        self.lead: int | None = lead if lead in self.members else None
        """First member of the batch, as long as this member is pending; None otherwise."""
        rounds = 0 if state is None else int(state.get("round", state["stage"]))
        self.round = rounds + 1 if self.lead is None else max(rounds, 1)
        """Index t ≥ 1 of the batch."""
        # The batch began before its pending members were chosen.
        first = max(stage_of(state) - len(pending), 1)
        self.stage = self.round if policy.in_rounds else first
        """Index t of β_t for the first member of the batch."""
        self.locations: IntArray = np.empty(0, dtype=np.int64)
        self.values: FloatArray = np.empty(0)

    def start(self, locations: IntArray, members: tuple[int, ...]) -> Start:
        view = view_of(self.belief, locations, stage=self.stage, sign=self.policy.sign)
        widths = self.policy.widths(view, self.belief)
        return Start(view, self.belief, self.request.topology, members, self.lead, widths)

    def chosen(self, start: Start, size: int) -> IntArray:
        places = start.view.locations[self.policy.choose(start, size, self.request.rng)]
        if self.lead is None:
            self.lead = int(places[0])
        return places

    def worth(self, locations: IntArray) -> FloatArray:
        """Return the scores of `locations`. Pending places count as observed."""
        policy = self.policy
        view = view_of(self.belief, locations, self.members, stage=self.stage, sign=policy.sign)
        return policy.scores(view, self.belief, self.request.rng)

    def values_at(self, locations: IntArray) -> FloatArray:
        found = np.minimum(np.searchsorted(self.locations, locations), self.locations.size - 1)
        if (self.locations[found] == locations).all():
            return self.values[found]
        return self.worth(locations)

    def together(self, at: Sequence[int | None]) -> list[int | None]:
        """Return the goal of each probe; None for a probe without a goal."""
        request = self.request
        reaches = [reachable_goals(replace(request, at=x, pending=self.members)) for x in at]
        able = [i for i, reach in enumerate(reaches) if not reach.reason]
        goals: list[int | None] = [None] * len(at)
        if not able:
            return goals
        self.locations = np.unique(np.concatenate([reaches[i].locations for i in able]))
        start = self.start(self.locations, self.members)
        self.values = self.worth(self.locations) if self.members else start.upper()
        size = min(len(able), self.locations.size)
        if (left := request.remaining.readings) is not None:
            size = min(size, left)  # at least 1
        places = self.chosen(start, size)
        costs = np.array([_seconds_to(places, reaches[i]) for i in able])
        for i, column in zip(able, assign(costs), strict=True):
            if column is not None:
                goals[i] = int(places[column])
        return goals

    def send(
        self, at: int | None, goal: int | None, closed: tuple[int, ...], left: Budget
    ) -> tuple[Plan, int]:
        """Return the plan of a probe at `at`, and the largest number of readings on its drive.

        If the assigned `goal` is None or exceeds the budget `left`, another goal is chosen.
        """
        reach = reachable_goals(replace(self.request, at=at, pending=closed, remaining=left))
        if reach.reason:
            return no_plan(reach.reason), 0
        found = np.flatnonzero(reach.locations == goal)
        if found.size:
            index = int(found[0])
        else:
            (other,) = self.chosen(self.start(reach.locations, closed), 1)
            index = int(np.searchsorted(reach.locations, other))
        plan = plan_to(reach, index, self.values_at(reach.locations))
        return plan, int(reach.reads[index])


def _seconds_to(places: IntArray, reach: ReachableGoals) -> FloatArray:
    seconds = np.full(places.size, np.inf)
    found = np.minimum(np.searchsorted(reach.locations, places), reach.locations.size - 1)
    there = reach.locations[found] == places
    seconds[there] = reach.seconds[found[there]]
    return seconds
