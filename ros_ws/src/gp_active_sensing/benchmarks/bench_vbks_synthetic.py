"""[Teng2020, Sec. 6.1]: does the belief over kernels find the kernel that the data came from?

    python benchmarks/bench_vbks_synthetic.py [--smoke] [--kept DIR] [--pictures DIR]
"""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from common import Section
from vbks_data import DOMAIN, MORE, TRUTHS, Truth, synthetic
from vbks_runs import Kept, Report, run_alone, shown

from gp_active_sensing.kernels.composite import Composite
from gp_active_sensing.kernels.grammar import kernel_set
from gp_active_sensing.learning.vbks.config import VbksConfig

STAGES = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0)
SHOWN = (0.05, 0.2, 0.5, 1.0)
"""Shares of the rows in the table."""
CLOSE = 0.01
"""Covariances, or predictions, that differ by so much are the same."""
SETS = {"k12": 10, "k144": 5}
"""Seeds of each set of kernels."""


@dataclass(frozen=True)
class Size:
    """How much is done."""

    sets: dict[str, int]
    stages: tuple[float, ...] = STAGES
    rows: int = MORE
    iterations: int = 800
    restarts: int = 3
    starts: int = 4
    """Of the search for the nearest covariance."""


FULL = Size(SETS)
SMOKE = Size({"SE,LIN,PER×LIN×RQ,(PER+RQ)×LIN": 2}, (0.2, 1.0), 60, 15, 1, 1)


def config(size: Size, seed: int) -> VbksConfig:
    return VbksConfig(
        inducing=16,
        batch=32,
        iterations=size.iterations,
        restarts=size.restarts,
        stages=size.stages,
        centre=False,
        seed=seed,
    )


def learned(truth: Truth, kernels: str, seed: int, size: Size) -> dict[str, Any]:
    """One belief over kernels, stage by stage, and which kernels say the same as the true one."""
    from gp_active_sensing.learning.vbks import select_kernels

    rows = synthetic(truth, seed, size.rows)
    model = select_kernels(rows, kernel_set(kernels), config(size, seed))
    history = model.history
    found: dict[str, Any] = {
        "rows": np.asarray(history.rows).tolist(),
        "names": list(history.names),
        "probabilities": np.round(history.probabilities, 5).tolist(),
        "softmax": np.round(history.softmax, 5).tolist(),
        "bounds": np.where(np.isfinite(history.bounds), np.round(history.bounds, 3), -1e9).tolist(),
        "dropped": [list(pair) for pair in model.dropped],
        "correlation": float(model.belief.correlations[0, 1]) if len(model.fits) > 1 else 0.0,
        "noise": None,
        "alike": [],
        "rebuilt": [],
    }
    if truth.name not in model.names:
        return found
    grid = np.linspace(-DOMAIN, DOMAIN, 81)[:, None]
    wanted = truth.covariance(grid, grid)
    own = model.names.index(truth.name)
    spread = float(rows.outputs.std())
    best, _ = model.predict(rows.inputs, kernels=[own])
    for i, fit in enumerate(model.fits):
        there = model.scaling.inputs(grid)
        K = fit.composite.covariance(fit.theta_mean, there, there)
        off = np.linalg.norm(K * model.scaling.output_scale**2 - wanted) / np.linalg.norm(wanted)
        if off < CLOSE:
            found["rebuilt"].append(fit.name)
        if abs(fit.bound - model.fits[own].bound) < 1.0:
            mean, _ = model.predict(rows.inputs, kernels=[i])
            if np.sqrt(np.mean((mean - best) ** 2)) < CLOSE * spread:
                found["alike"].append(fit.name)
        if fit.name == truth.name:
            found["off"] = float(off)
            found["noise"] = float(np.exp(fit.theta_mean[0]))
    return found


