"""The benchmark of late stamps runs at a small size, and its tables say what was found."""

from __future__ import annotations

import importlib
import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

FOLDER = Path(__file__).resolve().parents[3] / "benchmarks"

if not FOLDER.exists():
    pytest.skip("the benchmarks are not installed", allow_module_level=True)


@pytest.fixture(name="bench")
def fixture_bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(FOLDER))
    before, disabled = set(sys.modules), logging.root.manager.disable
    yield importlib.import_module("bench_delay")
    logging.disable(disabled)  # missions of a benchmark are quiet
    for name in set(sys.modules) - before:
        if str(FOLDER) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def test_a_mission_with_and_without_its_lag_makes_a_row_of_each_table(bench: ModuleType) -> None:
    jobs = [bench.Job(seed, "se", 4.0, 1.5, 1.5, 0.5, 6) for seed in (0, 1)]
    done = [bench.play(job) for job in jobs]
    late = bench.late_row(("se", 4.0, 1.5, 1.5, 0.5), done)
    assert late[:5] == ["se", 4.0, 1.5, 1.5, 0.5]
    assert late[8] == "0 of 2"
    assert bench.quiet_row(0.5, done)[:3] == [0.5, "0 of 2", "none"]


def test_the_rows_say_what_was_found(bench: ModuleType) -> None:
    nan = float("nan")
    done = [
        {"rmse": 1.0, "sd": 2.0, "z": 1.0, "found": found, "said": said, "samples": 200.0}
        for found, said in ((1.3, 1.0), (nan, 1.0), (1.6, 1.0), (nan, 0.0))
    ]
    late = bench.late_row(("se", 4.0, 1.5, 0.0, 0.0), done)
    assert late[8:] == ["2 of 4", "0.15, 0.20", "200"]
    assert bench.quiet_row(1.0, done) == [1.0, "3 of 4", "1.30, 1.60", "200"]
