"""Pictures of the field: panels of a map, or a profile when all places lie on a line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gp_active_sensing.report.source import RunData
from gp_active_sensing.report.style import ACCENT, INK, PAPER, SECOND, sequential, to_svg
from gp_active_sensing.types import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap, Normalize

__all__ = ["field_pictures", "is_line"]

MANY = 900
"""Places from which the map is drawn as an image inside the picture, to keep the page small."""

LABELS = 12
"""About how many visited places are numbered."""


def is_line(data: RunData) -> bool:
    """Say whether all places lie on one line along x or y."""
    spread = np.ptp(data.topology.positions, axis=0)
    return bool(spread.min() <= 1e-9 * max(float(spread.max()), 1e-9))


def field_pictures(data: RunData) -> list[tuple[str, str]]:
    """Return (title, SVG) of each picture: truth (when known), estimate, uncertainty."""
    if is_line(data):
        return [("Field along the line", _profile(data))]
    from matplotlib.colors import Normalize

    shown = data.mean if data.truth is None else np.concatenate([data.mean, data.truth])
    same = Normalize(float(shown.min()), float(shown.max()))
    doubt = Normalize(0.0, float(data.std.max()) or 1.0)
    colours, doubts = sequential("viridis"), sequential("magma", 0.15, 0.9)
    label = f"{data.quantity} [{data.unit}]" if data.unit else data.quantity
    pictures = []
    if data.truth is not None:
        svg = _panel(data, "truth", data.truth, same, colours, label, mark="")
        pictures.append(("Truth (noise-free)", svg))
    svg = _panel(data, "estimate", data.mean, same, colours, label, mark="dots")
    pictures.append(("Estimate and visited places", svg))
    label = "standard deviation" + (f" [{data.unit}]" if data.unit else "")
    svg = _panel(data, "doubt", data.std, doubt, doubts, label, mark="path")
    pictures.append(("Uncertainty and driven path", svg))
    return pictures


def _profile(data: RunData) -> str:
    from matplotlib.figure import Figure
    from matplotlib.patheffects import withStroke

    positions = data.topology.positions
    axis = int(np.argmax(np.ptp(positions, axis=0)))
    order = np.argsort(positions[:, axis])
    x = positions[order, axis]
    figure = Figure(figsize=(10.0, 3.6), layout="constrained")
    axes = figure.subplots()
    mean, std = data.mean[order], data.std[order]
    axes.fill_between(
        x, mean - 2 * std, mean + 2 * std, color=SECOND, alpha=0.2, lw=0, label="± 2 sd"
    )
    axes.plot(x, mean, color=SECOND, lw=1.6, label="estimate")
    if data.truth is not None:
        axes.plot(x, data.truth[order], color=INK, lw=1.0, label="truth")
    read = ~np.isnan(data.readings)
    axes.plot(positions[read, axis], data.readings[read], "o", color=ACCENT, ms=4, label="readings")
    visited = data.visited
    for number in _sparse(len(visited)):
        place = visited[number]
        axes.annotate(
            str(number + 1),
            (positions[place, axis], data.readings[place]),
            xytext=(0, 6),
            textcoords="offset points",
            ha="center",
            fontsize=7.5,
            path_effects=[withStroke(linewidth=2.5, foreground=PAPER)],
        )
    axes.set_xlabel("xy"[axis] + " [m]")
    axes.set_ylabel(f"{data.quantity} [{data.unit}]" if data.unit else data.quantity)
    axes.legend(ncols=4, loc="lower left", bbox_to_anchor=(0.0, 1.0), borderaxespad=0.2)
    return to_svg(figure, "profile", "Truth, estimate and readings along the line")


def _panel(
    data: RunData,
    key: str,
    values: FloatArray,
    norm: Normalize,
    colours: Colormap,
    label: str,
    mark: str,
) -> str:
    from matplotlib.cm import ScalarMappable
    from matplotlib.figure import Figure

    low, high = _extent(data)
    width, height = (float(side) for side in high - low)
    inches = 4.4
    tall = min(max(inches * height / width, 2.0), 6.0)
    figure = Figure(figsize=(inches, tall + 0.65), layout="constrained")
    axes = figure.subplots()
    axes.set_aspect("equal")
    axes.set_axis_off()
    axes.set_xlim(low[0], high[0])
    axes.set_ylim(low[1], high[1])
    axes.add_collection(_places(data, values, norm, colours))
    if mark == "dots":
        at = data.topology.positions[data.visited]
        axes.plot(at[:, 0], at[:, 1], "o", color=ACCENT, ms=2.6)
    if mark == "path":
        _draw_path(axes, data)
    bar = figure.colorbar(
        ScalarMappable(norm, colours),
        ax=axes,
        orientation="horizontal",
        fraction=0.045,
        pad=0.02,
        aspect=35,
        label=label,
    )
    bar.outline.set_visible(False)
    return to_svg(figure, key, f"Map of the {key}")


def _extent(data: RunData) -> tuple[FloatArray, FloatArray]:
    points = np.vstack([data.topology.geometry(i) for i in range(data.topology.n)])
    low, high = points.min(axis=0), points.max(axis=0)
    margin = 0.5 * _cell(data) if _is_cells(data) else 0.02 * float((high - low).max())
    return low - margin, high + margin


def _is_cells(data: RunData) -> bool:
    return len(data.topology.geometry(0)) < 2


def _cell(data: RunData) -> float:
    """Return the distance of neighbouring places, the side of the squares that show them."""
    from scipy.spatial import cKDTree

    if data.topology.n < 2:
        return 1.0
    distances, _ = cKDTree(data.topology.positions).query(data.topology.positions, k=2)
    return float(np.median(np.asarray(distances)[:, 1])) or 1.0


def _places(data: RunData, values: FloatArray, norm: Normalize, colours: Colormap) -> Any:
    from matplotlib.collections import LineCollection, PolyCollection

    topology = data.topology
    many = topology.n > MANY
    if _is_cells(data):
        half = 0.5 * _cell(data)
        corners = half * np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
        squares = topology.positions[:, None, :] + corners[None]
        cells = PolyCollection(list(squares), norm=norm, cmap=colours, lw=0.2, rasterized=many)
        cells.set_array(values)
        cells.set_edgecolor("face")
        return cells
    lines = [_beside(data, place) for place in range(topology.n)]
    width = float(np.clip(60.0 / np.sqrt(topology.n), 0.8, 2.4))
    roads = LineCollection(
        lines, norm=norm, cmap=colours, lw=width, capstyle="round", rasterized=many
    )
    roads.set_array(values)
    return roads


def _beside(data: RunData, place: int) -> FloatArray:
    """Return a segment's line moved a little to its right: both directions of a street show."""
    line = np.asarray(data.topology.geometry(place), dtype=np.float64)
    if len(line) < 2:
        return line
    extent = float(np.max(np.ptp(data.topology.positions, axis=0)))
    step = line[-1] - line[0]
    length = float(np.hypot(*step))
    if length == 0.0:
        return line
    right = np.array([step[1], -step[0]]) / length
    return np.asarray(line + 0.004 * extent * right)


