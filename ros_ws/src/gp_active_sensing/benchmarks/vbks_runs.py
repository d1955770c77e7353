"""What the experiments with a belief over kernels share: results that are kept, tables, scores."""

from __future__ import annotations

import argparse
import inspect
import json
import math
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from common import Section
from scipy.special import ndtri

LEVELS = (0.5, 0.9, 0.95)
KEPT = "GPAS_KEPT"
"""Environment variable: folder where finished pieces are kept, so that a long run can go on."""


@dataclass
class Report:
    """Several tables."""

    sections: list[Section]

    def markdown(self) -> str:
        return "\n".join(section.markdown() for section in self.sections)


@dataclass
class Kept:
    """Finished pieces by name, in a file of JSON lines; without a folder only in memory.

    Args:
        name: of the file.
        folder: None = that of the environment variable `KEPT`.
    """

    name: str
    folder: Path | None = None
    found: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.folder is None and os.environ.get(KEPT):
            self.folder = Path(os.environ[KEPT])
        if self.path is not None and self.path.exists():
            for line in self.path.read_text(encoding="utf-8").splitlines():
                key, value = json.loads(line)
                self.found[key] = value

    @property
    def path(self) -> Path | None:
        return None if self.folder is None else self.folder / f"{self.name}.jsonl"

    def get(self, key: str, make: Callable[[], Any]) -> Any:
        """The piece of that name; made, and kept, where it is not there."""
        if key not in self.found:
            started = time.perf_counter()
            value = json.loads(json.dumps(make()))
            sys.stderr.write(f"{key}: {time.perf_counter() - started:.1f} s\n")
            sys.stderr.flush()
            self.found[key] = value
            if self.path is not None:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                with self.path.open("a", encoding="utf-8") as out:
                    out.write(json.dumps([key, value]) + "\n")
        return self.found[key]


def scores(values: np.ndarray, mean: np.ndarray, variance: np.ndarray) -> dict[str, Any]:
    """RMSE, mean negative log density and coverage of readings that were not learned from."""
    error = values - mean
    variance = np.maximum(variance, 1e-300)
    density = 0.5 * (np.log(2.0 * math.pi * variance) + error**2 / variance)
    spread = np.sqrt(variance)
    covered = [float(np.mean(np.abs(error) <= ndtri(0.5 + 0.5 * p) * spread)) for p in LEVELS]
    rmse = math.sqrt(float(np.mean(error**2)))
    return {"rmse": rmse, "nlpd": float(np.mean(density)), "covered": covered}


def error_of(values: np.ndarray) -> np.ndarray:
    """Standard errors of the means over the first axis; 0 of one value."""
    if len(values) < 2:
        return np.zeros(values.shape[1:])
    return np.asarray(values.std(axis=0, ddof=1) / math.sqrt(len(values)))


def shown(values: Sequence[float] | np.ndarray, digits: int = 3) -> str:
    """Mean ± standard error."""
    array = np.asarray(values, dtype=float)
    error = f" ± {float(error_of(array)):.{digits}f}" if len(array) > 1 else ""
    return f"{array.mean():.{digits}f}{error}"


def run_alone(run: Callable[..., Any], about: str | None) -> int:
    """Command line of one of these benchmarks by itself: a report on standard output."""
    parser = argparse.ArgumentParser(
        description=about, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--smoke", action="store_true", help="takes seconds: does it run?")
    parser.add_argument("--kept", type=Path, help="folder of finished pieces, to go on")
    parser.add_argument("--pictures", type=Path, help="folder that pictures are drawn into")
    options = parser.parse_args()
    if options.kept is not None:
        os.environ[KEPT] = str(options.kept)
    keys: dict[str, Any] = {"smoke": options.smoke}
    if "pictures" in inspect.signature(run).parameters:
        keys["pictures"] = options.pictures
    sys.stdout.write(run(**keys).markdown())
    return 0
