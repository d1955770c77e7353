"""Figures of an experiment with matplotlib: curves of metrics, and routes of missions."""

from __future__ import annotations

import importlib.util
import io
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gp_active_sensing.config import from_mapping
from gp_active_sensing.errors import MissingDependencyError, RunError
from gp_active_sensing.topology import MapConfig, Topology, build_topology
from gp_active_sensing.util.files import write_whole
from gp_active_sensing_bench.metrics import metrics_of, stages_until, true_weight_indices
from gp_active_sensing_bench.records import ExperimentRecords
from gp_active_sensing_bench.tables import MetricTable, PolicyRow, summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_ACROSS = 5
_GREY, _INK, _START = "#c8c8c8", "#222222", "#d55e00"


@dataclass(frozen=True)
class Design:
    """Route of one mission, drawn as in Figures 2 and 3d-f of [Hoang2014].

    Args:
        places: observed places, in order.
        belief: weight of the true length-scale after each place; NaN = no true length-scale.
    """

    policy: str
    places: list[int]
    belief: list[float]


def _design(record: Mapping[str, Any], readings: int) -> Design:
    stages = stages_until(record, readings) or record["stages"]
    where = true_weight_indices(record["config"])
    shown = where and len(where) < len(stages[0]["weights"])  # else always 1
    belief = [math.fsum(s["weights"][i] for i in where) if shown else math.nan for s in stages]
    return Design(record["policy"], [int(stage["location"]) for stage in stages], belief)


def designs_of(loaded: ExperimentRecords) -> dict[str, tuple[Mapping[str, Any], list[Design]]]:
    """Return (section `map` of the scenario, routes of the first seed) by configuration."""
    config = loaded.config
    readings = config.designs or loaded.experiment.at[0]
    long_enough = [b for b in config.budgets if b >= readings]
    budget = min(long_enough, default=None)
    found: dict[str, tuple[Mapping[str, Any], list[Design]]] = {}
    for record in loaded.records:
        shown = record["seed"] == config.seed_list()[0] and record["budget"] == budget
        if shown and record["stages"]:
            section = record["config"]["map"]
            designs = found.setdefault(record["configuration"], (section, []))[1]
            designs.append(_design(record, readings))
    return found


def draw_designs(figure: Figure, section: Mapping[str, Any], designs: Sequence[Design]) -> None:
    """Draw the routes on one map, with a panel for each policy."""
    topology = build_topology(from_mapping(MapConfig, dict(section)))
    on_line = np.ptp(topology.positions[:, 1]) == 0.0 and topology.n > 1
    down = math.ceil(len(designs) / _ACROSS)
    across = math.ceil(len(designs) / down)
    height = 2.9 if on_line else 2.6
    figure.set_size_inches(max(2.5 * across, 5.2), height * down + 0.3)
    panels = figure.subplots(down, across, squeeze=False, sharex=True, sharey=True).ravel()
    for panel, design in zip(panels, designs, strict=False):
        (_along if on_line else _on_map)(panel, topology, design)
        panel.set_title(design.policy)
    for k in range(len(designs), len(panels)):
        panels[k].set_visible(False)
        panels[k - across].tick_params(labelbottom=on_line)
    if on_line:
        panels[0].yaxis.get_major_locator().set_params(integer=True)
        figure.supxlabel("Position [m]", fontsize=9)
        figure.supylabel("Stage", fontsize=9)


def _along(panel: Axes, topology: Topology, design: Design) -> None:
    """Draw the observed places of each stage below those of the stage before."""
    x = topology.positions[design.places, 0]
    count = len(x)
    for stage in range(1, count + 1):
        panel.plot(x[: stage - 1], [stage] * (stage - 1), ".", color="#999999", markersize=2.5)
        panel.plot(x[stage - 1], stage, "o", color="#0072b2", markersize=4)
    first, last = topology.positions[:, 0].min(), topology.positions[:, 0].max()
    margin = 0.03 * (last - first)
    for stage in range(5, count + 1, 5):
        if math.isfinite(design.belief[stage - 1]):
            text = f"{100 * design.belief[stage - 1]:.0f} %"
            panel.text(last + margin, stage, text, va="center", fontsize=6.5)
    panel.set_xlim(first - margin, last + 6 * margin)
    panel.set_ylim(count + 0.7, 0.3)


def _on_map(panel: Axes, topology: Topology, design: Design) -> None:
    """Draw the map in grey and the observed places in black. Mark the first place."""
    from matplotlib.collections import LineCollection

    lines = [topology.geometry(i) for i in range(topology.n)]
    if max(len(line) for line in lines) > 1:
        panel.add_collection(LineCollection(lines, colors=_GREY, linewidths=0.6))
        driven = [lines[i] for i in design.places]
        panel.add_collection(LineCollection(driven, colors=_INK, linewidths=1.6))
    else:
        points = topology.positions
        panel.plot(*points.T, ".", color=_GREY, markersize=1.5)
        panel.plot(*points[design.places].T, "-o", color=_INK, markersize=2.5, linewidth=0.7)
    start = lines[design.places[0]][0]
    panel.plot(start[0], start[1], "o", color=_START, markersize=4.5)
    panel.set_aspect("equal")
    panel.autoscale_view()
    panel.grid(visible=False)
    panel.set_xticks([])
    panel.set_yticks([])
    for side in panel.spines.values():
        side.set_visible(False)


