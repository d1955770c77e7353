"""Experiment 1 of the paper: what decides how soon the belief finds the true length-scale."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from common import Section

from gp_active_sensing.belief import Belief
from gp_active_sensing.experiments import mean_of, paired_difference
from gp_active_sensing.planning.base import PolicyState
from gp_active_sensing.planning.greedy import MaxEntropy, expected_entropy
from gp_active_sensing.records.metrics import rmspe
from gp_active_sensing.sim import build_loop, build_world, load_scenario
from gp_active_sensing.topology import Topology
from gp_active_sensing.types import FloatArray, IntArray

FIELDS, READINGS, EXPANSIONS = 40, 5, 400
PUBLISHED: dict[str, Any] = {
    "name": "bal", "horizon": 3, "samples": 10, "alpha": 1.0, "discretisation": "draws",
    "search": "published",
}  # fmt: skip
CELLS: dict[str, Any] = {"name": "bal", "horizon": 3, "samples": 5, "alpha": 0.1}


@dataclass(frozen=True)
class Variant:
    """One way to run the experiment; `shuffled` renames the places, so that ties fall anywhere."""

    label: str
    policy: dict[str, Any]
    expansions: int = EXPANSIONS
    shuffled: bool = False
    budget: int = READINGS
    draw: int = 0


@dataclass(frozen=True)
class LengthScaleOnly(MaxEntropy):
    """Choose the reading that says most about λ: I(λ; Z_x) = H[Z_x] − Σ_λ b(λ) H[Z_x|λ]."""

    def scores(
        self, belief: Belief, locations: IntArray, pending: Collection[int], state: PolicyState
    ) -> FloatArray:
        mixture = super().scores(belief, locations, pending, state)
        return mixture - expected_entropy(belief, belief.weights, locations, pending)


def variants() -> list[Variant]:
    """The published setting, and one thing changed at a time."""
    draws, cells = PUBLISHED, CELLS
    return [
        Variant("ie", {"name": "ie"}),
        Variant("random", {"name": "random"}),
        Variant("ie, ties anywhere", {"name": "ie"}, shuffled=True),
        Variant("information about λ only, ties anywhere", {"name": "λ"}, shuffled=True),
        Variant("published: draws, S = 10, N' = 3, α = 1", draws),
        Variant("… ties anywhere", draws, shuffled=True),
        Variant("… 3200 expansions", draws, 3200),
        Variant("… 20 expansions", draws, 20),
        Variant("… N' = 2", {**draws, "horizon": 2}),
        Variant("… N' = 5", {**draws, "horizon": 5}),
        Variant("… S = 1", {**draws, "samples": 1}),
        Variant("… S = 3", {**draws, "samples": 3}),
        Variant("… S = 40", {**draws, "samples": 40}),
        Variant("… common random numbers", {**draws, "common": True}),
        Variant("… τ = 1", {**draws, "tau": 1.0}),
        Variant("… τ = 5", {**draws, "tau": 5.0}),
        Variant("… τ = 10", {**draws, "tau": 10.0}),
        Variant("… α = 0.1", {**draws, "alpha": 0.1}),
        Variant("… α = 3", {**draws, "alpha": 3.0}),
        Variant("… S = 1, α = 3, ties anywhere", {**draws, "samples": 1, "alpha": 3.0},
                shuffled=True),
        Variant("… gap-directed search", {**draws, "search": "gap"}),
        Variant("cells, S = 5, N' = 3, α = 0.1", cells),
        Variant("… ties anywhere", cells, shuffled=True),
        Variant("… published search", {**cells, "search": "published"}),
        Variant("… chain-rule bounds", {**cells, "bounds": "chain"}),
        Variant("… S = 10", {**cells, "samples": 10}),
        Variant("… N' = 2", {**cells, "horizon": 2}),
        Variant("… N' = 5, 3200 expansions", {**cells, "horizon": 5}, 3200),
    ]  # fmt: skip


def renamed(topology: Topology, seed: int, draw: int = 0) -> tuple[Topology, IntArray]:
    """The same places under other numbers, and the old number (M,) of each.

    Equal values are settled by the lowest number, and numbers of neighbours follow each other: a
    policy that cannot tell places apart would read neighbours.
    """
    source = [41, seed, draw] if draw else [41, seed]
    order = np.random.default_rng(source).permutation(len(topology.names))
    names = [topology.names[i] for i in order]
    return type(topology)(topology.name, topology.frame, names, topology.positions[order]), order


def outcome(variant: Variant, seed: int) -> tuple[float, float]:
    """Return the belief on the true length-scale and the RMSPE after the readings of one field."""
    return outcomes_at(variant, seed, (READINGS,))[READINGS]


def outcomes_at(
    variant: Variant, seed: int, marks: Sequence[int]
) -> dict[int, tuple[float, float]]:
    """Belief on the true length-scale and RMSPE after each of so many readings of one field.

    Args:
        variant: what is played; its budget is what is planned for.
        seed: of the field.
        marks: readings after which it is read off; the mission ends with the last.
    """
    named = variant.policy if variant.policy["name"] != "λ" else {"name": "random"}
    scenario = load_scenario(
        "line", overrides=[f"seed={seed}", f"budget.readings={variant.budget}"]
    )
    scenario = replace(scenario, policy=named)
    scenario = replace(scenario, limit=replace(scenario.limit, expansions=variant.expansions))
    world = build_world(scenario)
    field = world.truth.at(0.0)
    topology, order = world.topology, np.arange(len(field))
    if variant.shuffled:
        topology, order = renamed(topology, seed, variant.draw)
    loop = build_loop(scenario, topology)
    if variant.policy["name"] == "λ":
        loop.policy = LengthScaleOnly()
    belief = loop.belief
    true = [h.length_scales[0] for h in belief.hyperparameters].index(1.0)
    found: dict[int, tuple[float, float]] = {}
    for made in range(1, max(marks) + 1):
        at = loop.ask(None).waypoint
        assert at is not None
        loop.tell([replace(world.sensor.read(int(order[at]), 0, 0), location=at)])
        if made in marks:
            error = rmspe(belief.predict()[0], field[order], belief.observed)
            found[made] = float(belief.weights[true]), error
    return found


def run() -> Section:
    section = Section(
        f"Experiment 1: the belief after {READINGS} readings",
        "python benchmarks/run.py experiment1",
        f"`sim/line.yaml`, {FIELDS} fields (seeds 0 … {FIELDS - 1}), the same for every line; at "
        f"most {EXPANSIONS} expansions a decision unless said. Each block changes one thing of its "
        "first line. `ties anywhere`: the places are renamed at random, since equal values are "
        "settled by the lowest index. Mean ± s.e. of the belief on the true length-scale (prior "
        "1/7), share of fields where it is at least 0.88, RMSPE, and its difference to `ie` on "
        "the same fields.",
        ("policy", "belief on ℓ = 1", "≥ 0.88", "RMSPE", "against ie"),
    )
    reference: list[float] = []
    for variant in variants():
        runs = [outcome(variant, seed) for seed in range(FIELDS)]
        shares, errors = (list(column) for column in zip(*runs, strict=True))
        reference = reference or errors  # the first line is ie
        section.rows.append(
            (
                variant.label,
                mean_of(shares),
                f"{100 * np.mean(np.array(shares) >= 0.88):.0f} %",
                mean_of(errors),
                paired_difference(errors, reference),
            )
        )
    return section
