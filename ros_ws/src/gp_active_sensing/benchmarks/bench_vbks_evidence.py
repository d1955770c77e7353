"""[Teng2020, Sec. 6.1] again: where does the true kernel lose its belief?

Too few inducing inputs, an optimisation that ends early, or data that do not tell the kernels
apart: so the belief is held against the exact evidence of the kernels nearest to the truth.

python benchmarks/bench_vbks_evidence.py [--smoke] [--kept DIR]
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from common import Section
from kernel_selection.exact import Posterior
from vbks_data import TRUTHS, Truth, synthetic
from vbks_optimum import Collapsed, Evidence, Rows, drawn_starts, evidence, of_twins
from vbks_runs import Kept, Report, run_alone, shown

from gp_active_sensing.kernels.composite import Composite
from gp_active_sensing.kernels.grammar import kernel_set, parse
from gp_active_sensing.learning.kernel_selection.config import VbksConfig

COMMAND = "python benchmarks/run.py vbks_evidence"
INDUCING, BATCH = 64, 256
SIX = ("(PER+RQ)×LIN", "(PER+SE)×LIN", "LIN×RQ+LIN", "LIN×RQ+PER", "PER×LIN×RQ", "PER×LIN×SE")
"""Both true kernels and those of the 144 whose covariance comes nearest to one of them."""


@dataclass(frozen=True)
class Size:
    """How much is done.

    Args:
        weighed: data sets of each truth whose evidence is found, by the least noise.
        fitted: data sets of the first truth from which a belief is learned; the kernels; the noise.
        steps, every, starts: of a fit at most, between its estimates, of each kernel.
        searches: of the most probable θ from draws, besides true θ and twins; steps of each.
        held: inducing inputs with which the true kernel is looked at; on how many data sets.
    """

    weighed: dict[float, int]
    fitted: tuple[int, str, float]
    steps: int = 600
    every: int = 20
    starts: int = 8
    searches: tuple[int, int] = (1, 60)
    held: tuple[tuple[int, ...], int] = ((16, 32, 64, 128), 5)
    names: tuple[str, ...] = SIX


FULL = Size({0.1: 2, 0.03: 2}, (1, "k12", 0.1))
SMOKE = Size(
    {0.1: 2},
    (1, "PER×LIN×RQ,PER×LIN×SE", 0.1),
    6,
    3,
    2,
    (1, 3),
    ((8,), 1),
    ("PER×LIN×RQ", "(PER+RQ)×LIN", "PER×LIN×SE"),
)


def config(size: Size, seed: int, floor: float, starts: int) -> VbksConfig:
    return VbksConfig(
        inducing=INDUCING, batch=BATCH, centre=False, seed=seed, noise_floor=floor,
        iterations=size.steps, evaluate_every=size.every, restarts=starts,
    )  # fmt: skip


def weighed(truth: Truth, floor: float, seed: int, size: Size) -> dict[str, Any]:
    """The evidence of every kernel; the true one's search begins at its true θ, too."""
    rows = Rows.of(synthetic(truth, seed))
    searches, steps = size.searches
    setting = config(size, seed, floor, searches)
    found: dict[str, Evidence] = {}

    def better(composite: Composite, starts: list[np.ndarray]) -> None:
        made = evidence(composite, rows, floor, starts, inducing=INDUCING, steps=steps)
        known = found.get(composite.name)
        if known is None or made.laplace > known.laplace:
            found[composite.name] = made

    began = time.process_time()
    for name in size.names:
        composite = Composite(parse(name), 1)
        starts = drawn_starts(composite, rows, setting)
        if name == truth.name:
            starts.append(truth.scaled(rows.unit, rows.scale))
        better(composite, starts)
    for name in size.names:
        composite = Composite(parse(name), 1)
        twins = of_twins(composite, {k: one.theta for k, one in found.items()})
        if twins:
            better(composite, twins)
    kernels = {
        name: {"laplace": one.laplace, "exact": one.exact, "lost": one.lost}
        for name, one in found.items()
    }
    return {"kernels": kernels, "cpu_s": time.process_time() - began}


def learned(truth: Truth, kernels: str, floor: float, seed: int, size: Size) -> dict[str, Any]:
    """The belief over kernels from all rows at once."""
    from gp_active_sensing.learning.kernel_selection import select_kernels

    began = time.process_time()
    setting = config(size, seed, floor, size.starts)
    model = select_kernels(synthetic(truth, seed), kernel_set(kernels), setting)
    return {
        "names": list(model.names),
        "q": np.asarray(model.belief.probabilities).tolist(),
        "softmax": np.asarray(model.belief.softmax).tolist(),
        "bounds": [fit.bound for fit in model.fits],
        "converged": sum(fit.outcome.startswith("converged") for fit in model.fits),
        "cpu_s": time.process_time() - began,
    }


def held(truth: Truth, floor: float, seed: int, counts: tuple[int, ...]) -> dict[str, float]:
    """Exact log p(y|θ) at the true θ less the collapsed bound with so many inducing inputs."""
    rows = Rows.of(synthetic(truth, seed))
    composite, theta = truth.composite(), truth.scaled(rows.unit, rows.scale)
    exact = Posterior(composite, rows.X, rows.y, floor).log_likelihood(theta)
    return {
        str(count): exact - Collapsed(composite, rows, floor, count).log_likelihood(theta)
        for count in counts
    }


