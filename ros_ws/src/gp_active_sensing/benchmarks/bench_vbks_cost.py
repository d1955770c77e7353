"""What learning a belief over kernels costs: kernels, inducing inputs, mini-batches, GPyTorch.

    python benchmarks/bench_vbks_cost.py [--smoke] [--kept DIR]

Every figure comes from a process of its own: seconds of a step from the difference of a long and a
short run of `select_kernels`, memory as the largest resident set above that with the data loaded.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from common import Section, cholesky_seconds
from vbks_data import big_rows
from vbks_runs import Kept, Report, run_alone

from gp_active_sensing.kernels.composite import Composite
from gp_active_sensing.kernels.grammar import kernel_set, parse
from gp_active_sensing.learning.rows import Rows
from gp_active_sensing.learning.vbks.config import VbksConfig

COMMAND = "python benchmarks/run.py vbks_cost"
WANTED = 1.2
"""A kernel's share of a step over a step of GPyTorch's, at most."""
LARGE = 800
REPEATS = 3


@dataclass(frozen=True)
class Size:
    """How much is measured."""

    rows: int = 20_000
    sets: tuple[str, ...] = ("k12", "k144")
    inducing: tuple[int, ...] = (16, 200, 800)
    batches: tuple[int, ...] = (32, 128, 512)
    compared: tuple[tuple[int, int], ...] = ((16, 32), (64, 256), (200, 128))
    """Inducing inputs and mini-batch of the comparisons with GPyTorch."""
    seconds: float = 6.0
    """That a long run should take, about."""
    iterations: tuple[int, ...] = (100, 200, 400, 800)
    growing: tuple[int, ...] = (6, 12, 24, 48, 96)


FULL = Size()
SMOKE = Size(400, ("SE,LIN", "base"), (8,), (16,), ((8, 16),), 0.05, (4, 8), (1, 2))


def config(inducing: int, batch: int, steps: int, way: str = "point") -> VbksConfig:
    """Settings under which nothing stops a run early and no bound is estimated on the way."""
    return VbksConfig(
        inducing=inducing, batch=batch, iterations=steps, hyperparameters=way, restarts=1,
        tolerance=0.0, patience=10**9, evaluate_every=10**9, natural_rate=0.1,
    )  # fmt: skip


def seconds_of(rows: Rows, kernels: str, setting: VbksConfig) -> float:
    from gp_active_sensing.learning.vbks import select_kernels

    started = time.perf_counter()
    select_kernels(rows, kernel_set(kernels), setting)
    return time.perf_counter() - started


def step_seconds(
    run: Callable[[int], float], wanted: float, repeats: int = REPEATS
) -> tuple[float, int]:
    """Seconds of a step: the difference of long and short runs; and the steps of a long one."""
    run(1)  # the first one loads libraries
    short = run(1)
    step = max(run(3) - short, 1e-4) / 2.0
    steps = int(np.clip(wanted / step, 3, 2000))
    found = []
    for _ in range(repeats if steps > 3 else 1):
        short = run(1)
        found.append((run(1 + steps) - short) / steps)
    return float(np.median(found)), steps


def measured(point: dict[str, Any]) -> dict[str, Any]:
    """One point, in this process."""
    import torch

    torch.set_num_threads(1)
    rows = big_rows(point["rows"])
    if point["what"] == "against":
        return against(rows, point)
    import gpytorch  # noqa: F401 - so that it is no part of what a run needs

    from gp_active_sensing.learning.vbks import select

    assert select is not None
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0

    def run(steps: int) -> float:
        setting = config(point["inducing"], point["batch"], steps, point["way"])
        return seconds_of(rows, point["kernels"], setting)

    if point["what"] == "steps":
        return {"seconds": [run(n) for n in (1, *point["steps"])][1:]}
    step, steps = step_seconds(run, point["seconds"])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0
    return {"step": step, "steps": steps, "memory": peak - before, "yard": cholesky_seconds()}


def against(rows: Rows, point: dict[str, Any]) -> dict[str, Any]:
    """Our step of many kernels, a kernel, and GPyTorch's step of the same ones, in turn."""
    from gp_active_sensing.learning.vbks.svgp import Trainer

    M, batch, names = point["inducing"], point["batch"], point["names"]

    def ours(steps: int) -> float:
        return seconds_of(rows, ",".join(names), config(M, batch, steps))

    trainers = [
        Trainer(rows, Composite(parse(name), rows.dimensions), config(M, batch, 1000))
        for name in names
    ]

    def theirs(steps: int) -> float:
        started = time.perf_counter()
        for trainer in trainers:
            for _ in range(steps):
                trainer.step()
        return time.perf_counter() - started

    theirs(3)
    found = []
    for _ in range(REPEATS):
        mine, steps = step_seconds(ours, point["seconds"], 1)
        number = max(3, min(steps, 200))
        found.append((mine / len(names), theirs(number) / number / len(names)))
    mine, other = np.median(np.array(found), axis=0)
    return {"ours": float(mine), "theirs": float(other)}


