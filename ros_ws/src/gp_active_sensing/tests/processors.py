"""Runs a script as another processor would: with kernels of OpenBLAS that are not this one's own.

OpenBLAS has kernels for each kind of processor, with sums in another order, and takes those that it
is told to take; numpy chooses among its own loops in the same way.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

PROCESSORS = ("Haswell", "Prescott")
"""Any x86 processor that runs the one runs the other."""
_KERNELS = """
import ctypes, json, sys
import numpy, scipy.linalg

def kernels():
    '''Return the names of the kernels in use, of each OpenBLAS that is loaded.'''
    try:
        with open("/proc/self/maps", encoding="utf-8") as maps:
            loaded = sorted({line.split()[-1] for line in maps if "openblas" in line})
    except OSError:
        return []
    found = []
    for library in map(ctypes.CDLL, loaded):
        for start in ("scipy_openblas", "openblas"):
            for end in ("64_", ""):
                if ask := getattr(library, f"{start}_get_corename{end}", None):
                    ask.restype = ctypes.c_char_p
                    found.append(ask().decode())
    return found
"""


def on_two_processors(script: str, *arguments: str) -> list[Any]:
    """Return what a script says on each of two kinds of processor; skip where that cannot be had.

    It sets `said` to something that JSON can hold; the name of the processor is its last argument.
    """
    found = [_run(script, processor, *arguments) for processor in PROCESSORS]
    used = [one["kernels"] for one in found]
    if not used[0] or any(a == b for a, b in zip(*used, strict=True)):
        pytest.skip(f"no OpenBLAS whose kernels can be chosen: {used[0] or 'none'} are used here")
    return [one["said"] for one in found]


def _run(script: str, processor: str, *arguments: str) -> dict[str, Any]:
    env = {**os.environ, "OPENBLAS_CORETYPE": processor, "OPENBLAS_NUM_THREADS": "1"}
    last = 'print(json.dumps({"kernels": kernels(), "said": said}))'
    done = subprocess.run(
        [sys.executable, "-c", "\n".join([_KERNELS, script, last]), *arguments, processor],
        env=env,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found
