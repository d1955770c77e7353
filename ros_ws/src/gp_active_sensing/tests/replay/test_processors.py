"""The shipped bag under the BLAS kernels of other processors: the same places, numbers to 1e-9."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("rosbags", reason="the extra [bag] is not installed")

# Replays, and says which kernels computed: those of each OpenBLAS that is loaded.
_SCRIPT = """
import ctypes, json, sys
import scipy.linalg
from gp_active_sensing.records import RunDirectory
from gp_active_sensing.replay.run import replay_bag

try:
    with open("/proc/self/maps") as maps:
        loaded = {line.split()[-1] for line in maps if "openblas" in line}
except OSError:
    loaded = set()
kernels = []
for path in sorted(loaded):
    library = ctypes.CDLL(path)
    for name in ("scipy_openblas_get_corename64_", "scipy_openblas_get_corename",
                 "openblas_get_corename64_", "openblas_get_corename"):
        if hasattr(library, name):
            ask = getattr(library, name)
            ask.restype = ctypes.c_char_p
            kernels.append(ask().decode())
            break
done = replay_bag("town_sample", __import__("pathlib").Path(sys.argv[1]))
events = RunDirectory.open(sys.argv[1]).events()
decisions = [event for event in events if event["event"] == "decision"]
print(json.dumps({"kernels": kernels, "replay": done.summary["replay"], "decisions": decisions}))
"""


def replayed(kernel: str, out: Path) -> dict[str, Any]:
    """Replay the bag in a process of its own with the kernels of some processor."""
    env = {**os.environ, "OPENBLAS_CORETYPE": kernel, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT, str(out)],
        env=env,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_the_shipped_bag_on_two_processors(tmp_path: Path) -> None:
    runs = [replayed(kernel, tmp_path / kernel) for kernel in ("Haswell", "Prescott")]
    kernels = [run["kernels"] for run in runs]
    if not kernels[0] or kernels[0] == kernels[1]:
        pytest.skip(f"no OpenBLAS here whose kernels can be chosen (found {kernels[0] or 'none'})")
    for run in runs:
        comparison = run["replay"]["comparison"]
        assert comparison["differences"] == []
        assert comparison["decisions"] == comparison["decisions_equal"] == 12
        assert comparison["readings"] == comparison["readings_equal"] == 12
    one, other = (run["decisions"] for run in runs)
    assert [d["path"] for d in one] == [d["path"] for d in other]
    for a, b in zip(one, other, strict=True):
        assert a["waypoints"] == b["waypoints"]
        for key in ("lower", "upper"):
            assert a[key] == pytest.approx(b[key], rel=1e-9)
        for (x, *bounds), (y, *others) in zip(a["candidates"], b["candidates"], strict=True):
            assert x == y
            assert bounds == pytest.approx(others, rel=1e-9)
