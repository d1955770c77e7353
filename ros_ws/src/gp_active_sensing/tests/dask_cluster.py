"""A dask scheduler and two worker processes of this machine, as fixtures to import."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gp_active_sensing.util import workers
from tests.waiting import LIMIT, wait_until

__all__ = ["fixture_address", "fixture_scheduler"]

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
    plain = {k: v for k, v in os.environ.items() if k not in workers.THREAD_VARIABLES}
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
