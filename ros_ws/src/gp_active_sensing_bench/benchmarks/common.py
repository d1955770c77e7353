"""Report sections, stored results, timing and statistics for all benchmarks."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from gp_active_sensing.types import Clock

CORE = Path(__file__).resolve().parents[2] / "gp_active_sensing"
"""Folder of the product package. Its tests have helpers for benchmarks of the node."""
Row = Mapping[str, Any]


@dataclass
class Section:
    """Section of a report, with a table of results."""

    title: str
    command: str
    text: str = ""
    header: Sequence[str] = ()
    rows: list[Sequence[object]] = field(default_factory=list)

    def markdown(self) -> str:
        lines = [f"## {self.title}", "", f"`{self.command}`", ""]
        if self.text:
            lines += [self.text, ""]
        if self.rows:
            lines.append("| " + " | ".join(self.header) + " |")
            lines.append("|" + " --- |" * len(self.header))
            lines += ["| " + " | ".join(_cell(v) for v in row) + " |" for row in self.rows]
            lines.append("")
        return "\n".join(lines)


@dataclass
class Report:
    """Report with several sections."""

    sections: list[Section] = field(default_factory=list)

    def markdown(self) -> str:
        return "\n".join(section.markdown() for section in self.sections)


def _cell(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


# -- stored results ----------------------------------------------------------------------------


class Kept:
    """Results by key. ``--kept FOLDER`` stores results as JSON lines in ``FOLDER/name.jsonl``."""

    def __init__(self, name: str) -> None:
        folder = os.environ.get("GPAS_KEPT")
        self._file = Path(folder) / f"{name}.jsonl" if folder else None
        self.rows: dict[str, Row] = {}
        if self._file is not None and self._file.exists():
            for line in self._file.read_text(encoding="utf-8").splitlines():
                try:
                    row = json.loads(line)
                except ValueError:  # half-written line
                    continue
                if isinstance(row, dict) and "key" in row:
                    self.rows[row["key"]] = row

    def add(self, row: Row) -> None:
        """Store a result on a new line, even after a half-written line."""
        self.rows[row["key"]] = row
        if self._file is None:
            return
        self._file.parent.mkdir(parents=True, exist_ok=True)
        with self._file.open("a+b") as lines:
            if lines.tell():
                lines.seek(-1, os.SEEK_END)
                if lines.read(1) != b"\n":
                    lines.write(b"\n")
            lines.write(json.dumps(row).encode() + b"\n")


# -- time and statistics -----------------------------------------------------------------------


def cholesky_seconds(repeats: int, clock: Clock) -> float:
    """Return the median time of a 1000 × 1000 Cholesky factorisation on one thread [s]."""
    size = 1000
    rng = np.random.default_rng(0)
    A = rng.standard_normal((size, size))
    A = A @ A.T + size * np.eye(size)
    times = []
    for _ in range(repeats):
        started = clock()
        np.linalg.cholesky(A)
        times.append(clock() - started)
    return float(np.median(times))


def quantiles(values: Sequence[float]) -> tuple[float, float, float]:
    """Return median, 99th percentile and maximum."""
    array = np.asarray(values, dtype=float)
    return float(np.median(array)), float(np.quantile(array, 0.99)), float(array.max())


def error_of(values: np.ndarray) -> float:
    """Return the standard error of the mean; NaN for a single value."""
    if values.size < 2:
        return math.nan
    return float(values.std(ddof=1)) / math.sqrt(values.size)


def mean_of(values: np.ndarray) -> tuple[float, float]:
    """Return the mean and its standard error; NaN for too few values."""
    return (float(values.mean()) if values.size else math.nan), error_of(values)


def shown(mean: float, error: float = math.nan, digits: int = 2, *, sign: bool = False) -> str:
    """Format a mean with its standard error; "" for NaN."""
    if not math.isfinite(mean):
        return ""
    text = f"{mean:+.{digits}f}" if sign else f"{mean:.{digits}f}"
    return f"{text} ± {error:.{digits}f}" if math.isfinite(error) else text
