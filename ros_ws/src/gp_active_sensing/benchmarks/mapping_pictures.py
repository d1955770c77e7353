"""Pictures of missions of mapping: map, way, readings and error of policies side by side."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from belief_data import Field
from belief_scores import Mixture
from mapping_fields import arenas
from mapping_runs import EVENLY, Nearest, Task, begin

from gp_active_sensing.planning import build_policy
from gp_active_sensing.types import FloatArray, Reading

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST = 4
"""Policies of one picture, the first ones."""
DPI = 80
_FIELDS = tuple(Task.__dataclass_fields__)


def draw(rows: Sequence[Mapping[str, Any]], folder: Path) -> list[Path]:
    """Draw the first draw of each data set on a grid, at each budget; return the files.

    Args:
        rows: of missions that were played.
        folder: for the pictures; made if it is not there.
    """
    folder.mkdir(parents=True, exist_ok=True)
    cases: dict[tuple[str, str, int], list[Mapping[str, Any]]] = {}
    for row in rows:
        if row["number"] == 0:
            cases.setdefault((row["name"], row["mode"], row["moves"]), []).append(row)
    files = []
    for (name, mode, moves), found in cases.items():
        arena = arenas(1, 1)[name, mode]
        field = arena.field(0)
        if not field.topology.roads:
            words = re.sub(r"[^a-z0-9]+", "_", f"{name}_{mode}_{moves}".lower()).strip("_")
            files.append(folder / f"{words}.png")
            _draw(field, arena.unit, found[:MOST], files[-1])
    return files


def believed(row: Mapping[str, Any], field: Field) -> tuple[FloatArray, FloatArray]:
    """Return the map (n,) that a mission ends with, and where it read (n,), from its way alone."""
    task = Task(**{key: row[key] for key in _FIELDS})
    policy = json.loads(task.policy)
    plain = Nearest() if policy["name"] == EVENLY else build_policy(policy)
    loop, noisy, _ = begin(task, field, row["step"], plain)
    for number, place in enumerate(row["went"][1:], start=1):
        if loop.wants(place):
            loop.tell([Reading(number, place, float(noisy[place]))])
    mean, variance = loop.belief.marginals()
    return Mixture(loop.belief.weights, mean, variance).expected, loop.belief.visited


def _draw(field: Field, unit: str, rows: Sequence[Mapping[str, Any]], file: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    maps = [believed(row, field) for row in rows]
    errors = [np.abs(expected - field.values) for expected, _ in maps]
    low, high = np.nanmin(field.values), np.nanmax(field.values)
    worst = float(np.nanquantile(np.concatenate(errors), 0.99))
    wide = 1 + len(rows)
    x, y = np.ptp(field.topology.positions, axis=0)
    tall = 2.6 * float(np.clip(y / max(x, 1e-9), 0.4, 1.6)) + 0.5
    figure, axes = plt.subplots(
        2, wide, figsize=(2.9 * wide, 2.0 * tall), squeeze=False, layout="constrained"
    )
    values = _show(axes[0, 0], field, field.values, "viridis", (low, high))
    axes[0, 0].set_title("the field", fontsize=10)
    axes[1, 0].axis("off")
    off = None
    for column, (row, (expected, read), error) in enumerate(
        zip(rows, maps, errors, strict=True), start=1
    ):
        above, below = axes[0, column], axes[1, column]
        _show(above, field, expected, "viridis", (low, high))
        path = field.topology.positions[row["went"]]
        above.plot(*path.T, color="white", linewidth=1.3)
        above.plot(*path.T, color="black", linewidth=0.6)
        above.plot(*field.topology.positions[read].T, ".", color="black", markersize=3)
        above.plot(*path[0], "o", color="white", markeredgecolor="black", markersize=6)
        above.set_title(f"{row['label']}: {row['metres']:.0f} m", fontsize=10)
        off = _show(below, field, error, "magma_r", (0.0, worst))
        below.plot(*field.topology.positions[read].T, ".", color="0.45", markersize=2)
        below.set_title(f"error: {row['rmse']:.3g} {unit} (rms)", fontsize=10)
    figure.colorbar(values, ax=axes[0, :], label=unit, shrink=0.9)
    if off is not None:
        figure.colorbar(off, ax=axes[1, :], label=unit, shrink=0.9)
    figure.savefig(file, dpi=DPI)
    plt.close(figure)


def _show(
    axes: Axes, field: Field, values: FloatArray, colours: str, ends: tuple[float, float]
) -> Any:
    """Show values of the places as cells; return what a colour bar needs."""
    xs, i = np.unique(np.round(field.topology.positions[:, 0], 6), return_inverse=True)
    ys, j = np.unique(np.round(field.topology.positions[:, 1], 6), return_inverse=True)
    cells = np.full((len(ys), len(xs)), np.nan)
    cells[j, i] = values
    shown = axes.pcolormesh(xs, ys, cells, cmap=colours, vmin=ends[0], vmax=ends[1])
    axes.set_aspect("equal")
    axes.set_xticks([])
    axes.set_yticks([])
    return shown
