#!/usr/bin/env python3
"""Make house.pgm and house.yaml: a house as a robot's SLAM leaves it, for map_server of Nav2.

``python make_house.py`` writes the shipped files again. It needs NumPy only.
"""

from __future__ import annotations

import argparse
import logging
from pathlib import Path

import numpy as np
import numpy.typing as npt

logger = logging.getLogger("make_house")

RESOLUTION = 0.05
"""Width of a pixel [m]."""
WIDTH, HEIGHT, MARGIN = 12.0, 9.0, 0.5
"""Of the house, and of the unknown ground about it [m]."""
ORIGIN = (-3.0, -2.0)
"""Where the lower left corner of the picture lies: the robot began in the hall, at (0, 0) [m]."""
WALL = 0.1
"""Thickness of a wall [m]."""
FREE, OCCUPIED, UNKNOWN = 254, 0, 205
"""Shades as map_saver paints them."""

WALLS = (
    ((0.0, 0.0), (12.0, 0.0)),
    ((12.0, 0.0), (12.0, 9.0)),
    ((12.0, 9.0), (0.0, 9.0)),
    ((0.0, 9.0), (0.0, 0.0)),
    ((5.0, 0.0), (5.0, 9.0)),  # between the rooms and the hall
    ((0.0, 4.0), (5.0, 4.0)),
    ((7.5, 3.0), (12.0, 3.0)),
    ((7.5, 3.0), (7.5, 9.0)),
    ((7.5, 6.0), (12.0, 6.0)),
)
"""From and to, in metres from the lower left corner of the house."""
DOORS = (
    ((5.0, 1.5), (5.0, 2.5)),
    ((5.0, 6.0), (5.0, 7.0)),
    ((7.5, 4.0), (7.5, 5.0)),
    ((8.5, 3.0), (9.5, 3.0)),
)
FURNITURE = (
    ((0.5, 0.5), (2.0, 1.2)),
    ((3.2, 3.0), (4.4, 3.8)),
    ((1.5, 5.5), (3.0, 7.5)),
    ((8.5, 3.6), (9.2, 4.3)),
    ((10.5, 0.4), (11.6, 1.6)),
)
CLOSED = ((7.5, 6.0), (12.0, 9.0))
"""A room whose door was shut: unknown."""

Array = npt.NDArray[np.uint8]


def main(arguments: list[str] | None = None) -> int:
    """Write the picture and what it means."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    shades = picture()
    rows, columns = shades.shape
    header = f"P5\n# made by make_house.py\n{columns} {rows}\n255\n"
    (options.out / "house.pgm").write_bytes(header.encode() + shades[::-1].tobytes())
    (options.out / "house.yaml").write_text(
        f"image: house.pgm\nmode: trinary\nresolution: {RESOLUTION}\n"
        f"origin: [{ORIGIN[0]}, {ORIGIN[1]}, 0.0]\n"
        "negate: 0\noccupied_thresh: 0.65\nfree_thresh: 0.196\n",
        encoding="ascii",
    )
    known = np.count_nonzero(shades == FREE) * RESOLUTION**2
    logger.info("house: %d × %d pixels of %g m, %.1f m² free", columns, rows, RESOLUTION, known)
    return 0


def picture() -> Array:
    """Return the (rows, columns) shades, from south to north."""
    rows, columns = (round((size + 2 * MARGIN) / RESOLUTION) for size in (HEIGHT, WIDTH))
    x = RESOLUTION * (np.arange(columns) + 0.5) - MARGIN
    y = (RESOLUTION * (np.arange(rows) + 0.5) - MARGIN)[:, None]
    shades = np.full((rows, columns), UNKNOWN, dtype=np.uint8)

    def fill(low: tuple[float, float], high: tuple[float, float], wider: float, shade: int) -> None:
        (x0, y0), (x1, y1) = low, high
        inside = (x > min(x0, x1) - wider) & (x < max(x0, x1) + wider)
        shades[inside & (y > min(y0, y1) - wider) & (y < max(y0, y1) + wider)] = shade

    fill((0.0, 0.0), (WIDTH, HEIGHT), 0.0, FREE)
    fill(*CLOSED, 0.0, UNKNOWN)
    for low, high in WALLS:
        fill(low, high, 0.5 * WALL, OCCUPIED)
    for low, high in DOORS:
        fill(low, high, 0.5 * WALL, FREE)
    for low, high in FURNITURE:
        fill(low, high, 0.0, OCCUPIED)
    return shades


if __name__ == "__main__":
    raise SystemExit(main())
