"""Every benchmark can be imported, is listed, and runs at its smallest size."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"
if not BENCHMARKS.is_dir():  # colcon tests what is installed; the scripts are not
    pytest.skip("the benchmarks are not installed", allow_module_level=True)
ROS = {"load_publisher", "soak_driver", "watched_node"}


def run(words: Sequence[str], **variables: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(BENCHMARKS), **variables}
    environment.pop("GPAS_DATA", None)
    done = subprocess.run(
        [sys.executable, *words], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_every_script_can_be_imported_and_every_benchmark_is_listed() -> None:
    names = {path.stem for path in BENCHMARKS.glob("*.py")}
    names -= set() if find_spec("rclpy") else ROS
    lines = "\n".join(f"import {name}" for name in sorted(names))
    listed = run(["-c", f"{lines}\nprint(*run.BENCHMARKS)"]).split()
    assert {f"bench_{name}" for name in listed} == {n for n in names if n.startswith("bench_")}
    shown = run([str(BENCHMARKS / "run.py")])
    assert [name for name in listed if f"\n  {name} " not in shown] == []


def test_missions_of_mapping_are_played_once_and_compared(tmp_path: Path) -> None:
    words = "mapping --only draws/plane/moves --policies bal,random,spread --budgets 4 --starts 2"
    command = [str(BENCHMARKS / "run.py"), *words.split(), "--kept", str(tmp_path)]
    first = run(command)
    kept = (tmp_path / "mapping.jsonl").read_bytes()
    assert kept.count(b"\n") == 6
    again = run(command)
    assert (tmp_path / "mapping.jsonl").read_bytes() == kept
    assert "| draws/plane | moves | 4 | 2 |" in first
    assert [line for line in again.splitlines() if line.startswith("| ")] == [
        line for line in first.splitlines() if line.startswith("| ")
    ]


@pytest.mark.long
def test_benchmarks_run_at_their_smallest_size() -> None:
    names = ("beliefs", "intervals", "large", "town", "import")
    quick = {"GPAS_READINGS": "2", "GPAS_SETTINGS": "0"}
    report = run([str(BENCHMARKS / "run.py"), *names, "--quick"], **quick)
    assert [name for name in names if f"python benchmarks/run.py {name}" not in report] == []