# Most colour-blind readers can distinguish the colours. Markers serve prints in grey.
COLOURS = (
    *("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#222222", "#8c6d31"),
    *("#7f7f7f", "#882255"),
)
MARKERS = "os^Dv<>Phd"
_WIDE = 30
"""The axis is logarithmic if the largest number of readings is above `_WIDE` × the smallest."""
# The type is Any, because it differs between versions of matplotlib.
STYLE: Any = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.6,
    "axes.titlesize": 9,
    "legend.frameon": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "gp_active_sensing",
    "figure.constrained_layout.use": True,
}


def write_figures(folder: Path, loaded: ExperimentRecords) -> tuple[Path, ...]:
    """Write ``<metric>.png`` and ``<metric>.svg`` for each metric, and ``designs.png``.

    The picture of a metric has a panel for each configuration. A panel shows mean and standard
    error over the seeds against the number of readings. ``designs.png`` shows the routes of the
    first seed.

    Raises:
        MissingDependencyError: matplotlib is not installed.
        RunError: the folder cannot be written.
    """
    if importlib.util.find_spec("matplotlib") is None:
        msg = "matplotlib is missing: pip install matplotlib"
        raise MissingDependencyError(msg)
    names = metrics_of(loaded.config.metrics, loaded.records)
    tables = [summary(loaded.records, name, loaded.experiment.at) for name in names]
    written: list[Path] = []
    try:
        folder.mkdir(exist_ok=True)
        for table in tables:
            if any(cell is not None for row in table.rows for cell in row.cells):
                written += _write(folder, table)
        designs = designs_of(loaded)
        for label, (section, shown) in designs.items():
            name = "designs" if len(designs) == 1 else f"designs_{label}"
            draw = partial(draw_designs, section=section, designs=shown)
            written += _save(folder, name, draw)
    except OSError as error:
        msg = f"{folder}: cannot write: {error.strerror or error}"
        raise RunError(msg) from error
    return tuple(written)


def _write(folder: Path, table: MetricTable) -> list[Path]:
    # Some configurations may lack a metric.
    shown = [row for row in table.rows if any(cell is not None for cell in row.cells)]
    configurations = list(dict.fromkeys(row.configuration for row in shown))
    if not configurations:
        return []
    policies = list(dict.fromkeys(row.policy for row in table.rows))

    def draw(figure: Figure) -> None:
        across = min(len(configurations), 3)
        down = math.ceil(len(configurations) / across)
        figure.set_size_inches(max(3.4 * across + 1.6, 5.2), 3.2 * down)
        panels = figure.subplots(down, across, squeeze=False, sharex=True, sharey=True).ravel()
        for panel, configuration in zip(panels, configurations, strict=False):
            rows = [row for row in table.rows if row.configuration == configuration]
            _draw(panel, table, rows, policies)
            if len(configurations) > 1:
                panel.set_title(configuration)
        for panel in panels[len(configurations) :]:
            panel.set_visible(False)
        label = table.title + (f" [{table.unit}]" if table.unit else "")
        figure.supxlabel("Readings" if len(table.columns) > 1 else "", fontsize=9)
        figure.supylabel(label, fontsize=9)
        handles, names = panels[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside right upper", handlelength=1.6)

    return _save(folder, table.metric, draw)


def _save(folder: Path, name: str, draw: Callable[[Figure], None]) -> list[Path]:
    """Write a picture as PNG and SVG. Leave out dates, so that the files are reproducible."""
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with mpl.rc_context(STYLE):
        figure = Figure()
        FigureCanvasAgg(figure)
        draw(figure)
        paths = []
        for kind, dates in (("png", ["Software"]), ("svg", ["Date", "Creator"])):
            made = io.BytesIO()
            figure.savefig(made, format=kind, dpi=150, metadata=dict.fromkeys(dates))
            paths.append(write_whole(folder / f"{name}.{kind}", made.getvalue()))
    return paths


def _draw(panel: Axes, table: MetricTable, rows: list[PolicyRow], policies: list[str]) -> None:
    columns = table.columns
    wide = len(columns) > 1 and columns[-1] > _WIDE * columns[0]
    along = [math.log(x) for x in columns] if wide else [float(x) for x in columns]
    gap = min((b - a for a, b in pairwise(along)), default=1.0)
    for row in rows:
        number = policies.index(row.policy)
        # Shift the policies, so that error bars of equal values do not overlap.
        shift = 0.25 * gap * ((number + 0.5) / len(policies) - 0.5)
        places = [math.exp(x + shift) if wide else x + shift for x in along]
        found = [(x, c) for x, c in zip(places, row.cells, strict=True) if c is not None]
        panel.errorbar(
            [x for x, _ in found],
            [c.mean for _, c in found],
            yerr=[0.0 if math.isnan(c.error) else c.error for _, c in found],
            label=row.policy,
            color=COLOURS[number % len(COLOURS)],
            marker=MARKERS[number % len(MARKERS)],
            # Policies with a repeated colour get broken lines and hollow markers.
            linestyle="-" if number < len(COLOURS) else "--",
            markerfacecolor=None if number < len(COLOURS) else "white",
            markersize=4.5,
            linewidth=1.2,
            elinewidth=0.9,
            capsize=2,
        )
    if wide:
        panel.set_xscale("log")
        panel.minorticks_off()
    panel.set_xticks(list(columns), [str(x) for x in columns])
    means = [c.mean for row in table.rows for c in row.cells if c is not None]
    if means and min(means) > 0.0 and max(means) > 30.0 * min(means):
        panel.set_yscale("log")
