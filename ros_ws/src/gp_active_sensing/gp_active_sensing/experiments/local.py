"""Trials on the cores of this machine, by joblib."""

from __future__ import annotations

import importlib.util
import signal
from collections.abc import Callable, Generator, Sequence
from functools import partial

from gp_active_sensing.errors import MissingDependencyError, RunError
from gp_active_sensing.experiments.plan import TrialSpec
from gp_active_sensing.experiments.work import Outcome, do_trial
from gp_active_sensing.util.versions import commit

__all__ = ["cores", "run_local"]

IDLE = 20
"""Seconds after which a worker without a trial ends."""


def cores() -> int:
    """Return the cores that this process may use."""
    if importlib.util.find_spec("joblib") is None:
        return 1
    import joblib

    return int(joblib.cpu_count())


def run_local(trials: Sequence[TrialSpec], jobs: int) -> Generator[Outcome]:
    """Yield the outcomes of trials as they come, in any order.

    Args:
        trials: what to do.
        jobs: worker processes, each with one BLAS thread; 1 = in this process, with the threads
            that it has (the command has one).

    Raises:
        MissingDependencyError: several jobs without joblib.
        RunError: a worker process was ended from outside.
    """
    work = partial(do_trial, source=commit())
    if jobs == 1 or len(trials) < 2:
        yield from map(work, trials)
        return
    if importlib.util.find_spec("joblib") is None:
        msg = (
            "joblib is missing, which runs several trials at once: "
            "pip install 'gp_active_sensing[experiments]', or use --jobs 1"
        )
        raise MissingDependencyError(msg)
    from joblib import Parallel, delayed, parallel_config
    from joblib.externals.loky.process_executor import BrokenProcessPool

    # Workers outlive a killed parent by the idle time only.
    with parallel_config(backend="loky", inner_max_num_threads=1, idle_worker_timeout=IDLE):
        # One trial at a time: a batch would come back, and be kept, only as a whole.
        parallel = Parallel(n_jobs=jobs, batch_size=1, return_as="generator_unordered")
    outcomes = parallel(delayed(_in_worker)(work, trial) for trial in trials)
    try:
        yield from outcomes
    except BrokenProcessPool as error:
        msg = (
            f"a worker process ended or could not begin (often because memory ran out): {error}\n"
            "Every trial that was done is kept; go on with --resume, with fewer --jobs if memory "
            "is short"
        )
        raise RunError(msg) from error
    finally:
        outcomes.close()


def _in_worker(work: Callable[[TrialSpec], Outcome], trial: TrialSpec) -> Outcome:
    """Run a trial; Ctrl-C, which a terminal sends to every process, is for the parent alone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return work(trial)
