"""Build the map that a configuration describes, and recognise the map of a run.

A run stores its map as it was configured. Its first event stores what was derived from it:
``map``, the spacing and the origin that nobody stated, and ``places``, a fingerprint of the places.
So a later version, or a changed file, cannot give a run other places without an error.
"""

from __future__ import annotations

import dataclasses
import logging
import math
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gp_active_sensing.config import from_mapping, to_mapping
from gp_active_sensing.errors import ConfigError, RunError
from gp_active_sensing.topology.base import Topology
from gp_active_sensing.topology.generated import FreeTopology, make_line, make_points
from gp_active_sensing.topology.geometry import Speeds
from gp_active_sensing.topology.graph import GraphTopology
from gp_active_sensing.topology.grids import build_grid
from gp_active_sensing.topology.loaders import find_map, load_roads
from gp_active_sensing.topology.loaders.areas import weights_of
from gp_active_sensing.topology.loaders.tables import named_columns
from gp_active_sensing.topology.map_config import (
    FileConfig,
    GridConfig,
    LineConfig,
    MapConfig,
    OccupancyConfig,
    PointsConfig,
    RoadsConfig,
    StationsConfig,
    WeightsConfig,
)
from gp_active_sensing.topology.roads import Roads
from gp_active_sensing.topology.segments import keep_largest
from gp_active_sensing.topology.stations import load_stations

logger = logging.getLogger(__name__)

_PLANE = ("x", "y")


def build_topology(config: MapConfig, *, base_dir: Path | None = None) -> Topology:
    """Build the map a configuration describes; a relative `file` is looked for in `base_dir` first.

    Raises:
        ConfigError: an outline or obstacles that are no polygons, features that do not exist,
            weights that are none.
        MapError: a map file that cannot be used.
        ResourceError: a map file that cannot be found.
    """
    return build_settled(config, base_dir=base_dir)[0]


def build_settled(config: MapConfig, *, base_dir: Path | None = None) -> tuple[Topology, MapConfig]:
    """Build a map; return it, and its configuration with the spacing and origin that it has.

    They are worked out for a line or a grid. Raises as `build_topology`.
    """
    path = find_map(config.file, base_dir) if config.file else None
    settled = config
    if isinstance(config, FileConfig) and path is not None:
        settled = config.of_content(path)
    places: FreeTopology | GraphTopology
    if isinstance(settled, OccupancyConfig) and settled.topic:
        places = _of_topic(settled, base_dir)
    elif isinstance(settled, GridConfig):
        places, spacing, origin = build_grid(settled, path, base_dir)
        settled = dataclasses.replace(settled, spacing=spacing, origin=origin)
    elif isinstance(settled, RoadsConfig) and path is not None:
        places = _roads(settled, path)
    elif isinstance(settled, StationsConfig) and path is not None:
        places = _stations(settled, path, base_dir)
    else:
        places, settled = _regular(settled)
    for note in places.notes:
        logger.info("map %r: %s", places.name, note)
    if config.weights == WeightsConfig():
        return places, settled
    return places.weighted(weights_of(config.weights, places, base_dir)), settled


def _regular(config: MapConfig) -> tuple[FreeTopology | GraphTopology, MapConfig]:
    """Return a line or drawn points, and the configuration with what was worked out."""
    shared: dict[str, Any] = {
        "name": config.name or config.kind,
        "frame": config.frame or "map",
        "speed": config.speed,
    }
    if isinstance(config, PointsConfig):
        box = config.count, config.low, config.high
        return make_points(*box, **shared), config
    assert isinstance(config, LineConfig)
    origin = config.origin or (0.0, 0.0)
    spacing = (config.spacing if isinstance(config.spacing, float) else 0.0) or 1.0
    shared |= {"moves": config.moves, "origin": origin, "reach": config.reach}
    settled = dataclasses.replace(config, spacing=spacing, origin=origin)
    return make_line(config.count, spacing, **shared), settled


def _of_topic(config: OccupancyConfig, run_dir: Path | None) -> FreeTopology | GraphTopology:
    """Return the map that a mission has come to, by the maps in its run directory."""
    from gp_active_sensing.topology.live import kept_places

    if run_dir is None or not (run_dir / "map-1.yaml").is_file():
        msg = (
            f"topic: the map comes by topic {config.topic} of a running system, so there is none "
            "here; give file, the YAML file of a map that was saved"
        )
        raise ConfigError(msg)
    return kept_places(config, run_dir).topology


