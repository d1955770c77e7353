"""A sensor whose stamps are late: what it does to the map, and how well its delay is found."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
from common import Section
from moving_sensor import MovingMission, drawn_field

FIELDS = int(os.environ.get("GPAS_DELAY_FIELDS", "10"))
QUIET = int(os.environ.get("GPAS_DELAY_QUIET", "40"))
GRID = {"kind": "grid", "columns": 14, "rows": 10, "spacing": 5.0}
Job = tuple[int, float, float, float, str, int]


def play(job: Job) -> dict[str, float]:
    """Return scores and estimate of one mission."""
    seed, lag, delay, speed, kind, readings = job
    logging.disable(logging.ERROR)
    parameters: dict[str, Any] = {
        "map": GRID,
        "budget": {"readings": readings},
        "limit": {"expansions": 20},
        "policy": {"name": "ie"},
        "seed": seed,
        "reading": {"delay": delay},
    }
    field = drawn_field(seed, 12.0, kind=kind)
    mission = MovingMission(
        parameters, field, (2.0, 2.0), speed=speed, noise_std=0.2, lag=lag, seed=seed
    )
    mission.run(20_000.0)
    watch = mission.mission.probe.intake.lag
    while watch.busy:
        watch.work()
    found = watch.evidence.estimate()
    return {
        **mission.scores(),
        "found": np.nan if found is None else found.seconds,
        "samples": float(watch.evidence.samples),
    }


def _row(name: str, lag: float, delay: float, speed: float, done: Sequence[dict[str, float]]):
    row: list[object] = [name, speed, lag, delay]
    for key in ("rmse", "z"):
        values = np.array([d[key] for d in done])
        row.append(f"{values.mean():.2f} ± {values.std(ddof=1) / np.sqrt(len(values)):.2f}")
    found = np.array([d["found"] for d in done])
    some = np.isfinite(found)
    row.append(f"{some.sum()} of {len(found)}")
    error = np.abs(found[some] + delay - lag)
    row.append(f"{error.mean():.2f}, {error.max():.2f}" if some.any() else "")
    row.append(f"{np.mean([d['windows'] for d in done]):.0f}")
    return row


def run() -> Section:
    section = Section(
        "A sensor whose stamps are late",
        "python benchmarks/run.py delay",
        f"{FIELDS} fields a row and {QUIET} without a lag; 14 × 10 cells of 5 m, length-scale 12, "
        "deviation 1.88 (a draw's own is near that), noise 0.2, readings at 10 Hz, the default "
        "belief, 60 places by `ie`. `found`: missions in which a delay was said; `error`: of that, "
        "mean and largest [s]; `readings`: that were looked at.",
        ("field", "m/s", "lag [s]", "reading.delay [s]", "RMSE", "z", "found", "error", "readings"),
    )
    rows: list[tuple[str, float, float, float, list[Job]]] = []
    for kind, lag, delay, speed in (
        ("se", 1.5, 0.0, 4.0), ("se", 1.5, 1.5, 4.0), ("se", 0.0, 0.0, 4.0), ("se", 1.5, 0.0, 1.0),
        ("matern32", 1.5, 0.0, 4.0), ("se", 0.5, 0.0, 4.0),
    ):  # fmt: skip
        jobs: list[Job] = [(seed, lag, delay, speed, kind, 60) for seed in range(FIELDS)]
        rows.append((kind, lag, delay, speed, jobs))
    for kind, speed in (("se", 2.0), ("matern32", 2.0)):
        seeds = range(100, 100 + QUIET // 2)
        rows.append((kind, 0.0, 0.0, speed, [(s, 0.0, 0.0, speed, kind, 60) for s in seeds]))
    with ProcessPoolExecutor(int(os.environ.get("GPAS_JOBS", "2"))) as pool:
        futures = [(row, pool.map(play, row[4])) for row in rows]
        for (kind, lag, delay, speed, _), done in futures:
            section.rows.append(_row(kind, lag, delay, speed, list(done)))
            print(*section.rows[-1], flush=True)
    return section
