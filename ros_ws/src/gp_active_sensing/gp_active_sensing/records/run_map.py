"""Map of a run: its configuration, the fingerprint of its places, and its occupancy grids.

The configuration may leave spacing and origin open. The first event of a run has the computed
values under ``map``, and a fingerprint of the places under ``places``. An error is raised if the
map is built again with other places, because its file or the package's version has changed. The
run directory stores the occupancy grids of a mission as files of map_server (mode raw).
"""

from __future__ import annotations

import itertools
import math
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import yaml

from gp_active_sensing.config import from_mapping, to_mapping
from gp_active_sensing.errors import MapError, RunError
from gp_active_sensing.topology.base import Topology
from gp_active_sensing.topology.config import build_topology
from gp_active_sensing.topology.geometry import OccupancyGrid
from gp_active_sensing.topology.live import LivePlaces, mark_of
from gp_active_sensing.topology.loaders import map_server
from gp_active_sensing.topology.map_config import MapConfig, OccupancyConfig
from gp_active_sensing.util.files import write_whole
from gp_active_sensing.util.yaml_files import load_yaml

# -- configuration ---------------------------------------------------------------------------------

_WORKED_OUT = ("spacing", "origin")


def worked_out(given: MapConfig, settled: MapConfig) -> dict[str, Any]:
    """Return spacing and origin of `settled` if they differ from the configuration `given`."""
    before, after = to_mapping(given), to_mapping(settled)
    return {
        key: after[key] for key in _WORKED_OUT if key in after and after[key] != before.get(key)
    }


def as_begun_with(config: MapConfig, start: Mapping[str, Any]) -> MapConfig:
    """Return a configuration with spacing and origin from the first event of the run.

    Configured values take precedence.

    Raises:
        ConfigError: the spacing or the origin in the first event is invalid.
    """
    stored, stated = start.get("map"), to_mapping(config)
    if not isinstance(stored, Mapping):
        return config
    more = {key: stored[key] for key in _WORKED_OUT if key in stored and not stated.get(key)}
    return from_mapping(MapConfig, {**stated, **more}, path="map") if more else config


def stored_map(
    section: Mapping[str, Any], start: Mapping[str, Any], *, source: str = ""
) -> MapConfig:
    """Return the map's configuration from the section ``map`` and the first event of a run.

    `start` is {} if the event is unknown. `source` is the name of the file, for messages.

    Raises:
        ConfigError: an invalid configuration.
    """
    return as_begun_with(from_mapping(MapConfig, section, path="map", source=source), start)


# -- fingerprint of the places ---------------------------------------------------------------------

NO_LONGER = (
    "it does not give the places that the run began with: {}. Its file or its configuration has "
    "changed since, or this version makes places of it in another way: put it back as it was, use "
    "the version that the run was begun with, or begin a new run in another directory"
)
"""Error message for a map whose places differ from those of its run."""
_OFF = 0.05
"""Largest difference between the positions that two computers calculate for a place [m].

On a small map, 0.001 of the map's extent is the limit.
"""


def mark_of_places(topology: Topology) -> dict[str, Any]:
    """Return a fingerprint of the places of a map, as plain data.

    ``count`` is the number of places, ``names`` the checksum of their names, in order. ``box`` has
    the smallest and largest coordinates [m]. ``spread`` is a sum of all positions, divided by the
    square root of their number [m]. The name of a place determines the sign of its position in the
    sum.
    """
    names = [name.encode() for name in topology.names]
    signs = np.array([1.0 - 2.0 * (zlib.crc32(name) & 1) for name in names])
    points = topology.points
    spread = signs @ points / math.sqrt(topology.n)
    return {
        "count": topology.n,
        "names": f"{zlib.crc32(b'|'.join(names)):08x}",
        "box": [points.min(axis=0).tolist(), points.max(axis=0).tolist()],
        "spread": spread.tolist(),
    }


