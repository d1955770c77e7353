"""A turning radius: what is driven against what was promised, and what decisions cost."""

from __future__ import annotations

import time

import numpy as np
from common import Section

from gp_active_sensing.mission.requests import DecisionRequest
from gp_active_sensing.sim import Scenario, scenario_from_mapping
from gp_active_sensing.sim.runner import SimulationRunner

RADIUS, SPACING, METRES, FIELDS = 25.0, 25.0, 4000.0, 5
POLICIES = ("tour", "lawnmower", "spread", "max_entropy", "bal")
MOVES = ("free", "adjacent")


def lake(policy: str, moves: str, seed: int) -> Scenario:
    return scenario_from_mapping(
        {
            "name": "lake",
            "seed": seed,
            "map": {
                "kind": "grid", "columns": 20, "rows": 15, "spacing": SPACING, "moves": moves,
                "neighbours": 8, "speed": 2.0,
            },
            "field": {"kind": "gp", "length_scale": 100.0, "signal_std": 3.0},
            "sensor": {"noise_std": 0.3, "on_the_way": moves == "adjacent"},
            "probe": {"start": "random", "end": "start"},
            "drive": {"turn_radius": RADIUS},
            "policy": {"name": policy},
            "budget": {"metres": METRES},
            "limit": {"expansions": 50},
        }
    )  # fmt: skip


def played(scenario: Scenario, radius: float) -> tuple[float, float, list[float], bool]:
    """Return metres driven, error of the map, seconds of each decision, and whether it is home."""
    runner = SimulationRunner(scenario, parameters={"drive": {"turn_radius": radius}})
    seconds: list[float] = []
    plain = DecisionRequest.ask

    def timed(self: DecisionRequest):
        started = time.perf_counter()
        plan = plain(self)
        seconds.append(time.perf_counter() - started)
        return plan

    DecisionRequest.ask = timed  # type: ignore[method-assign]
    try:
        ended = runner.run(20_000.0)
    finally:
        DecisionRequest.ask = plain  # type: ignore[method-assign]
    probe, belief = runner.mission.probes[""], runner.mission.loop.belief
    error = np.sqrt(np.mean((belief.predict()[0] - runner.truth.at(0.0)) ** 2))
    return probe.ingestion.metres, float(error), seconds, ended


def run(quick: bool = False) -> Section:
    fields = 2 if quick else FIELDS
    section = Section(
        f"A turning radius of {RADIUS:g} m",
        "python benchmarks/run.py turning",
        f"20 × 15 places {SPACING:g} m apart; a budget of {METRES:g} m with the way home; the "
        f"simulated robot turns no tighter than {RADIUS:g} m in all rows. `planned` is what "
        f"decisions count with. Means over {fields} fields and starts; the most that was driven; "
        "root mean square error of the map; median and longest decision.",
        ("moves", "policy", "planned", "driven", "at most", "RMSE", "median s", "longest s"),
    )
    for moves in MOVES:
        for policy in POLICIES:
            if quick and (policy not in ("tour", "max_entropy") or moves != "free"):
                continue
            for radius in (0.0, RADIUS):
                found = [played(lake(policy, moves, seed), radius) for seed in range(fields)]
                metres, errors, seconds, ended = zip(*found, strict=True)
                assert all(ended)
                every = np.concatenate(seconds)
                section.rows.append(
                    (
                        moves,
                        policy,
                        f"{radius:g} m",
                        f"{100 * np.mean(metres) / METRES:.1f} %",
                        f"{100 * max(metres) / METRES:.1f} %",
                        float(np.mean(errors)),
                        f"{np.median(every):.3f}",
                        f"{every.max():.2f}",
                    )
                )
    return section
