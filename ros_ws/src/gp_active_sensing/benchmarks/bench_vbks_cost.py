"""What learning a belief over kernels costs: kernels, inducing inputs, mini-batches, GPyTorch.

    python benchmarks/bench_vbks_cost.py [--smoke] [--kept DIR]

Every figure comes from a process of its own; memory is its largest resident set above that with
the data and the libraries loaded.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from common import Section, cholesky_seconds
from vbks_data import big_rows
from vbks_runs import Kept, Report, run_alone

from gp_active_sensing.kernels.composite import Composite
from gp_active_sensing.kernels.grammar import kernel_set, parse
from gp_active_sensing.learning.data.dataset import Dataset
from gp_active_sensing.learning.kernel_selection.config import VbksConfig
from gp_active_sensing.learning.kernel_selection.data import Data, inducing_inputs, scaling_of
from gp_active_sensing.learning.kernel_selection.kernel_groups import partition

COMMAND = "python benchmarks/run.py vbks_cost"
WANTED = 1.2
"""A kernel's share of a step over a step of GPyTorch's, at most."""
REPEATS = 3


@dataclass(frozen=True)
class Size:
    """How much is measured."""

    rows: int = 10_000
    sets: tuple[str, ...] = ("k12", "k144")
    inducing: tuple[int, ...] = (16, 200, 800)
    batches: tuple[int, ...] = (32, 128, 512)
    compared: tuple[tuple[int, int], ...] = ((16, 32), (64, 256), (200, 128))
    """Inducing inputs and mini-batch of the comparisons with GPyTorch."""
    seconds: float = 2.0
    """That a measurement should take, about; there are several of each."""
    iterations: tuple[int, ...] = (200, 400, 800, 1600)
    growing: tuple[int, ...] = (12, 24, 48, 96, 144)


FULL = Size()
SMOKE = Size(400, ("SE", "SE,LIN"), (8,), (16,), ((8, 16),), 0.01, (4, 8), (1, 2))


def config(inducing: int, batch: int, way: str = "point", steps: int = 1000) -> VbksConfig:
    return VbksConfig(
        inducing=inducing, batch=batch, iterations=steps, hyperparameters=way, restarts=1,
        tolerance=0.0, patience=10**6,
    )  # fmt: skip


class Steps:
    """The steps of the optimisation by mini-batches, group by group as `select_kernels` does it.

    Args:
        rows: what from.
        kernels: to learn.
        setting: how.
    """

    def __init__(self, rows: Dataset, kernels: str, setting: VbksConfig) -> None:
        self.config = setting
        self.data = Data.of(rows, scaling_of(rows, setting), setting)
        made = [Composite(e, rows.dimensions) for e in kernel_set(kernels)]
        self.groups = partition(made, self.data, {}, 1)
        self.inducing = inducing_inputs(self.data, setting.inducing)

    def seconds(self, steps: int) -> float:
        """Seconds of a step of all kernels; the groups one after the other."""
        return sum(self._group(group.names, steps) for group in self.groups)

    def _group(self, names: Sequence[str], steps: int) -> float:
        import torch

        from gp_active_sensing.learning.kernel_selection.optimiser import Optimiser
        from gp_active_sensing.learning.kernel_selection.state import begin

        device, kind = torch.device("cpu"), torch.float64
        made = [Composite(parse(name), self.data.rows.dimensions) for name in names]
        width = max(c.size for c in made)
        starts = [(k, 0) for k in range(len(made))]
        state = begin(made, starts, self.inducing, self.config, device, kind, {})
        optimiser = Optimiser(made, self.config, device, kind, width=width)
        optimiser.full = self.config.hyperparameters == "full"
        batches = self.data.batches(0, 0)
        rng = np.random.default_rng(0)
        rows = self.data.rows_of(0)
        started = 0.0
        for step in range(steps + 1):  # the first one is not counted
            if step == 1:
                started = time.perf_counter()
            eta = rng.standard_normal((len(made), width)) * optimiser.full
            X, y = next(batches)
            optimiser.step(state, X, y, optimiser.tensor(eta), rows, whole=False)
        return (time.perf_counter() - started) / steps


def enough(a_step: float, wanted: float) -> int:
    """How many steps of so many seconds take about the wanted time."""
    return int(np.clip(wanted / max(a_step, 1e-5), 2, 1000))


def measured(point: dict[str, Any]) -> dict[str, Any]:
    """One point, in this process."""
    import torch

    torch.set_num_threads(1)
    rows = big_rows(point["rows"])
    setting = config(point["inducing"], point["batch"], point.get("way", "point"))
    if point["what"] == "against":
        return against(rows, setting, point)
    from gp_active_sensing.learning.kernel_selection import optimiser, select_kernels

    assert optimiser is not None  # loaded before memory is looked at
    if point["what"] == "runs":
        kernels, seconds = kernel_set(point["kernels"]), []
        for steps in (2, *point["steps"]):
            started = time.perf_counter()
            select_kernels(rows, kernels, replace(setting, iterations=steps))
            seconds.append(time.perf_counter() - started)
        return {"seconds": seconds[1:]}
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0
    steps = Steps(rows, point["kernels"], setting)
    found = [steps.seconds(2)]
    count = enough(found[0], point["seconds"])
    if count > 2:
        found = [steps.seconds(count) for _ in range(REPEATS)]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0
    return {
        "step": float(np.median(found)), "groups": len(steps.groups), "memory": peak - before,
        "yard": cholesky_seconds(),
    }  # fmt: skip


def against(rows: Dataset, setting: VbksConfig, point: dict[str, Any]) -> dict[str, Any]:
    """Our step of many kernels, a kernel, and GPyTorch's step of the same ones, in turn."""
    from kernel_selection.svgp import Trainer

    names = point["names"]
    ours = Steps(rows, ",".join(names), setting)
    trainers = [Trainer(rows, Composite(parse(n), rows.dimensions), setting) for n in names]

    def theirs(steps: int) -> float:
        for trainer in trainers:
            trainer.step()
        started = time.perf_counter()
        for trainer in trainers:
            for _ in range(steps):
                trainer.step()
        return (time.perf_counter() - started) / steps

    mine, other = (enough(step(2), point["seconds"]) for step in (ours.seconds, theirs))
    found = np.array([(ours.seconds(mine), theirs(other)) for _ in range(2 * REPEATS + 1)])
    found /= len(names)
    return {
        "ours": float(np.median(found[:, 0])), "theirs": float(np.median(found[:, 1])),
        "ratios": (found[:, 0] / found[:, 1]).tolist(),
    }  # fmt: skip


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
        f"{size.rows} rows of a drawn log, x, y and hours; one thread. Seconds of a step by "
        "mini-batch of all kernels together (natural gradient of q(u), Adam for q(θ) and the "
        "inducing inputs), a step a kernel, and what the process needs above what it has with the "
        "data and libraries loaded. Kernels are taken in groups that need about 1 GB at most "
        "(`memory`). In brackets multiples of a 1000 × 1000 Cholesky factorisation by NumPy in "
        "the same process.",
        ("kernels", "q(θ)", "inducing", "batch", "s a step", "ms a kernel", "memory MB"),
    )
    for kernels in size.sets:
        for M in size.inducing:
            for batch in size.batches:
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
        kept, what="runs", kernels=size.sets[0], inducing=M, batch=batch, way="point",
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
        "First line: the twelve kernels together against the same ones of GPyTorch, each by "
        "itself; second: against GPyTorch's SE, the cheapest kernel; third: one SE by itself. "
        "Medians of seven turns.",
        (
            "kernels: ours, GPyTorch's",
            "inducing",
            "batch",
            "ours, ms a kernel",
            "GPyTorch, ms",
            "ratio (least … largest)",
        ),
    )
    for M, batch in size.compared:
        shape = {"what": "against", "inducing": M, "batch": batch, **base}
        names = [str(e) for e in kernel_set(size.sets[0])]
        together = ask(kept, names=names, **shape)
        alone = ask(kept, names=["SE"], **shape)
        mixed, many = [together["ours"] / alone["theirs"]], f"{size.sets[0]} together"
        for label, ours, theirs, ratios in (
            (
                f"{size.sets[0]} together, each",
                together["ours"],
                together["theirs"],
                together["ratios"],
            ),
            (f"{many}, SE", together["ours"], alone["theirs"], mixed),
            ("SE alone, SE", alone["ours"], alone["theirs"], alone["ratios"]),
        ):
            spread = f" ({min(ratios):.2f} … {max(ratios):.2f})" if len(ratios) > 1 else ""
            ratio = f"{np.median(ratios):.2f}{spread}"
            cells = (f"{1e3 * ours:.3g}", f"{1e3 * theirs:.3g}", ratio)
            section.rows.append((label, M, batch, *cells))
    return section


if __name__ == "__main__":
    if sys.argv[1:2] == ["--point"]:
        print(json.dumps(measured(json.loads(sys.argv[2]))))
        sys.exit(0)
    sys.exit(run_alone(run, __doc__))
