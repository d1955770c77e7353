"""[Teng2020, Sec. 6.1]: does the belief over kernels find the kernel that the data came from?

python benchmarks/bench_vbks_synthetic.py [--smoke] [--kept DIR] [--pictures DIR]
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from common import Section
from vbks_data import DOMAIN, MORE, TRUTHS, Truth, some, synthetic
from vbks_runs import Kept, Report, error_of, run_alone, shown

from gp_active_sensing.kernels.composite import Composite
from gp_active_sensing.kernels.grammar import kernel_set, parse
from gp_active_sensing.learning.rows import Rows
from gp_active_sensing.learning.vbks.config import VbksConfig
from gp_active_sensing.selection import KernelModel

STAGES = (0.1, 0.2, 0.4, 0.7, 1.0)
CLOSE, KIN = 0.01, 0.1
"""Covariances, or predictions, that differ by so much are the same; or nearly so."""


@dataclass(frozen=True)
class Size:
    """How much is done.

    Args:
        sets: of kernels; how many seeds, steps of a stage at most, starts.
        stages: shares of the rows after which the belief is recorded.
        rows: of the data.
        top: kernels that are fitted anew to all rows; refit, again: their steps and starts.
        inducing: inputs.
        tries: of the search for the nearest covariance.
        sought: kernels nearest to the true one whose largest bound is sought; starts, steps.
        afresh: shares of the rows that are also learned from without going on from fewer, and
            with a least noise of `floor` times the outputs' deviation.
    """

    sets: dict[str, tuple[int, int, int]]
    stages: tuple[float, ...] = STAGES
    rows: int = MORE
    top: int = 12
    refit: int = 1000
    again: int = 4
    inducing: int = 16
    tries: int = 4
    sought: tuple[int, int, int] = (4, 3, 200)
    afresh: tuple[float, ...] = (0.1, 1.0)
    floor: float = 0.05


FULL = Size({"k12": (5, 500, 4), "k144": (5, 500, 4)})
SMOKE = Size(
    {"SE,PER×LIN×RQ,(PER+RQ)×LIN": (1, 10, 1)}, (0.3, 1.0), 40, 3, 10, 1, 6, 1, (1, 1, 3), (0.5,)
)
BATCH = 32


def config(size: Size, seed: int, **more: Any) -> VbksConfig:
    return VbksConfig(inducing=size.inducing, batch=BATCH, centre=False, seed=seed, **more)


def learned(truth: Truth, kernels: str, seed: int, size: Size) -> dict[str, Any]:
    """One belief over kernels, stage by stage, and that of the best ones fitted anew."""
    from gp_active_sensing.learning.vbks import select_kernels

    rows = synthetic(truth, seed, size.rows)
    _, steps, restarts = size.sets[kernels]
    setting = config(size, seed, iterations=steps, restarts=restarts, stages=size.stages)
    model = select_kernels(rows, kernel_set(kernels), setting)
    history = model.history
    found: dict[str, Any] = {
        "rows": np.asarray(history.rows).tolist(),
        "names": list(history.names),
        "probabilities": np.round(history.probabilities, 5).tolist(),
        "softmax": np.round(history.softmax, 5).tolist(),
        "bounds": np.where(np.isfinite(history.bounds), np.round(history.bounds, 3), -1e9).tolist(),
        "dropped": [list(pair) for pair in model.dropped],
    }
    top = [parse(name) for name in model.names[: size.top]]
    model = select_kernels(
        rows, top, config(size, seed, iterations=size.refit, restarts=size.again)
    )
    found["refit"] = {
        "names": list(model.names),
        "q": np.asarray(model.belief.probabilities).tolist(),
        "softmax": np.asarray(model.belief.softmax).tolist(),
        "bounds": [fit.bound for fit in model.fits],
        "limit": sum("limit" in fit.outcome for fit in model.fits),
        **same_as_truth(model, truth, rows),
    }
    return found


def learned_afresh(
    truth: Truth, kernels: str, seed: int, share: float, size: Size
) -> dict[str, Any]:
    """The belief of a share of the rows that begins with new starts; the noise is not tiny."""
    from gp_active_sensing.learning.vbks import select_kernels

    rows = synthetic(truth, seed, size.rows)
    order = np.random.default_rng([0xF5, seed]).permutation(size.rows)
    _, steps, restarts = size.sets[kernels]
    setting = config(size, seed, iterations=steps, restarts=restarts, noise_floor=size.floor)
    part = some(rows, np.sort(order[: round(share * size.rows)]))
    model = select_kernels(part, kernel_set(kernels), setting)
    bounds = {fit.name: fit.bound for fit in model.fits}
    return {
        "names": list(model.names),
        "q": np.asarray(model.belief.probabilities).tolist(),
        "softmax": np.asarray(model.belief.softmax).tolist(),
        "behind": max(bounds.values()) - bounds.get(truth.name, -np.inf),
        "best": max(bounds, key=lambda name: bounds[name]),
    }


def same_as_truth(model: KernelModel, truth: Truth, rows: Rows) -> dict[str, Any]:
    """Which kernels have the true covariance, or say the same as the true kernel does."""
    found: dict[str, Any] = {"alike": [], "rebuilt": []}
    grid = np.linspace(-DOMAIN, DOMAIN, 81)[:, None]
    there, wanted = model.scaling.inputs(grid), truth.covariance(grid, grid)
    for fit in model.fits:
        K = fit.composite.covariance(fit.theta_mean, there, there) * model.scaling.output_scale**2
        off = float(np.linalg.norm(K - wanted) / np.linalg.norm(wanted))
        if off < CLOSE:
            found["rebuilt"].append(fit.name)
        if fit.name == truth.name:
            found["off"], found["noise"] = off, float(np.exp(fit.theta_mean[0]))
    if truth.name not in model.names:
        return found
    own, spread = model.names.index(truth.name), float(rows.outputs.std())
    best, _ = model.predict(rows.inputs, kernels=[own])
    for i, fit in enumerate(model.fits):
        if abs(fit.bound - model.fits[own].bound) < 1.0:
            mean, _ = model.predict(rows.inputs, kernels=[i])
            if np.sqrt(np.mean((mean - best) ** 2)) < CLOSE * spread:
                found["alike"].append(fit.name)
    return found


def nearest(truth: Truth, kernels: str, tries: int) -> dict[str, float]:
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
        guess = {"period": np.log(2.0 * np.pi), "length_scale": 1.0}
        typical = np.array([guess.get(p.kind, 0.0) for p in composite.parameters])
        low, high = typical - 8.0, typical + 8.0
        high[composite.where("alpha")] = 12.0

        def off(theta: np.ndarray, composite: Composite = composite) -> float:
            with np.errstate(over="ignore", invalid="ignore"):
                K = composite.covariance(theta, grid, grid)
                return float(np.nan_to_num(np.linalg.norm(K - wanted) / size, nan=1e3, posinf=1e3))

        rng = np.random.default_rng([0, composite.size])
        tried: list[tuple[float, np.ndarray]] = []
        for _ in range(100 * tries):
            theta = typical + rng.standard_normal(composite.size)
            theta[composite.where("period")] = np.log(2.0 * np.pi)
            K = composite.covariance(theta, grid, grid)
            # The best common factor of all terms.
            factor = max(float((K * wanted).sum() / (K * K).sum()), 1e-6)
            theta[composite.where("scale")] += 0.5 * np.log(factor)
            tried.append((off(theta), theta))
        best = 1.0
        for _, theta in sorted(tried, key=lambda pair: pair[0])[:tries]:
            done = minimize(
                off, np.clip(theta, low, high), method="L-BFGS-B",
                bounds=list(zip(low, high, strict=True)), options={"maxiter": 300},
            )  # fmt: skip
            best = min(best, float(done.fun))
            if best < 0.1 * CLOSE:
                break
        found[composite.name] = best
    return found


def sought(
    truth: Truth, seed: int, kernels: str, near: dict[str, float], size: Size
) -> dict[str, float]:
    """Largest local ELBOs that were found for the kernels nearest to the true one."""
    from vbks_optimum import Bound, optimum

    count, starts, steps = size.sought
    rows = synthetic(truth, seed, size.rows)
    unit = np.sqrt((rows.inputs**2).mean(axis=0))
    scale = float(np.sqrt((rows.outputs**2).mean()))
    X, y = rows.inputs / unit, rows.outputs / scale
    M = size.inducing
    Z = np.quantile(X, (np.arange(M) + 0.5) / M, axis=0)
    names = [str(e) for e in kernel_set(kernels)]
    found = {}
    for name in sorted(names, key=lambda name: near[name])[:count]:
        composite, known = Composite(parse(name), 1), []
        if name == truth.name:
            theta = truth.theta(noise=0.1)
            theta[composite.where("scale")] -= np.log(scale)
            for kind in ("length_scale", "period"):
                theta[composite.where(kind)] -= np.log(unit[0])
            known.append(theta)
        found[name] = optimum(Bound(composite, X, y, Z), starts, steps, known)
    return found


def run(*, smoke: bool = False, pictures: Path | None = None) -> Report:
    """Every true kernel, set of kernels and seed; the tables, and a picture."""
    size = SMOKE if smoke else FULL
    kept = Kept("vbks_synthetic" + "_smoke" * smoke)
    runs: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for kernels, (seeds, steps, _) in size.sets.items():
        for seed in range(seeds):
            for truth in TRUTHS:
                key = f"{truth.name} | {kernels} | {seed} | {size.inducing} × {steps}"
                one = kept.get(key, lambda t=truth, k=kernels, s=seed: learned(t, k, s, size))
                runs.setdefault((truth.name, kernels), []).append(one)
    near = {
        truth.name: kept.get(
            f"nearest {truth.name} {size.tries}",
            lambda truth=truth: nearest(truth, list(size.sets)[-1], size.tries),
        )
        for truth in TRUTHS
    }
    # Seeds and kernels of the first set only: it is the costly part.
    first = next(iter(size.sets))
    best = {
        f"{truth.name} | {seed}": kept.get(
            f"sought {truth.name} | {seed} | {size.inducing} {size.sought}",
            lambda truth=truth, seed=seed: sought(truth, seed, first, near[truth.name], size),
        )
        for truth in TRUTHS
        for seed in range(size.sets[first][0])
    }
    fresh = {
        (truth.name, kernels, share): [
            kept.get(
                f"afresh {truth.name} | {kernels} | {seed} | {size.inducing} × {steps} | "
                f"{share} | {size.floor}",
                lambda t=truth, k=kernels, s=seed, p=share: learned_afresh(t, k, s, p, size),
            )
            for seed in range(seeds)
        ]
        for kernels, (seeds, steps, _) in size.sets.items()
        for truth in TRUTHS
        for share in size.afresh
    }
    if pictures is not None:
        draw(runs, pictures)
    sections = [against_data(runs, size), afresh(fresh, near, size), at_the_end(runs, near, size)]
    return Report([*sections, what_was_reached(runs, best, first, size), what_is_near(near)])


def course(found: dict[str, Any], name: str, key: str) -> np.ndarray:
    """(T,) of a kernel over the stages; 0 where it took no part."""
    if name not in found["names"]:
        return np.zeros(len(found["rows"]))
    return np.array(found[key])[:, found["names"].index(name)]


def against_data(runs: dict[tuple[str, str], list[dict[str, Any]]], size: Size) -> Section:
    shares = [f"{100 * share:g} %" for share in size.stages]
    starts = ", ".join(f"{k}: {n} starts and {steps}" for k, (_, steps, n) in size.sets.items())
    section = Section(
        "The kernel that the data came from: belief against data used",
        "python benchmarks/run.py vbks_synthetic",
        f"{size.rows} values of a noise-free draw in [-10, 10] (the predictive mean given 256 "
        f"values of the full process), {size.inducing} inducing inputs, mini-batches of {BATCH}, "
        f"{starts} steps at most a stage, each of which goes on where the one before ended; full "
        "q(θ); inputs and outputs are scaled, not centred. Mean ± s.e. "
        "over the seeds of q* and of the softmax of the local ELBOs of the true kernel, after so "
        f"much of the data; `anew`: the {size.top} most probable kernels fitted anew to all rows, "
        f"{size.again} starts and {size.refit} steps at most. `first`: seeds on which the true "
        "kernel then has the largest local ELBO.",
        ("true kernel", "kernels", "seeds", "", *shares, "anew", "first"),
    )
    for (name, kernels), found in runs.items():
        for key, label, last in (("probabilities", "q*", "q"), ("softmax", "softmax", "softmax")):
            values = np.array([course(one, name, key) for one in found])
            anew = [of_refit(one, [name], last) for one in found]
            first = sum(one["refit"]["names"][0] == name for one in found)
            section.rows.append(
                (
                    *(name, kernels, len(found), label),
                    *(shown(values[:, k], 2) for k in range(len(size.stages))),
                    *(shown(anew, 2), f"{first} of {len(found)}"),
                )
            )
    return section


def afresh(
    fresh: dict[tuple[str, str, float], list[dict[str, Any]]],
    near: dict[str, dict[str, float]],
    size: Size,
) -> Section:
    section = Section(
        "The same, with the noise of a sensor",
        "python benchmarks/run.py vbks_synthetic",
        f"As above, but σ_n is {size.floor:g} of the outputs' deviation at least, and the share of "
        "the rows is learned from with new starts, not by going on from where fewer rows ended. "
        f"`near`: q* of all kernels whose covariance comes within {KIN:.0%} of the true one. "
        "`first`: seeds on which the true kernel has the largest local ELBO; `behind`: on each of "
        "the others, by how much it is smaller than the largest [nat], and of which kernel that "
        "is.",
        ("true kernel", "kernels", "data", "q*", "softmax", "near", "first", "behind"),
    )
    for (name, kernels, share), found in fresh.items():
        kin = {kernel for kernel, off in near[name].items() if off < KIN} | {name}
        cells = []
        for key, those in (("q", {name}), ("softmax", {name}), ("q", kin)):
            tables = [zip(one["names"], one[key], strict=True) for one in found]
            cells.append(shown([sum(p for k, p in table if k in those) for table in tables], 2))
        behind = [f"{one['behind']:.0f} ({one['best']})" for one in found if one["best"] != name]
        first = f"{len(found) - len(behind)} of {len(found)}"
        section.rows.append(
            (name, kernels, f"{100 * share:g} %", *cells, first, ", ".join(behind) or "–")
        )
    return section


def of_refit(one: dict[str, Any], names: Iterable[str], key: str = "q") -> float:
    """Probability of some kernels, of those that were fitted anew."""
    found = dict(zip(one["refit"]["names"], one["refit"][key], strict=True))
    return float(sum(found.get(name, 0.0) for name in names))


def at_the_end(
    runs: dict[tuple[str, str], list[dict[str, Any]]], near: dict[str, dict[str, float]], size: Size
) -> Section:
    section = Section(
        "The same, seed by seed, fitted anew",
        "python benchmarks/run.py vbks_synthetic",
        f"`near`: q* of the true kernel and of those whose covariance comes within {KIN:.0%} of "
        "the true one (next table). `alike`: q* of it and of those whose local ELBO differs by "
        f"less than 1 nat and whose predictions by less than {CLOSE:.0%} of the data's deviation "
        f"(root mean square). ΔL: what its local ELBO is above the best of the others. `off`: how "
        "far its fitted covariance is from the true one (Frobenius norm, as a share); `rebuilt`: "
        f"kernels with a fitted covariance within {CLOSE:.0%}.",
        ("true kernel", "kernels", "seed", "q*", "softmax", "near", "alike", "best other",
         "ΔL nat", "off", "rebuilt", "at the limit", "dropped"),
    )  # fmt: skip
    for (name, kernels), found in runs.items():
        kin = {kernel for kernel, off in near[name].items() if off < KIN} | {name}
        for seed, one in enumerate(found):
            refit = one["refit"]
            last = dict(zip(refit["names"], refit["bounds"], strict=True))
            mine = last.pop(name, float("nan"))
            rival = max(last, key=lambda k: last[k]) if last else ""
            section.rows.append(
                (
                    *(name, kernels, seed, f"{of_refit(one, [name]):.3f}"),
                    f"{of_refit(one, [name], 'softmax'):.3f}",
                    f"{of_refit(one, kin):.3f}",
                    f"{of_refit(one, {*refit['alike'], name}):.3f}",
                    *(rival, f"{mine - last.get(rival, np.nan):.1f}"),
                    f"{100 * refit.get('off', np.nan):.0f} %",
                    ", ".join(refit["rebuilt"]) or "–",
                    f"{refit['limit']} of {len(refit['names'])}",
                    len(one["dropped"]),
                )
            )
    return section


def what_was_reached(
    runs: dict[tuple[str, str], list[dict[str, Any]]],
    best: dict[str, dict[str, float]],
    kernels: str,
    size: Size,
) -> Section:
    _, starts, steps = size.sought
    section = Section(
        "What the bound says at its best",
        "python benchmarks/run.py vbks_synthetic",
        "The local ELBO has many maxima; another search for the largest: θ as a point, all rows in "
        f"each of {steps} steps at most of L-BFGS, from the best {starts} of 300 draws from the "
        "prior, for the true kernel also from its true hyper-parameters. Largest local ELBO found "
        f"that way [nat], and in brackets that of `anew` above ({kernels}).",
        ("true kernel", "seed", "first", "its lead nat", "kernels"),
    )
    for key, found in best.items():
        name, seed = key.split(" | ")
        refit = runs[name, kernels][int(seed)]["refit"]
        ours = dict(zip(refit["names"], refit["bounds"], strict=True))
        order = sorted(found, key=lambda k: -found[k])
        lead = f"{found[order[0]] - found[order[1]]:.0f}" if len(order) > 1 else "–"
        cells = ", ".join(f"{k} {found[k]:.0f} ({ours.get(k, np.nan):.0f})" for k in order)
        section.rows.append((name, seed, order[0], lead, cells))
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
            len(sets), len(TRUTHS), figsize=(13.0, 3.3 * len(sets)), squeeze=False
        )
        for (name, kernels), found in runs.items():
            ax = axes[sets.index(kernels), [t.name for t in TRUTHS].index(name)]
            names = found[0]["names"]
            courses = {
                k: np.array([course(one, k, "probabilities") for one in found]) for k in names
            }
            means = {k: values.mean(axis=0) for k, values in courses.items()}
            table = np.array([means[k] for k in names])
            top = {names[i] for column in table.T for i in np.argsort(-column)[:2]}
            rivals = sorted(top - {name}, key=lambda k: -means[k].max())[:7]
            for i, kernel in enumerate([name, *rivals]):
                values = courses[kernel]
                share = 100.0 * np.array(found[0]["rows"]) / found[0]["rows"][-1]
                error = error_of(values)
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
            ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=8)
        figure.savefig(folder / "vbks_synthetic.png", dpi=150)
        plt.close(figure)


if __name__ == "__main__":
    sys.exit(run_alone(run, __doc__))
