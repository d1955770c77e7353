"""A sensor whose stamps are late: what it does to the map, how well its delay is found, and when
one is found that is none; and how honest the map of a fast sensor that moves is.

    python benchmarks/run.py delay [--smoke]

It takes about eight minutes on two cores. With ``GPAS_DATA``, the folder of measured fields, the
last table has terrain and sea, too. ``GPAS_JOBS``: processes.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any

import bench_moving
import numpy as np
from common import Section
from moving_sensor import MovingMission, drawn_field

GRID = {"kind": "grid", "columns": 14, "rows": 10, "spacing": 5.0}
LATE = (  # kind of the field, m/s, lag [s], reading.delay [s], errors of the positions [m]
    ("se", 4.0, 0.0, 0.0, 0.0),
    ("se", 4.0, 1.5, 0.0, 0.0),
    ("se", 4.0, 1.5, 1.5, 0.0),
    ("se", 4.0, 1.5, 0.0, 1.0),
    ("se", 4.0, 0.5, 0.0, 0.0),
    ("se", 1.0, 1.5, 0.0, 0.0),
    ("matern32", 4.0, 1.5, 0.0, 0.0),
    ("matern32", 4.0, 1.5, 1.5, 0.0),
)
QUIET = (0.0, 0.5, 1.0, 1.5, 3.0)
"""Errors of the positions where there is no lag [m]."""


@dataclass(frozen=True)
class Job:
    """One mission."""

    seed: int
    kind: str
    speed: float
    lag: float
    delay: float
    gps: float
    places: int


@dataclass(frozen=True)
class Size:
    """How much is done."""

    fields: int
    quiet: int
    places: int
    quiet_places: int


WHOLE = Size(10, 40, 120, 80)
SMOKE = Size(2, 2, 20, 20)


def play(job: Job) -> dict[str, float]:
    """Return scores and estimate of one mission, and the first delay that was said in it."""
    logging.disable(logging.ERROR)
    parameters: dict[str, Any] = {
        "map": GRID,
        "budget": {"readings": job.places},
        "limit": {"expansions": 20},
        "policy": {"name": "ie"},
        "seed": job.seed,
        "reading": {"delay": job.delay},
    }
    mission = MovingMission(
        parameters,
        drawn_field(job.seed, 12.0, kind=job.kind),
        (2.0, 2.0),
        speed=job.speed,
        noise_std=0.2,
        lag=job.lag,
        gps=job.gps,
        seed=job.seed,
    )
    mission.run(20_000.0)
    watch = mission.mission.probe.ingestion.lag
    while watch.busy:
        watch.work()
    found = watch.evidence.estimate()
    return {
        **mission.scores(),
        "found": np.nan if found is None else found.seconds,
        "said": float(watch.said is not None or found is not None),
        "samples": float(watch.evidence.samples),
    }


def mean_of(values: Sequence[float]) -> str:
    """Return a mean with its standard error."""
    error = np.std(values, ddof=1) / np.sqrt(len(values))
    return f"{np.mean(values):.2f} ± {error:.2f}"


def late_row(case: tuple[str, float, float, float, float], done: Sequence[dict[str, float]]):
    _, _, lag, delay, _ = case
    found = np.array([d["found"] for d in done])
    some = np.isfinite(found)
    error = np.abs(found[some] + delay - lag)
    return [
        *case,
        mean_of([d["rmse"] for d in done]),
        mean_of([d["sd"] for d in done]),
        mean_of([d["z"] for d in done]),
        f"{some.sum()} of {len(found)}",
        f"{error.mean():.2f}, {error.max():.2f}" if some.any() else "",
        f"{np.mean([d['samples'] for d in done]):.0f}",
    ]


def quiet_row(gps: float, done: Sequence[dict[str, float]]):
    said = sum(d["said"] for d in done)
    last = [d["found"] for d in done if np.isfinite(d["found"])]
    return [
        gps,
        f"{said:.0f} of {len(done)}",
        ", ".join(f"{one:.2f}" for one in sorted(last)) or "none",
        f"{np.mean([d['samples'] for d in done]):.0f}",
    ]


@dataclass
class Report:
    """The three tables."""

    sections: Sequence[Section]

    def markdown(self) -> str:
        return "\n".join(section.markdown() for section in self.sections)


def run(smoke: bool = False) -> Report:
    size = SMOKE if smoke else WHOLE
    command = "python benchmarks/run.py delay" + " --smoke" * smoke
    where = (
        "14 × 10 cells of 5 m, length-scale 12 m, deviation 1.88 (of draws; `deviation` is that of "
        "these), noise 0.2, readings at 10 Hz, poses at 20 Hz, the default belief, policy `ie`"
    )
    late = Section(
        "A sensor whose stamps are late",
        command,
        f"{size.fields} fields a row (seeds from 0), {size.places} places; {where}. `positions`: "
        "standard deviation of a GPS's errors, which last for 10 s. `found`: missions at whose end "
        "a delay is found; `error` of that: mean and largest [s]; `readings`: that were looked at. "
        "RMSE and z over all places, means with standard errors.",
        ("field", "m/s", "lag [s]", "reading.delay [s]", "positions [m]", "RMSE", "deviation", "z",
         "found", "error", "readings"),
    )  # fmt: skip
    quiet = Section(
        "Delays that are none",
        command,
        f"{size.quiet} missions a row without a lag (seeds from 100, every other field Matérn "
        f"3/2), {size.quiet_places} places at 2 m/s; otherwise as above. `said`: missions in which "
        "a delay was said at any time; `at the end`: those that are still found then [s].",
        ("positions [m]", "said", "at the end", "readings"),
    )
    with ProcessPoolExecutor(int(os.environ.get("GPAS_JOBS", "2"))) as pool:
        late_ones, quiet_ones = [], []
        for case in LATE:
            jobs = [Job(seed, *case, size.places) for seed in range(size.fields)]
            late_ones.append((case, pool.map(play, jobs)))
        for gps in QUIET:
            jobs = [
                Job(100 + i, ("se", "matern32")[i % 2], 2.0, 0.0, 0.0, gps, size.quiet_places)
                for i in range(size.quiet)
            ]
            quiet_ones.append((gps, pool.map(play, jobs)))
        for case, done in late_ones:
            late.rows.append(late_row(case, list(done)))
            print(*late.rows[-1], flush=True)
        for gps, done in quiet_ones:
            quiet.rows.append(quiet_row(gps, list(done)))
            print(*quiet.rows[-1], flush=True)
    moving = bench_moving.table(2 if smoke else size.fields, command, (2.0,), brief=smoke)
    return Report([late, quiet, moving])
