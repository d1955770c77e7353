"""BLAS threads, free memory, software versions, and work in several processes."""

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
    """Set the number of BLAS threads to one, unless the user has set a number.

    Results are then reproducible to the bit, and small matrices are faster. Only programs call this
    function, before they import numpy.
    """
    for name in THREAD_VARIABLES:
        os.environ.setdefault(name, "1")


def hand_back() -> bool:
    """Return free memory to the operating system; return False if this is not possible."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (AttributeError, OSError):  # C library without malloc_trim
        return False
    return True


def versions() -> dict[str, str]:
    """Return the versions of this package, Python, numpy and scipy, as far as known."""
    import platform  # slow import
    from importlib import metadata

    found = {"gp_active_sensing": __version__, "python": platform.python_version()}
    for name in ("numpy", "scipy"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


IDLE = 20
"""Time after which an idle process ends [s]."""
Item = TypeVar("Item")
Result = TypeVar("Result")


def on_cores(
    work: Callable[[Item], Result], items: Iterable[Item], jobs: int, advice: str
) -> Generator[Result]:
    """Yield the results of `work` for each item, in any order.

    The processes have one BLAS thread each and receive one item at a time. The error for a killed
    process contains `advice`.

    Raises:
        MissingDependencyError: joblib is not installed.
        RunError: a process was killed.
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
    """Work on an item; ignore Ctrl-C, which the parent process handles."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return work(item)
