"""One mission of mapping: any policy, a budget of metres, scores of the map that it leaves.

Field, start and the noise of each place depend on the data set and the number of the draw, never on
the policy. The belief is the default: nothing is tuned to a data set.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import resource
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from belief_data import Field, rng_of
from belief_scores import Mixture
from mapping_fields import arenas, step_of

from gp_active_sensing.belief import Belief, BeliefConfig, belief_on
from gp_active_sensing.errors import ActiveSensingError
from gp_active_sensing.loop import SensingLoop
from gp_active_sensing.planning import build_policy
from gp_active_sensing.planning.external.running import end, running_of
from gp_active_sensing.topology.base import Topology
from gp_active_sensing.types import Budget, PlanLimit, Reading

LEVELS = (0.5, 0.9, 0.95)
EVENLY = "evenly spaced"
"""Stands for the best of all evenly spaced routes, found afterwards; it is no policy."""
VERSION = 1
"""Of what a row means; rows of another one are not used."""


@dataclass(frozen=True)
class Task:
    """A mission to be played.

    Args:
        name: of the data set.
        mode: "moves" or "free".
        moves: what the budget of metres is, in usual moves.
        number: of the draw.
        label: of the policy.
        policy: its configuration as JSON, with its name, or `EVENLY`.
        expansions: limit of a decision.
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
        """What a kept row is known by."""
        text = json.dumps([VERSION, *asdict(self).values()])
        return hashlib.sha256(text.encode()).hexdigest()[:20]


def play(task: Task) -> dict[str, Any]:
    """Return the row of a task: plain data, for a line of JSON.

    Raises:
        ActiveSensingError: the policy cannot plan there.
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


def mission(task: Task, field: Field, step: float, policy: Mapping[str, Any]) -> dict[str, Any]:
    """Play one mission and score its map."""
    topology = field.topology
    rng = rng_of(task.name, task.number)
    noisy = field.values + field.noise * rng.standard_normal(topology.n)
    at = int(rng.choice(field.known))
    chosen = build_policy(policy)
    loop = SensingLoop(
        topology,
        _prior(topology).copy(),
        chosen,
        budget=Budget(metres=task.moves * step),
        seed=task.number,
        limit=PlanLimit(expansions=task.expansions),
    )
    loop.set_aside.update(np.flatnonzero(~np.isfinite(field.values)).tolist())
    _forget_peak()
    began, seconds, metres = time.perf_counter(), [], 0.0
    went, stamp = [at], 0
    loop.tell([Reading(stamp, at, float(noisy[at]))])
    theirs = 0.0
    while (plan := loop.ask(at)).waypoint is not None:
        if policy["name"] == "external" and (program := running_of(chosen).program) is not None:
            theirs = max(theirs, _peak(str(program.pid)))
        seconds.append(plan.seconds)
        for at in plan.path:
            went.append(at)
            stamp += 1
            if loop.wants(at):
                loop.tell([Reading(stamp, at, float(noisy[at]))])
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


def scores(belief: Belief, field: Field) -> dict[str, float]:
    """Errors over all places with a value; what else there is, over those that were not read."""
    known = field.known
    left = known[~belief.visited[known]]
    mean, variance = belief.marginals()
    whole = Mixture(belief.weights, mean, variance)
    off = whole.expected[known] - field.values[known]
    found = {"rmse": math.sqrt(float(np.mean(off**2))), "spread": float(field.values[known].std())}
    rest = Mixture(belief.weights, mean[:, left], variance[:, left])
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


def _best_evenly(task: Task, field: Field, step: float) -> dict[str, Any]:
    """Drive every evenly spaced route and keep the one with the least error: nobody can know it."""
    best: dict[str, Any] | None = None
    driven: set[tuple[int, ...]] = set()
    spent = 0.0
    for policy in evenly_spaced(field.topology):
        found = mission(task, field, step, policy)
        driven.add(tuple(found["went"]))
        spent += found["mission_seconds"]
        if best is None or found["rmse"] < best["rmse"]:
            best = {**found, "rows": policy}
    if best is None:
        msg = "no evenly spaced route fits"
        raise ActiveSensingError(msg)
    return {**best, "routes": len(driven), "mission_seconds": spent}


def evenly_spaced(topology: Topology) -> list[dict[str, Any]]:
    """Return the policy `lawnmower` with all spacings, insets and directions that fit.

    Raises:
        ActiveSensingError: rows have no meaning on roads.
    """
    if topology.roads:
        msg = "there are no rows on roads"
        raise ActiveSensingError(msg)
    from gp_active_sensing.planning.routes.boustrophedon import Ground

    families = Ground(topology).evenly(sparse=topology.free)
    found = [
        {
            "name": "lawnmower",
            "spacing": rows.spacing,
            "inset": rows.inset,
            "direction": rows.direction,
        }
        for family in families
        for rows in family
    ]
    return list({json.dumps(one): one for one in found}.values())


# -- memory ------------------------------------------------------------------------------------


def _forget_peak() -> None:
    """Begin to count the largest memory anew, where the system can."""
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        return


def _peak(process: str) -> float:
    """Largest memory of a process since then [MB]."""
    try:
        status = Path(f"/proc/{process}/status").read_text(encoding="ascii")
    except OSError:
        if process != "self":
            return 0.0
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000.0
    (line,) = (one for one in status.splitlines() if one.startswith("VmHWM"))
    return int(line.split()[1]) / 1000.0
