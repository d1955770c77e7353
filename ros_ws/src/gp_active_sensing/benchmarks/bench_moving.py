"""How honest is the map of a fast sensor that moves? z-scores by how its readings are taken."""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from common import Section
from moving_sensor import Field, MovingMission, blocks, drawn_field, raster_field

FIELDS = int(os.environ.get("GPAS_MOVING_FIELDS", "10"))
DATA = os.environ.get("GPAS_DATA", "")
WINDOWS: tuple[float | None, ...] = (0.0, 1.0, None)
SPEEDS = (1.0, 4.0)
NOISE = 0.2
GRID = {"kind": "grid", "columns": 14, "rows": 10, "spacing": 5.0}
KNOWN = {"length_scales": [6.0, 12.0, 24.0], "signal_std": [1.88], "noise_std": [NOISE]}
Job = tuple[str, float | None, float, int, bool]


def field_of(kind: str, seed: int) -> Field:
    """Return a field: a draw, or a window of measured data, or of a rough draw."""
    if kind in ("grid", "roads"):
        return drawn_field(seed, 12.0 if kind == "grid" else 100.0)
    if kind == "rough":
        return drawn_field(seed, 12.0, kind="matern32")
    rng = np.random.default_rng([seed, 73])
    low, high = np.array([-5.0, -5.0]), np.array([70.0, 50.0])
    if kind == "terrain":
        with np.load(Path(DATA) / "fields" / "srtm_N17E073_360.npz") as data:
            whole = np.asarray(data[data.files[0]], dtype=float)
        i, j = rng.integers(0, 300, 2)
        return raster_field(whole[i : i + 36, j : j + 60], low, high)
    with np.load(Path(DATA) / "fields" / "sst_pacific_monthly.npz") as data:
        months = np.asarray(max((data[f] for f in data.files), key=lambda a: a.ndim), dtype=float)
    i, j = rng.integers(0, 12), rng.integers(20, 50)
    part = months[rng.integers(len(months)), i : i + 18, j : j + 30]
    return raster_field(np.where(np.isnan(part), np.nanmean(part), part), low, high)


def play(job: Job) -> dict[str, float]:
    """Return the scores of one mission."""
    kind, window, speed, seed, known = job
    logging.disable(logging.ERROR)
    parameters: dict[str, Any] = {
        "map": GRID,
        "budget": {"readings": 30},
        "limit": {"expansions": 50},
        "seed": seed,
        "reading": {"window": window},
        **({"belief": KNOWN} if known else {}),
    }
    with tempfile.TemporaryDirectory() as folder:
        if kind == "roads":
            file = blocks(Path(folder) / "blocks.geojson")
            parameters["map"] = {"kind": "roads", "file": str(file)}
        mission = MovingMission(
            parameters,
            field_of(kind, seed),
            (2.0, 2.0) if kind != "roads" else (0.0, 0.0),
            speed=speed,
            noise_std=NOISE,
            seed=seed,
        )
        mission.run(20_000.0)
    return mission.scores()


def _row(jobs: Sequence[Job], scores: Sequence[dict[str, float]]) -> list[object]:
    kind, window, speed, _, known = jobs[0]
    what = "a stay (default)" if window is None else f"{window:g} s"
    row: list[object] = [kind, "known" if known else "nothing known", speed, what]
    for name in ("z", "cover90", "rmse"):
        values = np.array([s[name] for s in scores])
        error = values.std(ddof=1) / np.sqrt(len(values))
        row.append(f"{values.mean():.2f} ± {error:.2f}")
    row.append(f"{max(s['z'] for s in scores):.2f}")
    return row


def run() -> Section:
    return table(FIELDS, "python benchmarks/run.py moving", SPEEDS)


def table(fields: int, command: str, speeds: Sequence[float], *, brief: bool = False) -> Section:
    """Return z-scores by field and by how readings are taken.

    Args:
        fields: a row.
        command: that makes it.
        speeds: of the robot [m/s]; where there are several, measured fields have 2 m/s.
        brief: the grid only.
    """
    section = Section(
        "A fast sensor that moves",
        command,
        f"{fields} fields a row (seeds from 0), a robot with a pose at 20 Hz, a reading at 10 Hz "
        f"with noise {NOISE} of a field with deviation 1.88, 30 places. `z`: root mean square of "
        "(truth at the place - mean) / deviation over all places, of a road its average along it; "
        "`held`: share of the places whose truth lies inside the 90 % interval; the mean over the "
        "fields with its standard error. `grid`: 14 × 10 cells of 5 m, draws with length-scale "
        "12 m; `rough`: the same with Matérn 3/2; `terrain`, `sea`: windows of measured data; "
        "`roads`: blocks of 60 m, length-scale 100 m. Belief: the default, or (known) lengths "
        "6, 12, 24 m with signal and noise as they are.",
        ("field", "belief", "m/s", "window", "z", "held", "RMSE", "largest z"),
    )
    kinds = ["grid", "rough", *(["terrain", "sea"] if DATA else []), "roads"]
    groups: list[list[Job]] = []
    for kind in kinds[:1] if brief else kinds:
        plain = kind in ("grid", "roads")
        for speed in speeds if plain else (2.0,):
            for window in WINDOWS if plain or len(speeds) == 1 else (None,):
                groups.append([(kind, window, speed, seed, False) for seed in range(fields)])
    if not brief:
        groups += [[("grid", w, 2.0, seed, True) for seed in range(fields)] for w in WINDOWS]
    with ProcessPoolExecutor(int(os.environ.get("GPAS_JOBS", "2"))) as pool:
        for group, scores in [(g, pool.map(play, g)) for g in groups]:
            row = _row(group, list(scores))
            print(*row, flush=True)
            section.rows.append(row)
    return section
