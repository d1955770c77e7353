"""Draw the moving picture of the README: a boat maps a lake, reading by reading.

    python docs/images/make_mission.py                       # mission.gif, in a minute or two
    python docs/images/make_mission.py --readings 12 --out .  # a short one, to try things out

Needs matplotlib and Pillow (the extra `experiments`). The shipped scenario `lake` is run with the
policy `tour`; its journal is reconstructed, and each step drawn: what the boat believes on the left,
how unsure it is on the right, the way driven and the way planned on both. The last frame has the
true field on the right. The same seed gives the same picture.
"""

from __future__ import annotations

import argparse
import io
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gp_active_sensing.util.process import one_blas_thread

one_blas_thread()

import matplotlib as mpl  # noqa: E402

mpl.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402
import numpy as np  # noqa: E402
from matplotlib.colors import (  # noqa: E402
    BoundaryNorm,
    LinearSegmentedColormap,
    ListedColormap,
    to_hex,
)
from matplotlib.patches import PathPatch  # noqa: E402
from matplotlib.patheffects import withStroke  # noqa: E402
from matplotlib.path import Path as Outline  # noqa: E402
from matplotlib.ticker import MaxNLocator  # noqa: E402
from PIL import Image  # noqa: E402
from scipy.ndimage import distance_transform_edt, zoom  # noqa: E402

from gp_active_sensing.report.frame import DOUBT, VALUES  # noqa: E402
from gp_active_sensing.report.reconstruction import replay  # noqa: E402
from gp_active_sensing.report.source import RunData, load_run  # noqa: E402
from gp_active_sensing.report.steps import Reconstruction, ReportStep  # noqa: E402
from gp_active_sensing.sim import load_scenario, run_scenario  # noqa: E402
from gp_active_sensing.types import FloatArray  # noqa: E402

HERE = Path(__file__).resolve().parent
SCENARIO = "lake"
SEED = 4
READINGS = 140
WIDTH, HEIGHT = 800, 362  # pixels
DOTS_PER_INCH = 100
BANDS = 16  # colours of a map: clear bands, and a small file
EVERY = 4  # readings from one frame to the next
FINE = 8  # pixels of a map for the side of a cell
FRAME, FIRST, LAST, TRUTH = 280, 500, 1300, 3000  # ms
PAPER, LAND, INK, SOFT, SHORE = "#ffffff", "#e7eae3", "#1b2330", "#5a6474", "#8d978a"
ROBOT, WAY, AHEAD = "#e8175d", "#ffffff", "#14202c"


@dataclass(frozen=True)
class Panel:
    """One of the two maps.

    Args:
        title: above it.
        unit: of its colours.
        colours: small values first.
        low, high: ends of the scale.
    """

    title: str
    unit: str
    colours: tuple[str, ...]
    low: float
    high: float

    @property
    def norm(self) -> BoundaryNorm:
        return BoundaryNorm(np.linspace(self.low, self.high, BANDS + 1), BANDS)

    @property
    def colour_map(self) -> ListedColormap:
        return ListedColormap(_ramp(self.colours, BANDS))


class Lake:
    """Where the cells lie in a picture, and the shore that it is cut out by."""

    def __init__(self, data: RunData) -> None:
        self.positions = data.topology.positions
        spacing = float(data.config["map"]["spacing"])
        self._cells = np.rint(self.positions / spacing).astype(int)
        columns, rows = self._cells.max(axis=0) + 1
        self._shape = (int(rows), int(columns))
        west, east = -0.5 * spacing, (columns - 0.5) * spacing
        self.extent = (west, east, west, (rows - 0.5) * spacing)
        rings = [data.config["map"]["outline"], *data.config["map"]["obstacles"]]
        self.shore = Outline.make_compound_path(
            *(_ring(ring, i > 0) for i, ring in enumerate(rings))
        )

    def image(self, values: FloatArray) -> FloatArray:
        """Return the values of the places as a smooth picture; land has those of the next cell."""
        cells = np.full(self._shape, np.nan)
        cells[self._cells[:, 1], self._cells[:, 0]] = values
        nearest = distance_transform_edt(
            np.isnan(cells), return_distances=False, return_indices=True
        )
        return np.asarray(
            zoom(cells[tuple(nearest)], FINE, order=1, grid_mode=True, mode="nearest")
        )


