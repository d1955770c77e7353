"""⟨α,ε⟩-BAL on Experiment 1 of the paper against a plain transcription of Algorithm 1.

A path is one pass of the main loop: EXPLORE from a state of the queue down to the last stage, and
the update of its ancestors.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from common import Section, cholesky_seconds

from gp_active_sensing.belief import Belief
from gp_active_sensing.planning.bal import Bal
from gp_active_sensing.planning.bal.branching import RandomDraws
from gp_active_sensing.planning.bal.covariance_state import CovarianceState, DecisionProblem
from gp_active_sensing.planning.bal.tree import SEARCHES, StateBlock, Tree
from gp_active_sensing.planning.base import PlanRequest
from gp_active_sensing.planning.entropy import discrete_entropy, noise_entropy, reported_offset
from gp_active_sensing.sim import build_loop, build_world, load_scenario
from gp_active_sensing.topology.base import Topology
from gp_active_sensing.types import PlanLimit, Reading

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests.reference.algorithm1 import Algorithm1

HORIZON, SAMPLES, PATHS, PLAIN_SECONDS, KEY, TAU = 3, 10, 800, 60.0, 7, 50.0
SCENARIO = "line"
Readings = list[tuple[int, float]]


class CountedTree(Tree):
    """Counts the passes of the main loop: each ends with one backup."""

    paths = 0

    def back_up(self, blocks: list[StateBlock]) -> None:
        super().back_up(blocks)
        self.paths += 1


@dataclass
class Run:
    """What a search of some number of paths took and found."""

    paths: int
    expanded: int
    seconds: float
    first_move: int
    lower: float
    upper: float


def beliefs() -> list[tuple[str, Readings]]:
    """The three situations that are timed."""
    rng = np.random.default_rng([31, 0])
    x = np.arange(100.0)
    covariance = 100.0 * np.exp(-0.5 * (x[:, None] - x) ** 2 / 15.0**2) + 1e-6 * np.eye(100)
    field = np.linalg.cholesky(covariance) @ rng.standard_normal(100)
    packed = [(i, float(field[i] + 0.25 * rng.standard_normal())) for i in range(19)]
    return [
        ("stage 1: nothing read", []),
        ("stage 20: 19 adjacent places of a field with ℓ = 15 m", packed),
        ("stage 20: the 19 places that bal chose, ℓ = 1 m", readings_of_policy(19)),
    ]


def readings_of_policy(count: int) -> Readings:
    """What the policy itself reads on the scenario's field."""
    scenario = load_scenario(SCENARIO, overrides=[f"budget.readings={count}"])
    world = build_world(scenario)
    loop = build_loop(scenario, world.topology)
    at, readings = world.start, []
    for stage in range(count):
        at = loop.ask(at).waypoint
        reading = world.sensor.read(at, 0, stage)
        if reading is None:  # a sensor that says nothing: take what is there
            reading = Reading(stage, at, float(world.truth.at(0.0)[at]))
        loop.tell([reading])
        readings.append((at, reading.value))
    return readings


def ours(belief: Belief, topology: Topology, alpha: float, paths: int = PATHS) -> Run:
    """The published mode of the planner, until so many paths are simulated."""
    started = time.process_time()
    noise = belief.noise_variance
    reference = noise_entropy(noise)
    problem = DecisionProblem(topology, belief.observed, (), noise, reference, 2000, lambda: None)
    where = np.flatnonzero(~belief.observed)
    joint = belief.joint(where)
    every, count = np.arange(len(where)), problem.free_sequences(len(where), HORIZON)
    sequence = CovarianceState(problem, HORIZON, frozenset(), where, every, count, joint.covariance)
    draws = RandomDraws(SAMPLES, reference, KEY, TAU, centre(belief, joint.mean))
    tree = CountedTree(draws, sequence, joint.mean, belief.weights)
    SEARCHES["published"](tree, alpha, lambda: sys.maxsize if tree.paths < paths else 0)
    root = tree.root if tree.root is not None else tree.expand_root()  # closed from the start
    seconds = time.process_time() - started
    offset = reported_offset(noise, HORIZON)
    best = int(np.lexsort((-root.q_upper[0], -root.q_lower[0]))[0])
    return Run(
        tree.paths, tree.expanded, seconds, int(where[best]),
        tree.lower + offset, tree.upper + offset,
    )  # fmt: skip


def centre(belief: Belief, mean: np.ndarray) -> float:
    return float((belief.weights @ mean).mean())


