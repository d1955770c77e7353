"""A first look at what the policies achieve: Experiment 1's line, and the town."""

from __future__ import annotations

from common import STATED, Section

from gp_active_sensing.experiments import Trial, mean_of, paired_difference, run_trial
from gp_active_sensing.sim import load_scenario

POLICIES = {
    "random": "{name: random}",
    "apgd": "{name: apgd}",
    "ie": "{name: ie}",
    "max_entropy": "{name: max_entropy}",
    "bal": None,  # as the scenario has it
}
PLANS = (("line", (5, 15, 25), 20), ("town", (20, 60, 120), 8))


def trials(scenario: str, readings: int, seeds: int) -> dict[str, list[Trial]]:
    """Run every policy on the same seeds; on the town a seed also moves the start."""
    out: dict[str, list[Trial]] = {}
    stated = STATED.get(scenario, ())
    base = load_scenario(scenario, overrides=stated)
    for name, policy in POLICIES.items():
        out[name] = []
        for seed in range(seeds):
            overrides = [*stated, f"seed={seed}", f"budget.readings={readings}"]
            if base.probe.start is not None:
                overrides.append(f"probe.start={83 * seed}")
            if policy is not None:
                overrides.append(f"policy={policy}")
            out[name].append(run_trial(load_scenario(scenario, overrides=overrides)))
    return out


def run() -> Section:
    section = Section(
        "Policies on the shipped scenarios",
        "python benchmarks/run.py policies",
        "RMSPE over the places not observed, against the noise-free truth, mean ± s.e.; in "
        "brackets the difference to `ie` on the same seeds ± its s.e. `line`: 20 fields (seeds "
        "0 … 19), N' = 2. `town`: one field, 8 starts (places 0, 83, … 581), N' = 5, 7 length-"
        "scales. A first look, not an experiment: few seeds, one setting.",
        ("scenario", "policy", "first budget", "second budget", "third budget"),
    )
    for scenario, budgets, seeds in PLANS:
        found = trials(scenario, budgets[-1], seeds)
        for name, runs in found.items():
            cells = []
            for budget in budgets:
                mine = [t.at(budget, "rmspe") for t in runs]
                other = [t.at(budget, "rmspe") for t in found["ie"]]
                cells.append(f"N={budget}: {mean_of(mine)} ({paired_difference(mine, other)})")
            section.rows.append((scenario, name, *cells))
    return section
