"""Places from a table: stations and sampling sites with names, heights and further numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gp_active_sensing.topology.base import Places
from gp_active_sensing.topology.generated import FreeTopology
from gp_active_sensing.topology.graph import GraphTopology, Move
from gp_active_sensing.topology.legs import Speeds
from gp_active_sensing.topology.loaders.tables import ColumnsConfig, Sites, read_stations

__all__ = ["load_stations", "topology_of"]


def load_stations(
    path: Path,
    *,
    columns_of: ColumnsConfig | Mapping[str, str] | None = None,
    crs: str = "",
    distances: Path | None = None,
    features: Sequence[str] | None = None,
    speed: float | Speeds = 1.0,
    reach: float = 0.0,
    name: str = "",
    frame: str = "map",
) -> FreeTopology | GraphTopology:
    """Return the map of the places of a CSV table.

    Without a table of distances any place may be next, by the straight way.

    Args:
        path: a row for each place, see `read_stations`.
        columns_of: what its columns are called, see `read_stations`.
        crs: of its coordinates, see `read_stations`.
        distances: ways between them, see `distance_table`; None = straight.
        features: what the covariance is a function of; None = x, y, and z where there are heights.
        speed: of the probe [m/s], or its speeds along a way and up and down.
        reach: places within so many metres may be next, too; 0 = adjacent ones only.
        name: of the map; "" = that of the file.
        frame: metric frame of the positions.

    Raises:
        MapError: with every problem found (the first ten in words), each with its line.
        ConfigError: no such feature, or columns that contradict each other.
        MissingDependencyError: the table has longitudes, and pyproj is missing.
    """
    sites = read_stations(path, name=name, columns_of=columns_of, crs=crs)
    moves: list[list[Move]] | None = None
    speeds = speed if isinstance(speed, Speeds) else Speeds(speed)
    if distances is not None:
        from gp_active_sensing.topology.distance_table import moves_along, read_distances

        ways = read_distances(distances, sites.names)
        moves = moves_along(ways, sites.points, speeds, names=sites.names, where=str(distances))
    return topology_of(sites, moves, features=features, speed=speeds, reach=reach, frame=frame)


def topology_of(
    sites: Sites,
    moves: Sequence[Sequence[Move]] | None,
    *,
    features: Sequence[str] | None = None,
    speed: float | Speeds = 1.0,
    reach: float = 0.0,
    frame: str = "map",
) -> FreeTopology | GraphTopology:
    """Return the map of places.

    Args:
        sites: the places.
        moves: (n,) out of each place; None = any place may be next.
        features: what the covariance is a function of; None = the points.
        speed: of the probe, where any place may be next.
        reach: places within so many metres may be next, too.
        frame: metric frame of the positions.

    Raises:
        ConfigError: no such feature.
        MapError: a feature that a place lacks.
    """
    points, numbers = sites.points, dict(sites.numbers)
    more: dict[str, Any] = {"heights": points[:, 2] if points.shape[1] == 3 else None}
    more["numbers"] = numbers
    if features is not None:
        plain = Places(sites.title, frame, sites.names, points[:, :2], **more)
        more["features"], more["feature_names"] = plain.columns(features)
        more["numbers"] = {key: v for key, v in numbers.items() if key not in features}
    made: FreeTopology | GraphTopology
    where = sites.title, frame, sites.names, points[:, :2]
    if moves is None:
        made = FreeTopology(*where, speed=speed, **more)
    else:
        made = GraphTopology(*where, moves, reach=reach, **more)
    made.datum = sites.datum
    return made
