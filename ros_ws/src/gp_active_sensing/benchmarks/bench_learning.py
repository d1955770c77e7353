"""Is it worth a reading to learn the length-scale? Experiment 1 with any of its length-scales."""

from __future__ import annotations

import itertools
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from bench_experiment1 import PUBLISHED, renamed
from common import Kept, Section

from gp_active_sensing.belief import Belief
from gp_active_sensing.experiments import mean_of, paired_difference
from gp_active_sensing.planning import build_policy
from gp_active_sensing.planning.bal import Bal
from gp_active_sensing.planning.bal.branching import Branching, EqualProbabilityCells
from gp_active_sensing.planning.bal.covariance_state import CovarianceState
from gp_active_sensing.planning.bal.discretise import Successors
from gp_active_sensing.planning.bal.tree import StateBlock
from gp_active_sensing.planning.base import PlanRequest, Policy, PolicyState
from gp_active_sensing.planning.entropy import discrete_entropy
from gp_active_sensing.planning.greedy import MaxEntropy, expected_entropy
from gp_active_sensing.records.metrics import rmspe
from gp_active_sensing.sim import build_loop, build_world, load_scenario
from gp_active_sensing.types import FloatArray, IntArray, Plan

LENGTH_SCALES = (1.0, 6.0, 9.0, 12.0, 15.0, 18.0, 21.0)
FIELDS, BUDGETS = 12, (5, 10, 15)
CHOICES = 20
"""Random choices of places a field that `random` is the mean of."""
PATHS = 100
KNOWN = 0.2
"""Entropy of the belief [nat] at which the length-scale counts as known."""


@dataclass(frozen=True)
class Bonus(MaxEntropy):
    """Largest H[Z_x] + w I(λ; Z_x) next: each nat about the length-scale counts 1 + w times."""

    weight: float = 1.0

    def scores(
        self, belief: Belief, locations: IntArray, pending: Collection[int], state: PolicyState
    ) -> FloatArray:
        mixture = super().scores(belief, locations, pending, state)
        known = expected_entropy(belief, belief.weights, locations, pending)
        return mixture + self.weight * (mixture - known)


class BonusCells(EqualProbabilityCells):
    """Cells whose value counts each nat about λ 1 + w times; bounds allow for w H(b) more.

    Args:
        weight: w.
        samples: branches per candidate.
        reference: (L,) reference entropies.
    """

    def __init__(self, weight: float, samples: int, reference: FloatArray) -> None:
        super().__init__(samples, reference)
        self.weight = weight

    def root_bounds(self, sequence: CovarianceState, weights: FloatArray) -> tuple[float, float]:
        lower, upper = super().root_bounds(sequence, weights)
        return lower, upper + self.weight * float(discrete_entropy(weights))

    def discretise(self, block: StateBlock) -> Successors:
        found = super().discretise(block)
        told = found.reward - block.weights @ block.sequence.entropy
        return replace(found, reward=found.reward + self.weight * told)

    def last(self, block: StateBlock) -> FloatArray:
        value = super().last(block)
        told = value - block.weights @ block.sequence.entropy
        return np.asarray(value + self.weight * told)

    def branch_bounds(self, block: StateBlock, found: Successors) -> tuple[FloatArray, FloatArray]:
        lower, upper = super().branch_bounds(block, found)
        return lower, upper + self.weight * discrete_entropy(found.weights)


@dataclass(frozen=True)
class BonusBal(Bal):
    """`bal` by cells where each nat about λ counts 1 + w times."""

    weight: float = 1.0

    def _values(
        self, key: int, sequence: CovarianceState, mean: FloatArray, weights: FloatArray
    ) -> Branching:
        return BonusCells(self.weight, self.samples, sequence.problem.reference)


@dataclass(frozen=True)
class LearnFirst:
    """What says most about λ until its entropy is below `KNOWN` nat, then another policy."""

    then: Policy

    def plan(self, request: PlanRequest, state: PolicyState = None) -> tuple[Plan, PolicyState]:
        if discrete_entropy(request.belief.weights) < KNOWN:
            return self.then.plan(request, state)
        plan, _ = Bonus(weight=1e6).plan(request)
        return plan, state


def contenders() -> dict[str, tuple[dict[str, Any] | Policy, int]]:
    """Policies, by name: a section of a scenario or an object, and at most so many expansions."""
    drawn = 3 * PATHS  # a path at N' = 3 is three expansions
    return {
        "random": ({"name": "random"}, 0),
        "ie": ({"name": "ie"}, 0),
        "max_entropy": ({"name": "max_entropy"}, 0),
        "… w = 1": (Bonus(weight=1.0), 0),
        "… w = 4": (Bonus(weight=4.0), 0),
        "spread": ({"name": "spread"}, 0),
        "bal, draws, tight": (PUBLISHED, drawn),
        "bal, draws, loosened by 2 H(b)": ({**PUBLISHED, "loosening": 2.0}, drawn),
        "bal, draws, loosened by 4 H(b)": ({**PUBLISHED, "loosening": 4.0}, drawn),
        "bal, draws, constant bounds": ({**PUBLISHED, "bounds": "constant"}, drawn),
        "bal, cells, N' = 2": ({"name": "bal", "horizon": 2}, 600),
        "bal, cells, N' = 2, w = 1": (BonusBal(horizon=2, weight=1.0), 600),
        "bal, cells, N' = 2, w = 4": (BonusBal(horizon=2, weight=4.0), 600),
        "integrated_variance": ({"name": "integrated_variance"}, 100),
        "tour": ({"name": "tour"}, 300),
        "λ first, then integrated_variance": (
            LearnFirst(build_policy({"name": "integrated_variance"})), 100),
        "λ first, then tour": (LearnFirst(build_policy({"name": "tour"})), 300),
    }  # fmt: skip


