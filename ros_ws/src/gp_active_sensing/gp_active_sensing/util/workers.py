"""Work in several processes of this machine (joblib), or on a cluster (dask)."""

from __future__ import annotations

import asyncio
import importlib.util
import logging
import signal
from collections.abc import Callable, Generator, Iterable, Mapping
from typing import Any, TypeVar

from gp_active_sensing._version import __version__
from gp_active_sensing.errors import MissingDependencyError, RunError
from gp_active_sensing.util.process import THREAD_VARIABLES

__all__ = ["check_version", "connect", "on_cores"]

logger = logging.getLogger(__name__)

PATIENCE = 5.0
"""Seconds to wait for the scheduler, and for its first worker."""
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


def connect(address: str, *, patience: float | None = None) -> Any:
    """Return a client of a scheduler whose workers all have this version of the package.

    Args:
        address: of the scheduler, such as ``tcp://10.0.0.1:8786``.
        patience: seconds to wait for the scheduler, and for its first worker; None = `PATIENCE`.

    Raises:
        MissingDependencyError: dask.distributed is not installed.
        RunError: nobody answers, there is no worker, or a worker that does not fit.
    """
    patience = PATIENCE if patience is None else patience
    if importlib.util.find_spec("distributed") is None:
        msg = "dask.distributed is missing, which talks to a cluster: pip install dask distributed"
        raise MissingDependencyError(msg)
    from distributed import Client

    try:
        # A client waits for ever for one who takes the call and says nothing.
        asyncio.run(_reach(address, patience))
        client = Client(address, timeout=patience, set_as_default=False)
    except (OSError, TimeoutError, asyncio.TimeoutError, ValueError) as error:
        why = str(error) or "it says nothing"
        msg = (
            f"--cluster {address}: no dask scheduler answered within {patience:g} s ({why}). "
            "Start one with `dask scheduler`, and give the address that it prints"
        )
        raise RunError(msg) from error
    except TypeError as error:  # of an address with tls:// without certificates
        msg = (
            f"--cluster {address}: no connection can be made ({error}). An address with tls:// "
            "needs the certificates that docs/security.md names"
        )
        raise RunError(msg) from error
    try:
        _check_workers(client, address, patience)
    except BaseException:
        client.close()
        raise
    return client


async def _reach(address: str, patience: float) -> None:
    """Shake hands with a scheduler. Raises what `Client` raises, or TimeoutError."""
    from distributed.comm import connect as call
    from distributed.security import Security

    secure = Security().get_connection_args("client")
    comm = await asyncio.wait_for(call(address, timeout=patience, **secure), patience)
    comm.abort()


def _check_workers(client: Any, address: str, patience: float) -> None:
    from distributed import TimeoutError as NoWorker

    try:
        client.wait_for_workers(1, timeout=patience)
    except (NoWorker, TimeoutError) as error:
        msg = (
            f"--cluster {address}: the scheduler has no worker. Start some with "
            f"`dask worker {address} --nthreads 1 --nworkers N`"
        )
        raise RunError(msg) from error
    try:
        found = client.run(_describe)
    except Exception as error:
        msg = (
            f"--cluster {address}: a worker cannot run gp_active_sensing ({error}). Install "
            f"version {__version__} there, in the environment that its worker was started from"
        )
        raise RunError(msg) from error
    for worker, described in sorted(found.items()):
        check_version(described["versions"], f"worker {worker}")
        if described["threads"]:
            logger.warning(
                "worker %s: %s; last digits and planning times may differ from those of other "
                "machines. `dask worker` sets them to 1 by itself",
                worker,
                ", ".join(described["threads"]),
            )
    for worker, state in sorted(client.scheduler_info(n_workers=-1)["workers"].items()):
        if state["nthreads"] > 1:
            logger.warning(
                "worker %s runs %d trials at once in one process, so planning times are longer; "
                "start workers with --nthreads 1",
                worker,
                state["nthreads"],
            )


def _describe() -> dict[str, Any]:
    """Return versions and threads of a worker; called there."""
    import os

    from gp_active_sensing.util.process import versions

    found = {name: os.environ.get(name) for name in THREAD_VARIABLES}
    several = [f"{name} is {value or 'not set'}" for name, value in found.items() if value != "1"]
    return {"versions": versions(), "threads": several}


def check_version(found: Mapping[str, str], who: str) -> None:
    """Check that a worker has this version. Raises RunError."""
    if found and found.get("gp_active_sensing") != __version__:
        msg = (
            f"{who} has gp_active_sensing {found.get('gp_active_sensing')}, this is {__version__}; "
            "install the same version on every machine"
        )
        raise RunError(msg)
