"""Console output for learning kernels: progress, and the learned belief."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from gp_active_sensing.kernel_model.model import KernelFit, KernelModel, Scaling
from gp_active_sensing_learning.kernel_selection.config import TrainingProgress

if TYPE_CHECKING:
    from rich.console import Console

_PARTS = 4
"""Number of progress lines for each stage of a kernel group."""


class LearningDisplay:
    """Console display of the progress of learning, with progress bars or lines."""

    def __init__(self, console: Console, bars: Any = None) -> None:
        self._console = console
        self._bars = bars
        self._whole: dict[str, Any] = {}
        self._groups: dict[tuple[str, tuple[str, ...]], Any] = {}
        self._shares: dict[tuple[str, tuple[str, ...]], float] = {}
        self._shown: dict[tuple[str, tuple[str, ...]], tuple[int, int]] = {}

    def __call__(self, part: str, now: TrainingProgress) -> None:
        """Show the progress of `part`, which is learning, screening or refit."""
        key = (part, now.kernels)
        if self._bars is None:
            at = (now.stage, _PARTS * now.iteration // max(1, now.iterations))
            # Print one line for each quarter of a stage.
            if self._shown.get(key, (0, 0)) < at:
                self._shown[key] = at
                self._console.out(progress_line(part, now), highlight=False)
            return
        if part not in self._whole:
            self.done()  # ends the previous part
            self._whole[part] = self._bars.add_task(part, total=now.total, note="")
        if key not in self._groups:
            self._groups[key] = self._bars.add_task("", total=now.iterations, note="")
        # All kernels of a group take the same step: add the fraction of their steps.
        steps = (now.stage - 1 + now.iteration / max(1, now.iterations)) / now.stages
        self._shares[key] = len(now.kernels) * steps
        under_way = sum(share for (other, _), share in self._shares.items() if other == part)
        self._bars.update(
            self._whole[part],
            completed=min(max(float(now.finished), under_way), now.total),
            total=now.total,
            description=f"{part} {now.total} kernel{'s' if now.total > 1 else ''}",
        )
        over = now.iteration >= now.iterations and now.stage >= now.stages
        self._bars.update(
            self._groups[key],
            completed=now.iteration,
            total=now.iterations,
            description=_group(now),
            note=_best(now),
            visible=not over,
        )

    def done(self) -> None:
        """Show all started parts as complete."""
        for task in self._whole.values():
            total = self._bars.tasks[task].total
            self._bars.update(task, completed=total)
            self._bars.stop_task(task)
        for task in self._groups.values():
            self._bars.update(task, visible=False)


def progress_line(part: str, now: TrainingProgress) -> str:
    """Return a line with the progress of `part`."""
    width = len(str(now.total))
    stage = f"{now.rows} rows, " if now.stages > 1 else ""
    line = (
        f"{part} {now.finished:>{width}}/{now.total} kernels done  {_group(now)}: {stage}"
        f"step {now.iteration}/{now.iterations}"
    )
    best = _best(now)
    return f"{line}, {best}" if best else line


def _group(now: TrainingProgress) -> str:
    """Return a text with the group's kernels and the stage."""
    first, rest = now.kernels[0], len(now.kernels) - 1
    stage = f" [{now.stage}/{now.stages}]" if now.stages > 1 else ""
    return (f"{first} and {rest} more" if rest else first) + stage


def _best(now: TrainingProgress) -> str:
    known = [bound for bound in now.bounds if math.isfinite(bound)]
    if not known:
        return ""
    best = max(range(len(now.bounds)), key=lambda k: _or_least(now.bounds[k]))
    return f"ELBO {now.bounds[best]:.1f} ({now.kernels[best]})"


def _or_least(bound: float) -> float:
    return bound if math.isfinite(bound) else -math.inf


@contextmanager
def show_learning(console: Console) -> Iterator[LearningDisplay]:
    """Provide a display of progress bars on a terminal, and of lines elsewhere."""
    if not console.is_terminal:
        yield LearningDisplay(console)
        return
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[note]}"),
    )
    with Bars(*columns, console=console) as bars:
        show = LearningDisplay(console, bars)
        yield show
        show.done()


SHOWN = 12
"""Default number of kernels in the console output."""
_MOST_INPUTS = 4
"""Largest number of inputs for which lengths are printed."""


def noise_of(fit: KernelFit, scaling: Scaling) -> float:
    """Return the standard deviation of a reading's noise, in the unit of the outputs."""
    log = float(fit.theta_mean[fit.composite.where("noise")[0]])
    return scaling.output_scale * math.hypot(fit.noise_floor, math.exp(log))


def lengths_of(fit: KernelFit, scaling: Scaling) -> tuple[float, ...] | None:
    """Return a typical length-scale along each input, in the input's unit.

    The result is the geometric mean over the base kernels with a length-scale. None = no base
    kernel has a length-scale.
    """
    logs = fit.composite.log_lengths(fit.theta_mean)
    if not logs:
        return None
    found = np.exp(np.mean(logs, axis=0)) * scaling.input_scale
    return tuple(float(value) for value in found)