def transcribed(
    belief: Belief, features: np.ndarray, readings: Readings, alpha: float, seconds: float
) -> tuple[Run, float, list[float]]:
    """The transcription, for so long; also the seconds of its first path and of the others."""
    hyper = belief.hyperparameters
    ends: list[float] = []
    started = time.process_time()

    def after_path() -> bool:
        ends.append(time.process_time())
        return len(ends) < PATHS and ends[-1] - started < seconds

    mean = belief.joint(np.flatnonzero(~belief.observed)).mean
    plain = Algorithm1(
        features,
        [h.length_scales[0] for h in hyper],
        [h.signal_std for h in hyper],
        [h.noise_std for h in hyper],
        belief.prior_weights,
        readings,
        HORIZON,
        SAMPLES,
        alpha,
        TAU,
        KEY,
        centre=centre(belief, mean),
        reference=noise_entropy(belief.noise_variance),
        after_path=after_path,
    )
    root = plain.search()
    lower, upper = root.q()
    offset = reported_offset(belief.noise_variance, HORIZON)
    best = int(np.lexsort((-upper, -lower))[0])
    took = np.diff([started, *ends]).tolist()
    run = Run(
        plain.paths, len(plain.explored), sum(took), int(root.candidates[best]),
        root.lower + offset, root.upper + offset,
    )  # fmt: skip
    return run, took[0], took[1:]


def run(plain_seconds: float = PLAIN_SECONDS) -> Section:
    yardstick = cholesky_seconds()
    section = Section(
        "Algorithm 1 on Experiment 1: the planner against a plain transcription",
        "python benchmarks/run.py algorithm1",
        f"`sim/line.yaml`: a free choice of 100 places, 7 length-scales, N' = {HORIZON}, "
        f"S = {SAMPLES}, the published draws, rule and bounds; the same draws in both, which run "
        "one after the other; seconds of processor time, one BLAS thread. A path is one pass of "
        f"the main loop. The planner simulates {PATHS} paths, or as many as close the gap to α; "
        "the transcription (`tests/reference/algorithm1.py`: every posterior of every state from "
        f"all readings) as many as it can in {plain_seconds:.0f} s. In brackets: the first path, "
        "which explores the root as well. `ratio`: the time the transcription would take for the "
        "planner's number of paths (its first, and the mean of the others) over the planner's. "
        "`same`: after as many paths as the transcription "
        "had, both have the same first move, number of expansions, and root bounds to 1e-6. The "
        "last columns: cells and the gap-directed search, for as many expansions as the "
        "published mode had. H(b) is the entropy of the belief over Λ at that stage. A 1000 × 1000 "
        f"Cholesky took {yardstick:.3f} s before.",
        (
            "stage", "H(b) nat", "α", "paths", "ms a path (first)", "gap nat", "transcribed paths",
            "s a path (first)", "ratio (first)", "same", "cells: expansions", "s", "gap nat ",
        ),
    )  # fmt: skip
    scenario = load_scenario(SCENARIO)
    for name, readings in beliefs():
        world = build_world(scenario)
        loop = build_loop(scenario, world.topology)
        loop.tell([Reading(i, x, z) for i, (x, z) in enumerate(readings)])
        belief = loop.belief
        told = float(discrete_entropy(belief.weights))
        for alpha in (0.0, 1.0):
            found = timed(belief, world.topology, alpha)
            if not found.paths:
                nothing = ("closed by the first bounds", *["–"] * 8)
                section.rows.append((name, told, alpha, 0, *nothing))
                continue
            plain, first, others = transcribed(
                belief, world.topology.features, readings, alpha, plain_seconds
            )
            one = timed(belief, world.topology, alpha, 1).seconds
            each = float(np.mean(others)) if others else first
            ratio = (first + (found.paths - 1) * each) / found.seconds
            cells = Bal(horizon=HORIZON, samples=SAMPLES, alpha=alpha)
            limit = PlanLimit(expansions=found.expanded)
            before = time.process_time()
            rng = np.random.default_rng(KEY)
            plan = cells.plan(PlanRequest(belief, world.topology, None, limit=limit, rng=rng))[0]
            took = time.process_time() - before
            section.rows.append(
                (
                    *(name, told, alpha, found.paths),
                    f"{1e3 * found.seconds / found.paths:.2f} ({1e3 * one:.1f})",
                    *(found.upper - found.lower, plain.paths, f"{each:.2f} ({first:.2f})"),
                    f"{ratio:.0f} × ({first / one:.0f} ×)",
                    *(same(belief, world.topology, alpha, plain), plan.expanded, took, plan.gap),
                )
            )
    return section


def timed(belief: Belief, topology: Topology, alpha: float, paths: int = PATHS) -> Run:
    """The median of five runs after two that the memory of the process grows in."""
    runs = [ours(belief, topology, alpha, paths) for _ in range(7)][2:]
    return sorted(runs, key=lambda r: r.seconds)[2]


def same(belief: Belief, topology: Topology, alpha: float, plain: Run) -> str:
    """Whether the planner has the transcription's answer after as many paths."""
    found = ours(belief, topology, alpha, plain.paths)
    agree = found.first_move == plain.first_move and found.expanded == plain.expanded
    close = abs(found.lower - plain.lower) < 1e-6 and abs(found.upper - plain.upper) < 1e-6
    return "yes" if agree and close else "no"
