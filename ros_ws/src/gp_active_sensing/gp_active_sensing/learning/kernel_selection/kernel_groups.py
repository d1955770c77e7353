"""Groups of kernels: made to fit the memory, optimised one after the other, or side by side."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gp_active_sensing.kernel_model.fit import KernelFit
from gp_active_sensing.kernels.composite import Composite
from gp_active_sensing.learning.kernel_selection.config import Progress
from gp_active_sensing.learning.kernel_selection.data import Data
from gp_active_sensing.learning.kernel_selection.group import (
    FinishedGroup,
    KernelGroup,
    memory_of,
    order_by_shape,
)
from gp_active_sensing.learning.kernel_selection.parallel import on_cluster, on_cores
from gp_active_sensing.learning.kernel_selection.training_run import train_group

__all__ = ["group_of", "partition", "train_all", "train_group"]


def partition(
    composites: Sequence[Composite],
    data: Data,
    earlier: Mapping[str, KernelFit],
    jobs: int,
) -> list[KernelGroup]:
    """Return groups of kernels of like shape, none of which needs more than the memory.

    Args:
        composites: the kernels.
        data: what from.
        earlier: fits to begin with.
        jobs: processes: there are at least so many groups.
    """
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
    return [group_of([c.name for c in ordered[k : k + size]], data, earlier) for k in cuts]


def group_of(names: Sequence[str], data: Data, earlier: Mapping[str, KernelFit]) -> KernelGroup:
    """Return a group of kernels, with what is known of them."""
    known = {name: earlier[name] for name in names if name in earlier}
    return KernelGroup(tuple(names), data, known)


def train_all(
    groups: Sequence[KernelGroup],
    *,
    jobs: int,
    cluster: str | None,
    progress: Callable[[Progress], None] | None,
) -> FinishedGroup:
    """Optimise all groups; on several cores or machines where that is asked for.

    Raises:
        MissingDependencyError: joblib or dask.distributed is not installed.
    """
    total = sum(len(group.names) for group in groups)
    whole = FinishedGroup()
    done = 0

    def tell(said: Progress) -> None:
        if progress is not None:
            progress(dataclasses.replace(said, finished=done, total=total))

    if cluster is None and jobs <= 1:
        for group in groups:
            _join(whole, train_group(group, tell))
            done += len(group.names)
        return whole
    results: Any = on_cores(groups, jobs) if cluster is None else on_cluster(groups, cluster)
    for k, finished in results:
        _join(whole, finished)
        done += len(groups[k].names)
        config = groups[k].data.config
        stages = len(config.stages)
        names = groups[k].names
        bounds = tuple(finished.bounds[name][-1] for name in names)
        rows = groups[k].data.rows_of(stages - 1)
        steps = config.iterations
        tell(Progress(names, 0, 0, stages, stages, steps, steps, rows, bounds))
    return whole


def _join(whole: FinishedGroup, part: FinishedGroup) -> None:
    whole.fits.update(part.fits)
    whole.dropped.update(part.dropped)
    whole.bounds.update(part.bounds)
