"""Progress of kernel learning: bars on a terminal, lines elsewhere."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from gp_active_sensing.learning.kernel_selection.config import TrainingProgress

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["LearningDisplay", "progress_line", "show_learning"]

_PARTS = 4
"""Lines a stage of a group, where there is no terminal."""


class LearningDisplay:
    """Shows where the learning is.

    Args:
        console: where to.
        bars: on a terminal, None elsewhere.
    """

    def __init__(self, console: Console, bars: Any = None) -> None:
        self._console = console
        self._bars = bars
        self._whole: dict[str, Any] = {}
        self._groups: dict[tuple[str, tuple[str, ...]], Any] = {}
        self._shares: dict[tuple[str, tuple[str, ...]], float] = {}
        self._said: dict[tuple[str, tuple[str, ...]], tuple[int, int]] = {}

    def __call__(self, part: str, now: TrainingProgress) -> None:
        """Show a step of a part (learning, screening, refit)."""
        key = (part, now.kernels)
        if self._bars is None:
            at = (now.stage, _PARTS * now.iteration // max(1, now.iterations))
            # The whole of a stage is said, and its quarters; not what was said already.
            if self._said.get(key, (0, 0)) < at:
                self._said[key] = at
                self._console.out(progress_line(part, now), highlight=False)
            return
        if part not in self._whole:
            self.done()  # with the part before
            self._whole[part] = self._bars.add_task(part, total=now.total, note="")
        if key not in self._groups:
            self._groups[key] = self._bars.add_task("", total=now.iterations, note="")
        # Kernels of a group are on their way together: the share of their steps counts, too.
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
        """Show that everything so far has come to its end."""
        for task in self._whole.values():
            total = self._bars.tasks[task].total
            self._bars.update(task, completed=total)
            self._bars.stop_task(task)
        for task in self._groups.values():
            self._bars.update(task, visible=False)


def progress_line(part: str, now: TrainingProgress) -> str:
    """Return where the learning is, in a line."""
    width = len(str(now.total))
    stage = f"{now.rows} rows, " if now.stages > 1 else ""
    line = (
        f"{part} {now.finished:>{width}}/{now.total} kernels done  {_group(now)}: {stage}"
        f"step {now.iteration}/{now.iterations}"
    )
    best = _best(now)
    return f"{line}, {best}" if best else line


def _group(now: TrainingProgress) -> str:
    """Return which kernels these are."""
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
    """Yield what shows the learning as it goes.

    Args:
        console: where to; a terminal gets progress bars, anything else lines.
    """
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
