"""What every benchmark shares: a yardstick, quantiles, tables."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

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
