"""Groups of kernels that fit into memory, optimised one after another or on several cores."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence

from gp_active_sensing.kernels.composite import Composite
from gp_active_sensing.util.process import on_cores
from gp_active_sensing_learning.kernel_selection.config import TrainingProgress
from gp_active_sensing_learning.kernel_selection.data import Data
from gp_active_sensing_learning.kernel_selection.group import (
    FinishedGroup,
    KernelGroup,
    memory_of,
    order_by_shape,
)


def train_group(
    group: KernelGroup,
    progress: Callable[[TrainingProgress], None] | None = None,
    *,
    threads: int | None = None,
) -> FinishedGroup:
    """Optimise one group in this process with `threads` torch threads; None = torch's number."""
    import torch

    from gp_active_sensing_learning.kernel_selection.training import Training

    if threads is not None:
        torch.set_num_threads(threads)
    wanted = group.data.config.device
    there = torch.cuda.is_available() if wanted == "auto" else wanted == "cuda"
    device = torch.device("cuda" if there else "cpu")
    return Training(group, device, progress).run()


def _in_process(task: tuple[int, KernelGroup]) -> tuple[int, FinishedGroup]:
    return task[0], train_group(task[1], threads=1)


def partition(
    composites: Sequence[Composite],
    data: Data,
    jobs: int,
) -> list[KernelGroup]:
    """Return at least `jobs` groups of similar kernels. Each group fits into memory."""
    config = data.config
    ordered = [composites[k] for k in order_by_shape(composites)]
    most = config.memory * 1e9 / max(jobs, 1)
    size = max(1, math.ceil(len(ordered) / max(jobs, 1)))
    while size > 1:
        need = max(
            memory_of(ordered[k : k + size], config.inducing, config.batch)
            for k in range(0, len(ordered), size)
        )
        if need * config.restarts <= most:
            break
        size = max(1, size // 2)
    cuts = range(0, len(ordered), size)
    return [KernelGroup(tuple(c.name for c in ordered[k : k + size]), data) for k in cuts]


def train_all(
    groups: Sequence[KernelGroup],
    *,
    jobs: int,
    progress: Callable[[TrainingProgress], None] | None,
) -> FinishedGroup:
    """Optimise all groups in `jobs` processes.

    Raises:
        MissingDependencyError: joblib is not installed.
    """
    total = sum(len(group.names) for group in groups)
    whole = FinishedGroup()
    done = 0

    def forward(news: TrainingProgress) -> None:
        if progress is not None:
            progress(dataclasses.replace(news, finished=done, total=total))

    if jobs <= 1:
        for group in groups:
            _join(whole, train_group(group, forward))
            done += len(group.names)
        return whole
    advice = "Give fewer --jobs, or a smaller vbks.memory; --resume goes on with what was done"
    for k, finished in on_cores(_in_process, list(enumerate(groups)), jobs, advice):
        _join(whole, finished)
        done += len(groups[k].names)
        config = groups[k].data.config
        stages = len(config.stages)
        names = groups[k].names
        bounds = tuple(finished.bounds[name][-1] for name in names)
        rows = groups[k].data.rows_of(stages - 1)
        steps = config.iterations
        forward(TrainingProgress(names, 0, 0, stages, stages, steps, steps, rows, bounds))
    return whole


def _join(whole: FinishedGroup, part: FinishedGroup) -> None:
    whole.fits.update(part.fits)
    whole.dropped.update(part.dropped)
    whole.bounds.update(part.bounds)
