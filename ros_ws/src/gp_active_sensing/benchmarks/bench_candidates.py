"""Joining candidates: is the place chosen the same as with all of them?"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from common import Section, cholesky_seconds

from gp_active_sensing.planning.bal import Bal
from gp_active_sensing.planning.base import PlanRequest
from gp_active_sensing.sim import build_loop, build_world, load_scenario
from gp_active_sensing.types import Budget, PlanLimit, Reading

COUNTS = (1, 2, 4, 8, 12, 20, 1000)
"""Most candidates planned with; the last is all of them."""
MISSIONS = (("town", 60, 2, 800), ("line", 24, 2, 300), ("lake", 24, 2, 300))
"""Scenario, stages, every how many a decision is made with each, and its expansions."""
AHEAD = {"town": ("policy.horizon=5",)}


def decisions(name: str, stages: int, every: int, expansions: int) -> dict[int, list[Any]]:
    """Return (seconds / Cholesky, gap, loss in nat) of decisions along a mission, by count.

    The loss is the lower bound of the best place less that of the place chosen, both of a tree with
    all candidates.
    """
    scenario = load_scenario(name, overrides=["belief={}", *AHEAD.get(name, ())])
    world = build_world(scenario)
    loop = build_loop(scenario, world.topology)
    policy, at = loop.policy, world.start
    assert isinstance(policy, Bal)
    yardstick = cholesky_seconds()
    found: dict[int, list[Any]] = {count: [] for count in COUNTS}
    for stage in range(stages):
        if stage % every == 0:
            np.testing.assert_allclose(loop.belief.weights.sum(), 1.0)  # brings it up to date
            lower: dict[int, float] = {}
            for count in reversed(COUNTS):
                plan, _ = dataclasses.replace(policy, candidates=count).plan(
                    PlanRequest(
                        loop.belief,
                        world.topology,
                        at,
                        limit=PlanLimit(expansions=expansions),
                        rng=np.random.default_rng(0),
                        remaining=Budget(readings=stages - stage + policy.horizon),
                    )
                )
                if plan.waypoint is None:
                    break
                lower = lower or {value.location: value.lower for value in plan.candidates}
                loss = max(lower.values()) - lower[plan.waypoint]
                found[count].append((plan.seconds / yardstick, plan.gap, loss))
        at = loop.ask(at, limit=PlanLimit(expansions=50)).waypoint
        if at is None:
            break
        reading = world.sensor.read(at, 0, stage)
        loop.tell([reading if reading is not None else Reading(stage, at, world.truth.at(0.0)[at])])
    return found


def run() -> Section:
    """Return the section."""
    section = Section(
        "Candidates that are joined",
        "python benchmarks/run.py candidates",
        "Decisions along a mission each, with the belief as it comes (`belief: {}`): planned with "
        "no more candidates than that, and with all. `same`: the place chosen is the one with "
        "all. `loss`: what it has less than the best there, by the lower bounds of a tree with "
        "all. Gaps are of the joined beliefs. Time over that of a 1000 × 1000 Cholesky measured "
        "before the mission; the first decisions bring the covariances up to date as well.",
        (
            "scenario",
            "candidates",
            "decisions",
            "same",
            "mean loss [nat]",
            "largest loss",
            "median gap",
            "median / Cholesky",
        ),
    )
    for name, stages, every, expansions in MISSIONS:
        for count, rows in decisions(name, stages, every, expansions).items():
            times, gaps, losses = np.array(rows).T
            section.rows.append(
                (
                    f"{name}, {expansions} expansions",
                    "all" if count == COUNTS[-1] else count,
                    len(rows),
                    f"{100 * np.mean(losses <= 1e-9):.0f} %",
                    float(losses.mean()),
                    float(losses.max()),
                    float(np.median(gaps)),
                    float(np.median(times)),
                )
            )
    return section
