"""This process: one BLAS thread, free memory handed back, and the versions that it runs."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import signal
import sys
from collections.abc import Callable, Generator, Iterable
from typing import TypeVar

from gp_active_sensing._version import __version__
from gp_active_sensing.errors import MissingDependencyError, RunError

THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def one_blas_thread() -> None:
    """Ask BLAS for one thread, unless the user has asked for something else.

    Results are then reproducible to the bit, and small matrices faster: with two threads on a busy
    two-core machine, choosing a place by `ie` took 50 ms instead of 0.7 ms, since the threads wait
    for each other.

    Only programs call this, never the library, and before numpy is loaded: BLAS reads the
    environment then.
    """
    for name in THREAD_VARIABLES:
        os.environ.setdefault(name, "1")


def hand_back() -> bool:
    """Hand free memory back to the system, where the C library can be asked to (glibc).

    It keeps what a large piece of work needed for a moment. A node that reads a long journal at its
    start would hold that memory for the rest of the mission.

    Returns:
        Whether it was asked.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (AttributeError, OSError):  # another C library
        return False
    return True


def versions() -> dict[str, str]:
    """Return the versions of this package, Python, numpy and scipy, where these say it."""
    import platform  # so that the command line starts at once
    from importlib import metadata

    found = {"gp_active_sensing": __version__, "python": platform.python_version()}
    for name in ("numpy", "scipy"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


# -- processes on several cores --------------------------------------------------------------------

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