def _stations(
    config: StationsConfig, path: Path, base_dir: Path | None
) -> FreeTopology | GraphTopology:
    return load_stations(
        path,
        columns_of=named_columns(config.columns_of),
        crs=config.crs,
        distances=find_map(config.distances, base_dir) if config.distances else None,
        features=config.features,
        speed=Speeds(config.speed, config.climb_speed),
        reach=config.reach,
        name=config.name,
        frame=config.frame or "map",
    )


def _roads(config: RoadsConfig, path: Path) -> Roads:
    road_map = load_roads(path, crs=config.crs)
    if config.name:
        road_map = dataclasses.replace(road_map, name=config.name)
    if config.largest_component:
        road_map = keep_largest(road_map, config.u_turns)
    return Roads(
        road_map,
        features=config.features or _PLANE,
        anchor=config.anchor,
        u_turns=config.u_turns,
        speed=config.speed,
        frame=config.frame,
        reach=config.reach,
    )


_WORKED_OUT = ("spacing", "origin")
NO_LONGER = (
    "it does not give the places that the run began with: {}. Its file or its configuration has "
    "changed since, or this version makes places of it in another way: put it back as it was, use "
    "the version that the run was begun with, or begin a new run in another directory"
)
"""Said where the places of a run are others than they were."""
_OFF = 0.05
"""How far positions may be off that another machine works out [m]; never more than a thousandth of
the map."""


def worked_out(given: MapConfig, settled: MapConfig) -> dict[str, Any]:
    """Return the keys of a map that nobody stated and what they came to; {} for none."""
    before, after = to_mapping(given), to_mapping(settled)
    return {
        key: after[key] for key in _WORKED_OUT if key in after and after[key] != before.get(key)
    }


def as_begun_with(config: MapConfig, start: Mapping[str, Any]) -> MapConfig:
    """Return a map with what was worked out when its run began; what it states stays.

    Raises:
        ConfigError: the first event of the run says what is no spacing, or no origin.
    """
    told, stated = start.get("map"), to_mapping(config)
    if not isinstance(told, Mapping):
        return config
    more = {key: told[key] for key in _WORKED_OUT if key in told and not stated.get(key)}
    return from_mapping(MapConfig, {**stated, **more}, path="map") if more else config


def stored_map(
    section: Mapping[str, Any], start: Mapping[str, Any], *, source: str = ""
) -> MapConfig:
    """Return the map of a run by its section ``map`` and its first event ({} = not known).

    Raises:
        ConfigError: it is no configuration of a map; `source` says where it stands.
    """
    return as_begun_with(from_mapping(MapConfig, section, path="map", source=source), start)


def mark_of_places(topology: Topology) -> dict[str, Any]:
    """Return a fingerprint of the places of a map, as plain data.

    ``count``: number of places; ``names``: checksum of their names, in order; ``box``: smallest and
    largest coordinates [m]. ``spread``: signed sum of all positions over the square root of their
    number [m]. The name of a place determines its sign.
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


def other_places(told: Any, found: Mapping[str, Any]) -> str:
    """Return how places by `mark_of_places` differ from those told; "" = they do not."""
    if told is None:
        return ""
    try:
        then, now = (np.array(m["box"], dtype=np.float64) for m in (told, found))
        sums = [np.array(m["spread"], dtype=np.float64) for m in (told, found)]
        same = int(told["count"]) == found["count"] and then.shape == now.shape
        same_names = told["names"] == found["names"]
        if same:
            extent = float(np.ptp(now, axis=0).max())
            most = min(_OFF, 1e-3 * extent) if extent > 0.0 else _OFF
            off = max(float(np.abs(then - now).max()), float(np.abs(np.subtract(*sums)).max()))
            if off <= most and same_names:
                return ""
        return (
            f"expected {told['count']} places from {_at(then[0])} to {_at(then[1])} m, came "
            f"{found['count']} from {_at(now[0])} to {_at(now[1])} m"
            + (f"; their {'position' if same_names else 'name'}s are others" if same else "")
        )
    except (KeyError, TypeError, ValueError, IndexError) as error:
        return f"the description of its places is damaged ({error!r})"


def _at(point: Any) -> str:
    return f"({', '.join(f'{number:g}' for number in point)})"


def check_places(start: Mapping[str, Any], topology: Topology, where: Path | str) -> None:
    """See that a map has the places that a run began with, by its first event.

    Raises:
        RunError: it has others.
    """
    if why := other_places(start.get("places"), mark_of_places(topology)):
        versions = start.get("versions")
        version = versions.get("gp_active_sensing") if isinstance(versions, Mapping) else None
        by = f" (the run was begun by version {version})" if version else ""
        msg = f"{where}: map {topology.name!r}: {NO_LONGER.format(why)}{by}"
        raise RunError(msg)
