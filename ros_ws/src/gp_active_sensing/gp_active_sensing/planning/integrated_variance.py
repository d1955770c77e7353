"""Integrated variance: the place whose reading takes most off the error of the map."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gp_active_sensing.config import param
from gp_active_sensing.planning.bal.covariance_state import DecisionProblem
from gp_active_sensing.planning.base import (
    Candidates,
    PlanRequest,
    PolicyState,
    candidates,
    no_plan,
)
from gp_active_sensing.planning.beliefs import unread
from gp_active_sensing.planning.budget import BudgetConstraint
from gp_active_sensing.planning.map_error import MapVariance, map_error_gains, map_error_of
from gp_active_sensing.topology.base import Topology
from gp_active_sensing.types import Budget, Clock, FloatArray, IntArray, Plan
from gp_active_sensing.util.ties import by_size, first_best

__all__ = ["IntegratedVariance"]

_MOST = 800
"""Places in reach up to which it looks ahead: covariances between all of them are kept."""


@dataclass(frozen=True)
class IntegratedVariance:
    r"""Largest expected drop of the mean variance of the map. [Cohn1996, ALC; Sacks1989, IMSE].

    .. math:: \arg\max_x \sum_\lambda b(\lambda)
        \frac{\sum_p w_p \operatorname{Cov}_\lambda(f_p, f_x | z_D)^2}
             {\operatorname{Var}_\lambda(Z_x | z_D)}

    The weights of the places (`map.weights`) are equal unless the map says otherwise. With a
    `horizon` above 1 the best sequence of that many readings is looked for by beam search, under
    the present belief: what a reading tells about λ is not counted. A value is a drop of the mean
    variance [square of the reading's unit, after a transform].
    """

    REMOVED: ClassVar[Mapping[str, str]] = {"beam": "is removed and fixed at 8 sequences"}
    horizon: int = param(1, help="readings to look ahead", unit="readings", low=1)
    beam: ClassVar[int] = 8
    """Number of sequences that are kept at each reading ahead."""
    candidates: int = param(
        8,
        help="candidates of the belief that are planned with, at most; of those that predict "
        "alike one stands for all",
        low=1,
    )

    def plan(self, request: PlanRequest, state: PolicyState = None) -> tuple[Plan, PolicyState]:
        """Choose the next place; see `Policy.plan`. At a limit it looks less far ahead."""
        belief, topology, at = request.belief, request.topology, request.at
        pending, limit, remaining = request.pending, request.limit, request.remaining
        unavailable, clock = request.unavailable, request.clock
        started = clock()
        options = candidates(request)
        if options.reason:
            return no_plan(options.reason), state
        first, most = options.locations, self.candidates
        horizon = self.horizon
        if remaining.readings is not None:
            horizon = min(horizon, remaining.readings)
        reach = _in_reach(topology, at, options, unavailable, horizon)
        look = horizon > 1 and len(reach) <= _MOST
        found = None
        if look:
            field = map_error_of(belief, topology, reach, pending=pending, candidates=most)
            values = (field.weights @ field.gains())[np.searchsorted(reach, first)]
            deadline = None if limit.seconds is None else started + limit.seconds
            room = math.inf if limit.expansions is None else limit.expansions
            search = _Beam(self.beam, horizon, room, deadline, clock)
            problem = _moves(topology, options, unavailable, remaining, field.noise)
            found = search.run(problem, field, at, remaining)
        elif unread(belief, pending).size:
            field = map_error_of(belief, topology, first, pending=pending, candidates=most)
            values = field.weights @ field.gains()
        else:
            weights, gains = map_error_gains(belief, topology, first, candidates=most)
            values = weights @ gains
        if found is not None:
            way = found.way
            best = int(np.searchsorted(first, way[0]))
            values[best] = max(found.value, float(values.max()))
        else:
            best = int(first_best(values))
            way = (int(first[best]),)
        plan = options.valued_plan(
            best,
            values,
            waypoints=way,
            expanded=1 if found is None else found.expanded,
            seconds=clock() - started,
            deadline_hit=found is not None and found.cut,
            horizon=len(way),
        )
        return plan, state


def _in_reach(
    topology: Topology,
    at: int | None,
    options: Candidates,
    unavailable: Collection[int],
    horizon: int,
) -> IntArray:
    """Return the places that some sequence of `horizon` readings may hold, sorted."""
    if horizon == 1:
        return options.locations
    near = topology.reachable(at, options.observed, horizon, unavailable)
    near[options.locations] = True
    return np.flatnonzero(near)


def _moves(
    topology: Topology,
    options: Candidates,
    unavailable: Collection[int],
    remaining: Budget,
    noise: FloatArray,
) -> DecisionProblem:
    """Return where a probe may go after any visits, within the budget."""
    constraint = BudgetConstraint(topology, remaining)
    return DecisionProblem(
        topology,
        options.observed,
        unavailable,
        noise,
        noise,
        0,
        lambda: None,
        constraint if constraint.restricts else None,
    )


@dataclass(frozen=True)
class _State:
    """Where a sequence of readings has led.

    Args:
        field: what is left of the error of the map.
        value: taken off it so far.
        at: where the probe stands then.
        visited: places visited since the root, and crossed on the way.
        left: of the budget.
        way: places read, in order.
    """

    field: MapVariance
    value: float
    at: int | None
    visited: frozenset[int]
    left: Budget | None
    way: tuple[int, ...]


@dataclass(frozen=True)
class _BestSequence:
    """The best sequence of readings.

    Args:
        way: places read, in order.
        value: what they take off the mean variance.
        expanded: states looked at.
        cut: a limit ended the search.
    """

    way: tuple[int, ...]
    value: float
    expanded: int
    cut: bool


class _Beam:
    """Beam search over sequences of readings: of each length the best few are continued.

    Sequences of the same places count once. O(k beam L m²) for k readings among m places.

    Args:
        width: sequences kept.
        horizon: readings.
        room: states that may be expanded.
        deadline: time when it is over, None = never.
        clock: monotonic seconds.
    """

    def __init__(
        self, width: int, horizon: int, room: float, deadline: float | None, clock: Clock
    ) -> None:
        self._width, self._horizon = width, horizon
        self._room, self._deadline, self._clock = room, deadline, clock

    def run(
        self, problem: DecisionProblem, field: MapVariance, at: int | None, remaining: Budget
    ) -> _BestSequence | None:
        """Return the best sequence, None when there was room for none."""
        beam = [_State(field, 0.0, at, frozenset(), remaining, ())]
        best: tuple[float, tuple[int, ...]] = (0.0, ())
        expanded, cut = 0, False
        for _ in range(self._horizon):
            steps: list[tuple[float, _State, int]] = []
            for state in beam:
                over = self._deadline is not None and self._clock() >= self._deadline
                if over or expanded >= self._room:
                    cut = True
                    break
                expanded += 1
                here = problem.candidates(state.at, state.visited, state.left)
                here = here[np.isin(here, field.places)]
                gains = state.field.weights @ state.field.gains()
                which = np.searchsorted(field.places, here)
                steps += [
                    (state.value + float(gains[i]), state, int(x))
                    for i, x in zip(which, here, strict=True)
                ]
            if not steps or cut:
                break
            value, before, x = steps[int(first_best(np.array([s[0] for s in steps])))]
            best = (value, (*before.way, x))
            if len(best[1]) < self._horizon:
                beam = self._continued(problem, steps)
        if not best[1]:
            return None
        return _BestSequence(best[1], best[0], expanded, cut)

    def _continued(
        self, problem: DecisionProblem, steps: list[tuple[float, _State, int]]
    ) -> list[_State]:
        kept: dict[tuple[int, frozenset[int]], _State] = {}
        for index in by_size(np.array([s[0] for s in steps])).tolist():
            value, before, x = steps[index]
            key = (x, frozenset((*before.way, x)))
            if key in kept:
                continue
            visited, left = problem.after(before.at, before.visited, before.left, x)
            after = before.field.after(int(np.searchsorted(before.field.places, x)))
            kept[key] = _State(after, value, x, visited, left, (*before.way, x))
            if len(kept) == self._width:
                break
        return list(kept.values())
