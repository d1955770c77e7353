"""Averaging over kernels on measured data: the Intel lab's temperatures, San Jose's speeds.

    GPAS_DATA=… python benchmarks/bench_vbks_real.py [--smoke] [--kept DIR] [--pictures DIR]

144 kernels are screened with few inducing inputs, the ten with the largest q* are fitted anew with
many; one run's test set was seen by neither.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from common import Section
from network_data import data_folder
from vbks_data import GROUPS, HELD, PARTS, Measured, intel, refit_rows, screening_rows, some, speeds
from vbks_runs import LEVELS, Kept, Report, run_alone, scores, shown

from gp_active_sensing.kernel_model import KernelModel, kernel_belief
from gp_active_sensing.kernels.grammar import kernel_set, parse
from gp_active_sensing.learning.kernel_selection.config import VbksConfig

BASE = "VBKS, top 10"
SETS = {"Intel lab": intel, "San Jose": speeds}
METHODS = (
    BASE, "VBKS-s", "random kernel", "BIC choice", "Laplace choice", "SVGP, SE", "constant"
)  # fmt: skip


@dataclass(frozen=True)
class Size:
    """How much is done."""

    kernels: str = "k144"
    top: int = 10
    screen: int = 32
    screen_steps: int = 200
    refit: int = 128
    refit_steps: int = 500
    batch: int = 256
    screenings: int = GROUPS
    runs: int = 10
    subset: int = 120
    """Rows that BIC and Laplace choose on."""
    rows: int | None = None


FULL = Size()
SMOKE = Size("SE,LIN,PER+SE", 2, 8, 10, 12, 10, 64, 1, 1, 40, 300)


def config(size: Size, inducing: int, steps: int, restarts: int, seed: int) -> VbksConfig:
    return VbksConfig(
        inducing=inducing,
        batch=size.batch,
        iterations=steps,
        restarts=restarts,
        hyperparameters="point",
        seed=seed,
    )


def screened(data: Measured, group: int, size: Size) -> dict[str, Any]:
    """The belief over all kernels, and what BIC and Laplace choose, without the group's tests."""
    from kernel_selection.baselines import exact_choice

    from gp_active_sensing.learning.kernel_selection import select_kernels

    rows = some(data.rows, screening_rows(data, group)[: size.rows])
    kernels = kernel_set(size.kernels)
    started = time.perf_counter()
    model = select_kernels(rows, kernels, config(size, size.screen, size.screen_steps, 1, group))
    took = time.perf_counter() - started
    found: dict[str, Any] = {
        "names": list(model.names),
        "q": np.asarray(model.belief.probabilities).tolist(),
        "softmax": np.asarray(model.belief.softmax).tolist(),
        "bounds": [fit.bound for fit in model.fits],
        "dropped": [list(pair) for pair in model.dropped],
        "seconds": took,
    }
    started = time.perf_counter()
    choice = exact_choice(rows, kernels, size.subset, group, restarts=1)
    found["exact seconds"] = time.perf_counter() - started
    for criterion in ("bic", "laplace"):
        found[criterion] = str(choice.by(criterion))
    return found


def of_kernels(model: KernelModel, names: Sequence[str]) -> KernelModel:
    """The belief over some of the kernels, the most probable first."""
    fits = [fit for fit in model.fits if fit.name in names]
    belief = kernel_belief([fit.bound for fit in fits], prior_std=model.belief.prior_std)
    order = np.argsort(-belief.probabilities, kind="stable")
    ordered = kernel_belief([fits[i].bound for i in order], prior_std=model.belief.prior_std)
    return replace(model, fits=tuple(fits[i] for i in order), belief=ordered)


