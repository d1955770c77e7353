"""Draw the picture of the README from a run directory; needs the extra ``report``.

    gp-active-sensing run town --out runs/picture
    python docs/images/make_town_picture.py runs/picture docs/images/town.png

The panels are those of the run's report page, drawn by the same functions.
"""

from __future__ import annotations

import argparse
import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from gp_active_sensing.report import curves, maps
from gp_active_sensing.report.source import RunData, load_run
from gp_active_sensing.report.style import ACCENT, figure_style, require_matplotlib, sequential

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH, HEIGHT = 11.0, 6.6  # inches
DPI = 130
COLOURS = 128  # of the palette; keeps the file small


def main() -> None:
    """Read the arguments and write the picture."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("run_dir", type=Path, help="directory of a simulated run on a road map")
    parser.add_argument("picture", type=Path, help="PNG file to write")
    options = parser.parse_args()
    draw(load_run(options.run_dir), options.picture)


def draw(data: RunData, picture: Path) -> None:
    """Write the picture of a run whose truth is known.

    Raises:
        ValueError: a run without truth, or without a stage.
    """
    if data.truth is None or not data.records:
        msg = f"{data.path}: expected a simulated run with at least one stage"
        raise ValueError(msg)
    require_matplotlib()
    with figure_style():
        from matplotlib.figure import Figure

        figure = Figure(figsize=(WIDTH, HEIGHT), layout="constrained", facecolor="white")
        top, bottom = figure.subfigures(2, 1, height_ratios=(2.35, 1.0))
        _draw_maps(top, data)
        _draw_curves(bottom, data)
        _save(figure, picture)


def _draw_maps(figure: Any, data: RunData) -> None:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    assert data.truth is not None
    shown = np.concatenate([data.mean, data.truth])
    same = Normalize(float(shown.min()), float(shown.max()))
    doubt = Normalize(0.0, float(data.std.max()))
    colours, doubts = sequential("viridis"), sequential("magma", 0.15, 0.9)
    quantity = f"{data.quantity} [{data.unit}]"
    panels = (
        ("Truth", data.truth, same, colours, quantity),
        ("Estimate, and the places observed", data.mean, same, colours, quantity),
        ("Uncertainty, and the way driven", data.std, doubt, doubts, f"sd [{data.unit}]"),
    )
    low, high = maps._extent(data)
    for number, (axes, (title, values, norm, palette, label)) in enumerate(
        zip(figure.subplots(1, len(panels)), panels, strict=True)
    ):
        axes.set_aspect("equal")
        axes.set_axis_off()
        axes.set_xlim(low[0], high[0])
        axes.set_ylim(low[1], high[1])
        axes.set_title(title, fontsize=10.5)
        axes.add_collection(maps._places(data, values, norm, palette))
        if number == 1:
            at = data.topology.positions[data.belief.observed]
            axes.plot(at[:, 0], at[:, 1], "o", color=ACCENT, ms=2.6)
        if number == 2:
            maps._draw_path(axes, data)
        bar = figure.colorbar(
            ScalarMappable(norm, palette), ax=axes, orientation="horizontal",
            fraction=0.04, pad=0.02, aspect=32, label=label,
        )  # fmt: skip
        bar.outline.set_visible(False)


def _draw_curves(figure: Any, data: RunData) -> None:
    left, right = figure.subplots(1, 2, width_ratios=(1.9, 1.0))
    _draw_belief(left, data)
    stages = curves._stages(data)
    right.plot(stages, curves._column(data, "rmspe"), color=ACCENT, lw=1.8)
    right.set_ylim(bottom=0.0)
    right.set_xlim(0.0, float(stages[-1]))
    right.set_xlabel("stage")
    right.set_title(f"Prediction error where it has not been [{data.unit}]", fontsize=10.5)


def _draw_belief(axes: Axes, data: RunData) -> None:
    scales = sorted(set(data.length_scales))
    member = np.array([[key == scale for key in data.length_scales] for scale in scales])
    weights = np.array([data.belief.prior_weights, *(r["weights"] for r in data.records)])
    stages = np.concatenate([[0.0], curves._stages(data)])
    axes.stackplot(
        stages,
        member.astype(np.float64) @ weights.T,
        colors=sequential("viridis")(np.linspace(0.0, 1.0, len(scales))),
        labels=[curves._scale_label(scale) for scale in scales],
        lw=0,
    )
    axes.set_ylim(0.0, 1.0)
    axes.set_xlim(0.0, float(stages[-1]))
    axes.grid(visible=False)
    axes.set_xlabel("stage")
    axes.set_title("Belief over the length-scale [m]", fontsize=10.5)
    axes.legend(
        loc="center left", bbox_to_anchor=(1.0, 0.5), reverse=True,
        handlelength=1.0, borderaxespad=0.4,
    )  # fmt: skip


def _save(figure: Figure, picture: Path) -> None:
    """Write a PNG with a palette, a third of the size of one without."""
    from PIL import Image

    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=DPI, facecolor="white")
    image = Image.open(stream).convert("RGB")
    image.quantize(COLOURS, dither=Image.Dither.NONE).save(picture, optimize=True)


if __name__ == "__main__":
    main()
