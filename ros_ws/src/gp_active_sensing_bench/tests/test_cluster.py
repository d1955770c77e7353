"""On a dask cluster of two worker processes of this machine: the same records as locally."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("distributed")

from bench_support.small import hide, small, what_was_done, with_a_bad_trial
from gp_active_sensing.errors import MissingDependencyError, RunError
from gp_active_sensing.util import workers as cluster
from gp_active_sensing_bench import run_experiment
from tests.dask_cluster import fixture_address, fixture_scheduler

__all__ = ["fixture_address", "fixture_scheduler"]

# A busy machine makes dask complain about late heartbeats and slow event loops.
pytestmark = [
    pytest.mark.filterwarnings("ignore::UserWarning:distributed"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def test_no_worker(scheduler: str, tmp_path: Path) -> None:
    with pytest.raises(RunError, match=f"{scheduler}: the scheduler has no worker.*dask worker"):
        cluster.connect(scheduler, patience=0.5)


@pytest.mark.slow
def test_the_same_records_as_locally(address: str, tmp_path: Path) -> None:
    pytest.importorskip("joblib")
    experiment = small(seeds=3)
    here = run_experiment(experiment, tmp_path / "here", jobs=2)
    there = run_experiment(experiment, tmp_path / "there", cluster=address)
    assert what_was_done(there.records) == what_was_done(here.records)
    assert [set(r) for r in there.records] == [set(r) for r in here.records]


def test_two_processes_do_the_work(address: str) -> None:
    client = cluster.connect(address)
    try:
        assert len(set(client.run(os.getpid).values()) - {os.getpid()}) == 2
        threads = [client.run(os.getenv, name) for name in cluster.THREAD_VARIABLES]
    finally:
        client.close()
    assert {value for found in threads for value in found.values()} == {"1"}


def test_resume_and_failures(address: str, tmp_path: Path) -> None:
    bad = run_experiment(with_a_bad_trial(small()), tmp_path, cluster=address)
    assert (len(bad.records), len(bad.failures)) == (7, 1)
    seen: list[Any] = []
    again = run_experiment(
        small(), tmp_path, resume=True, cluster=address, on_trial=lambda _, o: seen.append(o)
    )
    assert (len(again.records), len(seen)) == (8, 1)


def test_another_version_on_a_worker_is_refused(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "__version__", "9.9.9")
    with pytest.raises(RunError, match=r"worker tcp://.* has gp_active_sensing .* this is 9\.9\.9"):
        run_experiment(small(), tmp_path / "out", cluster=address)
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_nobody_answers(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"no dask scheduler answered within.*dask scheduler"):
        run_experiment(small(), tmp_path / "out", cluster="tcp://127.0.0.1:9")
    with pytest.raises(RunError, match="no dask scheduler answered"):
        cluster.connect("nonsense://here")


@pytest.mark.slow
def test_one_who_takes_the_call_and_says_nothing_is_not_waited_for() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"tcp://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(RunError, match=r"no dask scheduler answered within 0\.5 s"):
            cluster.connect(address, patience=0.5)


@pytest.mark.slow
def test_encryption_without_certificates() -> None:
    from gp_active_sensing.util.workers import connect

    with pytest.raises(RunError, match=r"certificates that docs/security\.md names"):
        connect("tls://127.0.0.1:9", patience=1.0)


def test_without_dask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hide(monkeypatch, "distributed")
    with pytest.raises(MissingDependencyError, match="dask"):
        run_experiment(small(), tmp_path / "out", cluster="tcp://127.0.0.1:9")
