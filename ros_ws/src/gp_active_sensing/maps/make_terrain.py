#!/usr/bin/env python3
"""Make terrain.asc: the heights of a valley between two ridges, with a fixed seed.

``python make_terrain.py`` writes the shipped file again. It needs NumPy only.
"""

from __future__ import annotations

import argparse
import logging
from pathlib import Path

import numpy as np
import numpy.typing as npt

logger = logging.getLogger("make_terrain")

SEED = 11
COLUMNS, ROWS, CELL = 124, 104, 10.0
"""Size of the raster; width of a cell [m]."""
SLOPE = 3.9
"""The power of the noise falls with this power of the frequency: about that of eroded hills."""
RIDGES, ROUGH = 60.0, 5.0
"""Height of the ridges, standard deviation of what is rough everywhere [m]."""
VALLEY_DEPTH, VALLEY_WIDTH = 90.0, 170.0
"""Of the valley below the ridges, and half its width [m]."""
LOWEST = 412.0
"""Height of the lowest cell above the sea [m]."""

Array = npt.NDArray[np.float64]


def main(arguments: list[str] | None = None) -> int:
    """Write the raster."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("terrain.asc"))
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    values = heights()
    options.out.write_text(as_ascii_grid(values), encoding="ascii")
    logger.info(
        "%s: %d × %d cells of %g m, heights %.1f … %.1f m, standard deviation %.1f m",
        options.out,
        COLUMNS,
        ROWS,
        CELL,
        values.min(),
        values.max(),
        values.std(),
    )
    return 0


def heights() -> Array:
    """Return the (ROWS, COLUMNS) heights from north to south [m], rounded to 0.1 m."""
    rng = np.random.default_rng(SEED)
    ridged = 1.0 - np.abs(noise(rng))  # the zeros of the noise become crests
    rough = noise(rng)
    x = CELL * (np.arange(COLUMNS) + 0.5)
    y = CELL * (np.arange(ROWS) + 0.5)[:, None]
    # The valley winds from west to east, and falls that way.
    middle = 0.5 * ROWS * CELL + 150.0 * np.sin(x / 230.0) + 40.0 * np.sin(x / 95.0 + 1.0)
    valley = np.exp(-0.5 * np.square((y - middle) / VALLEY_WIDTH))
    # On its floor the ridges are worn away.
    land = RIDGES * ridged * (1.0 - 0.85 * valley) + ROUGH * rough - VALLEY_DEPTH * valley
    land -= 0.02 * x
    return np.asarray(np.round(land - land.min() + LOWEST, 1))


def noise(rng: np.random.Generator) -> Array:
    """Return (ROWS, COLUMNS) Gaussian noise of standard deviation 1 with a falling spectrum."""
    # Twice as large as needed: the noise of a Fourier transform repeats itself.
    rows, columns = 2 * ROWS, 2 * COLUMNS
    frequency = np.hypot(np.fft.fftfreq(rows)[:, None], np.fft.fftfreq(columns)[None, :])
    frequency[0, 0] = np.inf
    # Below one wave in a quarter of the map the spectrum is flat: several ridges, not one.
    amplitude = np.maximum(frequency, 1.0 / (0.45 * COLUMNS)) ** (-0.5 * SLOPE)
    amplitude[0, 0] = 0.0
    spectrum = amplitude * np.fft.fft2(rng.standard_normal((rows, columns)))
    field = np.fft.ifft2(spectrum).real[:ROWS, :COLUMNS]
    return np.asarray((field - field.mean()) / field.std())


def as_ascii_grid(values: Array) -> str:
    """Return the text of an ESRI ASCII grid whose south-west corner is (0, 0)."""
    header = (
        f"ncols {COLUMNS}\nnrows {ROWS}\nxllcorner 0.0\nyllcorner 0.0\n"
        f"cellsize {CELL}\nNODATA_value -9999\n"
    )
    return header + "".join(" ".join(f"{v:.1f}" for v in row) + "\n" for row in values)


if __name__ == "__main__":
    raise SystemExit(main())