def refitted(data: Measured, run: int, screen: dict[str, Any], size: Size) -> dict[str, Any]:
    """Scores of all methods on one run's test set."""
    from kernel_selection.baselines import constant, only, svgp_se

    from gp_active_sensing.learning.kernel_selection import select_kernels

    index, test = refit_rows(data, run)
    rows = some(data.rows, index[: size.rows])
    top = screen["names"][: size.top]
    names = sorted(str(e) for e in kernel_set(size.kernels))
    drawn = str(np.random.default_rng([0xA11, run]).choice(names))
    wanted = list(dict.fromkeys([*top, drawn, screen["bic"], screen["laplace"]]))
    setting = config(size, size.refit, size.refit_steps, 1, run)
    started = time.perf_counter()
    model = select_kernels(rows, [parse(name) for name in wanted], setting)
    took = time.perf_counter() - started
    best = of_kernels(model, top)
    X, y = data.rows.inputs[test], data.rows.outputs[test]
    alone = {
        "VBKS-s": best.names[0],
        "random kernel": drawn,
        "BIC choice": screen["bic"],
        "Laplace choice": screen["laplace"],
    }
    found: dict[str, Any] = {BASE: scores(y, *best.predict(X, noisy=True))}
    for method, name in alone.items():
        if name in model.names:
            found[method] = scores(y, *only(model, name).predict(X, noisy=True))
    started = time.perf_counter()
    found["SVGP, SE"] = scores(y, *svgp_se(rows, setting).predict(X, noisy=True))
    svgp = time.perf_counter() - started
    found["constant"] = scores(y, *constant(rows).predict(X))
    return {
        "scores": found,
        "alone": alone,
        "q": dict(zip(best.names, best.belief.probabilities.tolist(), strict=True)),
        "softmax": dict(zip(best.names, best.belief.softmax.tolist(), strict=True)),
        "gap": best.fits[0].bound - best.fits[1].bound,
        "outcomes": [fit.outcome for fit in model.fits],
        "dropped": [list(pair) for pair in model.dropped],
        "seconds": [took, svgp],
    }


def run(*, smoke: bool = False, pictures: Path | None = None) -> Report:
    size = SMOKE if smoke else FULL
    kept = Kept("vbks_real" + "_smoke" * smoke)
    folder = data_folder()
    if folder is None:
        text = "**Not run: GPAS_DATA names no folder.**"
        return Report([Section("Averaging over kernels on measured data", COMMAND, text)])
    screens: dict[str, list[dict[str, Any]]] = {}
    refits: dict[str, list[dict[str, Any]]] = {}
    data = {name: load(folder) for name, load in SETS.items()}
    for group in range(size.screenings):
        for name in data:
            key = f"{name} | screening {group} | {size.kernels} {size.screen} × {size.screen_steps}"
            one = kept.get(key, lambda n=name, g=group: screened(data[n], g, size))
            screens.setdefault(name, []).append(one)
    for number in range(size.runs):
        for name in data:
            key = f"{name} | refit {number} | {size.refit} × {size.refit_steps}"
            screen = screens[name][number % size.screenings]
            one = kept.get(key, lambda n=name, k=number, s=screen: refitted(data[n], k, s, size))
            refits.setdefault(name, []).append(one)
    if pictures is not None:
        draw(refits, pictures)
    return Report([table(refits, data, size), runs_table(refits), kernels_table(screens, size)])


COMMAND = "GPAS_DATA=… python benchmarks/run.py vbks_real"


def table(
    refits: dict[str, list[dict[str, Any]]], data: dict[str, Measured], size: Size
) -> Section:
    section = Section(
        "Averaging over kernels on measured data",
        COMMAND,
        "Intel lab: temperatures of 143 half-hours × 50 motes at x, y and time, readings left out "
        "at random, as in the paper. San Jose: speeds of 13 Mondays × 325 sensors at the 6 "
        "coordinates of the network's embedding, sensors left out. Each of "
        f"{size.screenings} screenings ({len(kernel_set(size.kernels))} kernels, {size.screen} "
        f"inducing inputs, {size.screen_steps} steps at most, 1 start) leaves out {HELD:.0%} of "
        f"the readings or sensors; the {size.top} most probable kernels are fitted anew with "
        f"{size.refit} inducing inputs ({size.refit_steps} steps at most) in {size.runs} runs. A "
        f"run predicts a part ({HELD / PARTS:.0%} of all) of what its screening left out and "
        "learns from all the rest. Mini-batches of "
        f"{size.batch}, point estimates of the hyper-parameters. `random kernel`: of the 144; BIC "
        f"and Laplace choose on {size.subset} rows by exact Gaussian processes, and their choice "
        "is fitted like the others; `SVGP, SE`: GPyTorch's, with the same inducing inputs, "
        "mini-batches and steps. RMSE in the data's unit, NLPD of readings in nats: mean ± s.e. "
        "over the runs; the differences are paired, to the average over the kernels, with how "
        "often the average is better; coverage of central intervals.",
        ("data", "method", "RMSE", "difference", "average better", "NLPD", "difference",
         "average better", *(f"in {100 * p:g} %" for p in LEVELS)),
    )  # fmt: skip
    for name, runs in refits.items():
        for method in METHODS:
            some_runs = [r["scores"] for r in runs if method in r["scores"]]
            if not some_runs:
                continue
            cells: list[object] = []
            for key in ("rmse", "nlpd"):
                mine = np.array([one[method][key] for one in some_runs])
                base = np.array([one[BASE][key] for one in some_runs])
                gain = shown(mine - base, 4) if method != BASE else ""
                wins = f"{int((mine > base).sum())} of {len(mine)}" if method != BASE else ""
                cells += [shown(mine), gain, wins]
            covered = np.mean([one[method]["covered"] for one in some_runs], axis=0)
            what = f"{name} [{data[name].unit}]"
            section.rows.append((what, method, *cells, *(f"{100 * c:.1f} %" for c in covered)))
    return section