def nearest(truth: Truth, kernels: str, starts: int) -> dict[str, float]:
    """How near each kernel's covariance comes to the true one, whatever its hyper-parameters.

    The Frobenius norm of the difference over that of the true covariance, 41 places of the domain.
    """
    from scipy.optimize import minimize

    grid = np.linspace(-DOMAIN, DOMAIN, 41)[:, None]
    wanted = truth.covariance(grid, grid)
    wanted /= np.abs(wanted).max()
    size = np.linalg.norm(wanted)
    found: dict[str, float] = {}
    for expression in kernel_set(kernels):
        composite = Composite(expression, 1)
        typical = np.array([np.log(2.0 * np.pi) if p.kind == "period" else 1.0 if p.kind == "length_scale" else 0.0 for p in composite.parameters])  # fmt: skip
        low, high = typical - 8.0, typical + 8.0
        high[composite.where("alpha")] = 12.0

        def off(theta: np.ndarray, composite: Composite = composite) -> float:
            with np.errstate(over="ignore", invalid="ignore"):
                K = composite.covariance(theta, grid, grid)
                return float(np.nan_to_num(np.linalg.norm(K - wanted) / size, nan=1e3, posinf=1e3))

        rng = np.random.default_rng([0, composite.size])
        tried: list[tuple[float, np.ndarray]] = []
        for _ in range(100 * starts):
            theta = typical + rng.standard_normal(composite.size)
            theta[composite.where("period")] = np.log(2.0 * np.pi)
            K = composite.covariance(theta, grid, grid)
            # The best common factor of all terms.
            factor = max(float((K * wanted).sum() / (K * K).sum()), 1e-6)
            theta[composite.where("scale")] += 0.5 * np.log(factor)
            tried.append((off(theta), theta))
        best = 1.0
        for _, theta in sorted(tried, key=lambda pair: pair[0])[:starts]:
            done = minimize(
                off, np.clip(theta, low, high), method="L-BFGS-B",
                bounds=list(zip(low, high, strict=True)), options={"maxiter": 300},
            )  # fmt: skip
            best = min(best, float(done.fun))
            if best < 0.1 * CLOSE:
                break
        found[composite.name] = best
    return found


def run(*, smoke: bool = False, pictures: Path | None = None) -> Report:
    """Every true kernel, set of kernels and seed; the tables, and pictures of the first seed."""
    size = SMOKE if smoke else FULL
    kept = Kept("vbks_synthetic" + "_smoke" * smoke)
    runs: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for seed in range(max(size.sets.values())):
        for kernels, seeds in size.sets.items():
            for truth in TRUTHS if seed < seeds else ():
                key = f"{truth.name} {kernels} {seed} {sorted(asdict(size).items())}"

                def make(truth: Truth = truth, kernels: str = kernels, seed: int = seed) -> Any:
                    return learned(truth, kernels, seed, size)

                key = f"{truth.name} | {kernels} | {seed} | {size.iterations} × {size.restarts}"
                runs.setdefault((truth.name, kernels), []).append(kept.get(key, make))
    near = {
        truth.name: kept.get(
            f"nearest {truth.name} {size.starts}",
            lambda truth=truth: nearest(truth, list(size.sets)[-1], size.starts),
        )
        for truth in TRUTHS
    }
    if pictures is not None:
        draw(runs, pictures)
    return Report([against_data(runs, size), at_the_end(runs), what_is_near(near)])


def course(found: dict[str, Any], name: str, key: str) -> np.ndarray:
    """(T,) of a kernel over the stages; 0 where it took no part."""
    if name not in found["names"]:
        return np.zeros(len(found["rows"]))
    return np.array(found[key])[:, found["names"].index(name)]


def against_data(runs: dict[tuple[str, str], list[dict[str, Any]]], size: Size) -> Section:
    at = [size.stages.index(s) for s in (SHOWN if set(SHOWN) <= set(size.stages) else size.stages)]
    shares = [f"{100 * size.stages[k]:g} %" for k in at]
    section = Section(
        "The kernel that the data came from: belief against data used",
        "python benchmarks/run.py vbks_synthetic",
        f"{size.rows} values of a noise-free draw in [-10, 10] (the predictive mean given 256 "
        "values of the full process), 16 inducing inputs, mini-batches of 32, "
        f"{size.iterations} iterations a stage at most, {size.restarts} starts, full q(θ); "
        "inputs and outputs are scaled, not centred. Mean ± s.e. over the seeds of q*(true "
        "kernel), and of the softmax of the local ELBOs, after so much of the data.",
        ("true kernel", "kernels", "seeds", "", *shares, "first of all"),
    )
    for (name, kernels), found in runs.items():
        for key, label in (("probabilities", "q*"), ("softmax", "softmax")):
            values = np.array([course(one, name, key) for one in found])
            first = sum(
                int(one["names"][int(np.argmax(one["bounds"][-1]))] == name) for one in found
            )
            section.rows.append(
                (
                    *(name, kernels, len(found), label),
                    *(shown(values[:, k], 2) for k in at),
                    f"{first} of {len(found)}",
                )
            )
    return section


