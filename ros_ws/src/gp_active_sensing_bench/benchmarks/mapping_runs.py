"""Missions of the mapping benchmark, and scores of their final maps.

Field, start and noise depend only on the data set and the number of the mission. All missions use
the default belief.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import resource
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from belief_data import Field, rng_of
from belief_scores import Mixture
from mapping_fields import FREE, MOVES, arenas, step_of

from gp_active_sensing.belief import Belief, BeliefConfig, belief_on
from gp_active_sensing.errors import ActiveSensingError
from gp_active_sensing.loop import SensingLoop
from gp_active_sensing.planning import Policy, build_policy
from gp_active_sensing.planning.base import PolicyState, candidates, no_plan
from gp_active_sensing.planning.external import end, running_of
from gp_active_sensing.planning.lawnmower import PlannedRows, _Layer
from gp_active_sensing.planning.request import PlanRequest
from gp_active_sensing.planning.routes.boustrophedon import Ground
from gp_active_sensing.topology.base import Topology
from gp_active_sensing.types import Budget, Plan, PlanLimit, Reading

LEVELS = (0.5, 0.9, 0.95)
EVENLY = "evenly spaced"
"""Label of the evenly spaced route whose mission has the smallest error."""
DENSEST = "evenly spaced, densest"
"""Label of the evenly spaced route with the smallest mean distance to all places."""
MOST_ROUTES = 30
"""Largest number of evenly spaced routes that are driven for one mission."""
EXPANSIONS = 500
"""Largest number of expansions in a decision."""
FEW = {("bal", FREE): 1}
"""Largest number of expansions for each (policy, mode) in which an expansion takes seconds."""
AHEAD = {MOVES: 3, FREE: 2}
"""Number of readings that the policy `bal` looks ahead, by mode."""
ROWS = ("lawnmower", DENSEST, EVENLY)
"""Labels of the policies that cannot plan on roads."""
VERSION = 2
"""Version of the stored results. Results of other versions are ignored."""


@dataclass(frozen=True)
class Task:
    """Mission to simulate.

    Args:
        name: name of the data set.
        mode: "moves" or "free".
        moves: budget, as a multiple of the typical length of a move.
        number: number of the field, and seed.
        label: label of the policy.
        policy: configuration of the policy as JSON, or `EVENLY`.
        expansions: largest number of expansions in a decision.
    """

    name: str
    mode: str
    moves: int
    number: int
    label: str
    policy: str
    expansions: int

    @property
    def key(self) -> str:
        text = json.dumps([VERSION, *asdict(self).values()])
        return hashlib.sha256(text.encode()).hexdigest()[:20]


def play(task: Task) -> dict[str, Any]:
    """Return the result of a mission as plain data.

    Raises:
        ActiveSensingError: the policy cannot plan on the map.
    """
    logging.getLogger("gp_active_sensing").setLevel(logging.ERROR)
    field = arenas(1, 1)[task.name, task.mode].field(task.number)
    step = step_of(field.topology)
    policy = json.loads(task.policy)
    if policy["name"] == EVENLY:
        found = _best_evenly(task, field, step)
    else:
        found = mission(task, field, step, policy)
    return {**asdict(task), "key": task.key, "step": step, **found}


def begin(task: Task, field: Field, step: float, policy: Policy) -> tuple[SensingLoop, Any, int]:
    """Return the loop at its start, the reading (n,) of each place, and the robot's place."""
    topology = field.topology
    rng = rng_of(task.name, task.number)
    noisy = field.values + field.noise * rng.standard_normal(topology.n)
    at = int(rng.choice(field.known))
    loop = SensingLoop(
        topology,
        _prior(topology).copy(),
        policy,
        budget=Budget(metres=task.moves * step),
        seed=task.number,
        limit=PlanLimit(expansions=task.expansions),
    )
    loop.set_aside.update(np.flatnonzero(~np.isfinite(field.values)).tolist())
    loop.tell([Reading(0, at, float(noisy[at]))])
    return loop, noisy, at


def mission(task: Task, field: Field, step: float, policy: Mapping[str, Any]) -> dict[str, Any]:
    """Simulate a mission and score its final map."""
    _forget_peak()
    began, seconds, metres = time.perf_counter(), [], 0.0
    chosen = build_policy(policy)
    loop, noisy, at = begin(task, field, step, chosen)
    if policy["name"] != "external":  # external computes in another process
        loop.clock = time.process_time
    went, theirs = [at], 0.0
    while (plan := loop.ask(at)).waypoint is not None:
        if policy["name"] == "external" and (program := running_of(chosen).program) is not None:
            theirs = max(theirs, _peak(str(program.pid)))
        seconds.append(plan.seconds)
        at = _drive(loop, plan.path, noisy, went)
        loop.moved(plan.cost)
        metres += plan.cost.metres
    took = time.perf_counter() - began
    state = loop.policy_state if policy["name"] == "external" else None
    end(chosen)
    return {
        **scores(loop.belief, field),
        "readings": int(np.count_nonzero(loop.belief.visited)),
        "metres": metres,
        "decisions": len(seconds),
        "median_seconds": float(np.median(seconds)) if seconds else 0.0,
        "largest_seconds": max(seconds, default=0.0),
        "plan_seconds": float(sum(seconds)),
        "mission_seconds": took,
        "peak_mb": _peak("self") + theirs,
        "failed": 0 if state is None else int(state["failed"]),
        "went": went,
    }


