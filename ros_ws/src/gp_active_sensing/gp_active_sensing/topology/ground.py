"""The ground that places of a grid lie on: outlines that hold them, obstacles that they avoid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gp_active_sensing.errors import ConfigError
from gp_active_sensing.topology.geometry import Outline, polygon, widened
from gp_active_sensing.types import IntArray

__all__ = ["FreeGround"]


class FreeGround:
    """The outline and the obstacles, with shapely loaded only when there are any.

    Args:
        outline: of the area with places [m]; None = everywhere.
        obstacles: their outlines [m].

    Raises:
        ConfigError: outlines that are no polygons.
    """

    def __init__(self, outline: Outline | None, obstacles: Sequence[Outline]) -> None:
        self._area: Any = None
        self._obstacles: Any = None
        if outline is None and not obstacles:
            return
        import shapely

        problems: list[str] = []
        shapes = [
            polygon(obstacle, f"obstacles[{number}]", problems)
            for number, obstacle in enumerate(obstacles)
        ]
        area = None if outline is None else polygon(outline, "outline", problems)
        if problems:
            raise ConfigError(problems)
        if shapes:
            self._obstacles = shapely.union_all(shapes)
            shapely.prepare(self._obstacles)
        if area is not None:
            self._area = widened(area)
            shapely.prepare(self._area)

    def inside(self, points: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
        """(m,) points inside or on the edge of the outline."""
        if self._area is None:
            return np.ones(len(points), dtype=np.bool_)
        import shapely

        return np.asarray(shapely.intersects_xy(self._area, points[:, 0], points[:, 1]))

    def blocked(self, points: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
        """(m,) points inside or on the edge of an obstacle."""
        if self._obstacles is None:
            return np.zeros(len(points), dtype=np.bool_)
        import shapely

        return np.asarray(shapely.intersects_xy(self._obstacles, points[:, 0], points[:, 1]))

    def free(self, points: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
        """(m,) points inside the outline that no obstacle covers."""
        return self.inside(points) & ~self.blocked(points)

    def passable(
        self, points: npt.NDArray[np.float64], pairs: Sequence[tuple[int, int]] | IntArray
    ) -> npt.NDArray[np.bool_]:
        """(len(pairs),) straight lines between two points that stay inside and touch nothing."""
        free = np.ones(len(pairs), dtype=np.bool_)
        if not len(pairs) or (self._area is None and self._obstacles is None):
            return free
        import shapely

        lines = shapely.linestrings(points[np.asarray(pairs)])
        if self._obstacles is not None:
            free &= ~shapely.intersects(self._obstacles, lines)
        if self._area is not None:
            free &= shapely.covers(self._area, lines)
        return free
