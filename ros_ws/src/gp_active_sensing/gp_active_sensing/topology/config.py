"""Build the map of a configuration.

A run stores the configuration of its map. Its first event stores, as ``map``, the spacing and the
origin that the configuration left open.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from gp_active_sensing.config import from_mapping, to_mapping
from gp_active_sensing.errors import ConfigError
from gp_active_sensing.topology.base import Places, Topology
from gp_active_sensing.topology.grids import (
    BuiltGrid,
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
    WeightsConfig,
)
from gp_active_sensing.topology.roads import Roads, keep_largest
from gp_active_sensing.topology.stations import of_stations

logger = logging.getLogger(__name__)

_GRIDS: Mapping[type, Callable[..., BuiltGrid]] = {
    AreasConfig: of_areas,
    OccupancyConfig: of_occupancy,
    RasterConfig: of_raster,
}


def build_topology(config: MapConfig, *, base_dir: Path | None = None) -> Topology:
    """Build the map of a configuration; a relative `file` is searched in `base_dir` first.

    Raises:
        ConfigError: an outline or obstacles that are no polygons, unknown features, or invalid
            weights.
        MapError: a map file that cannot be used.
        ResourceError: a map file that cannot be found.
    """
    return build_settled(config, base_dir=base_dir)[0]


def build_settled(config: MapConfig, *, base_dir: Path | None = None) -> tuple[Topology, MapConfig]:
    """Return a map, and its configuration with the spacing and origin of a line or a grid.

    Errors are those of `build_topology`.
    """
    path = find_map(config.file, base_dir) if config.file else None
    settled = config.of_content(path) if isinstance(config, FileConfig) and path else config
    name, frame = settled.name or settled.kind or "", settled.frame or "map"
    places: Places
    if isinstance(settled, OccupancyConfig) and settled.topic:
        places = _of_topic(settled, base_dir)
    elif isinstance(settled, GridConfig):
        places, spacing, origin = _GRIDS[type(settled)](settled, path, base_dir)
        settled = dataclasses.replace(settled, spacing=spacing, origin=origin)
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
    if config.weights != WeightsConfig():
        places = weighted(places, config.weights, base_dir)
    return places, settled


def _of_roads(config: RoadsConfig, path: Path) -> Roads:
    road_map = load_roads(path, crs=config.crs)
    road_map = dataclasses.replace(road_map, name=config.name or road_map.name)
    if config.largest_component:
        road_map = keep_largest(road_map, config.u_turns)
    keys = ("anchor", "u_turns", "speed", "frame", "reach")
    how = {key: getattr(config, key) for key in keys}
    return Roads(road_map, features=config.features or ("x", "y"), **how)


def _of_topic(config: OccupancyConfig, run_dir: Path | None) -> Places:
    """Return the last map of a mission, from the occupancy grids in its run directory."""
    from gp_active_sensing.topology.live import kept_places

    if run_dir is None or not (run_dir / "map-1.yaml").is_file():
        msg = (
            f"topic: the map comes by topic {config.topic} of a running system, so there is none "
            "here; give file, the YAML file of a map that was saved"
        )
        raise ConfigError(msg)
    return kept_places(config, run_dir).topology


_WORKED_OUT = ("spacing", "origin")


def worked_out(given: MapConfig, settled: MapConfig) -> dict[str, Any]:
    """Return the values of keys that the `given` configuration leaves open and `settled` has."""
    before, after = to_mapping(given), to_mapping(settled)
    return {
        key: after[key] for key in _WORKED_OUT if key in after and after[key] != before.get(key)
    }


def as_begun_with(config: MapConfig, start: Mapping[str, Any]) -> MapConfig:
    """Return a configuration with the spacing and origin of the first event of its run.

    Configured values stay.

    Raises:
        ConfigError: an invalid spacing or origin in the first event.
    """
    stored, stated = start.get("map"), to_mapping(config)
    if not isinstance(stored, Mapping):
        return config
    more = {key: stored[key] for key in _WORKED_OUT if key in stored and not stated.get(key)}
    return from_mapping(MapConfig, {**stated, **more}, path="map") if more else config


def stored_map(
    section: Mapping[str, Any], start: Mapping[str, Any], *, source: str = ""
) -> MapConfig:
    """Return the map's configuration by the section ``map`` and first event of a run.

    `start` {} = the event is unknown. `source` names the file, for messages.

    Raises:
        ConfigError: an invalid configuration.
    """
    return as_begun_with(from_mapping(MapConfig, section, path="map", source=source), start)