def _draw_path(axes: Axes, data: RunData) -> None:
    from matplotlib.patheffects import withStroke

    parts = [
        np.atleast_2d(data.topology.geometry(int(place)))
        for record in data.records
        for place in record.get("path") or [record["location"]]
    ]
    if parts:
        line = np.vstack(parts)
        axes.plot(line[:, 0], line[:, 1], color=PAPER, lw=2.2)
        axes.plot(line[:, 0], line[:, 1], color=SECOND, lw=1.4)
    visited = data.visited
    for number in _sparse(len(visited)):
        x, y = data.topology.positions[visited[number]]
        axes.plot([x], [y], "o", color=ACCENT, ms=3.4)
        axes.annotate(
            str(number + 1),
            (x, y),
            xytext=(3, 3),
            textcoords="offset points",
            fontsize=8.5,
            fontweight="bold",
            path_effects=[withStroke(linewidth=2.5, foreground=PAPER)],
        )


def _sparse(count: int) -> list[int]:
    """Return about `LABELS` of the numbers 0 … count-1, with the first and the last."""
    if count == 0:
        return []
    step = max(1, -(-count // LABELS))
    chosen = list(range(0, count, step))
    if chosen[-1] != count - 1:
        if count - 1 - chosen[-1] < step / 2 and len(chosen) > 1:
            chosen.pop()
        chosen.append(count - 1)
    return chosen
