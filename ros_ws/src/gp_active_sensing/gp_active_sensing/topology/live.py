"""Places on a map that changes while a mission goes on: those so far keep their numbers."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gp_active_sensing.errors import MapError
from gp_active_sensing.topology.base import Topology
from gp_active_sensing.topology.cells import free_points
from gp_active_sensing.topology.generated import FreeTopology
from gp_active_sensing.topology.geometry import FreeGround, Outline
from gp_active_sensing.topology.graph import GraphTopology
from gp_active_sensing.topology.grids import usual_map
from gp_active_sensing.topology.occupancy import OccupancyGrid, make_occupancy_map
from gp_active_sensing.topology.weights import WeightsConfig, weights_of
from gp_active_sensing.types import BoolArray, FloatArray

if TYPE_CHECKING:
    from gp_active_sensing.topology.config import MapConfig

__all__ = ["LivePlaces", "is_cut", "mark_of"]


def mark_of(grid: OccupancyGrid) -> str:
    """Return eight digits that tell an occupancy grid from another one."""
    rows, columns = grid.shape
    said = (rows, columns, float(grid.resolution), *map(float, grid.origin), float(grid.yaw))
    return f"{zlib.crc32(grid.values.tobytes(), zlib.crc32(repr(said).encode())):08x}"


@dataclass(frozen=True)
class LivePlaces:
    """The places of an occupancy grid, and of those that come after it.

    Args:
        config: of the map, with the spacing that the first grid gave where none is set.
        topology: the places.
        closed: those that are occupied now: no move leads there, and they have no weight.
        mark: of the grid, see `mark_of`.
        number: of the map, from 1.
    """

    config: MapConfig
    topology: FreeTopology | GraphTopology
    closed: frozenset[int]
    mark: str
    number: int = 1

    @classmethod
    def of(cls, config: MapConfig, grid: OccupancyGrid, frame: str) -> LivePlaces:
        """Return the places of the first occupancy grid.

        Args:
            config: of the map.
            grid: what is known of the ground.
            frame: that it is in.

        Raises:
            MapError: it has no free cell, or no place on one.
            ConfigError: a spacing, an outline or weights that do not fit it.
        """
        config = replace(config, frame=config.frame or frame)
        if config.spacing:
            return cls(config, _places(config, grid, ()), frozenset(), mark_of(grid))

        def build(step: float) -> FreeTopology | GraphTopology:
            return _places(replace(config, spacing=step), grid, ())

        spacing, places = usual_map(grid, config, build)
        return cls(replace(config, spacing=spacing), places, frozenset(), mark_of(grid))

    def on(self, grid: OccupancyGrid) -> LivePlaces | None:
        """Return the places of a newer occupancy grid; None where they are the same.

        Raises:
            MapError: it has no free cell, or no place on one.
            ConfigError: more places than there may be, or weights that do not fit.
        """
        if (mark := mark_of(grid)) == self.mark:
            return None
        before = self.topology
        free = _free(self.config, grid, before.positions)
        if not free.any() and grid.blocked(**_how(self.config)).all():
            _places(self.config, grid, ())  # says why nothing at all is free
        found = _places(self.config, grid, before.names) if free.any() else before
        closed = _closed(found, free)
        if len(closed) == before.n:
            msg = (
                f"map {found.name!r}: none of its {before.n} places is free any more; the map is "
                "another one, or has moved in its frame: go on with it in a new mission"
            )
            raise MapError(msg)
        if (
            found.names == before.names
            and closed == self.closed
            and _moves(found) == _moves(before)
        ):
            return None
        if closed:
            weights = found.weights.copy()
            weights[list(closed)] = 0.0
            if weights.any():
                found = found.weighted(weights)
        return LivePlaces(self.config, found, closed, mark, self.number + 1)


def _how(config: MapConfig) -> dict[str, Any]:
    """Return what counts as free ground."""
    return {
        "inflation": config.inflation,
        "unknown": config.unknown,
        "occupied": config.occupied,
    }


def _places(
    config: MapConfig, grid: OccupancyGrid, keep: tuple[str, ...]
) -> FreeTopology | GraphTopology:
    outline, obstacles = _areas(config)
    places = make_occupancy_map(
        grid,
        config.spacing,
        anchor=config.origin or (0.0, 0.0),
        keep=keep,
        neighbours=config.neighbours,
        moves=config.moves,
        outline=outline,
        obstacles=obstacles,
        speed=config.speed,
        reach=config.reach,
        name=config.name or config.topic.strip("/") or "map",
        frame=config.frame,
        **_how(config),
    )
    if config.weights == WeightsConfig():
        return places
    return places.weighted(weights_of(config.weights, places))


def _areas(config: MapConfig) -> tuple[Outline | None, list[Outline]]:
    """Return outline and obstacles; files of areas are refused beside a topic (`MapConfig`)."""
    outline = None if isinstance(config.outline, str) else config.outline
    return outline, [area for area in config.obstacles if not isinstance(area, str)]


def _free(config: MapConfig, grid: OccupancyGrid, positions: FloatArray) -> BoolArray:
    """Return at which positions (m, 2) a probe can be [m]."""
    free = free_points(grid, grid.blocked(**_how(config)), positions)
    return np.asarray(free & FreeGround(*_areas(config)).free(positions))


def _closed(places: FreeTopology | GraphTopology, free: BoolArray) -> frozenset[int]:
    """Return which of the first places a probe cannot be at (`free`), or cannot come to."""
    closed = set(np.flatnonzero(~free).tolist())
    moves = _moves(places)
    if moves and places.n - len(closed) > 1:
        closed |= {place for place in range(len(free)) if not moves[place]}
    return frozenset(closed)


def _moves(places: FreeTopology | GraphTopology) -> tuple[object, ...]:
    return places.moves if isinstance(places, GraphTopology) else ()


def is_cut(topology: Topology, way: tuple[int, ...], closed: Collection[int]) -> bool:
    """Return whether a way cannot be driven any more: a place is closed, or a move is gone."""
    if any(place in closed for place in way):
        return True
    if not isinstance(topology, GraphTopology) or topology.reach:
        return False
    steps = itertools.pairwise(way)
    return any(b not in topology.neighbours(a) and a != b for a, b in steps)
