"""On a dask cluster of two worker processes of this machine: the same records as locally."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("distributed")

from gp_active_sensing.errors import MissingDependencyError, RunError
from gp_active_sensing.experiments import run_experiment
from gp_active_sensing.util import workers as cluster
from tests.unit.experiments.small import small, what_was_done
from tests.unit.experiments.test_run import hide, with_a_bad_trial
from tests.waiting import LIMIT, wait_until

# A busy machine makes dask complain about late heartbeats and slow event loops.
pytestmark = [
    pytest.mark.filterwarnings("ignore::UserWarning:distributed"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

SCHEDULER = [sys.executable, "-m", "dask", "scheduler", "--host", "127.0.0.1", "--port", "0"]
WORKER = [sys.executable, "-m", "dask", "worker", "--nthreads", "1", "--no-dashboard"]


@pytest.fixture(name="scheduler", scope="module")
def fixture_scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a scheduler without workers."""
    file = tmp_path_factory.mktemp("dask") / "scheduler.json"
    command = [*SCHEDULER, "--no-dashboard", "--scheduler-file", str(file)]
    yield from _running(command, file)


@pytest.fixture(name="address", scope="module")
def fixture_address(scheduler: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a scheduler with two worker processes."""
    folder = tmp_path_factory.mktemp("workers")
    command = [*WORKER, scheduler, "--nworkers", "2", "--local-directory", str(folder)]
    # Dask gives its workers one thread each, unless somebody has asked for others.
    plain = {k: v for k, v in os.environ.items() if k not in cluster.THREAD_VARIABLES}
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=plain
    )
    try:
        from distributed import Client

        with Client(scheduler, set_as_default=False) as client:
            client.wait_for_workers(2, timeout=LIMIT)
        yield scheduler
    finally:
        process.terminate()
        process.wait(timeout=LIMIT)


def _running(command: list[str], file: Path) -> Iterator[str]:
    import json

    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:

        def started() -> bool:
            assert process.poll() is None, "the scheduler ended"
            return file.exists() and bool(file.read_text().strip())

        wait_until(started, "the scheduler to start")
        yield json.loads(file.read_text())["address"]
    finally:
        process.terminate()
        process.wait(timeout=LIMIT)


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
    with pytest.raises(MissingDependencyError, match=r"gp_active_sensing\[experiments\]"):
        run_experiment(small(), tmp_path / "out", cluster="tcp://127.0.0.1:9")
