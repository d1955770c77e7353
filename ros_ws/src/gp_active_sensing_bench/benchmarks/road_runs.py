"""Missions on road fields. The map of a mission is scored after several numbers of readings.

Field, start and noise depend only on the numbers of field and start. The first crossing of a
segment with a value is a reading. Later crossings of the segment are not.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import time
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from road_fields import FIELDS, KEY, RoadFields

from gp_active_sensing.belief import Belief, belief_on
from gp_active_sensing.loop import SensingLoop
from gp_active_sensing.planning import build_policy
from gp_active_sensing.types import Budget, PlanLimit, Reading

EXPANSIONS = 2000
VERSION = 2
"""Version of the stored results. Results of other versions are ignored."""
_BAL = {"name": "bal", "samples": 5, "alpha": 0.05}
POLICIES: dict[str, dict[str, Any]] = {
    "ie": {"name": "ie"},
    "apgd": {"name": "apgd"},
    "bal N'=3": {**_BAL, "horizon": 3},
    "bal N'=4": {**_BAL, "horizon": 4},
    "bal N'=5": {**_BAL, "horizon": 5},
    "max_entropy": {"name": "max_entropy"},
    "integrated_variance": {"name": "integrated_variance"},
    "spread": {"name": "spread"},
    "tour": {"name": "tour"},
    "random": {"name": "random"},
}


@dataclass(frozen=True)
class Task:
    """Mission to simulate, on field number `field` of the set `fields`.

    The first place depends on `field` and `start`.
    """

    fields: str
    field: int
    start: int
    policy: str

    @property
    def key(self) -> str:
        text = json.dumps([VERSION, EXPANSIONS, POLICIES[self.policy], *asdict(self).values()])
        return hashlib.sha256(text.encode()).hexdigest()[:20]


@lru_cache(maxsize=1)
def _fields(name: str) -> RoadFields:
    return FIELDS[name]()


@lru_cache(maxsize=1)
def _prior(name: str) -> Belief:
    fields = _fields(name)
    return belief_on(fields.belief, fields.roads, quiet=True)


def play(task: Task) -> dict[str, Any]:
    logging.getLogger("gp_active_sensing").setLevel(logging.ERROR)
    fields = _fields(task.fields)
    truth = fields.values[task.field]
    known = np.isfinite(truth)
    rng = np.random.default_rng([KEY, task.field, 1])
    noisy = truth + fields.noise * rng.standard_normal(truth.size)
    at = int(np.random.default_rng([KEY, task.field, task.start, 2]).choice(np.flatnonzero(known)))
    budget = fields.checkpoints[-1]
    loop = SensingLoop(
        fields.roads,
        _prior(task.fields).copy(),
        build_policy(POLICIES[task.policy]),
        budget=Budget(readings=budget),
        seed=task.field,
        limit=PlanLimit(expansions=EXPANSIONS),
    )
    loop.set_aside.update(np.flatnonzero(~known).tolist())
    began, planning, metres = time.process_time(), 0.0, 0.0
    went: list[int] = []
    marks: list[dict[str, float]] = []
    ways: tuple[int, ...] = (at,)
    while True:
        for place in ways:
            if known[place] and not loop.belief.observed[place] and loop.wants(place):
                loop.tell([Reading(len(went), place, float(noisy[place]))])
                went.append(place)
                if len(went) in fields.checkpoints:
                    marks.append(
                        {**_scores(loop.belief, fields, truth), "metres": metres, "plan": planning}
                    )
        started = time.process_time()
        plan = loop.ask(ways[-1])
        planning += time.process_time() - started
        if plan.waypoint is None:
            break
        loop.moved(plan.cost)
        metres += plan.cost.metres
        ways = plan.path
    return {
        **asdict(task),
        "key": task.key,
        "marks": marks,
        "went": went,
        "reason": plan.reason,
        "seconds": time.process_time() - began,
    }


def _scores(belief: Belief, fields: RoadFields, truth: np.ndarray) -> dict[str, float]:
    """Return scores of the predictions for segments that have a true value and no reading."""
    left = np.isfinite(truth) & ~belief.visited
    mean, variance = belief.predict(np.flatnonzero(left), noisy=fields.noise == 0.0)
    error = truth[left] - mean
    density = 0.5 * (np.log(2.0 * math.pi * variance) + error**2 / variance)
    found = {"rmspe": math.sqrt(float(np.mean(error**2))), "nlpd": float(np.mean(density))}
    if fields.truth is not None:
        found["true_weight"] = float(belief.weights[fields.truth])
    return found
