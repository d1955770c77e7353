"""Places as far from one another as can be: a far-point set, one place after the other."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from gp_active_sensing.planning.routes.distances import Apart
from gp_active_sensing.topology.base import Topology
from gp_active_sensing.types import BoolArray, FloatArray

__all__ = ["FarPoints"]


class FarPoints:
    """The places of a map in such an order that each is farthest from those before it.

    The first k of them leave no place more than twice as far from the nearest one as the best k
    places would. Distances are those of the map: along roads, around obstacles. What has no way
    there counts as farthest; of equally far places the first one is taken. [Gonzalez1985]

    Args:
        topology: the map.
        open_: (n,) places that may be chosen.
        covered: places that count as chosen before.
        begin: the first of them; None = the farthest from what is covered, or where nothing is the
            one nearest to the middle.
    """

    def __init__(
        self,
        topology: Topology,
        open_: BoolArray,
        covered: Collection[int] = (),
        begin: int | None = None,
    ) -> None:
        self.found: list[int] = []
        self._apart = Apart(topology)
        self._open = open_.copy()
        self._away: FloatArray = np.full(topology.n, np.inf)
        if covered:
            self._away = self._apart.nearest(sorted(covered))
        if begin is not None:
            self._take(begin)
        elif not covered and open_.any():
            x = topology.positions
            from_middle = np.round(np.hypot(*(x - x[open_].mean(axis=0)).T), 6)
            self._take(int(np.argmin(np.where(open_, from_middle, np.inf))))

    def first(self, count: int) -> list[int]:
        """Return so many of them, or all that there are."""
        while len(self.found) < count and self._open.any():
            self._take(int(np.argmax(np.where(self._open, np.round(self._away, 6), -1.0))))
        return self.found[:count]

    def _take(self, place: int) -> None:
        self.found.append(place)
        self._open[place] = False
        # Farther than the farthest place is, no place gets any nearer.
        left = self._away[self._open]
        limit = float(left.max()) if left.size else 0.0
        self._away = np.minimum(self._away, self._apart.row(place, limit))