def _drive(loop: SensingLoop, path: Sequence[int], noisy: Any, went: list[int]) -> int:
    """Drive along `path` and read the places that the loop requests. Return the last place."""
    for place in path:
        went.append(place)
        if loop.wants(place):
            loop.tell([Reading(len(went), place, float(noisy[place]))])
    return went[-1]


def scores(belief: Belief, field: Field) -> dict[str, float]:
    """Return errors over all places with a value, and further scores over unread places."""
    known = field.known
    left = known[~belief.visited[known]]
    whole = Mixture.of(belief)
    off = whole.expected[known] - field.values[known]
    found = {"rmse": math.sqrt(float(np.mean(off**2))), "spread": float(field.values[known].std())}
    rest = whole.at(left)
    truth = field.values[left]
    if not left.size:
        return {**found, "rmse_left": 0.0, "nlpd": math.nan, **dict.fromkeys(_COVERED, math.nan)}
    cdf = rest.cdf(truth)
    for name, level in zip(_COVERED, LEVELS, strict=True):
        tail = 0.5 * (1.0 - level)
        found[name] = float(np.mean((cdf >= tail) & (cdf <= 1.0 - tail)))
    return {
        **found,
        "rmse_left": math.sqrt(float(np.mean((rest.expected - truth) ** 2))),
        "nlpd": -float(rest.log_density(truth).mean()),
    }


_COVERED = tuple(f"covered_{round(100 * level)}" for level in LEVELS)


@lru_cache(maxsize=4)
def _prior(topology: Topology) -> Belief:
    return belief_on(BeliefConfig(), topology, quiet=True)


# -- evenly spaced routes ----------------------------------------------------------------------


@dataclass(frozen=True)
class Nearest:
    """Policy that goes to the nearest unread place."""

    def plan(self, request: PlanRequest, state: PolicyState = None) -> tuple[Plan, Any]:
        options = candidates(request)
        if options.reason:
            return no_plan(options.reason), None
        best = int(np.argmin([round(route.cost.metres, 6) for route in options.routes]))
        value = {"lower": 0.0, "upper": 0.0, "expanded": 1, "seconds": 0.0, "deadline_hit": False}
        return options.plan_for(best, **value), None


def _best_evenly(task: Task, field: Field, step: float) -> dict[str, Any]:
    """Simulate the evenly spaced routes. Return the result with the smallest error.

    The entry ``densest`` is the result for the route with the smallest mean distance to all places.
    The entry ``errors`` has the errors of all routes.
    """
    began = time.perf_counter()
    driven: list[dict[str, Any]] = []
    routes = evenly_spaced(task, field, step)
    for laid in routes:
        loop, noisy, at = begin(task, field, step, Nearest())
        assert laid.trip is not None
        went, metres = [at], laid.trip.cost.metres
        at = _drive(loop, laid.trip.path, noisy, went)
        loop.moved(laid.trip.cost)
        while (plan := loop.ask(at)).waypoint is not None:
            at = _drive(loop, plan.path, noisy, went)
            loop.moved(plan.cost)
            metres += plan.cost.metres
        read = int(np.count_nonzero(loop.belief.visited))
        found = {**scores(loop.belief, field), "readings": read, "metres": metres, "went": went}
        driven.append({**found, "rows": asdict(laid.rows)})
    if not driven:
        msg = "no evenly spaced route fits"
        raise ActiveSensingError(msg)
    errors = [one["rmse"] for one in driven]
    return {
        **driven[int(np.argmin(errors))],
        "densest": driven[0],
        "errors": errors,
        "mission_seconds": time.perf_counter() - began,
    }


def evenly_spaced(task: Task, field: Field, step: float) -> list[PlannedRows]:
    """Return the best `MOST_ROUTES` evenly spaced routes within the budget.

    The best routes have the smallest mean distance to all places. All spacings, insets, directions
    and corners are compared.

    Raises:
        ActiveSensingError: the map has roads.
    """
    if field.topology.roads:
        msg = "there are no rows on roads"
        raise ActiveSensingError(msg)
    loop, _, at = begin(task, field, step, Nearest())
    open_ = np.isfinite(field.values)
    ground = Ground(field.topology, open_)
    unread = open_ & ~loop.belief.observed
    found: dict[tuple[int, ...], tuple[float, PlannedRows]] = {}
    layer = _Layer(ground, at, loop.remaining, unread)
    for family in ground.evenly(spacing=None, inset=None, direction=None, sparse=layer.sparse):
        densest = layer.densest(family)
        for rows in reversed(family[: 0 if densest is None else densest + 1]):
            for laid in layer.corners(rows):
                if layer.fits(laid) and laid.trip is not None and laid.trip.path not in found:
                    away = ground.mean_distance([at, *laid.trip.path])
                    found[laid.trip.path] = (round(away, 6), laid)
    ranked = sorted(found.values(), key=lambda one: one[0])
    return [laid for _, laid in ranked[:MOST_ROUTES]]


# -- memory ------------------------------------------------------------------------------------


def _forget_peak() -> None:
    """Reset the peak memory of this process, if the system supports it."""
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        return


def _peak(process: str) -> float:
    """Return the peak memory of a process [MB]."""
    try:
        status = Path(f"/proc/{process}/status").read_text(encoding="ascii")
    except OSError:
        if process != "self":
            return 0.0
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000.0
    (line,) = (one for one in status.splitlines() if one.startswith("VmHWM"))
    return int(line.split()[1]) / 1000.0
