"""The outlier gate: how far off honest readings are, what is caught, and what that is worth."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence

import numpy as np
from common import STATED, Section

from gp_active_sensing.loop import SensingLoop
from gp_active_sensing.mission.ingestion.outlier_gate import OutlierGate
from gp_active_sensing.mission.stream_config import ReadingConfig
from gp_active_sensing.records.metrics import rmspe
from gp_active_sensing.sim import build_loop, build_world, load_scenario
from gp_active_sensing.sim.world import World
from gp_active_sensing.types import FloatArray, Reading

SEEDS = int(os.environ.get("GPAS_GATE_SEEDS", "20"))
VISITS = 100
SCENARIOS = ("line", "town", "town_slots", "lake", "terrain", "bloom", "warehouse")
NOTHING_KNOWN = tuple(
    f"belief.{key}=null" for key in ("length_scales", "signal_std", "noise_std", "mean_std")
)
SIZES = (2.0, 3.0, 5.0, 10.0)
SPIKES = 0.05
"""Share of readings that are spikes, of ten standard deviations of the field."""


def run() -> Section:
    logging.disable(logging.WARNING)
    config = ReadingConfig()
    section = Section(
        "The outlier gate",
        "python benchmarks/run.py gate",
        f"{SEEDS} seeds a scenario, {VISITS} random places each (of the line two thirds), one "
        f"reading a place, judged once {config.gate_places} are observed and before it is told to "
        "the belief, which has a configuration for the field (known) or is given nothing "
        "(nothing known). `farthest`: of the honest readings, in the gate's standard deviations. "
        "`gated`: share of readings that "
        f"are moved by 2, 3, 5, 10 standard deviations of the field (gate {config.gate:g}). "
        f"`RMSPE`: at the end, without spikes and gate, and where {SPIKES:.0%} of the readings are "
        "spikes, without and with the gate.",
        (
            "scenario",
            "belief",
            "honest readings",
            "farthest",
            "beyond 4",
            "beyond 5",
            f"beyond {config.gate:g}",
            "gated +2 / 3 / 5 / 10 s.d.",
            "RMSPE",
            "with spikes",
            "spikes, gate",
        ),
    )
    for name in SCENARIOS:
        for label, overrides in (("known", STATED.get(name, ())), ("nothing known", NOTHING_KNOWN)):
            section.rows.append(_row(name, label, overrides, config))
    logging.disable(logging.NOTSET)
    return section


def _row(
    name: str, label: str, overrides: Sequence[str], config: ReadingConfig
) -> Sequence[object]:
    honest: list[float] = []
    moved: dict[float, list[bool]] = {size: [] for size in SIZES}
    errors: dict[str, list[float]] = {"clean": [], "spikes": [], "gated": []}
    for seed in range(SEEDS):
        scenario = load_scenario(name, overrides=[f"seed={seed}", *overrides])
        world = build_world(scenario)
        truth = world.truth.at(0.0)
        rng = np.random.default_rng([seed, 1])
        places = rng.permutation(world.topology.n)[: min(VISITS, 2 * world.topology.n // 3)]
        noise = scenario.sensor.noise_std * rng.standard_normal(len(places))
        spikes = rng.random(len(places)) < SPIKES
        signs = rng.choice([-1.0, 1.0], len(places))
        size = float(truth.std())
        for kind in errors:
            loop = build_loop(scenario, world.topology)
            judge = OutlierGate(loop, 1e-9, config.gate_places)
            gate = OutlierGate(loop, config.gate if kind == "gated" else 0.0, config.gate_places)
            for i, place in enumerate(places.tolist()):
                value = float(truth[place] + noise[i])
                if kind == "clean" and loop.belief.observed.sum() >= config.gate_places:
                    honest.append(judge.off(Reading(i, place, value)) or 0.0)
                    for more, found in moved.items():
                        outlier = value + signs[i] * more * size
                        if _positive(loop, outlier):
                            off = judge.off(Reading(i, place, outlier))
                            found.append((off or 0.0) > config.gate)
                if kind != "clean" and spikes[i]:
                    value += signs[i] * 10.0 * size
                reading = Reading(i, place, value)
                if _positive(loop, value) and gate.off(reading) is None:
                    loop.tell([reading])
            errors[kind].append(_error(loop, world, truth))
    caught = " / ".join(f"{np.mean(moved[size]):.0%}" for size in SIZES)
    beyond = [sum(off > limit for off in honest) for limit in (4.0, 5.0, config.gate)]
    means = [float(np.mean(found)) for found in errors.values()]
    return (name, label, len(honest), max(honest), *beyond, caught, *means)


def _positive(loop: SensingLoop, value: float) -> bool:
    """Say whether the belief can take a value: not one below zero, where it takes logarithms."""
    try:
        loop.belief.check(0, value)
    except ValueError:
        return False
    return True


def _error(loop: SensingLoop, world: World, truth: FloatArray) -> float:
    mean, _ = loop.belief.predict()
    error = rmspe(mean, truth, loop.belief.observed)
    assert error is not None
    return error