def model_lines(model: KernelModel, top: int = SHOWN) -> list[str]:
    """Return text lines on the data, the `top` most probable kernels, and the optimisation."""
    inputs = ", ".join(_few(model.input_names))
    head = f"{model.output_name} of {inputs}, {model.rows} rows of {model.source}"
    lines = [head, "", *_table(model, top)]
    if (rest := len(model.fits) - top) > 0:
        share = float(model.belief.probabilities[top:].sum())
        lines.append(f"… and {rest} more kernels, {share:.3f} together")
    lines += ["", *_endings([fit.outcome for fit in model.fits])]
    screening = model.settings.get("screening")
    if screening:
        lines.append(
            f"screened: {len(screening['kernels'])} kernels with {screening['inducing']} inducing "
            f"points; the {len(model.fits)} most probable were fitted again"
        )
    counts = Counter(why for _, why in model.dropped)
    for why, count in counts.items():
        names = [name for name, reason in model.dropped if reason == why]
        lines.append(f"left out: {', '.join(_few(names))} ({_kernels(count)}): {why}")
    return lines


def _table(model: KernelModel, top: int) -> list[str]:
    """Return the table of the `top` most probable kernels as aligned lines."""
    head = ("kernel", "q*", "s.e.", "softmax(L)", "L [nat]", "noise", "steps", "ended", "lengths")
    rows = [head]
    belief = model.belief
    for k, fit in enumerate(model.fits[:top]):
        lengths = lengths_of(fit, model.scaling)
        rows.append(
            (
                fit.name,
                f"{belief.probabilities[k]:.3f}",
                f"{belief.errors[k]:.3f}",
                f"{belief.softmax[k]:.3f}",
                f"{fit.bound:.1f}",
                f"{noise_of(fit, model.scaling):.3g}",
                str(fit.iterations),
                fit.outcome.partition(":")[0].partition(" ")[0],
                "-" if lengths is None else _lengths(model.input_names, lengths),
            )
        )
    widths = [max(len(row[c]) for row in rows) for c in range(len(rows[0]))]
    left = {0, 7, 8}
    return [
        "  ".join(
            cell.ljust(w) if c in left else cell.rjust(w)
            for c, (cell, w) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _lengths(names: Sequence[str], lengths: Sequence[float]) -> str:
    shown = [f"{name} {value:.3g}" for name, value in zip(names, lengths, strict=True)]
    return ", ".join(_few(shown))


def _few(names: Sequence[str]) -> list[str]:
    names = list(names)
    return names if len(names) <= _MOST_INPUTS else [*names[: _MOST_INPUTS - 1], "…"]


def _kernels(count: int) -> str:
    return "1 kernel" if count == 1 else f"{count} kernels"


def _endings(outcomes: Sequence[str]) -> list[str]:
    counts = Counter(outcome.partition(":")[0] for outcome in outcomes)
    lines = []
    for word, count in counts.most_common():
        example = next(o for o in outcomes if o.partition(":")[0] == word)
        why = example.partition(":")[2].strip()
        lines.append(f"{word}: {_kernels(count)}" + (f" ({why})" if why else ""))
    return lines


def model_mapping(model: KernelModel) -> dict[str, Any]:
    """Return the belief, the kernels, the history and the settings as plain data."""
    belief, history = model.belief, model.history
    kernels = []
    for k, fit in enumerate(model.fits):
        lengths = lengths_of(fit, model.scaling)
        kernels.append(
            {
                "kernel": fit.name,
                "probability": float(belief.probabilities[k]),
                "error": float(belief.errors[k]),
                "softmax": float(belief.softmax[k]),
                "bound": float(fit.bound),
                "noise_std": noise_of(fit, model.scaling),
                "lengths": None
                if lengths is None
                else dict(zip(model.input_names, lengths, strict=True)),
                "inducing": len(fit.inducing),
                "iterations": int(fit.iterations),
                "outcome": fit.outcome,
            }
        )
    return {
        "source": model.source,
        "rows": int(model.rows),
        "inputs": list(model.input_names),
        "output": model.output_name,
        "elbo": float(belief.elbo),
        "prior_std": float(belief.prior_std),
        "kernels": kernels,
        "dropped": [{"kernel": name, "why": why} for name, why in model.dropped],
        "history": {
            "rows": [int(n) for n in history.rows],
            "kernels": list(history.names),
            "bounds": _finite(history.bounds),
            "probabilities": _finite(history.probabilities),
            "softmax": _finite(history.softmax),
        },
        "settings": model.settings,
    }


def _finite(values: Any) -> list[list[float | None]]:
    """Return `values` with None in place of numbers that JSON cannot represent."""
    return [[float(v) if math.isfinite(v) else None for v in row] for row in values]
