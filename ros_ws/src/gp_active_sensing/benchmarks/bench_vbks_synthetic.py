"""[Teng2020, Sec. 6.1]: does the belief over kernels find the kernel that the data came from?

python benchmarks/bench_vbks_synthetic.py [--smoke] [--kept DIR] [--pictures DIR]
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from vbks_data import DOMAIN, TRUTHS, Truth, synthetic
from vbks_runs import Kept, Report, run_alone
from vbks_synthetic_tables import (
    BATCH,
    CLOSE,
    Size,
    against_data,
    at_the_end,
    draw,
    of_noise,
    what_is_near,
)

from gp_active_sensing.kernel_model import KernelModel
from gp_active_sensing.kernels.composite import Composite
from gp_active_sensing.kernels.grammar import kernel_set, parse
from gp_active_sensing.learning.data.dataset import Dataset
from gp_active_sensing.learning.kernel_selection.config import VbksConfig

FULL = Size({"k12": (5, 500, 4), "k144": (5, 500, 4)})
SMOKE = Size(
    {"SE,PER×LIN×RQ,(PER+RQ)×LIN": (1, 10, 1)},
    (0.3, 1.0),
    40,
    3,
    10,
    1,
    6,
    1,
    more=(2, 1),
)


def config(size: Size, seed: int, **more: Any) -> VbksConfig:
    """All starts are optimised to the end, as they were when this was measured."""
    return VbksConfig(inducing=size.inducing, batch=BATCH, centre=False, seed=seed, race=(), **more)


def learned(truth: Truth, kernels: str, seed: int, size: Size) -> dict[str, Any]:
    """One belief over kernels, stage by stage, and that of the best ones fitted anew."""
    from gp_active_sensing.learning.kernel_selection import select_kernels

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


def with_noise(truth: Truth, kernels: str, seed: int, size: Size, starts: int) -> dict[str, Any]:
    """The belief where the noise is not tiny, of all rows at once, from so many starts."""
    from gp_active_sensing.learning.kernel_selection import select_kernels

    rows = synthetic(truth, seed, size.rows)
    _, steps, _ = size.sets[kernels]
    setting = config(size, seed, iterations=steps, restarts=starts, noise_floor=size.floor)
    model = select_kernels(rows, kernel_set(kernels), setting)
    bounds = {fit.name: fit.bound for fit in model.fits}
    return {
        "names": list(model.names),
        "q": np.asarray(model.belief.probabilities).tolist(),
        "softmax": np.asarray(model.belief.softmax).tolist(),
        "behind": max(bounds.values()) - bounds.get(truth.name, -np.inf),
        "best": max(bounds, key=lambda name: bounds[name]),
    }


def same_as_truth(model: KernelModel, truth: Truth, rows: Dataset) -> dict[str, Any]:
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
    last = list(size.sets)[-1]
    noisy = {
        (truth.name, kernels, starts): [
            kept.get(
                f"noise {truth.name} | {kernels} | {seed} | {size.inducing} × {steps} {size.floor}"
                + (f" | {starts} starts" if starts != usual else ""),
                lambda t=truth, k=kernels, s=seed, n=starts: with_noise(t, k, s, size, n),
            )
            for seed in range(seeds)
        ]
        for kernels, (whole, steps, usual) in size.sets.items()
        for starts, seeds in ([(usual, whole), size.more] if kernels == last else [(usual, whole)])
        for truth in TRUTHS
    }
    if pictures is not None:
        draw(runs, pictures)
    sections = [against_data(runs, size), of_noise(noisy, near, size), at_the_end(runs, near, size)]
    return Report([*sections, what_is_near(near)])


if __name__ == "__main__":
    sys.exit(run_alone(run, __doc__))