def runs_table(refits: dict[str, list[dict[str, Any]]]) -> Section:
    """As [Teng2020, Tables 2 and 3]."""
    section = Section(
        "The same, run by run",
        COMMAND,
        "ΔL: what the best kernel's local ELBO is above the second's; at the limit: fits that took "
        "all their steps.",
        ("data", "run", "RMSE, top 10", "RMSE, VBKS-s", "VBKS-s", "q*", "ΔL nat",
         "at the limit", "dropped", "s, of it SVGP"),
    )  # fmt: skip
    for name, runs in refits.items():
        for number, one in enumerate(runs):
            best = one["alone"]["VBKS-s"]
            limit = sum("limit" in text for text in one["outcomes"])
            section.rows.append(
                (
                    *(name, number, f"{one['scores'][BASE]['rmse']:.4f}"),
                    *(f"{one['scores']['VBKS-s']['rmse']:.4f}", best, f"{one['q'][best]:.3f}"),
                    *(f"{one['gap']:.1f}", f"{limit} of {len(one['outcomes'])}"),
                    len(one["dropped"]),
                    f"{sum(one['seconds']):.0f}, {one['seconds'][1]:.0f}",
                )
            )
    return section


def kernels_table(screens: dict[str, list[dict[str, Any]]], size: Size) -> Section:
    section = Section(
        "What the screenings found",
        COMMAND,
        "The most probable kernels with q* and how far their local ELBO is behind the best.",
        ("data", "screening", "kernels", "BIC", "Laplace", "dropped", "s, s of BIC and Laplace"),
    )
    for name, found in screens.items():
        for group, one in enumerate(found):
            first = ", ".join(
                f"{k} ({q:.2f}, {b - max(one['bounds']):.1f})"
                for k, q, b in zip(one["names"][:5], one["q"], one["bounds"], strict=False)
            )
            section.rows.append(
                (
                    *(name, group, first, one["bic"], one["laplace"], len(one["dropped"])),
                    f"{one['seconds']:.0f}, {one['exact seconds']:.0f}",
                )
            )
    return section


def draw(refits: dict[str, list[dict[str, Any]]], folder: Path) -> None:
    """Paired RMSE of every run, averages against the single best kernel; and coverage."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    from gp_active_sensing.experiments.figures import COLOURS, MARKERS, STYLE

    with mpl.rc_context(STYLE):
        figure, axes = plt.subplots(2, len(refits), figsize=(4.6 * len(refits), 5.4), squeeze=False)
        for column, (name, runs) in enumerate(refits.items()):
            ax, below = axes[:, column]
            labels = [m for m in METHODS if m not in (BASE, "constant")]
            for i, method in enumerate(labels):
                colour = COLOURS[METHODS.index(method)]
                gains = [
                    r["scores"][method]["rmse"] - r["scores"][BASE]["rmse"]
                    for r in runs if method in r["scores"]
                ]  # fmt: skip
                ax.plot(gains, [i] * len(gains), "o", color=colour, markersize=4, alpha=0.6)
                ax.plot(np.mean(gains), i, "|", color=colour, markersize=18, markeredgewidth=2)
            ax.set_yticks(range(len(labels)), labels if column == 0 else [""] * len(labels))
            ax.set_ylim(len(labels) - 0.5, -0.5)
            ax.axvline(0.0, color="#222222", linewidth=0.8)
            ax.set(title=name, xlabel=f"RMSE above that of {BASE}, each run")
            for i, method in enumerate(METHODS):
                covered = [r["scores"][method]["covered"] for r in runs if method in r["scores"]]
                if covered:
                    below.plot(
                        LEVELS, np.mean(covered, axis=0), marker=MARKERS[i], color=COLOURS[i],
                        markersize=4, linewidth=1.0, label=method,
                    )  # fmt: skip
            below.plot([0.4, 1.0], [0.4, 1.0], ":", color="#222222", linewidth=0.8)
            below.set(xlabel="central interval", ylabel="share of readings in it")
        handles, labels = axes[1, -1].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=4)
        figure.savefig(folder / "vbks_real.png", dpi=150)
        plt.close(figure)


if __name__ == "__main__":
    sys.exit(run_alone(run, __doc__))
