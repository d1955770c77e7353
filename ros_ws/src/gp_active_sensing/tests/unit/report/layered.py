"""What a page in a browser draws of a map with heights."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from gp_active_sensing.report.payload import places_of
from gp_active_sensing.report.run_map import map_of_run
from tests.browser import Page

__all__ = ["THERMOCLINE", "layers_drawn"]

THERMOCLINE = (
    *("map.columns=3", "map.rows=3", "map.heights=[0, -4, -8, -12]"),
    *("budget.metres=null", "budget.readings=8", "limit.expansions=20"),
)
"""Makes the scenario thermocline small: 36 places in four layers, of which eight are read."""

# For each canvas of a map with heights: whether each place of a layer is coloured, whether anything
# lies between the layers, and how many of their heights are written above them.
LAYERS = """
[...document.querySelectorAll('canvas.map')].map((canvas) => {
  const { x, y, side, shifts, of, corners, low, high } = PLACES;
  const [left, top, right, bottom] = canvas.dataset.box.split(',').map(Number);
  const copy = new OffscreenCanvas(canvas.width, canvas.height);
  const pen = copy.getContext('2d', { willReadFrequently: true });
  pen.drawImage(canvas, 0, 0);
  const ratio = canvas.width / canvas.clientWidth;
  const factor = (right - left) / (high[0] - low[0] + side);
  const at = (u, v) => [
    left + (u - low[0] + side / 2) * factor, bottom - (v - low[1] + side / 2) * factor,
  ];
  const seen = (u, v, w, h) => pen.getImageData(u * ratio, v * ratio, w * ratio, h * ratio).data;
  const inked = (...box) => seen(...box).some((value, i) => i % 4 === 3 && value);
  const middle = (k, i) => at(x[i] + shifts[k][0], y[i] + shifts[k][1]);
  const beside = ([u, v]) => [u - 8, v + 4, 4, 20];
  const above = ([u, v]) => [u, v - 15, 30, 12];
  return {
    places: of.every((k, i) => seen(...middle(k, i), 1, 1)[3] === 255),
    between: corners.some((c, k) => shifts[k][0] > 0 && inked(...beside(at(...c)))),
    labels: corners.filter((c) => inked(...above(at(...c)))).length,
  };
})
"""


def layers_drawn(page: Page, run: Path) -> list[dict[str, Any]]:
    """Return what is drawn of the layers of a run's map, on each canvas."""
    topology = map_of_run(run).topology
    places = places_of(topology)
    positions = topology.positions.T.tolist()
    known = {key: places["layers"][key] for key in ("of", "shifts", "corners", "low", "high")}
    said = json.dumps({"x": positions[0], "y": positions[1], "side": places["side"], **known})
    found: list[dict[str, Any]] = page.evaluate(LAYERS.replace("PLACES", said))
    return found
