"""This process: free memory goes back to the system, and records say which program made them."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

import pytest

from gp_active_sensing.config import from_mapping
from gp_active_sensing.mission import factory as build
from gp_active_sensing.mission.config import ActiveSensingConfig

PIECES = """
import ctypes

from gp_active_sensing.util.process import hand_back

def resident_mb():
    for line in open("/proc/self/status"):
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024.0

c = ctypes.CDLL(None)
c.malloc.restype = ctypes.c_void_p
pieces = [c.malloc(64_000) for _ in range(1000)]
for piece in pieces:
    ctypes.memset(piece, 1, 64_000)
for piece in pieces[:-1]:  # the last one keeps the C library from giving back those before it
    c.free(ctypes.c_void_p(piece))
held = resident_mb()
asked = hand_back()
print(asked, held - resident_mb())
"""


def test_what_is_free_is_handed_back() -> None:
    if platform.libc_ver()[0] != "glibc":
        pytest.skip("the C library is not glibc, which alone can be asked")
    done = subprocess.run(
        [sys.executable, "-c", PIECES], capture_output=True, text=True, check=True
    )
    asked, handed_back = done.stdout.split()
    assert asked == "True"
    assert float(handed_back) > 50.0, "of 64 MB"


def test_a_mission_that_is_restored_hands_back_what_its_journal_took(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    called: list[bool] = []
    monkeypatch.setattr(build, "hand_back", lambda: called.append(True))
    given = {"map": {"kind": "grid", "columns": 2, "rows": 2, "spacing": 1.0}}
    config = from_mapping(ActiveSensingConfig, given | {"run_dir": str(tmp_path / "run")})
    for time in (1, 2):
        build.build_parts(config, None).recorder.close()
        assert len(called) == time
