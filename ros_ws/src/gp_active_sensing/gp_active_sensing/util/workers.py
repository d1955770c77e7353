"""Work in several processes of this machine (joblib)."""

from __future__ import annotations

import importlib.util
import signal
from collections.abc import Callable, Generator, Iterable
from typing import TypeVar

from gp_active_sensing.errors import MissingDependencyError, RunError

__all__ = ["on_cores"]

IDLE = 20
"""Seconds after which a process without work ends; it outlives a killed parent by no more."""
Item = TypeVar("Item")
Result = TypeVar("Result")


def on_cores(
    work: Callable[[Item], Result], items: Iterable[Item], jobs: int, advice: str
) -> Generator[Result]:
    """Yield the results of work on items as they come, in any order.

    Args:
        work: on an item; called in processes of one BLAS thread each.
        items: what on, one at a time: a batch would come back, and be kept, only as a whole.
        jobs: number of processes.
        advice: what to do when a process was ended from outside.

    Raises:
        MissingDependencyError: joblib is not installed.
        RunError: a process was ended from outside.
    """
    if importlib.util.find_spec("joblib") is None:
        msg = "joblib is missing, which uses several processes: pip install joblib, or use --jobs 1"
        raise MissingDependencyError(msg)
    from joblib import Parallel, delayed, parallel_config
    from joblib.externals.loky.process_executor import BrokenProcessPool

    with parallel_config(backend="loky", inner_max_num_threads=1, idle_worker_timeout=IDLE):
        parallel = Parallel(n_jobs=jobs, batch_size=1, return_as="generator_unordered")
    results = parallel(delayed(_in_process)(work, item) for item in items)
    try:
        yield from results
    except BrokenProcessPool as error:
        msg = (
            "a worker process ended or could not begin (often because memory ran out): "
            f"{error}\n{advice}"
        )
        raise RunError(msg) from error
    finally:
        results.close()


def _in_process(work: Callable[[Item], Result], item: Item) -> Result:
    """Work on an item; Ctrl-C, which a terminal sends to every process, is for the parent alone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return work(item)
