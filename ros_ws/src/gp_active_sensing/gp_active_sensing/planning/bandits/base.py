"""Base class of the policies that search for the highest or lowest value of the field."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from gp_active_sensing.belief import Belief
from gp_active_sensing.belief.mixture import Mixture
from gp_active_sensing.belief.prior import IDENTITY
from gp_active_sensing.config import param
from gp_active_sensing.planning.base import PolicyState, no_plan
from gp_active_sensing.planning.budget import ReachableGoals, reachable_goals
from gp_active_sensing.planning.request import PlanRequest
from gp_active_sensing.types import CandidateValue, FloatArray, IntArray, Plan
from gp_active_sensing.util.groups import nearby_groups
from gp_active_sensing.util.ties import by_size, first_best, ties

MOST_CANDIDATES = 100
"""Largest number of candidate places in a plan."""
MOST_GOALS = 10_000
"""Number of goals up to which every goal is scored."""
# More goals are divided into groups, and the goals of the best groups are divided again.
_GROUPS, _BEST = 500, 25
"""Number of groups into which goals are divided, and number of best groups whose goals are kept."""


@dataclass(frozen=True)
class View:
    """Means and standard deviations of the noise-free field, in the unit of the readings.

    With ``objective: minimise``, means and readings are negated, so that policies maximise.

    Args:
        locations: (m,) places to choose from.
        mean: (m,) expectations of the field at `locations`.
        std: (m,) standard deviations of the field. Pending places count as observed.
        noise_variance: noise variance of a reading, averaged over the hyperparameter candidates. If
            readings are transformed, it is the median of the noise variances at the places.
        best: largest average reading of an observed place; None before the first reading.
        stage: index t ≥ 1 of the decision or of the batch, for the confidence width √β_t.
        size: number of places of the map.
        everywhere: (n,) means and (n,) standard deviations of all places. On a map of more than
            `MOST_GOALS` places, only the examined places are included.
    """

    locations: IntArray
    mean: FloatArray
    std: FloatArray
    noise_variance: float
    best: float | None
    stage: int
    size: int
    everywhere: tuple[FloatArray, FloatArray]


def view_of(
    belief: Belief,
    locations: IntArray,
    pending: Collection[int] = (),
    *,
    stage: int = 1,
    sign: float = 1.0,
    only: bool = False,
) -> View:
    """Return the means and standard deviations of the field, for the scores of a policy.

    The field is a mixture over the hyperparameter candidates λ with the weights b(λ), so
    ``μ = Σ b μ_λ`` and ``σ² = Σ b (σ_λ² + (μ_λ - μ)²)``.

    Args:
        belief: belief over the field; it is not changed.
        locations: (m,) places to choose from.
        pending: places that other probes are going to observe.
        stage: index t ≥ 1 of the decision or of the batch, for the confidence width √β_t.
        sign: 1 to maximise the field, -1 to minimise it.
        only: True to examine only `locations`; False to examine the whole map.
    """
    mean, variance = latent_given_pending(belief, pending, locations if only else None)
    noise, found = belief.noise_variance, Mixture(belief.weights, mean, variance, belief.transform)
    centre, spread = found.moments()
    if belief.transform is IDENTITY:
        noise_variance = float(found.weights @ noise)
    else:
        wider = found.noisier(noise[:, None]).moments()[1]
        noise_variance = float(np.median(wider - spread))
    std = np.sqrt(spread)
    at = slice(None) if only else locations
    return View(
        locations=locations,
        mean=sign * centre[at],
        std=std[at],
        noise_variance=noise_variance,
        best=_best_average(belief, sign),
        stage=stage,
        size=belief.n,
        everywhere=(sign * centre, std),
    )


def latent_given_pending(
    belief: Belief, pending: Collection[int] = (), locations: IntArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """Return mean and variance (L, m) of the field after one more reading at each pending place.

    Mean and variance are in the unit of the transformed readings. The pending values are unknown,
    so the means stay the same. With the covariance c_p to the pending places p, the variances
    become ``σ² - c_p (C_pp + σ_n² I)⁻¹ c_pᵀ``. A place that occurs twice in `pending` gets two
    readings.
    """
    mean, variance = belief.marginals(locations)
    if not pending:
        return mean, variance
    due = np.array(list(pending), dtype=np.int64)
    if locations is None:
        cross = belief.cross(due)
        block = cross[:, :, due]
    else:
        which = np.arange(len(mean))
        cross, block = (belief.between(due, to, which) for to in (locations, due))
    block = block + belief.noise_variance[:, None, None] * np.eye(due.size)
    known = (cross * np.linalg.solve(block, cross)).sum(axis=1)
    return mean, np.maximum(variance - known, 0.0)


def _best_average(belief: Belief, sign: float) -> float | None:
    observed = np.flatnonzero(belief.observed)
    if not observed.size:
        return None
    averages = belief.transform.inverse(belief.weights @ belief.averages(observed))
    return float((sign * averages).max())


@dataclass(frozen=True)
class Bandit(ABC):
    """Base class of policies that choose the place with the largest score.

    Observed places may be chosen. Among places with equal scores, the shortest drive decides. A new
    policy overrides `scores`.
    """

    revisits: ClassVar[bool] = True
    """True: observed places may be chosen again; a visit costs one reading of the budget."""

    objective: str = param(
        "maximise",
        help="search for the highest or the lowest value of the field",
        choices=("maximise", "minimise"),
    )
    REMOVED: ClassVar[Mapping[str, str]] = {
        "toward": "is removed; a robot drives to the goal, and reads what it crosses"
    }
    WERE: ClassVar[Mapping[str, Any]] = {"toward": "route"}

    @property
    def sign(self) -> float:
        """Sign of the objective: 1 to maximise the field, -1 to minimise it."""
        return 1.0 if self.objective == "maximise" else -1.0

    @abstractmethod
    def scores(self, view: View, belief: Belief, rng: np.random.Generator) -> FloatArray:
        """Return a finite score for each place of ``view.locations`` (m,)."""

    def plan(self, request: PlanRequest, state: PolicyState = None) -> tuple[Plan, PolicyState]:
        """Choose the next place; see `Policy.plan`. The state counts the decisions."""
        belief, started = request.belief, request.clock()
        reach = reachable_goals(request)
        if reach.reason:
            return no_plan(reach.reason), state
        stage, seen = stage_of(state), []
        many = reach.locations.size > MOST_GOALS
        while many and reach.locations.size > 2 * _GROUPS:
            reach, view = self._promising(reach, request, stage)
            seen.append(view.everywhere)
        only = belief.n > MOST_GOALS
        view = view_of(
            belief, reach.locations, request.pending, stage=stage, sign=self.sign, only=only
        )
        if only and (known := np.flatnonzero(belief.observed)).size:
            seen.append(self._view_of(known, request, stage).everywhere)
        if seen:
            mean, std = (np.concatenate(part) for part in zip(view.everywhere, *seen, strict=True))
            view = replace(view, everywhere=(mean, std))
        values = self.scores(view, belief, request.rng)
        best = best_score(values, reach.seconds)
        plan = plan_to(reach, best, values, seconds=request.clock() - started, shown=best)
        return plan, next_state(state)

    def _view_of(self, places: IntArray, request: PlanRequest, stage: int) -> View:
        belief, pending = request.belief, request.pending
        return view_of(belief, places, pending, stage=stage, sign=self.sign, only=True)

    def _promising(
        self, reach: ReachableGoals, request: PlanRequest, stage: int
    ) -> tuple[ReachableGoals, View]:
        """Divide the goals into groups, and return the goals of the most promising groups.

        A group is promising if its middle goal has a large score. The second result is the view of
        the middle goals of all groups.
        """
        groups = nearby_groups(request.topology.points, reach.locations, _GROUPS)
        groups.sort(key=lambda group: int(group[group.size // 2]))
        middles = np.array([group[group.size // 2] for group in groups])
        view = self._view_of(middles, request, stage)
        values = self.scores(view, request.belief, deepcopy(request.rng))
        # Ties go to the places with the shortest drives.
        near = np.argsort(reach.seconds[np.searchsorted(reach.locations, middles)], kind="stable")
        best = near[by_size(values[near])[:_BEST]]
        kept = np.searchsorted(reach.locations, np.sort(np.concatenate([groups[i] for i in best])))
        some = {name: getattr(reach, name)[kept] for name in ("locations", "metres", "seconds")}
        return replace(reach, **some, reads=reach.reads[kept]), view


def plan_to(
    reach: ReachableGoals,
    index: int,
    values: FloatArray,
    *,
    seconds: float = 0.0,
    shown: int | None = None,
) -> Plan:
    """Return the plan that drives to a goal.

    Args:
        reach: reachable goals.
        index: index of the goal.
        values: (m,) scores of all goals.
        seconds: computing time of the choice [s].
        shown: index of a goal that must be among the candidate places of the plan.
    """
    route, value = reach.route(index), float(values[index])
    kept = np.arange(values.size)
    if values.size > MOST_CANDIDATES:
        kept = by_size(values)[:MOST_CANDIDATES]
        if shown is not None and shown not in kept:
            kept[-1] = shown
        kept.sort()
    best = zip(reach.locations[kept].tolist(), values[kept].tolist(), strict=True)
    return Plan(
        waypoints=(int(reach.locations[index]),),
        lower=value,
        upper=value,
        seconds=seconds,
        path=route.path,
        cost=route.cost,
        candidates=tuple(CandidateValue(x, v, v) for x, v in best),
    )


def stage_of(state: PolicyState) -> int:
    """Return the index t ≥ 1 of the next decision, given the state of a policy."""
    return 1 if state is None else int(state["stage"]) + 1


def next_state(state: PolicyState, **more: Any) -> dict[str, Any]:
    """Return the state after one more decision, with `more` as new or replaced entries."""
    return {**(state or {}), "stage": stage_of(state), **more}


def best_score(values: FloatArray, seconds: FloatArray) -> int:
    """Return the index of the largest score (m,). The shortest drive [s] breaks ties."""
    equals = np.flatnonzero(ties(values))
    return int(equals[first_best(-seconds[equals])])