def outcome(name: str, length_scale: float, seed: int, budget: int) -> tuple[float, float]:
    """Return the RMSPE after all readings of one field, and the belief on its length-scale."""
    draws = range(CHOICES if name == "random" else 1)
    error, belief = np.mean([play(name, length_scale, seed, budget, d) for d in draws], axis=0)
    return float(error), float(belief)


def play(
    name: str, length_scale: float, seed: int, budget: int, draw: int = 0
) -> tuple[float, float]:
    """Play one mission; each `draw` gives the places other random numbers."""
    policy, expansions = contenders()[name]
    scenario = load_scenario(
        "line",
        overrides=[
            f"seed={seed}", f"budget.readings={budget}", f"field.length_scale={length_scale}",
            f"limit.expansions={expansions or 1}",
        ],
    )  # fmt: skip
    section = policy if isinstance(policy, dict) else {"name": "random"}
    world = build_world(replace(scenario, policy=section))
    topology, order = renamed(world.topology, seed, draw)
    loop = build_loop(replace(scenario, policy=section), topology)
    if not isinstance(policy, dict):
        loop.policy = policy
    for _ in range(budget):
        at = loop.ask(None).waypoint
        assert at is not None
        loop.tell([replace(world.sensor.read(int(order[at]), 0, 0), location=at)])
    belief = loop.belief
    true = [h.length_scales[0] for h in belief.hyperparameters].index(length_scale)
    error = rmspe(belief.predict()[0], world.truth.at(0.0)[order], belief.observed)
    return error, float(belief.weights[true])


def run(starts: int = FIELDS, kept_only: bool = False) -> Section:
    """Compare policies on fields of each length-scale; `--kept DIR` keeps what is finished.

    Args:
        starts: seeds to play; each is a field of each length-scale.
        kept_only: play nothing; every policy has the seeds that are kept.
    """
    section = Section(
        "Experiment 1: is it worth readings to learn the length-scale?",
        "python benchmarks/run.py learning"
        + (" --kept DIR --kept-only" if kept_only else f" --starts {starts}"),
        "`sim/line.yaml`, where the paper's fields all have length-scale 1. Here every seed is a "
        "field of each of the seven length-scales that the belief begins with, "
        "so that the mean over all is what a belief that is right may expect. Seeds 0, 1, … as "
        "many as the column says. RMSPE, its paired differences to `random` (the mean of "
        f"{CHOICES} random choices of places on each field) and to `tour`, mean ± s.e. over the "
        "seeds that both were played on, and the belief on the "
        "length-scale that is true. Each number of readings is a mission of its own, so that "
        "policies know their budget. Places are renamed at random, so that equal values fall "
        f"anywhere. Draws stop after {PATHS} paths, about. `w`: each nat about "
        f"λ counts 1 + w times, with `bal` that of both readings ahead. "
        "`λ first`: the reading that says most about λ until its entropy "
        f"is below {KNOWN} nat.",
        ("readings", "policy", "seeds", "RMSPE, ℓ = 1", "against random", "against tour", "belief",
         "RMSPE, all seven", "against random", "against tour", "belief"),
    )  # fmt: skip
    kept = Kept("learning", 4)
    if not kept_only:
        for key in itertools.product(range(starts), BUDGETS, contenders(), LENGTH_SCALES):
            seed, budget, name, scale = key
            kept.get((budget, name, scale, seed), lambda k=(name, scale, seed, budget): outcome(*k))
    for budget in BUDGETS:
        runs = {name: kept_runs(kept, budget, name) for name in contenders()}
        section.rows += [
            (budget, name, len(values), *cells(values, runs))
            for name, values in runs.items()
            if len(values) > 1
        ]
        section.text += by_length_scale(budget, runs["tour"], runs["random"])
    return section


def kept_runs(kept: Kept, budget: int, name: str) -> FloatArray:
    """(seeds, 7, 2) error and belief of the seeds, from the first on, that are kept whole."""
    found = []
    for seed in itertools.count():
        keys = [(budget, name, scale, seed) for scale in LENGTH_SCALES]
        if not all(key in kept for key in keys):
            return np.array(found).reshape(len(found), len(LENGTH_SCALES), 2)
        found.append([kept[key] for key in keys])
    raise AssertionError


def by_length_scale(budget: int, tour: FloatArray, random: FloatArray) -> str:
    """A sentence on `tour` less `random` at each length-scale."""
    both = min(len(tour), len(random))
    if both < 2:
        return ""
    pairs = [
        f"{paired_difference(tour[:both, i, 0].tolist(), random[:both, i, 0].tolist())} ({scale:g})"
        for i, scale in enumerate(LENGTH_SCALES)
    ]
    return f" After {budget} readings `tour` less `random`, by ℓ: {', '.join(pairs)}."


def cells(values: FloatArray, runs: dict[str, FloatArray]) -> list[object]:
    """A policy's figures where ℓ = 1, and over all length-scales."""
    found: list[object] = []
    for part in (slice(0, 1), slice(None)):
        mean = values[:, part].mean(axis=1)  # (seeds, 2)
        found.append(mean_of(mean[:, 0].tolist()))
        for name in ("random", "tour"):
            other = runs[name][:, part, 0].mean(axis=1)
            both = min(len(mean), len(other))
            pair = mean[:both, 0].tolist(), other[:both].tolist()
            found.append(paired_difference(*pair) if both > 1 else "–")
        found.append(mean_of(mean[:, 1].tolist()))
    return found
