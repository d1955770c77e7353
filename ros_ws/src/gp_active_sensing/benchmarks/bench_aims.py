"""Missions that end by `budget.error` with far more metres than they need: is the error kept?

Field, start and the noise of each place depend on the data set and the number of the draw, never on
the policy. The belief is the default: nothing is tuned to a data set.
"""

from __future__ import annotations

import json
import logging
import math
import multiprocessing
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from belief_data import rng_of
from common import Section
from mapping_fields import arenas, step_of

from gp_active_sensing.belief import Belief, BeliefConfig, belief_on
from gp_active_sensing.belief.promise import FEWEST, SURE, assurance
from gp_active_sensing.loop import SensingLoop
from gp_active_sensing.planning import Policy, build_policy
from gp_active_sensing.planning.base import PlanRequest, PolicyState
from gp_active_sensing.topology.base import Topology
from gp_active_sensing.types import Aim, Budget, Plan, PlanLimit, Reading

SETS = (
    "draws/plane", "draws/island", "sim/bloom", "sim/lake", "sim/warehouse", "sim/terrain",
    "sim/town",
)  # fmt: skip
POLICIES = {
    "tour": {"name": "tour", "trials": 4},
    "spread": {"name": "spread"},
    "lawnmower": {"name": "lawnmower"},
    "bal": {"name": "bal", "horizon": 2},
}
"""With little to search, for the time that a mission takes."""
DEFAULT = "tour,spread,lawnmower"
MOVES = 250
"""The budget of metres, in usual moves."""
SHARE = 0.4
"""Error asked for, in standard deviations of the field over its places."""
EXPANSIONS = 12
"""Limit of a decision."""
BEFORE, NOW = "before", "now"


@dataclass(frozen=True)
class Task:
    """A mission to be played.

    Args:
        name: of the data set.
        number: of the draw.
        policy: label out of `POLICIES`.
        rule: `NOW`, or `BEFORE`: the policy plans for the whole budget, and no part of the map has
            to be seen.
        home: the mission has to end where it began.
    """

    name: str
    number: int
    policy: str
    rule: str
    home: bool


@dataclass(frozen=True)
class Untold:
    """A policy that is not told what error is asked for: it plans for the whole budget."""

    policy: Policy

    def plan(self, request: PlanRequest, state: PolicyState = None) -> tuple[Plan, PolicyState]:
        """Choose the next place as if the budget alone ended the mission."""
        return self.policy.plan(replace(request, aim=None), state)


class OldLoop(SensingLoop):
    """Ends a mission wherever its readings lie."""

    def good_enough(self) -> str:
        """By the promise, and by how sure it is, from so many places on."""
        belief, weights = self.belief, self.topology.weights
        if self.aim is None or int(np.count_nonzero(belief.readings)) < FEWEST:
            return ""
        promise = belief.promise(weights)
        if promise is None or promise.error > self.aim.error:
            return ""
        return "enough" if assurance(belief, weights, self.aim.error) >= SURE else ""


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
    asked = SHARE * float(values[field.known].std())
    policy = build_policy(POLICIES[task.policy])
    loop = (SensingLoop if task.rule == NOW else OldLoop)(
        topology,
        _prior(topology).copy(),
        policy if task.rule == NOW else Untold(policy),
        budget=Budget(metres=MOVES * step_of(topology), end=at if task.home else None),
        seed=task.number,
        limit=PlanLimit(expansions=EXPANSIONS),
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
        "moves": (metres + plan.cost.metres) / step_of(topology),
    }


@lru_cache(maxsize=4)
def _prior(topology: Topology) -> Belief:
    return belief_on(BeliefConfig(), topology, quiet=True)


def _tasks(sets: Sequence[str], policies: Sequence[str], starts: int) -> Iterator[Task]:
    """Yield missions, draw after draw: a table of the first draws is a table."""
    for number in range(starts):
        for policy in policies:
            for name in sets:
                if policy == "lawnmower" and name in ("sim/town", "draws/town"):
                    continue  # there are no rows on roads
                for rule in (BEFORE, NOW):
                    yield Task(name, number, policy, rule, number % 3 == 2)


def run(
    smoke: bool = False,
    only: Sequence[str] = (),
    policies: str = DEFAULT,
    starts: int = 6,
    processes: int = 1,
    kept_only: bool = False,
) -> Section:
    sets = [name for name in SETS if not only or any(part in name for part in only)]
    if smoke:
        sets, starts = sets[:1], 1
    wanted = list(_tasks(sets, policies.split(","), starts))
    folder = os.environ.get("GPAS_KEPT")
    kept = Path(folder) / "aims.jsonl" if folder else None
    rows: dict[Task, dict[str, Any]] = {}
    if kept is not None and kept.is_file():
        for line in kept.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            rows[Task(*(row[name] for name in Task.__dataclass_fields__))] = row
    left = [] if kept_only else [task for task in wanted if task not in rows]
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        for row in pool.imap(play, left):
            rows[Task(*(row[name] for name in Task.__dataclass_fields__))] = row
            if kept is not None:
                kept.parent.mkdir(parents=True, exist_ok=True)
                with kept.open("a", encoding="utf-8") as out:
                    out.write(json.dumps(row) + "\n")
    section = Section(
        "The error of the map when a mission ends by it, with a generous budget of metres",
        f"python benchmarks/run.py aims --policies {policies} --starts {starts}",
        f"Budget of {MOVES} usual moves; asked for: {SHARE:g} of the field's standard deviation; "
        "the default belief; every third draw ends where it began; draws of which both missions "
        "were played. before: the policy plans for the whole budget, and the mission ends wherever "
        "its readings lie. now: the policy is told, and each tenth of the map has to have a "
        "reading. ended: missions that the error ended. kept: of these, the share whose error over "
        "all places is at most what was asked for. error / promised and error / asked: root mean "
        "squares over those, and the worst. moves: metres driven by all missions, in usual moves, "
        "mean.",
        ("data set", "policy", "rule", "missions", "ended", "kept", "error / promised",
         "error / asked", "moves"),
    )  # fmt: skip
    pairs = [
        task for task in wanted
        if task in rows and replace(task, rule=BEFORE if task.rule == NOW else NOW) in rows
    ]  # fmt: skip
    for policy in policies.split(","):
        for name in (*sets, "all"):
            for rule in (BEFORE, NOW):
                found = [
                    rows[task] for task in pairs
                    if task.policy == policy and task.rule == rule and name in (task.name, "all")
                ]  # fmt: skip
                if found:
                    section.rows.append((name, policy, rule, *_cells(found)))
    return section


def _cells(rows: list[dict[str, Any]]) -> tuple[str, ...]:
    ended = [row for row in rows if row["ended"]]
    moves = f"{np.mean([row['moves'] for row in rows]):.0f}"
    if not ended:
        return (str(len(rows)), "0", "–", "–", "–", moves)
    promised = np.array([row["rmse"] / row["promised"] for row in ended])
    asked = np.array([row["rmse"] / row["asked"] for row in ended])
    return (
        str(len(rows)),
        str(len(ended)),
        f"{np.mean(asked <= 1.0):.0%}",
        f"{np.sqrt(np.mean(promised**2)):.2f}",
        f"{np.sqrt(np.mean(asked**2)):.2f}, {asked.max():.2f}",
        moves,
    )
