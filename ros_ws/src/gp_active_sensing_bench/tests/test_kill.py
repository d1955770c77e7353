"""The command killed for real, and interrupted; what is left goes on to the same records."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench_support.small import small, what_was_done, write
from gp_active_sensing.util.files import InUse
from gp_active_sensing_bench import load_records, run_experiment
from tests.waiting import LIMIT, wait_until

pytestmark = pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
pytest.importorskip("joblib")

POLICIES = {"two": {"name": "bal", "samples": 5}}
CHANGES = {"seeds": 12, "budgets": [8], "policies": POLICIES, "baseline": None}


@contextlib.contextmanager
def started(file: Path, out: Path) -> Iterator[subprocess.Popen[str]]:
    """Start the command in a session of its own, and leave no process of it behind."""
    command = [sys.executable, "-m", "gp_active_sensing.cli", "experiment", str(file)]
    command += ["--out", str(out), "--jobs", "2"]
    # Where this process ignores the signal (a shell's background job), its children would, too.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        process = subprocess.Popen(command, start_new_session=True, **pipes)
    finally:
        signal.signal(signal.SIGINT, before)
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def wait_for_records(out: Path, count: int) -> None:
    path = out / "records.jsonl"
    wait_until(lambda: path.exists() and path.read_bytes().count(b"\n") >= count, "records")


@pytest.mark.slow
def test_killed_and_resumed_is_equal_to_never_killed(tmp_path: Path) -> None:
    file, out = write(tmp_path / "e.yaml", **CHANGES), tmp_path / "out"
    with started(file, out) as process:
        wait_for_records(out, 3)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    left = load_records(out)
    assert 3 <= len(left.records) < 12
    assert left.missing == 12 - len(left.records)
    kept = (out / "records.jsonl").read_bytes()
    resumed = run_experiment(small(**CHANGES), out, resume=True, jobs=2)
    whole = run_experiment(small(**CHANGES), tmp_path / "whole", jobs=1)
    assert what_was_done(resumed.records) == what_was_done(whole.records)
    assert [r["key"] for r in resumed.records] == [t.key for t in small(**CHANGES).trials]
    complete = kept[: kept.rfind(b"\n") + 1]
    assert (out / "records.jsonl").read_bytes().startswith(complete), "nothing was done again"


@pytest.mark.long
@pytest.mark.parametrize("everyone", [False, True], ids=["the command", "its workers, too"])
def test_interrupted_ends_cleanly_and_says_how_to_go_on(tmp_path: Path, everyone: bool) -> None:
    """A terminal sends Ctrl-C to all processes, `kill` to one."""
    file, out = write(tmp_path / "e.yaml", **CHANGES), tmp_path / "out"
    with started(file, out) as process:
        wait_for_records(out, 3)
        if everyone:
            os.killpg(process.pid, signal.SIGINT)
        else:
            process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=LIMIT)
    assert process.returncode == 1
    assert f"--out {out} --resume" in errors
    assert errors.count("\n") == 1, "no traceback"
    assert load_records(out).missing > 0


def test_one_process_writes_to_an_experiment(tmp_path: Path) -> None:
    out = tmp_path / "out"
    refused: list[str] = []

    def interfere(*_: object) -> None:
        before = (out / "records.jsonl").read_bytes()
        for resume in (True, False):
            with pytest.raises(InUse) as caught:
                run_experiment(small(), out, resume=resume, jobs=1)
            refused.append(str(caught.value))
        assert (out / "records.jsonl").read_bytes() == before

    done = run_experiment(small(), out, jobs=1, on_trial=interfere)
    assert len(refused) == 2 * len(done.records) > 0
    assert done.missing == 0
    assert run_experiment(small(), out, resume=True, jobs=1).records == done.records
