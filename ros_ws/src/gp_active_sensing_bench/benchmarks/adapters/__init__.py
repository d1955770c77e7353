"""Planners of other projects, which benchmarks call through the policy `external`.

Each planner runs in its own Python environment. ``python benchmarks/adapters/make.py FOLDER`` makes
the environments. ``GPAS_ADAPTERS=FOLDER`` names the folder of the environments for the benchmarks.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
FOLDER = "GPAS_ADAPTERS"
SECONDS = 600.0
"""Longest wait for the answer of a planner [s]."""
ADAPTERS = {
    "BoTorch qNIPV": ("botorch", "nipv.py"),
    "sgptools": ("sgptools", "sgp.py"),
    "sgptools online": ("sgptools", "sgp.py", "online"),
}
"""Environment, program and its arguments for each planner, by label."""


def environments() -> dict[str, dict[str, Any]]:
    """Return the configuration of the policy `external` for each planner.

    A planner whose environment does not exist has the entry ``missing`` with the reason instead.
    """
    named = os.environ.get(FOLDER)
    folder = Path(named) if named else None
    found: dict[str, dict[str, Any]] = {}
    for label, (name, program, *words) in ADAPTERS.items():
        python = None if folder is None else folder / name / "bin" / "python"
        if python is None or not python.exists():
            where = f"{FOLDER} names no folder" if python is None else f"there is no {python}"
            what = f"{where}; python benchmarks/adapters/make.py FOLDER makes the environments"
            found[label] = {"missing": what}
            continue
        found[label] = {
            "name": "external",
            "command": [str(python), str(HERE / program), *words],
            "timeout": SECONDS,
            "start": SECONDS,
        }
    return found
