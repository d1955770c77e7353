"""Pictures of how a run went, stage by stage."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gp_active_sensing.report.source import RunData
from gp_active_sensing.report.style import ACCENT, INK, SECOND, sequential, to_svg
from gp_active_sensing.types import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["stage_pictures"]

SIZE = (3.5, 2.6)


def stage_pictures(data: RunData) -> list[tuple[str, str]]:
    """Return (title, SVG) of each picture that the records allow."""
    if not data.records:
        return []
    pictures = []
    error = _column(data, "rmspe")
    if np.isfinite(error).any():
        unit = f" [{data.unit}]" if data.unit else ""
        pictures.append((f"Prediction error (RMSPE){unit}", _error(data, error)))
    belief = _belief(data)
    if belief:
        pictures.append(("Belief over length-scales", belief))
    lower, upper = _column(data, "lower"), _column(data, "upper")
    if np.isfinite(lower).any() and np.isfinite(upper).any():
        pictures.append(("Bounds on the decision's value", _bounds(data, lower, upper)))
    seconds = _column(data, "plan_seconds")
    if np.isfinite(seconds).any():
        pictures.append(("Planning time a stage [s]", _planning(data, seconds)))
    return pictures


def _column(data: RunData, key: str) -> FloatArray:
    """Return a number of each record, NaN where there is none."""
    values = [record.get(key) for record in data.records]
    numbers = [float(v) if isinstance(v, int | float) else np.nan for v in values]
    return np.array(numbers, dtype=np.float64)


def _stages(data: RunData) -> FloatArray:
    return np.array([float(record["stage"]) for record in data.records])


def _axes() -> tuple[Figure, Axes]:
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    figure = Figure(figsize=SIZE, layout="constrained")
    axes = figure.subplots()
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=8))
    axes.set_xlabel("stage")
    return figure, axes


def _error(data: RunData, error: FloatArray) -> str:
    figure, axes = _axes()
    axes.plot(_stages(data), error, color=ACCENT, lw=1.8)
    axes.set_ylim(bottom=0.0)
    return to_svg(figure, "error", "RMSPE of each stage")


def _belief(data: RunData) -> str:
    """Return a stacked area of the weights, candidates of one length-scale added up."""
    scales = sorted(set(data.length_scales))
    rows = [record.get("weights") for record in data.records]
    if len(scales) < 2 or not all(
        isinstance(row, list) and len(row) == len(data.length_scales) for row in rows
    ):
        return ""
    member = np.array([[key == scale for key in data.length_scales] for scale in scales])
    shares = member.astype(np.float64) @ np.array(rows, dtype=np.float64).T
    prior = member.astype(np.float64) @ data.belief.prior_weights
    stages = np.concatenate([[0.0], _stages(data)])
    shares = np.column_stack([prior, shares])
    figure, axes = _axes()
    colours = sequential("viridis")(np.linspace(0.0, 1.0, len(scales)))
    labels = [_scale_label(scale) for scale in scales]
    axes.stackplot(stages, shares, colors=colours, labels=labels, lw=0)
    axes.set_ylim(0.0, 1.0)
    axes.set_xlim(0.0, float(stages[-1]))
    axes.grid(visible=False)
    axes.legend(
        ncols=min(len(scales), 4),
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        borderaxespad=0.2,
        handlelength=1.0,
        columnspacing=1.0,
    )
    return to_svg(figure, "belief", "Belief over length-scales at each stage")


def _scale_label(scale: tuple[float, ...]) -> str:
    same_start = len(set(scale)) == 1
    return f"{scale[0]:g}" if same_start else " × ".join(f"{s:g}" for s in scale)


def _bounds(data: RunData, lower: FloatArray, upper: FloatArray) -> str:
    """Return both bounds above their difference, which is too small to see between them."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    figure = Figure(figsize=SIZE, layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    stages = _stages(data)
    above.plot(stages, upper, color=INK, lw=1.0, label="upper")
    above.plot(stages, lower, color=SECOND, lw=1.6, label="lower")
    above.legend(ncols=2, loc="lower left", bbox_to_anchor=(0.0, 1.0), borderaxespad=0.2)
    below.fill_between(stages, upper - lower, color=ACCENT, alpha=0.6, lw=0)
    below.set_ylim(bottom=0.0)
    below.set_ylabel("gap")
    below.set_xlabel("stage")
    below.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=8))
    return to_svg(figure, "bounds", "Lower and upper bound of each decision's value, and their gap")


def _planning(data: RunData, seconds: FloatArray) -> str:
    figure, axes = _axes()
    hit = np.array([bool(record.get("deadline_hit")) for record in data.records])
    stages = _stages(data)
    for chosen, colour, label in ((~hit, SECOND, "gap closed"), (hit, ACCENT, "limit reached")):
        if chosen.any():
            axes.bar(stages[chosen], seconds[chosen], width=0.8, color=colour, label=label)
    axes.grid(visible=False, axis="x")
    axes.legend(ncols=2, loc="lower left", bbox_to_anchor=(0.0, 1.0), borderaxespad=0.2)
    return to_svg(figure, "planning", "Planning time of each stage")
