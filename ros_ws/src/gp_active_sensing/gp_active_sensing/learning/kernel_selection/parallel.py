"""Groups on several cores by joblib, on several machines by dask: the same function everywhere."""

from __future__ import annotations

import dataclasses
import importlib.util
import signal
from collections.abc import Generator, Sequence
from typing import Any

from gp_active_sensing.errors import MissingDependencyError, RunError
from gp_active_sensing.learning.kernel_selection.checkpoint import finished_in, write_finished
from gp_active_sensing.learning.kernel_selection.data import Data
from gp_active_sensing.learning.kernel_selection.group import FinishedGroup, KernelGroup
from gp_active_sensing.learning.kernel_selection.training_run import train_group

__all__ = ["on_cluster", "on_cores"]

_TRAVELS: Any = None
"""In place of the rows in a group that is sent apart from them."""
_IDLE = 20
"""Seconds after which a worker without work ends."""


def on_cores(groups: Sequence[KernelGroup], jobs: int) -> Generator[tuple[int, FinishedGroup]]:
    """Yield number and result of every group, as they are done; each has one thread.

    Raises:
        MissingDependencyError: joblib is not installed.
        RunError: a worker process was ended from outside.
    """
    if importlib.util.find_spec("joblib") is None:
        msg = (
            "joblib is missing, which uses several processes: "
            "pip install 'gp_active_sensing[experiments]', or use --jobs 1"
        )
        raise MissingDependencyError(msg)
    from joblib import Parallel, delayed, parallel_config
    from joblib.externals.loky.process_executor import BrokenProcessPool

    with parallel_config(backend="loky", inner_max_num_threads=1, idle_worker_timeout=_IDLE):
        parallel = Parallel(n_jobs=jobs, batch_size=1, return_as="generator_unordered")
    results = parallel(delayed(_in_worker)(k, group) for k, group in enumerate(groups))
    try:
        yield from results
    except BrokenProcessPool as error:
        msg = (
            f"a worker process ended or could not begin (often because memory ran out): {error}\n"
            "Give fewer --jobs, or a smaller vbks.memory; with --checkpoint what was done is kept"
        )
        raise RunError(msg) from error
    finally:
        results.close()


def on_cluster(groups: Sequence[KernelGroup], address: str) -> Generator[tuple[int, FinishedGroup]]:
    """Yield number and result of every group, as the workers of a dask scheduler are done.

    Raises:
        MissingDependencyError: dask.distributed is not installed.
        RunError: nobody answers there, or no worker that fits.
    """
    from gp_active_sensing.util.cluster import connect

    client = connect(address)
    try:
        from distributed import as_completed

        # The rows travel once to each worker, not with every group; checkpoints stay here, since
        # a worker may have another disk: what was done is kept, group by group.
        data = client.scatter(groups[0].data, broadcast=True)
        futures: list[Any] = []
        for k, group in enumerate(groups):
            kept = _kept(group)
            if kept is not None:
                yield k, kept
                continue
            sent = dataclasses.replace(group, data=_TRAVELS, checkpoint=None, resume=False)
            futures.append(client.submit(_with_data, k, sent, data, pure=False))
        try:
            for future in as_completed(futures, loop=client.loop):
                k, finished = future.result()
                group = groups[k]
                if group.checkpoint is not None:
                    stages = len(group.data.config.stages)
                    write_finished(group.checkpoint, group.names, stages, finished)
                yield k, finished
        finally:
            client.cancel(futures)
    finally:
        client.close()


def _kept(group: KernelGroup) -> FinishedGroup | None:
    """Return what came of a group when it was optimised before."""
    if group.checkpoint is None or not group.resume:
        return None
    return finished_in(group.checkpoint, group.names, len(group.data.config.stages))


def _in_worker(k: int, group: KernelGroup) -> tuple[int, FinishedGroup]:
    """Optimise a group; Ctrl-C, which a terminal sends to every process, is for the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return k, train_group(group, threads=1)


def _with_data(k: int, group: KernelGroup, data: Data) -> tuple[int, FinishedGroup]:
    return k, train_group(dataclasses.replace(group, data=data), threads=1)
