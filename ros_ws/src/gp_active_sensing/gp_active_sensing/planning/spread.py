"""Policy that visits places with large mutual distances, in the order of a short tour."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gp_active_sensing.planning.budget import BudgetConstraint
from gp_active_sensing.planning.routes.base import Ask, PlannedRoute, RoutePolicy
from gp_active_sensing.planning.routes.distances import (
    PartDistances,
    distances_of,
    mean_distance,
    unit_of,
)
from gp_active_sensing.planning.routes.follow import RouteDrive, fits, trip_of
from gp_active_sensing.planning.routes.ordering import short_tour
from gp_active_sensing.topology.base import Topology
from gp_active_sensing.types import BoolArray, FloatArray

MOST = 300
"""Largest number of places in one tour."""
_MANY = 8
"""Number of places in a tour below which tours of a part of the map are also tried."""
_SHARES = (1.0, 0.5, 0.25)
"""Fractions of the budget, tried in this order. A tour visits only places for which the drive to
the place and on to the end place needs at most this fraction."""


class FarthestPoints:
    """Order of a map's places, each as far as possible from the earlier places.

    Let r be the largest distance from any place to the nearest of the first k places. r is at most
    twice the least value that is possible with k places. Distances are measured along roads and
    around obstacles. [Gonzalez1985]

    Args:
        topology: the map.
        open_: (n,) mask of the places that may be chosen.
        covered: places that count as already chosen.
        begin: first place of the order; None = the place farthest from `covered`. If `covered` is
            empty, None = the place nearest to the middle of the map.
    """

    def __init__(
        self,
        topology: Topology,
        open_: BoolArray,
        covered: Collection[int] = (),
        begin: int | None = None,
    ) -> None:
        self.found: list[int] = []
        self._apart = PartDistances(topology)
        self._open = open_.copy()
        self._away: FloatArray = np.full(topology.n, np.inf)
        if covered:
            self._away = self._apart.nearest(sorted(covered))
        if begin is not None:
            self._select(begin)
        elif not covered and open_.any():
            x = topology.points
            from_middle = np.round(np.linalg.norm(x - x[open_].mean(axis=0), axis=1), 6)
            self._select(int(np.argmin(np.where(open_, from_middle, np.inf))))

    def first(self, count: int) -> list[int]:
        """Return the first `count` places of the order, or all if there are fewer."""
        while len(self.found) < count and self._open.any():
            self._select(int(np.argmax(np.where(self._open, np.round(self._away, 6), -1.0))))
        return self.found[:count]

    def _select(self, place: int) -> None:
        self.found.append(place)
        self._open[place] = False
        # A search beyond the largest present distance changes nothing.
        left = self._away[self._open]
        limit = float(left.max()) if left.size else 0.0
        self._away = np.minimum(self._away, self._apart.row(place, limit))


@dataclass(frozen=True)
class Spread(RoutePolicy):
    """Short tour of places that are far from each other, independent of the readings.

    The first place is the place of the probe. Each further place is farthest from all earlier and
    all observed places (see `FarthestPoints`). Bisection finds the largest number of places whose
    tour fits into the remaining budget, including the drive to the end place. If the map has no
    moves and only readings are limited, the tour has a place for each reading. If a tour of the
    whole map has only few places, the policy also tries tours of a part of the map. The policy
    chooses the tour with the least mean distance from a place of the map to the nearest visited
    place.

    After the tour, another tour follows for the remaining budget. If the mission ends at a target
    error of the map, each tour is a `Pass` over the whole map. Several probes share a tour.
    """

    repeats: ClassVar[bool] = True

    def build_route(self, ask: Ask) -> PlannedRoute:
        """Return the best tour that fits into the budget."""
        found = _RouteSearch(ask)
        points = ask.request.topology.points
        best: tuple[float, tuple[int, ...]] | None = None
        for share in _SHARES:
            places = found.largest(share)
            if places:
                away = round(mean_distance(points, points, found.visited(places)), 6)
                if best is None or away < best[0]:
                    best = (away, places)
            if len(places) >= _MANY or found.stopped or not found.limited:
                break
        places = () if best is None else best[1]
        return PlannedRoute(places, max(found.expanded, 1), found.stopped)


class _RouteSearch:
    def __init__(self, ask: Ask) -> None:
        self.ask, self.request = ask, ask.request
        topology, remaining = ask.request.topology, ask.request.remaining
        self.by = unit_of(remaining)
        self.expanded = 0
        self.constraint = BudgetConstraint(topology, remaining)
        self.distances = distances_of(topology, self.by)
        ways = ask.reach.ways
        self.first: FloatArray = ways.metres if self.by == "metres" else ways.seconds
        self.home = self.constraint.costs_home(self.by)
        self.open_: BoolArray = np.zeros(topology.n, dtype=np.bool_)
        self.open_[ask.reach.locations] = True
        self.open_ &= ask.unread
        driven = remaining.metres is not None or remaining.seconds is not None
        self.limited = driven or (remaining.readings is not None and not topology.free)
        """True if the drive between two places reduces the budget."""

    @property
    def stopped(self) -> bool:
        limit = self.request.limit.expansions
        return self.ask.spent() or (limit is not None and self.expanded >= limit)

    def largest(self, share: float) -> tuple[int, ...]:
        """Return the places of the largest tour that fits into the budget; () = no tour."""
        request, at = self.request, self.request.at
        begin = at if at is not None and self.open_[at] and self.first[at] == 0.0 else None
        covered = {*np.flatnonzero(request.belief.observed).tolist(), *request.pending}
        if begin is None and at is not None:
            covered.add(at)
        far = FarthestPoints(request.topology, self.open_ & self._within(share), covered, begin)
        readings = request.remaining.readings
        most = MOST if readings is None else min(readings, MOST)
        low, best = 1, tuple(far.first(1))
        high, number = most + 1, min(_MANY, most) if self.limited else most
        while low < number < high and not self.stopped:
            places = far.first(number)
            order = self._fitting(places)
            if order:
                low, best = number, order
                if len(places) < number:  # there are no more places
                    break
                number = min(2 * number, (low + high) // 2)
            else:
                high = number
                number = (low + high) // 2
        return best

    def visited(self, places: Sequence[int]) -> tuple[int, ...]:
        trip = self._trip(places)
        return () if trip is None else trip.path

    def _trip(self, places: Sequence[int]) -> RouteDrive | None:
        ask, request = self.ask, self.request
        return trip_of(request.topology, places, request.at, ask.unread, self.by, ask.reach.ways)

    def _fitting(self, places: Sequence[int]) -> tuple[int, ...]:
        """Return `places` in the order of a short tour; () = the tour exceeds the budget."""
        chosen, limit = np.array(places, dtype=np.int64), self.request.limit.expansions
        tour = short_tour(
            self.distances.between(chosen),
            self.first[chosen],
            None if self.home is None else self.home[chosen],
            limit=None if limit is None else limit - self.expanded,
            spent=self.ask.spent,
        )
        self.expanded += max(tour.expanded, 1)
        order = tuple(chosen[tour.order].tolist())
        return order if fits(self._trip(order), self.constraint) else ()

    def _within(self, share: float) -> BoolArray:
        """Return the (n,) mask of places to which a drive is cheap enough.

        The drive there and on to the end place needs at most the fraction `share` of the budget.
        """
        reach, remaining = self.ask.reach, self.request.remaining
        takes = self.first if self.home is None else self.first + self.home
        left = remaining.metres if self.by == "metres" else remaining.seconds
        if left is None and remaining.readings is not None:
            takes = np.full(len(self.open_), np.inf)
            takes[reach.locations] = reach.reads
            left = remaining.readings
        if left is None or share >= 1.0:
            return np.ones(len(self.open_), dtype=np.bool_)
        return takes <= share * left