def ask(kept: Kept, **point: Any) -> dict[str, Any]:
    """Measure a point in a process of its own; a small one in this."""

    def make() -> dict[str, Any]:
        if point["rows"] < FULL.rows:
            return measured(point)
        done = subprocess.run(
            [sys.executable, str(Path(__file__).resolve()), "--point", json.dumps(point)],
            check=True, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        return dict(json.loads(done.stdout.strip().splitlines()[-1]))

    return dict(kept.get(json.dumps(point, sort_keys=True), make))


def run(*, smoke: bool = False) -> Report:
    size = SMOKE if smoke else FULL
    kept = Kept("vbks_cost" + "_smoke" * smoke)
    base = {"rows": size.rows, "seconds": size.seconds}
    return Report([sizes(kept, size, base), growth(kept, size, base), compared(kept, size, base)])


def sizes(kept: Kept, size: Size, base: dict[str, Any]) -> Section:
    section = Section(
        "A step of all kernels: seconds and memory",
        COMMAND,
        f"{size.rows} rows of a drawn log, x, y and hours; one thread. Seconds of a step of all "
        "kernels together (natural gradient of q(u), Adam for q(θ) and the inducing inputs), a "
        "step a kernel, and what the process needs above what it has with the data and libraries "
        "loaded. Kernels are taken in groups that need about 1 GB at most (`memory`). In brackets "
        "multiples of a 1000 × 1000 Cholesky factorisation by NumPy in the same process.",
        ("kernels", "q(θ)", "inducing", "batch", "s a step", "ms a kernel", "memory MB"),
    )
    largest = max(size.batches)
    for kernels in size.sets:
        for M in size.inducing:
            for batch in size.batches:
                if kernels == size.sets[1] and M >= LARGE and batch == largest:
                    continue  # minutes a step, and nothing new
                for way in ("point", "full"):
                    if way == "full" and batch != sorted(size.batches)[len(size.batches) // 2]:
                        continue
                    found = ask(
                        kept, what="step", kernels=kernels, inducing=M, batch=batch, way=way, **base
                    )
                    count = len(kernel_set(kernels))
                    section.rows.append(
                        (
                            *(f"{kernels} ({count})", way, M, batch),
                            f"{found['step']:.4g} ({found['step'] / found['yard']:.2g} ×)",
                            *(f"{1e3 * found['step'] / count:.3g}", f"{found['memory']:.0f}"),
                        )
                    )
    return section


def growth(kept: Kept, size: Size, base: dict[str, Any]) -> Section:
    """Whether the cost is linear in steps and in kernels."""
    batch, M = sorted(size.batches)[len(size.batches) // 2], min(size.inducing)
    section = Section(
        "Linear in steps and in kernels",
        COMMAND,
        f"The same rows, {M} inducing inputs, mini-batches of {batch}, point estimates. Seconds of "
        "whole runs of the first set against the steps, and of a step against the kernels (the "
        "first so many of the last set). `R²`: of a straight line.",
        ("against", "sizes", "seconds", "R²", "a step or kernel more"),
    )
    found = ask(
        kept, what="steps", kernels=size.sets[0], inducing=M, batch=batch, way="point",
        steps=list(size.iterations), **base,
    )  # fmt: skip
    seconds = [
        ask(
            kept, what="step", inducing=M, batch=batch, way="point",
            kernels=",".join(str(e) for e in kernel_set(size.sets[-1])[:count]), **base,
        )["step"]
        for count in size.growing
    ]  # fmt: skip
    for what, at, values in (
        ("steps", size.iterations, found["seconds"]),
        ("kernels", size.growing, seconds),
    ):
        slope, first = np.polyfit(at, values, 1)
        left = np.array(values) - slope * np.array(at) - first
        share = 1.0 - float((left**2).sum() / ((np.array(values) - np.mean(values)) ** 2).sum())
        section.rows.append(
            (
                *(what, ", ".join(map(str, at)), ", ".join(f"{v:.3g}" for v in values)),
                *(f"{share:.4f}", f"{1e3 * slope:.3g} ms"),
            )
        )
    return section


def compared(kept: Kept, size: Size, base: dict[str, Any]) -> Section:
    section = Section(
        "A kernel's share of a step against GPyTorch's own SVGP",
        COMMAND,
        "GPyTorch's `VariationalStrategy` with natural gradients and Adam, one kernel after the "
        "other, against our step of all of them together, a kernel; the same rows, inducing "
        f"inputs, mini-batches and kernels, in turn in the same process. Wanted: at most {WANTED}. "
        "First line: the twelve kernels against the same ones of GPyTorch, a kernel; second: "
        "against GPyTorch's SE; third: one SE by itself, where nothing is shared.",
        ("kernels", "inducing", "batch", "ours, ms a kernel", "GPyTorch, ms", "ratio"),
    )
    for M, batch in size.compared:
        shape = {"what": "against", "inducing": M, "batch": batch, **base}
        names = [str(e) for e in kernel_set(size.sets[0])]
        together = ask(kept, names=names, **shape)
        alone = ask(kept, names=["SE"], **shape)
        for label, ours, theirs in (
            (f"{size.sets[0]} together, against each", together["ours"], together["theirs"]),
            (f"{size.sets[0]} together, against SE", together["ours"], alone["theirs"]),
            ("SE alone, against SE", alone["ours"], alone["theirs"]),
        ):
            cells = (f"{1e3 * ours:.3g}", f"{1e3 * theirs:.3g}", f"{ours / theirs:.2f}")
            section.rows.append((label, M, batch, *cells))
    return section


if __name__ == "__main__":
    if sys.argv[1:2] == ["--point"]:
        print(json.dumps(measured(json.loads(sys.argv[2]))))
        sys.exit(0)
    sys.exit(run_alone(run, __doc__))
