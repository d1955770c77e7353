"""Maps as Nav2's map_server keeps them: a YAML file that names an image, and says what it means.

The meaning of `mode`, `negate` and the thresholds is that of map_server: a shade v of 0 … 255 is
an occupancy of 1 - v / 255, or v / 255 where `negate` is set.

- trinary: `occupied_thresh` and more is occupied, `free_thresh` and less is free, the rest unknown;
- scale: the same, but what lies between is 0 … 100 % of the way from free to occupied;
- raw: the shade itself is the value, 0 … 100 %; others are unknown.

A pixel that is not wholly opaque is unknown.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gp_active_sensing.config import from_mapping, param
from gp_active_sensing.errors import ConfigError, MapError
from gp_active_sensing.topology.loaders.drafts import fail
from gp_active_sensing.topology.loaders.files import check_file
from gp_active_sensing.topology.loaders.images import GreyImage, read_image
from gp_active_sensing.topology.occupancy import OccupancyGrid
from gp_active_sensing.util.yaml_files import load_yaml

__all__ = ["load"]

_MODES = ("trinary", "scale", "raw")
_UNKNOWN_SHADE = 205.0
"""What map_saver paints unknown cells in."""


@dataclass(frozen=True)
class _Described:
    """The keys of the YAML file."""

    image: str = param(help="the picture, beside the file")
    resolution: float = param(help="width of a pixel", unit="m")
    origin: tuple[float, ...] = param(help="x, y and yaw of the lower left pixel's corner")
    negate: int | bool = param(0, help="white is occupied")
    occupied_thresh: float = param(0.65, help="from here on occupied", low=0.0, high=1.0)
    free_thresh: float = param(0.196, help="up to here free", low=0.0, high=1.0)
    mode: str = param("trinary", help="what shades mean", choices=_MODES)


def load(path: Path) -> tuple[OccupancyGrid, tuple[str, ...]]:
    """Read a map of map_server.

    Args:
        path: of the YAML file; the image is found beside it.

    Returns:
        The occupancy grid in the map's frame, and notes on what was taken for granted.

    Raises:
        MapError: a file that is none, an image that is missing or damaged, a resolution of 0 or
            less; all problems of the YAML file are said at once.
        MissingDependencyError: the image is no PGM, and Pillow is missing.
    """
    check_file(path)
    said = _described(path)
    picture = Path(said.image).expanduser()
    if not picture.is_absolute():
        picture = path.parent / picture
    if not picture.is_file():
        near = sorted(p.name for p in path.parent.glob("*") if p.suffix in (".pgm", ".png"))
        hint = f"; beside {path.name} there are {', '.join(near[:5])}" if near else ""
        msg = f"{path}: image: there is no file {picture}{hint}; copy it there, or correct image"
        raise MapError(msg)
    image = read_image(picture)
    x, y, yaw = (*said.origin, 0.0)[:3]
    values, notes = _values(image, said)
    try:
        return OccupancyGrid(values[::-1], said.resolution, (x, y), yaw), notes
    except MapError as error:
        msg = f"{path}: {error}"
        raise MapError(msg) from error


def _described(path: Path) -> _Described:
    try:
        whole = load_yaml(path)
    except ConfigError as error:
        raise MapError(str(error)) from error
    needed = ("image", "resolution", "origin")
    if not any(key in whole for key in needed):
        msg = (
            f"{path}: expected a map of map_server, with {', '.join(needed)}; it has "
            f"{', '.join(map(str, whole)) or 'nothing'}"
        )
        raise MapError(msg)
    known = _Described.__dataclass_fields__
    given: dict[str, Any] = {key: value for key, value in whole.items() if key in known}
    try:
        said = from_mapping(_Described, given)
    except ConfigError as error:
        fail(path, error.problems)
        raise
    problems = []
    if not (math.isfinite(said.resolution) and said.resolution > 0.0):
        problems.append(
            f"resolution: must be above 0, the width of a pixel in metres; got {said.resolution:g}"
        )
    if len(said.origin) not in (2, 3):
        problems.append(f"origin: expected x, y and yaw, got {list(said.origin)}")
    if said.negate not in (0, 1):
        problems.append(f"negate: expected 0 or 1, got {said.negate}")
    if said.mode != "raw" and not said.free_thresh < said.occupied_thresh:
        problems.append(
            f"free_thresh: must be less than occupied_thresh, {said.occupied_thresh:g}; got "
            f"{said.free_thresh:g}"
        )
    fail(path, problems)
    return said


def _values(image: GreyImage, said: _Described) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return (rows, columns) -1 … 100, the top row first, and notes."""
    if said.mode == "raw":
        raw = np.rint(image.shades)
        return np.where(raw <= 100.0, raw, -1.0).astype(np.int8), ()
    share = image.shades / 255.0
    occupancy = share if said.negate else 1.0 - share
    values = np.full(occupancy.shape, -1, dtype=np.int8)
    if said.mode == "scale":
        between = (occupancy - said.free_thresh) / (said.occupied_thresh - said.free_thresh)
        values[:] = np.clip(100.0 * between, 0.0, 100.0).astype(np.int8)
    values[occupancy >= said.occupied_thresh] = 100
    free = occupancy <= said.free_thresh
    values[free] = 0
    values[image.transparent] = -1
    odd = int(np.count_nonzero(free & (np.rint(image.shades) == _UNKNOWN_SHADE)))
    if odd and not said.negate and not (values == -1).any():
        note = (
            f"{odd} pixels have the shade 205, which map_saver gives to unknown cells, and count "
            f"as free by free_thresh: {said.free_thresh:g}; write free_thresh: 0.196 where they "
            "are unknown"
        )
        return values, (note,)
    return values, ()