def chances(one: dict[str, Any]) -> dict[str, float]:
    """Probability of each kernel by the evidence alone, all being as probable before."""
    names = list(one["kernels"])
    values = np.array([one["kernels"][name]["laplace"] for name in names])
    weights = np.exp(values - values.max())
    return dict(zip(names, (weights / weights.sum()).tolist(), strict=True))


def lead(values: dict[str, float], name: str) -> tuple[float, str]:
    """What a kernel is above the best of the others [nat], and which that is."""
    others = {k: value for k, value in values.items() if k != name}
    rival = max(others, key=lambda k: others[k])
    return values[name] - others[rival], rival


def of_evidence(found: dict[tuple[str, float], list[dict[str, Any]]], size: Size) -> Section:
    section = Section(
        "What exact evidence says of the kernels",
        COMMAND,
        "1000 noise-free values; the model's σ_n is at least `noise` of their root mean square. "
        f"Log evidence by the Laplace approximation of {', '.join(size.names)}: exact log p(y|θ), "
        f"θ searched by the collapsed bound with {INDUCING} fixed inducing inputs, whose loss "
        "there is at most `lost` [nat]. `probability`: of the true kernel among these few, which "
        "would be smaller among all 144; `lead`: its log evidence less that of the best other "
        "one, data set by data set [nat].",
        ("true kernel", "noise", "data sets", "probability", "lead, best other", "lost", "CPU s"),
    )  # fmt: skip
    for (name, floor), several in found.items():
        tables = [{k: v["laplace"] for k, v in one["kernels"].items()} for one in several]
        leads = [lead(table, name) for table in tables]
        mine = shown([chances(one)[name] for one in several], 2)
        section.rows.append(
            (
                *(name, f"{floor:g}", len(several), mine),
                ", ".join(f"{ahead:+.1f} {rival}" for ahead, rival in leads),
                f"{max(v['lost'] for one in several for v in one['kernels'].values()):.1f}",
                f"{sum(one['cpu_s'] for one in several):.0f}",
            )
        )  # fmt: skip
    return section


def of_fits(found: dict[str, list[dict[str, Any]]], size: Size) -> Section:
    _, kernels, floor = size.fitted
    section = Section(
        "The belief with enough inducing inputs",
        COMMAND,
        f"{kernels.upper()}, {INDUCING} inducing inputs, mini-batches of {BATCH}, noise {floor:g} "
        f"at least, {size.starts} starts of which the worse half is dropped three times, "
        f"{size.steps} "
        "steps at most, all rows at once. `ΔL`: local ELBO of the true kernel less that of the "
        "best other one [nat].",
        ("true kernel", "seed", "q*", "softmax(L)", "ΔL", "best other", "converged", "CPU s"),
    )
    for name, several in found.items():
        for seed, one in enumerate(several):
            where = one["names"].index(name)
            ahead, rival = lead(dict(zip(one["names"], one["bounds"], strict=True)), name)
            section.rows.append(
                (
                    *(name, seed, f"{one['q'][where]:.2f}", f"{one['softmax'][where]:.2f}"),
                    *(f"{ahead:+.1f}", rival, f"{one['converged']} of {len(one['names'])}"),
                    f"{one['cpu_s']:.0f}",
                )
            )
    return section


def of_inducing(found: dict[tuple[str, float], list[dict[str, float]]]) -> Section:
    counts = list(next(iter(found.values()))[0])
    section = Section(
        "How many inducing inputs hold the true kernel",
        COMMAND,
        "Exact log p(y|θ) at the true hyper-parameters less its collapsed bound with so many "
        "evenly spread inducing inputs [nat], mean ± s.e. over the data sets.",
        ("true kernel", "noise", "data sets", *(f"M = {count}" for count in counts)),
    )
    for (name, floor), several in found.items():
        cells = (shown([one[count] for one in several], 1) for count in counts)
        section.rows.append((name, f"{floor:g}", len(several), *cells))
    return section


def run(*, smoke: bool = False) -> Report:
    """Evidence, belief and tables."""
    size = SMOKE if smoke else FULL
    kept = Kept("vbks_evidence" + "_smoke" * smoke)
    exact = {
        (truth.name, floor): [
            kept.get(
                f"evidence {truth.name} | {floor} | {seed} | 1.0",
                lambda t=truth, f=floor, s=seed: weighed(t, f, s, size),
            )
            for seed in range(seeds)
        ]
        for floor, seeds in size.weighed.items()
        for truth in TRUTHS
    }
    seeds, kernels, least = size.fitted
    fits = {
        truth.name: [
            kept.get(
                f"fit {truth.name} | {kernels} | {least} | {seed}",
                lambda t=truth, s=seed: learned(t, kernels, least, s, size),
            )
            for seed in range(seeds)
        ]
        for truth in TRUTHS[:1]
    }
    counts, sets = size.held
    inducing = {
        (truth.name, floor): [
            kept.get(
                f"held {truth.name} | {floor} | {seed} | {counts}",
                lambda t=truth, f=floor, s=seed: held(t, f, s, counts),
            )
            for seed in range(sets)
        ]
        for truth in TRUTHS
        for floor in (0.01, 0.03, 0.1)
    }
    return Report([of_evidence(exact, size), of_fits(fits, size), of_inducing(inducing)])


if __name__ == "__main__":
    sys.exit(run_alone(run, __doc__))