def at_the_end(runs: dict[tuple[str, str], list[dict[str, Any]]]) -> Section:
    section = Section(
        "The same, seed by seed at the end",
        "python benchmarks/run.py vbks_synthetic",
        "`alike`: q* of the true kernel together with those whose local ELBO differs by less than "
        f"1 nat and whose predictions by less than {CLOSE:.0%} of the data's deviation (root mean "
        f"square); `rebuilt`: kernels whose fitted covariance is within {CLOSE:.0%} of the true "
        "one (Frobenius norm); ΔL: what the true kernel's local ELBO is above the best of the "
        "others; `off`: the distance of the true kernel's fitted covariance itself.",
        ("true kernel", "kernels", "seed", "q*", "softmax", "alike", "best other", "ΔL nat",
         "alike kernels", "rebuilt", "off", "dropped"),
    )  # fmt: skip
    for (name, kernels), found in runs.items():
        for seed, one in enumerate(found):
            last = dict(zip(one["names"], one["bounds"][-1], strict=True))
            mine = last.pop(name, float("nan"))
            rival = max(last, key=lambda k: last[k]) if last else ""
            alike = set(one["alike"]) | {name}
            q = dict(zip(one["names"], one["probabilities"][-1], strict=True))
            section.rows.append(
                (
                    *(name, kernels, seed, f"{q.get(name, 0.0):.3f}"),
                    f"{course(one, name, 'softmax')[-1]:.3f}",
                    f"{sum(q.get(k, 0.0) for k in alike):.3f}",
                    *(rival, f"{mine - last.get(rival, np.nan):.1f}"),
                    ", ".join(sorted(alike - {name})) or "–",
                    ", ".join(one["rebuilt"]) or "–",
                    f"{one.get('off', float('nan')):.2f}",
                    len(one["dropped"]),
                )
            )
    return section


def what_is_near(near: dict[str, dict[str, float]]) -> Section:
    section = Section(
        "Kernels that are nearly the true one",
        "python benchmarks/run.py vbks_synthetic",
        "How near the covariance of a kernel comes to the true one on 41 places of the domain, "
        "hyper-parameters chosen for that (no data): Frobenius norm of the difference, as a share "
        "of the true one's.",
        ("true kernel", "kernel", "distance"),
    )
    for name, found in near.items():
        for kernel, off in sorted(found.items(), key=lambda pair: pair[1])[:8]:
            section.rows.append((name, kernel, f"{100 * off:.2f} %"))
    return section


def draw(runs: dict[tuple[str, str], list[dict[str, Any]]], folder: Path) -> None:
    """The belief against the data used, as [Teng2020, Fig. 2]: kernels ever among the top two."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    from gp_active_sensing.experiments.figures import COLOURS, MARKERS, STYLE

    sets = list(dict.fromkeys(kernels for _, kernels in runs))
    with mpl.rc_context(STYLE):
        figure, axes = plt.subplots(
            len(sets), len(TRUTHS), figsize=(10.4, 3.3 * len(sets)), squeeze=False
        )
        for (name, kernels), found in runs.items():
            ax = axes[sets.index(kernels), [t.name for t in TRUTHS].index(name)]
            names = found[0]["names"]
            courses = {k: np.array([course(one, k, "probabilities") for one in found]) for k in names}
            means = {k: values.mean(axis=0) for k, values in courses.items()}
            table = np.array([means[k] for k in names])
            top = {names[i] for column in table.T for i in np.argsort(-column)[:2]}
            rivals = sorted(top - {name}, key=lambda k: -means[k].max())[:7]
            for i, kernel in enumerate([name, *rivals]):
                values = courses[kernel]
                share = 100.0 * np.array(found[0]["rows"]) / found[0]["rows"][-1]
                error = values.std(axis=0, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0.0
                ax.errorbar(
                    share, means[kernel], error, marker=MARKERS[i], markersize=4, capsize=2,
                    color=COLOURS[i], linewidth=2.2 if i == 0 else 1.1, elinewidth=0.8,
                    label=f"{kernel} (true)" if i == 0 else kernel,
                )  # fmt: skip
            ax.set(
                title=f"true {name}, {kernels.upper()}, {len(found)} seeds",
                xlabel="data used  [%]",
                ylabel="kernel belief q*",
                ylim=(0.0, 1.0),
            )
            ax.legend(loc="upper left", fontsize=8)
        figure.savefig(folder / "vbks_synthetic.png", dpi=150)
        plt.close(figure)


if __name__ == "__main__":
    sys.exit(run_alone(run, __doc__))
