"""What every benchmark shares: a yardstick, quantiles, tables."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from gp_active_sensing.types import Clock

_TERRAIN = (
    "belief={kernel: matern32, length_scales: [40, 70, 120, 200, 330, 550], "
    "signal_std: [45.0], noise_std: [3.0], mean_std: 1000.0}"
)
_TOWN = (
    "belief={kernel: matern32, length_scales: [80, 130, 200, 320, 500, 800, 1300], "
    "signal_std: [11.0], noise_std: [6.0], mean_std: 100.0}"
)
STATED = {
    "town": (_TOWN, "policy.horizon=5"),
    "town_slots": (_TOWN, "policy.horizon=5"),
    "terrain": (_TERRAIN,),
}
"""What these scenarios once stated, so that figures stay comparable."""


@dataclass
class Section:
    """One benchmark's part of the report."""

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
            lines += ["| " + " | ".join(_shown(v) for v in row) + " |" for row in self.rows]
            lines.append("")
        return "\n".join(lines)


class Kept:
    """Outcomes (two numbers) by key; with `GPAS_KEPT` in a file of that folder, a line each.

    Args:
        name: of the file, without ``.jsonl``.
        parts: how many values a key has.
    """

    def __init__(self, name: str, parts: int) -> None:
        folder = os.environ.get("GPAS_KEPT")
        self._file = Path(folder) / f"{name}.jsonl" if folder else None
        self._found: dict[tuple[object, ...], tuple[float, float]] = {}
        if self._file is not None and self._file.exists():
            for number, line in enumerate(self._file.read_text(encoding="utf-8").splitlines(), 1):
                values = _values(line, parts + 2, f"{self._file}, line {number}")
                self._found[tuple(values[:parts])] = float(values[-2]), float(values[-1])

    def __contains__(self, key: tuple[object, ...]) -> bool:
        return key in self._found

    def __getitem__(self, key: tuple[object, ...]) -> tuple[float, float]:
        return self._found[key]

    def get(
        self, key: tuple[object, ...], play: Callable[[], tuple[float, float]]
    ) -> tuple[float, float]:
        """Return what is kept under a key; where nothing is, play it and keep it."""
        if key not in self._found:
            self._found[key] = play()
            if self._file is not None:
                self._file.parent.mkdir(parents=True, exist_ok=True)
                with self._file.open("a", encoding="utf-8") as lines:
                    lines.write(json.dumps([*key, *self._found[key]]) + "\n")
        return self._found[key]


def _values(line: str, count: int, where: str) -> list[Any]:
    """Return the values of a line of a kept file."""
    try:
        values = json.loads(line)
    except ValueError:
        values = None
    if not isinstance(values, list) or len(values) != count:
        msg = f"{where}: expected a JSON list of {count} values, got {line!r}; remove the line"
        raise ValueError(msg)
    return values


def _shown(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def cholesky_seconds(size: int = 1000, repeats: int = 7, clock: Clock = time.perf_counter) -> float:
    """The yardstick: median time of one size × size Cholesky factorisation, one thread."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((size, size))
    A = A @ A.T + size * np.eye(size)
    return median_seconds(lambda: np.linalg.cholesky(A), repeats, clock)


def median_seconds(
    action: Callable[[], object], repeats: int, clock: Clock = time.perf_counter
) -> float:
    """Median time of an action, by a clock in seconds."""
    times = []
    for _ in range(repeats):
        started = clock()
        action()
        times.append(clock() - started)
    return float(np.median(times))


def quantiles(values: Sequence[float]) -> tuple[float, float, float]:
    """Median, 99th percentile, largest."""
    array = np.asarray(values, dtype=float)
    return float(np.median(array)), float(np.quantile(array, 0.99)), float(array.max())
