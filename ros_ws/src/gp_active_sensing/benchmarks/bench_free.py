"""Closing the gap where any place may be next: search rules, bounds and discretisations."""

from __future__ import annotations

import time

import numpy as np
from common import Section

from gp_active_sensing.planning.bal.tree import StateBlock, Tree
from gp_active_sensing.sim import build_loop, build_world, load_scenario
from gp_active_sensing.types import PlanLimit

GAPS = (1.0, 0.5, 0.1)
LIMIT = PlanLimit(expansions=3000, seconds=20.0)
STAGES = (1, 4, 7, 10)
FIELDS = 3
SETTINGS = (
    ("gap", "tight", "cells", 5),
    ("gap", "pairwise", "cells", 5),
    ("gap", "chain", "cells", 5),
    ("published", "tight", "cells", 5),
    ("published", "chain", "cells", 5),
    ("gap", "chain", "draws", 10),
    ("published", "chain", "draws", 10),
)


def trace(loop) -> list[tuple[int, float, float]]:
    """Plan once; return (expansions, seconds, gap) after every backup."""
    seen: list[tuple[int, float, float]] = []
    started = time.perf_counter()
    plain = Tree.back_up

    def watched(self: Tree, blocks: list[StateBlock]) -> None:
        plain(self, blocks)
        seen.append((self.expanded, time.perf_counter() - started, self.gap))

    Tree.back_up = watched  # type: ignore[method-assign]
    try:
        plan = loop.ask(None, limit=LIMIT)
    finally:
        Tree.back_up = plain  # type: ignore[method-assign]
    return [*seen, (plan.expanded, time.perf_counter() - started, plan.gap)]


def run() -> Section:
    section = Section(
        "Closing the gap: a free choice of 100 places, N' = 3",
        "python benchmarks/run.py free",
        f"`sim/line.yaml`, 7 length-scales, α = 0.1 nat; stages {STAGES} of {FIELDS} fields, the "
        "earlier places chosen at random, the same for every setting. Median expansions / seconds "
        f"until the gap is that small; `never` = not within {LIMIT.expansions} expansions and "
        f"{LIMIT.seconds:g} s in at least half of the decisions. `closed` at the limit.",
        (
            "search",
            "bounds",
            "branches",
            "S",
            *(f"≤ {g:g} nat" for g in GAPS),
            "closed",
            "gap left",
        ),
    )
    for search, bounds, branches, samples in SETTINGS:
        reached: dict[float, list[tuple[float, float]]] = {g: [] for g in GAPS}
        left = []
        for seed in range(FIELDS):
            scenario = load_scenario(
                "line",
                overrides=[
                    f"seed={seed}", "policy.horizon=3", f"policy.samples={samples}",
                    f"policy.discretisation={branches}", f"policy.search={search}",
                    f"policy.bounds={bounds}", "policy.alpha=0.1",
                ],
            )  # fmt: skip
            world = build_world(scenario)
            loop = build_loop(scenario, world.topology)
            order = np.random.default_rng([33, seed]).permutation(100)
            for stage in range(1, max(STAGES) + 1):
                if stage in STAGES:
                    seen = trace(loop.snapshot())
                    left.append(seen[-1][2])
                    for gap in GAPS:
                        first = next(((e, s) for e, s, g in seen if g <= gap), (np.inf, np.inf))
                        reached[gap].append(first)
                loop.tell([world.sensor.read(int(order[stage]), 0, stage)])
        cells = []
        for gap in GAPS:
            expansions, seconds = np.median(np.array(reached[gap]), axis=0)
            cells.append(f"{expansions:.0f} / {seconds:.2f} s" if seconds < np.inf else "never")
        closed = f"{100 * np.mean(np.array(left) <= 0.1):.0f} %"
        section.rows.append(
            (search, bounds, branches, samples, *cells, closed, float(np.median(left)))
        )
    return section
