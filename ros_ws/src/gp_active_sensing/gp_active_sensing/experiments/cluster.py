"""Trials on a cluster, by dask.distributed; the same function and the same records as locally."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

from gp_active_sensing.experiments.plan import TrialSpec
from gp_active_sensing.experiments.work import Outcome, do_trial, failure_of
from gp_active_sensing.util.cluster import check_version

__all__ = ["run_on_cluster"]


def run_on_cluster(trials: Sequence[TrialSpec], client: Any) -> Generator[Outcome]:
    """Yield the outcomes of trials as they come, in any order.

    Args:
        trials: what to do.
        client: from `connect`; it stays open.
    """
    from distributed import as_completed

    futures = {client.submit(do_trial, trial, pure=False): trial for trial in trials}
    try:
        finished = as_completed(
            list(futures), loop=client.loop, with_results=True, raise_errors=False
        )
        for future, result in finished:
            trial = futures.pop(future)
            if isinstance(result, Outcome):
                check_version(result.item.get("versions", {}), "the worker of a trial")
                yield result
            else:  # its worker ended, or could not read the task
                error = result[1] if isinstance(result, tuple) else result
                yield failure_of(trial, error)
    finally:
        client.cancel(list(futures))