def other_places(stored: Any, found: Mapping[str, Any]) -> str:
    """Return the difference between two fingerprints of `mark_of_places`; "" = no difference."""
    if stored is None:
        return ""
    try:
        then, now = (np.array(m["box"], dtype=np.float64) for m in (stored, found))
        sums = [np.array(m["spread"], dtype=np.float64) for m in (stored, found)]
        same = int(stored["count"]) == found["count"] and then.shape == now.shape
        same_names = stored["names"] == found["names"]
        if same:
            extent = float(np.ptp(now, axis=0).max())
            most = min(_OFF, 1e-3 * extent) if extent > 0.0 else _OFF
            off = max(float(np.abs(then - now).max()), float(np.abs(np.subtract(*sums)).max()))
            if off <= most and same_names:
                return ""
        return (
            f"expected {stored['count']} places from {_at(then[0])} to {_at(then[1])} m, came "
            f"{found['count']} from {_at(now[0])} to {_at(now[1])} m"
            + (f"; their {'position' if same_names else 'name'}s are others" if same else "")
        )
    except (KeyError, TypeError, ValueError, IndexError) as error:
        return f"the description of its places is damaged ({error!r})"


def _at(point: Any) -> str:
    return f"({', '.join(f'{number:g}' for number in point)})"


def check_places(start: Mapping[str, Any], topology: Topology, where: Path | str) -> None:
    """Raise RunError if the places of a map differ from those in the first event of a run."""
    if why := other_places(start.get("places"), mark_of_places(topology)):
        versions = start.get("versions")
        version = versions.get("gp_active_sensing") if isinstance(versions, Mapping) else None
        by = f" (the run was begun by version {version})" if version else ""
        msg = f"{where}: map {topology.name!r}: {NO_LONGER.format(why)}{by}"
        raise RunError(msg)


# -- occupancy grids -------------------------------------------------------------------------------

_UNKNOWN = 255
"""Value of an unknown cell in a stored image."""


class GridMap(NamedTuple):
    """An occupancy grid with its frame and its stamp [ns], 0 = no stamp."""

    grid: OccupancyGrid
    frame: str
    stamp_ns: int = 0


def keep_map(run_dir: Path, number: int, found: GridMap) -> None:
    """Write a map as files of map_server, such as ``map-2.yaml``. Raises RunError on failure."""
    grid = found.grid
    rows, columns = grid.shape
    shades = np.where(grid.values < 0, _UNKNOWN, grid.values).astype(np.uint8)[::-1]
    image = f"map-{number}.pgm"
    write_whole(run_dir / image, b"P5\n%d %d\n255\n%s" % (columns, rows, shades.tobytes()))
    head = {
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
    write_whole(_path(run_dir, number), yaml.safe_dump(head, sort_keys=False))


def kept_map(run_dir: Path, number: int = 1, mark: str = "") -> GridMap:
    """Return a map that `keep_map` wrote; `mark` is its expected checksum, "" = any.

    Raises:
        RunError: the map is missing, or has another checksum.
        MapError: the map is damaged.
    """
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
    head = load_yaml(path)
    return GridMap(grid, str(head.get("frame_id") or "map"), int(head.get("stamp_ns") or 0))


def kept_places(config: OccupancyConfig, run_dir: Path, last: int | None = None) -> LivePlaces:
    """Return a mission's places after occupancy grid number `last`; None = the newest grid.

    Raises:
        RunError: an occupancy grid is missing.
        MapError: an occupancy grid is damaged, or does not change any place.
    """
    first = kept_map(run_dir)
    places = LivePlaces.of(config, first.grid, first.frame)
    for number in itertools.count(2) if last is None else range(2, last + 1):
        if last is None and not _path(run_dir, number).is_file():
            break
        following = places.on(kept_map(run_dir, number).grid)
        if following is None and last is not None:
            msg = f"{_path(run_dir, number)}: has the places of the map before it"
            raise MapError(msg)
        places = following or places
    return places


def run_topology(config: MapConfig, run_dir: Path | None) -> Topology:
    """Return the map of a run; a map from a topic has the state of its last occupancy grid.

    Raises the errors of `build_topology` and `kept_places`.
    """
    if isinstance(config, OccupancyConfig) and config.topic and run_dir is not None:
        if _path(run_dir, 1).is_file():
            return kept_places(config, run_dir).topology
    return build_topology(config, base_dir=run_dir)


def _path(run_dir: Path, number: int) -> Path:
    return run_dir / f"map-{number}.yaml"
