"""Occupancy grids of a mission, kept in its run directory as files of map_server (mode raw)."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import yaml

from gp_active_sensing.errors import MapError, RunError
from gp_active_sensing.topology.live import LivePlaces, mark_of
from gp_active_sensing.topology.occupancy import OccupancyGrid
from gp_active_sensing.util.files import write_whole
from gp_active_sensing.util.yaml_files import load_yaml

if TYPE_CHECKING:
    from gp_active_sensing.topology.config import MapConfig

__all__ = ["GridMap", "keep_map", "kept_map", "kept_places"]

_UNKNOWN = 255


class GridMap(NamedTuple):
    """An occupancy grid, the frame that it is in, and its stamp [ns]; 0 = none."""

    grid: OccupancyGrid
    frame: str
    stamp_ns: int = 0


def keep_map(run_dir: Path, number: int, found: GridMap) -> None:
    """Write a map: ``map-2.yaml`` and the ``map-2.pgm`` that it names; other tools read them too.

    Args:
        run_dir: of the run.
        number: of the map in the mission, from 1.
        found: the map.

    Raises:
        RunError: it cannot be written.
    """
    grid = found.grid
    rows, columns = grid.shape
    shades = np.where(grid.values < 0, _UNKNOWN, grid.values).astype(np.uint8)[::-1]
    image = f"map-{number}.pgm"
    write_whole(run_dir / image, b"P5\n%d %d\n255\n%s" % (columns, rows, shades.tobytes()))
    said = {
        "image": image,
        "mode": "raw",
        "resolution": float(grid.resolution),
        "origin": [*map(float, grid.origin), float(grid.yaw)],
        "negate": 0,
        "occupied_thresh": 0.65,
        "free_thresh": 0.196,
        "frame_id": found.frame,
        "stamp_ns": int(found.stamp_ns),
    }
    write_whole(_path(run_dir, number), yaml.safe_dump(said, sort_keys=False))


def kept_map(run_dir: Path, number: int = 1, mark: str = "") -> GridMap:
    """Return a map that `keep_map` wrote.

    Args:
        run_dir: of the run.
        number: of the map.
        mark: that it must have; "" = any.

    Raises:
        RunError: it is not there, or is another one.
        MapError: it is damaged.
    """
    from gp_active_sensing.topology.loaders import map_server

    path = _path(run_dir, number)
    if not path.is_file():
        msg = f"{path}: is missing; a mission cannot be followed without its map {number}"
        raise RunError(msg)
    grid, _ = map_server.load(path)
    if mark and mark_of(grid) != mark:
        msg = (
            f"{path}: is not the map that the journal means: its mark is {mark_of(grid)}, expected "
            f"{mark}"
        )
        raise RunError(msg)
    said = load_yaml(path)
    return GridMap(grid, str(said.get("frame_id") or "map"), int(said.get("stamp_ns") or 0))


def kept_places(config: MapConfig, run_dir: Path, last: int | None = None) -> LivePlaces:
    """Return the places of a mission whose map came by a topic.

    Args:
        config: of its map.
        run_dir: of the run.
        last: number of the map that they are of; None = the newest that is kept.

    Raises:
        RunError: a map is missing.
        MapError: one is damaged, or gives other places than it did.
    """
    first = kept_map(run_dir)
    places = LivePlaces.of(config, first.grid, first.frame)
    for number in itertools.count(2):
        if last is None and not _path(run_dir, number).is_file():
            return places
        if last is not None and number > last:
            return places
        following = places.on(kept_map(run_dir, number).grid)
        if following is None and last is not None:
            msg = f"{_path(run_dir, number)}: has the places of the map before it"
            raise MapError(msg)
        places = following or places
    return places


def _path(run_dir: Path, number: int) -> Path:
    return run_dir / f"map-{number}.yaml"
