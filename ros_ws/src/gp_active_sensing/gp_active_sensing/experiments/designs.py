"""Pictures of where policies went: the places observed, on a line stage by stage, else on the map.

The counterparts of Figures 2 and 3d-f of [Hoang2014], from the records only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gp_active_sensing.config import from_mapping
from gp_active_sensing.experiments.metrics import stages_until, true_weight_indices
from gp_active_sensing.experiments.records import Loaded
from gp_active_sensing.topology import MapConfig, Topology, build_topology

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Design", "designs_of", "draw_designs"]

_ACROSS = 5
_GREY, _INK, _START = "#c8c8c8", "#222222", "#d55e00"


class Design:
    """Where one mission went.

    Args:
        record: of its trial.
        readings: observed places that are shown.
    """

    def __init__(self, record: Mapping[str, Any], readings: int) -> None:
        self.policy: str = record["policy"]
        stages = stages_until(record, readings) or record["stages"]
        self.places = [int(stage["location"]) for stage in stages]
        where = true_weight_indices(record["config"])
        if stages and len(where) == len(stages[0]["weights"]):
            where = ()  # it knows the length-scale: there is nothing to show
        self.belief = [
            math.fsum(stage["weights"][i] for i in where) if where else math.nan for stage in stages
        ]


def designs_of(loaded: Loaded) -> dict[str, tuple[Mapping[str, Any], list[Design]]]:
    """Return, for each configuration, its map's section and the designs of the first seed."""
    config = loaded.config
    readings = config.designs or loaded.experiment.at[0]
    long_enough = [b for b in config.budgets if b >= readings]
    budget = min(long_enough, default=None)
    found: dict[str, tuple[Mapping[str, Any], list[Design]]] = {}
    for record in loaded.records:
        shown = record["seed"] == config.seed_list()[0] and record["budget"] == budget
        if shown and record["stages"]:
            section = record["config"]["map"]
            found.setdefault(record["configuration"], (section, []))[1].append(
                Design(record, readings)
            )
    return found


def draw_designs(figure: Figure, section: Mapping[str, Any], designs: Sequence[Design]) -> None:
    """Draw one panel a policy."""
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
    """Stages downwards; each place again in every later stage, the belief at the side."""
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
    """The map in grey, what was observed in black, the first place marked."""
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
