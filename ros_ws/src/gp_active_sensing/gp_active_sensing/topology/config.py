"""Build a map from its configuration."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from gp_active_sensing.errors import ConfigError
from gp_active_sensing.topology.base import Places, Topology
from gp_active_sensing.topology.grids import (
    Built,
    make_line,
    make_points,
    of_areas,
    of_occupancy,
    of_raster,
    spacings,
)
from gp_active_sensing.topology.loaders import find_map, load_roads
from gp_active_sensing.topology.loaders.areas import weighted
from gp_active_sensing.topology.map_config import (
    AreasConfig,
    FileConfig,
    GridConfig,
    LineConfig,
    MapConfig,
    OccupancyConfig,
    PointsConfig,
    RasterConfig,
    RoadsConfig,
    StationsConfig,
)
from gp_active_sensing.topology.roads import Roads, keep_largest
from gp_active_sensing.topology.stations import of_stations

logger = logging.getLogger(__name__)

_GRIDS: Mapping[type, Callable[..., Built]] = {
    AreasConfig: of_areas,
    OccupancyConfig: of_occupancy,
    RasterConfig: of_raster,
}


def build_topology(config: MapConfig, *, base_dir: Path | None = None) -> Topology:
    """Build the map of a configuration; look for its files in `base_dir` first.

    Raises:
        ConfigError: an outline or obstacle is no polygon, or a feature or weight is wrong.
        MapError: a map file cannot be used.
        ResourceError: a map file cannot be found.
    """
    return build_settled(config, base_dir=base_dir)[0]


def build_settled(config: MapConfig, *, base_dir: Path | None = None) -> tuple[Topology, MapConfig]:
    """Build a map; return the map, and the configuration with the chosen spacing and origin.

    Raises the errors of `build_topology`.
    """
    path = find_map(config.file, base_dir) if config.file else None
    settled = config.of_content(path) if isinstance(config, FileConfig) and path else config
    name, frame = settled.name or settled.kind or "", settled.frame or "map"
    places: Places
    if isinstance(settled, OccupancyConfig) and settled.topic:
        msg = (
            f"topic: the map comes by topic {settled.topic} of a running system, so there is none "
            "here; give file, the YAML file of a map that was saved"
        )
        raise ConfigError(msg)
    elif isinstance(settled, GridConfig):
        places, settled = _GRIDS[type(settled)](settled, path, base_dir)
    elif isinstance(settled, RoadsConfig) and path is not None:
        places = _of_roads(settled, path)
    elif isinstance(settled, StationsConfig) and path is not None:
        places = of_stations(settled, path, base_dir)
    elif isinstance(settled, PointsConfig):
        box = settled.count, settled.low, settled.high
        more: dict[str, Any] = {"seed": settled.seed, "speed": settled.speed}
        places = make_points(*box, **more, name=name, frame=frame)
    else:
        assert isinstance(settled, LineConfig)
        step, origin = float(spacings(settled.spacing or 1.0)[0]), settled.origin or (0.0, 0.0)
        settled = dataclasses.replace(settled, spacing=step, origin=origin)
        how = {key: getattr(settled, key) for key in ("moves", "origin", "speed", "reach")}
        places = make_line(settled.count, step, **how, name=name, frame=frame)
    for note in places.notes:
        logger.info("map %r: %s", places.name, note)
    return weighted(places, config.weights, base_dir), settled


def _of_roads(config: RoadsConfig, path: Path) -> Roads:
    road_map = load_roads(path, crs=config.crs)
    road_map = dataclasses.replace(road_map, name=config.name or road_map.name)
    if config.largest_component:
        road_map = keep_largest(road_map, config.u_turns)
    keys = ("anchor", "u_turns", "speed", "frame", "reach")
    how = {key: getattr(config, key) for key in keys}
    return Roads(road_map, features=config.features or ("x", "y"), **how)
