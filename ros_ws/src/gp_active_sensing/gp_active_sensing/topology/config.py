"""Build the map that a configuration describes."""

from __future__ import annotations

import dataclasses
import logging
from pathlib import Path
from typing import Any

from gp_active_sensing.errors import ConfigError
from gp_active_sensing.topology.base import Topology
from gp_active_sensing.topology.generated import FreeTopology, make_line, make_points
from gp_active_sensing.topology.geometry import Speeds
from gp_active_sensing.topology.graph import GraphTopology
from gp_active_sensing.topology.grids import build_grid
from gp_active_sensing.topology.loaders import OF_FILE, find_map, kind_of_map, load_roads
from gp_active_sensing.topology.map_config import MapConfig, RoadsConfig, StationsConfig
from gp_active_sensing.topology.roads import Roads
from gp_active_sensing.topology.segments import keep_largest
from gp_active_sensing.topology.weights import WeightsConfig, weights_of

__all__ = ["MapConfig", "build_settled", "build_topology"]

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
    places, settled = _built(config, base_dir)
    if config.weights == WeightsConfig():
        return places, settled
    return places.weighted(weights_of(config.weights, places, base_dir)), settled


def _built(
    config: MapConfig, base_dir: Path | None
) -> tuple[FreeTopology | GraphTopology, MapConfig]:
    if config.topic:
        return _of_topic(config, base_dir), config
    if config.kind is None or (config.file and config.kind in OF_FILE):
        path = find_map(config.file, base_dir)
        kind = config.kind or kind_of_map(str(path))
        # Also checks a name without an end against the file that was found.
        dataclasses.replace(config, kind=kind, file=path.name)
        of_kind = dataclasses.replace(config, kind=kind)
        if kind == "grid":
            return _grid(of_kind, path, base_dir, config)
        made = _stations(of_kind, path, base_dir) if kind == "points" else _roads(of_kind, path)
        return made, config
    if config.kind == "grid":
        return _grid(config, None, base_dir, config)
    shared: dict[str, Any] = {
        "name": config.name or config.kind,
        "frame": config.frame or "map",
        "speed": config.speed,
    }
    if config.kind == "points":
        box = config.count, config.low, config.high
        return make_points(*box, seed=config.seed, **shared), config
    origin = config.origin or (0.0, 0.0)
    shared |= {"moves": config.moves, "origin": origin, "reach": config.reach}
    spacing = (config.spacing if isinstance(config.spacing, float) else 0.0) or 1.0
    settled = dataclasses.replace(config, spacing=spacing, origin=origin)
    return make_line(config.count, spacing, **shared), settled


def _of_topic(config: MapConfig, run_dir: Path | None) -> FreeTopology | GraphTopology:
    """Return the map that a mission has come to, by the maps in its run directory."""
    from gp_active_sensing.topology.live import kept_places

    if run_dir is None or not (run_dir / "map-1.yaml").is_file():
        msg = (
            f"topic: the map comes by topic {config.topic} of a running system, so there is none "
            "here; give file, the YAML file of a map that was saved"
        )
        raise ConfigError(msg)
    return kept_places(config, run_dir).topology


def _grid(
    config: MapConfig, path: Path | None, base_dir: Path | None, given: MapConfig
) -> tuple[FreeTopology | GraphTopology, MapConfig]:
    built = build_grid(config, path, base_dir)
    for note in built.notes:
        logger.info("map %r: %s", built.places.name, note)
    return built.places, dataclasses.replace(given, spacing=built.spacing, origin=built.origin)


def _stations(
    config: StationsConfig, path: Path, base_dir: Path | None
) -> FreeTopology | GraphTopology:
    from gp_active_sensing.topology.stations import load_stations  # seldom wanted

    return load_stations(
        path,
        columns_of=config.columns_of,
        crs=config.crs,
        distances=find_map(config.distances, base_dir) if config.distances else None,
        features=config.features,
        speed=Speeds(config.speed, config.climb_speed, config.descent_speed),
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
    for note in road_map.notes:
        logger.info("map %r: %s", road_map.name, note)
    return Roads(
        road_map,
        features=config.features or _PLANE,
        relational=config.relational,
        share=config.relational_share,
        anchor=config.anchor,
        u_turns=config.u_turns,
        speed=config.speed,
        frame=config.frame,
        reach=config.reach,
    )
