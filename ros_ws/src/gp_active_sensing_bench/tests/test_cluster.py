"""On a dask cluster of two worker processes of this machine: the same records as locally."""

from __future__ import annotations

import os
import socket
from pathlib import Path

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


@pytest.mark.long
def test_the_same_records_as_locally(address: str, tmp_path: Path) -> None:
    experiment = small(seeds=3)
    here = run_experiment(experiment, tmp_path / "here", jobs=1)
    there = run_experiment(experiment, tmp_path / "there", cluster=address)
    assert what_was_done(there.records) == what_was_done(here.records)
    client = cluster.connect(address)
    try:
        assert len(set(client.run(os.getpid).values()) - {os.getpid()}) == 2
        threads = [client.run(os.getenv, name) for name in cluster.THREAD_VARIABLES]
    finally:
        client.close()
    assert {value for found in threads for value in found.values()} == {"1"}


def test_resume_and_failures(address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bad = run_experiment(with_a_bad_trial(small()), tmp_path, cluster=address)
    assert (len(bad.records), len(bad.failures)) == (7, 1)
    seen: list[object] = []
    again = run_experiment(
        small(), tmp_path, resume=True, cluster=address, on_trial=lambda _, o: seen.append(o)
    )
    assert (len(again.records), len(seen)) == (8, 1)
    monkeypatch.setattr(cluster, "__version__", "9.9.9")
    with pytest.raises(RunError, match=r"9\.9\.9"):
        run_experiment(small(), tmp_path / "out", cluster=address)
    assert not (tmp_path / "out").exists()


def test_a_scheduler_that_does_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        for address, word in (
            (f"tcp://127.0.0.1:{port}", "no dask scheduler"),
            ("tcp://127.0.0.1:9", "no dask scheduler"),
            ("nonsense://here", "no dask scheduler"),
            ("tls://127.0.0.1:9", "certificates"),
        ):
            with pytest.raises(RunError, match=word):
                cluster.connect(address, patience=0.5)
    hide(monkeypatch, "distributed")
    with pytest.raises(MissingDependencyError):
        run_experiment(small(), tmp_path / "out", cluster="tcp://127.0.0.1:9")
