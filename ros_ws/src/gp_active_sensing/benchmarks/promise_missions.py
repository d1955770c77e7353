"""Missions that end by `budget.error`, with far more metres than they need: is the error kept?

Field, start and the noise of each place depend on the data set and the number of the draw, never on
the policy. The belief is the default: nothing is tuned to a data set.
"""

from __future__ import annotations

import json
import logging
import math
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from belief_data import rng_of
from mapping_fields import arenas, step_of

from gp_active_sensing.belief import Belief, BeliefConfig, belief_on
from gp_active_sensing.loop import SensingLoop
from gp_active_sensing.planning import Policy, build_policy
from gp_active_sensing.planning.base import PlanRequest, PolicyState
from gp_active_sensing.topology.base import Topology
from gp_active_sensing.types import Aim, Budget, Plan, PlanLimit, Reading

OPTIONS = {"tour": {"trials": 4}, "bal": {"horizon": 2}}
"""What is set of policies beside their defaults, for the time that it takes."""


@dataclass(frozen=True)
class Task:
    """A mission to be played.

    Args:
        name: of the data set.
        number: of the draw.
        policy: its name.
        told: the policy is told what error is asked for.
        home: the mission has to end where it began.
        share: error asked for, in standard deviations of the field over its places.
        moves: what the budget of metres is, in usual moves.
        expansions: limit of a decision.
    """

    name: str
    number: int
    policy: str
    told: bool
    home: bool
    share: float
    moves: int
    expansions: int


@dataclass(frozen=True)
class Untold:
    """A policy that is not told what error is asked for: it plans for the whole budget."""

    policy: Policy

    def plan(self, request: PlanRequest, state: PolicyState = None) -> tuple[Plan, PolicyState]:
        """Choose the next place as if the budget alone ended the mission."""
        return self.policy.plan(replace(request, aim=None), state)


def play(task: Task) -> dict[str, Any]:
    """Return what became of a mission: plain data, for a line of JSON.

    `rmse` and `promised` are those at its end, `ended` whether the error ended it, and `needed` the
    metres after which the actual error was at most what was asked for, None where it never was.
    """
    logging.getLogger("gp_active_sensing").setLevel(logging.ERROR)
    field = arenas(1, 1)[task.name, "moves"].field(task.number)
    topology, values = field.topology, field.values
    rng = rng_of(task.name, task.number)
    noisy = values + field.noise * rng.standard_normal(topology.n)
    at = int(rng.choice(field.known))
    asked = task.share * float(values[field.known].std())
    policy = build_policy({"name": task.policy, **OPTIONS.get(task.policy, {})})
    loop = SensingLoop(
        topology,
        _prior(topology).copy(),
        policy if task.told else Untold(policy),
        budget=Budget(metres=task.moves * step_of(topology), end=at if task.home else None),
        seed=task.number,
        limit=PlanLimit(expansions=task.expansions),
        aim=Aim(asked),
    )
    loop.set_aside.update(np.flatnonzero(~np.isfinite(values)).tolist())
    loop.tell([Reading(0, at, float(noisy[at]))])
    metres, needed, error = 0.0, None, math.inf
    while (plan := loop.ask(at)).waypoint is not None:
        for at in plan.path:
            if loop.wants(at):
                loop.tell([Reading(loop.spent, at, float(noisy[at]))])
        loop.moved(plan.cost)
        metres += plan.cost.metres
        mean, _ = loop.belief.predict()
        error = float(np.sqrt(np.mean(np.square(mean - values)[field.known])))
        if needed is None and error <= asked:
            needed = metres
    promise = loop.belief.promise(topology.weights)
    return {
        **asdict(task),
        "asked": asked,
        "rmse": error,
        "promised": None if promise is None else promise.error,
        "ended": bool(loop.good_enough()),
        "metres": metres + plan.cost.metres,
        "needed": needed,
        "readings": int(np.count_nonzero(loop.belief.visited)),
        "step": step_of(topology),
    }


@lru_cache(maxsize=4)
def _prior(topology: Topology) -> Belief:
    return belief_on(BeliefConfig(), topology, quiet=True)


def main() -> None:
    import multiprocessing
    import sys
    out, spec = sys.argv[1], json.loads(sys.argv[2])
    tasks = []
    for number in range(*spec.get("draws", [0, 4])):
        for name in spec["names"]:
            for policy in spec["policies"]:
                for told in spec["told"]:
                    for home in spec.get("home", [False]):
                        if name=="sim/town" and policy=="lawnmower": continue
                        tasks.append(Task(name, number, policy, told, home, spec.get("share", 0.4), spec.get("moves", 400), spec.get("expansions", 100)))
    with multiprocessing.Pool(spec.get("processes", 1), maxtasksperchild=4) as pool, open(out, "a") as f:
        for row in pool.imap_unordered(timed, tasks):
            f.write(json.dumps(row) + "\n"); f.flush()


def timed(task):
    import time
    t = time.perf_counter()
    row = play(task)
    row["took"] = time.perf_counter() - t
    return row

if __name__ == "__main__":
    main()