def _ring(corners: list[list[float]], is_hole: bool) -> Outline:
    points = np.array(corners, dtype=float)
    following = np.roll(points, -1, axis=0)
    area = float(np.sum(points[:, 0] * following[:, 1] - points[:, 1] * following[:, 0]))
    if (area < 0.0) != is_hole:  # a hole goes round the other way
        points = points[::-1]
    return Outline(np.vstack([points, points[:1]]), closed=True)


def main() -> None:
    """Read the arguments and draw the picture."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--readings", type=int, default=READINGS, help="how many the boat takes")
    parser.add_argument("--seed", type=int, default=SEED, help="of the field and its noise")
    parser.add_argument("--out", type=Path, default=HERE, help="folder to write to")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        changes = ["policy={name: tour}", f"budget.readings={options.readings}"]
        run_scenario(load_scenario(SCENARIO, overrides=[*changes, f"seed={options.seed}"]), run)
        data = load_run(run)
        pictures = list(frames(data, replay(data)))
    write(pictures, options.out / "mission.gif")


def frames(data: RunData, done: Reconstruction) -> Iterator[tuple[Image.Image, int]]:
    """Yield each frame of a run with a known truth, and how long it is shown [ms]."""
    assert done.truth is not None
    lake, truth = Lake(data), done.truth[-1]
    low, high = float(np.floor(2.0 * truth.min()) / 2.0), float(np.ceil(2.0 * truth.max()) / 2.0)
    doubt = float(np.ceil(10.0 * done.std[1].max()) / 10.0)
    unit = data.unit.replace("deg", "°")
    believed = Panel("Estimate", f"water temperature [{unit}]", VALUES, low, high)
    unsure = Panel("Uncertainty", f"standard deviation [{unit}]", DOUBT, 0.0, doubt)
    actual = Panel("Truth", f"water temperature [{unit}]", VALUES, low, high)
    for index, step in enumerate(done.steps[1:], start=1):
        if index % EVERY != 1 and index != len(done.steps) - 1:
            continue
        shown = done.steps[: index + 1]
        maps = ((believed, done.mean[index]), (unsure, done.std[index]))
        ms = FIRST if index == 1 else LAST if index == len(done.steps) - 1 else FRAME
        yield _frame(lake, maps, shown, _words(step, len(done.steps) - 1, unit)), ms
    maps = ((believed, done.mean[-1]), (actual, truth))
    yield _frame(lake, maps, (), _words(done.steps[-1], len(done.steps) - 1, unit)), TRUTH


def _words(step: ReportStep, total: int, unit: str) -> str:
    return (
        f"reading {step.observed:3} of {total}  {step.metres / 1000.0:4.1f} km  "
        f"typical error {step.scores['rmspe']:4.2f} {unit}"
    )


def _frame(lake: Lake, maps: Any, steps: tuple[ReportStep, ...], words: str) -> Image.Image:
    figure = plt.figure(figsize=(WIDTH / 100, HEIGHT / 100), dpi=DOTS_PER_INCH, facecolor=PAPER)
    figure.text(
        0.0175, 0.925, "A boat maps a lake it has never seen", size=12, weight="bold", color=INK
    )
    figure.text(0.9825, 0.925, words, size=8.8, color=SOFT, ha="right", family="DejaVu Sans Mono")
    for number, (panel, values) in enumerate(maps):
        left = 0.0175 + 0.49 * number
        axes = figure.add_axes((left, 0.165, 0.475, 0.66))
        _draw(axes, lake, panel, values)
        if steps:
            _draw_way(axes, lake, steps)
        figure.text(left, 0.845, panel.title, size=10.5, color=INK)
        bar = figure.add_axes((left, 0.1, 0.475, 0.03))
        scale = mpl.colorbar.ColorbarBase(
            bar, cmap=panel.colour_map, norm=panel.norm, orientation="horizontal"
        )
        ticks = MaxNLocator(5, steps=[1, 2, 5, 10]).tick_values(panel.low, panel.high)
        scale.set_ticks([tick for tick in ticks if panel.low <= tick <= panel.high])
        scale.minorticks_off()
        scale.outline.set_visible(False)
        bar.tick_params(length=0, pad=2, labelsize=8, labelcolor=SOFT)
        figure.text(left + 0.475, 0.845, panel.unit, size=8.5, color=SOFT, ha="right")
    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=DOTS_PER_INCH)
    plt.close(figure)
    return Image.open(buffer).convert("RGB")


def _draw(axes: Any, lake: Lake, panel: Panel, values: FloatArray) -> None:
    axes.set_axis_off()
    axes.set_aspect("equal")
    axes.set_xlim(20.0, 2010.0)
    axes.set_ylim(0.0, 1230.0)
    clip = PathPatch(
        lake.shore, transform=axes.transData, facecolor="none", edgecolor=SHORE, lw=1.2
    )
    axes.add_patch(clip)
    picture = axes.imshow(
        lake.image(values),
        extent=lake.extent,
        origin="lower",
        aspect="equal",
        cmap=panel.colour_map,
        norm=panel.norm,
        interpolation="nearest",
    )
    picture.set_clip_path(clip)
    axes.set_xlim(20.0, 2010.0)
    axes.set_ylim(0.0, 1230.0)


def _draw_way(axes: Any, lake: Lake, steps: tuple[ReportStep, ...]) -> None:
    driven = [p for s in steps[1:] if s.plan for p in s.plan.path]
    plan = steps[-1].plan
    assert plan is not None
    ahead = lake.positions[list(plan.waypoints)]
    behind = lake.positions[driven]
    axes.plot(*ahead.T, color=AHEAD, lw=1.0, alpha=0.5, ls=(0, (1.5, 1.8)))
    axes.plot(
        *behind.T,
        color=WAY,
        lw=1.5,
        alpha=0.9,
        path_effects=[withStroke(linewidth=2.6, foreground="#14202c66")],
    )
    axes.plot(
        *behind[-1:].T,
        "o",
        ms=8,
        mfc=ROBOT,
        mec="white",
        mew=1.6,
        path_effects=[withStroke(linewidth=3.2, foreground="#14202c55")],
    )


def _ramp(anchors: tuple[str, ...], count: int) -> list[str]:
    """Return colours ("#rrggbb"), interpolated linearly between the anchors."""
    ramp = LinearSegmentedColormap.from_list("", anchors, count)
    return [to_hex(colour) for colour in ramp(np.arange(count))]


def _palette() -> list[tuple[int, int, int]]:
    """Return the colours of all frames: of the maps, of the planned way on them, of the rest."""
    maps = [*_ramp(VALUES, BANDS), *_ramp(DOUBT, BANDS)]
    found = [*maps, *(_ramp((colour, AHEAD), 5)[2] for colour in maps)]
    for pair in ((PAPER, INK), (PAPER, ROBOT), (PAPER, SHORE)):
        found += _ramp(pair, 8)
    return [tuple(bytes.fromhex(colour[1:])) for colour in dict.fromkeys(found)]


def write(pictures: list[tuple[Image.Image, int]], file: Path) -> None:
    """Write frames as an animation that begins again at its end."""
    colours = _palette()
    nothing = len(colours)
    palette = Image.new("P", (1, 1))
    palette.putpalette([level for colour in colours for level in colour])
    drawn: list[Image.Image] = []
    before = np.full((HEIGHT, WIDTH), nothing, dtype=np.uint8)
    for image, _ in pictures:
        now = np.asarray(image.quantize(palette=palette, dither=Image.Dither.NONE))
        # What stays as it was is left out, which makes the file three times smaller.
        picture = Image.fromarray(np.where(now == before, nothing, now).astype(np.uint8), mode="P")
        picture.putpalette([level for colour in [*colours, (0, 0, 0)] for level in colour])
        drawn.append(picture)
        before = now
    drawn[0].save(
        file,
        save_all=True,
        append_images=drawn[1:],
        duration=[ms for _, ms in pictures],
        loop=0,
        disposal=1,
        transparency=nothing,
        optimize=False,
    )


if __name__ == "__main__":
    main()
