"""Places on an occupancy grid that changes during a mission: earlier places keep their indices."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np

from gp_active_sensing.errors import MapError
from gp_active_sensing.topology.base import GraphTopology, Places, Topology
from gp_active_sensing.topology.geometry import FreeGround, OccupancyGrid, Outline
from gp_active_sensing.topology.grids import make_occupancy_map, usual_map
from gp_active_sensing.topology.loaders.areas import weighted
from gp_active_sensing.topology.map_config import OccupancyConfig
from gp_active_sensing.types import BoolArray


def mark_of(grid: OccupancyGrid) -> str:
    """Return a checksum of an occupancy grid: eight hexadecimal digits."""
    rows, columns = grid.shape
    head = (rows, columns, float(grid.resolution), *map(float, grid.origin), float(grid.yaw))
    return f"{zlib.crc32(grid.values.tobytes(), zlib.crc32(repr(head).encode())):08x}"


@dataclass(frozen=True)
class LivePlaces:
    """Places on the newest occupancy grid of a mission."""

    config: OccupancyConfig  # with the spacing of the first grid if none is configured
    topology: Places
    closed: frozenset[int]  # occupied or isolated places, with a weight of 0
    mark: str  # checksum of the last grid
    number: int = 1  # number of the last grid, from 1

    @classmethod
    def of(cls, config: OccupancyConfig, grid: OccupancyGrid, frame: str) -> LivePlaces:
        """Return the places of the first occupancy grid; `frame` is the frame of the grid.

        Raises:
            MapError: no cell is free, or no place is on a free cell.
            ConfigError: the spacing, the outline or the weights do not fit the grid.
        """
        config = replace(config, frame=config.frame or frame)
        if config.spacing:
            return cls(config, _places(config, grid, ()), frozenset(), mark_of(grid))
        spacing, places = usual_map(
            grid, config, lambda step: _places(replace(config, spacing=step), grid, ())
        )
        return cls(replace(config, spacing=spacing), places, frozenset(), mark_of(grid))

    def on(self, grid: OccupancyGrid) -> LivePlaces | None:
        """Return the places of a newer occupancy grid; None = the places do not change.

        Raises:
            MapError: no cell is free, or no place is on a free cell.
            ConfigError: there are too many places, or the weights do not fit the grid.
        """
        if (mark := mark_of(grid)) == self.mark:
            return None
        before = self.topology
        blocked, areas = grid.blocked(**self.config.counting), _areas(self.config)
        ground = FreeGround(*areas, self.config.inflation, cells=grid, blocked=blocked)
        free = ground.free(before.positions)
        if not free.any() and blocked.all():
            _places(self.config, grid, ())  # raises the reason
        found = _places(self.config, grid, before.names) if free.any() else before
        closed = _closed(found, free)
        if len(closed) == before.n:
            msg = (
                f"map {found.name!r}: none of its {before.n} places is free any more; the map is "
                "another one, or has moved in its frame: go on with it in a new mission"
            )
            raise MapError(msg)
        same = found.names == before.names and closed == self.closed
        if same and _moves(found) == _moves(before):
            return None
        if closed:
            weights = found.weights.copy()
            weights[list(closed)] = 0.0
            if weights.any():
                found = found.weighted(weights)
        return LivePlaces(self.config, found, closed, mark, self.number + 1)


def _places(config: OccupancyConfig, grid: OccupancyGrid, keep: tuple[str, ...]) -> Places:
    outline, obstacles = _areas(config)
    places = make_occupancy_map(
        grid,
        config.spacing,
        anchor=config.origin or (0.0, 0.0),
        keep=keep,
        outline=outline,
        obstacles=obstacles,
        name=config.name or config.topic.strip("/") or "map",
        frame=config.frame,
        **config.making,
    )
    return weighted(places, config.weights)


def _areas(config: OccupancyConfig) -> tuple[Outline | None, list[Outline]]:
    outline = None if isinstance(config.outline, str) else config.outline
    return outline, [area for area in config.obstacles if not isinstance(area, str)]


def _closed(places: Places, free: BoolArray) -> frozenset[int]:
    closed = set(np.flatnonzero(~free).tolist())
    moves = _moves(places)
    if moves and places.n - len(closed) > 1:
        closed |= {place for place in range(len(free)) if not moves[place]}
    return frozenset(closed)


def _moves(places: Places) -> tuple[object, ...]:
    return places.moves if isinstance(places, GraphTopology) else ()


def is_cut(topology: Topology, way: tuple[int, ...], closed: Collection[int]) -> bool:
    """Return whether a path has a closed place, or a move that no longer exists."""
    if any(place in closed for place in way):
        return True
    if not isinstance(topology, GraphTopology) or topology.reach:
        return False
    steps = itertools.pairwise(way)
    return any(b not in topology.neighbours(a) and a != b for a, b in steps)
