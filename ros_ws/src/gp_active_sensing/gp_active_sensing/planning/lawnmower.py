"""Lawnmower survey: the densest evenly spaced rows that fit into the budget."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from gp_active_sensing.belief import Belief
from gp_active_sensing.config import param
from gp_active_sensing.errors import PlanningError
from gp_active_sensing.planning.budget import BudgetConstraint
from gp_active_sensing.planning.routes.base import Ask, PlannedRoute, RoutePolicy
from gp_active_sensing.planning.routes.boustrophedon import CORNERS, Ground, Rows, rows_of
from gp_active_sensing.planning.routes.distances import distances_of, unit_of
from gp_active_sensing.planning.routes.follow import RouteDrive, fits, trip_of
from gp_active_sensing.topology.base import Topology
from gp_active_sensing.types import BoolArray, Budget


@dataclass(frozen=True)
class PlannedRows:
    """Rows on a map, their places in the order of the visits, and the drive along the rows.

    `trip` is None if two successive places have no route between them.
    """

    rows: Rows
    places: tuple[int, ...]
    trip: RouteDrive | None


class Found(NamedTuple):
    """Result of a search for rows: the rows, whether they fit into the budget, and the effort."""

    laid: PlannedRows
    fits: bool
    expanded: int
    stopped: bool


def densest_rows(
    ground: Ground,
    at: int | None,
    remaining: Budget,
    unread: BoolArray,
    *,
    spacing: float | None = None,
    inset: float | None = None,
    direction: float | None = None,
    limit: int | None = None,
    spent: Callable[[], bool] = lambda: False,
    known: Sequence[int] = (),
) -> Found | None:
    """Return the evenly spaced rows with the least mean distance from a place to the nearest row.

    For each direction and inset, the function finds the densest rows that fit into the budget. Of
    rows with equal mean distances, it takes those with the shortest drive. If no rows fit, it takes
    the sparsest rows. The result is None if the map has no places.

    Args:
        ground: the map.
        at: place of the probe; None = no place yet.
        remaining: remaining budget and end place.
        unread: (n,) mask of the places that may get their first reading.
        spacing: distance between rows [m]; None = the best spacing.
        inset: distance of rows from the edge [m]; None = the best inset.
        direction: direction of the rows [degrees]; None = the best direction.
        limit: largest number of evaluated layouts of rows; at least one is evaluated.
        spent: function that returns whether time is up.
        known: observed places; they count as visited in the mean distance.
    """
    if not len(ground.places):
        return None
    layer = _Layer(ground, at, remaining, unread, limit, spent)
    ranked: list[tuple[tuple[float, float], PlannedRows]] = []
    fewest: PlannedRows | None = None
    for family in ground.evenly(
        spacing=spacing, inset=inset, direction=direction, sparse=layer.sparse
    ):
        if fewest is None:
            fewest = layer.place_rows(family[0])
        if layer.stopped:
            break
        number = layer.densest(family)
        if number is None:
            continue
        for laid in layer.corners(family[number]):
            if layer.fits(laid) and laid.trip is not None:
                cost = laid.trip.cost
                length = cost.metres if layer.by == "metres" else cost.seconds
                away = ground.mean_distance([*laid.places, *known])
                ranked.append(((round(away, 6), round(length + layer.home(laid), 6)), laid))
    if ranked:
        best = min(ranked, key=lambda one: one[0])[1]
        return Found(best, True, layer.expanded, layer.stopped)
    assert fewest is not None, "a map with places has room for a row"
    return Found(fewest, layer.fits(fewest), layer.expanded, layer.stopped)


class _Layer:
    """Search for rows that fit into a budget; see `densest_rows` for the arguments."""

    def __init__(
        self,
        ground: Ground,
        at: int | None,
        remaining: Budget,
        unread: BoolArray,
        limit: int | None = None,
        spent: Callable[[], bool] = lambda: False,
    ) -> None:
        self.by = unit_of(remaining)
        self.sparse = ground.topology.free and remaining.readings is not None
        """True if readings are limited and places on a drive are not observed."""
        self.expanded = 0
        self._ground = ground
        self._at = at
        self._unread = unread
        self._constraint = BudgetConstraint(ground.topology, remaining)
        self._ways = ground.topology.ways_from(at, self.by)
        self._distances = distances_of(ground.topology, self.by)
        self._limit = math.inf if limit is None else limit
        self._spent = spent
        self._laid: dict[Rows, PlannedRows] = {}

    @property
    def stopped(self) -> bool:
        return self.expanded >= self._limit or self._spent()

    def place_rows(self, rows: Rows) -> PlannedRows:
        if rows not in self._laid:
            self.expanded += 1
            places = rows_of(self._ground, rows, self.by)
            trip = trip_of(
                self._ground.topology, places, self._at, self._unread, self.by, self._ways
            )
            self._laid[rows] = PlannedRows(rows, places, trip)
        return self._laid[rows]

    def corners(self, rows: Rows) -> Iterator[PlannedRows]:
        """Yield the rows once for each corner as the start, beginning with the nearest corner."""
        nearest = self._ground.corner(rows.direction, self._at)
        for corner in (nearest, *(c for c in range(CORNERS) if c != nearest)):
            laid = replace(rows, corner=corner)
            if corner == nearest or not self.stopped or laid in self._laid:
                yield self.place_rows(laid)

    def fits(self, laid: PlannedRows) -> bool:
        return fits(laid.trip, self._constraint)

    def home(self, laid: PlannedRows) -> float:
        home = self._constraint.costs_home(self.by)
        if home is None or laid.trip is None or not laid.trip.path:
            return 0.0
        cost = float(home[laid.trip.path[-1]])
        return cost if math.isfinite(cost) else 0.0

    def densest(self, family: Sequence[Rows]) -> int | None:
        low, high = -1, len(family)
        number = high - 1
        while low < number < high and not self.stopped:
            corner = self._ground.corner(family[number].direction, self._at)
            places = self._ground.places_of(family[number])
            reads = int(np.count_nonzero(self._unread[places]))
            may = self._constraint.budget.affords(self._distances.at_least(places), reads)
            if may and self.fits(self.place_rows(replace(family[number], corner=corner))):
                low = number
            else:
                high = number
            number = (low + high) // 2
        return None if low < 0 else low


@dataclass(frozen=True)
class Lawnmower(RoutePolicy):
    """Survey along evenly spaced rows, planned once and independent of the readings.

    The first decision chooses rows for the remaining budget, including the drive to the end place.
    The rows minimise the mean distance from a place of the map to the nearest row. The probe
    observes every place of a row. If the map has no moves and readings are limited, the places are
    about equally spaced along and across rows. Rows stay inside the map. If obstacles interrupt the
    rows, the probe may finish one side of an obstacle before the other side.

    Unavailable and too expensive places are skipped. After the rows, the probe visits the nearest
    places. If the mission ends at a target error of the map, the probe covers the map several
    times. New rows then lie between the earlier rows. Several probes share the rows. On roads, use
    `spread`.
    """

    spacing: float | None = param(
        None,
        help="distance between neighbouring rows. null = the smallest for which the budget lasts",
        unit="m",
        above=0.0,
    )
    inset: float | None = param(
        None,
        help="smallest distance from the edge of the map to the outermost rows and to the ends of "
        "the rows. null = the best of 0, a quarter and half of the spacing",
        unit="m",
        low=0.0,
    )
    direction: float | None = param(
        None,
        help="direction of the rows, anticlockwise from x. null = the best of x, y and the long "
        "axis of the map",
        unit="degrees",
        low=-360.0,
        high=360.0,
    )

    def check(self, belief: Belief, topology: Topology) -> None:
        """Reject a map of roads, and rows that do not fit onto the map.

        Raises:
            PlanningError: the map has roads, or `inset` or `spacing` exceeds the map.
        """
        if topology.roads:
            msg = (
                f"policy lawnmower drives rows over open ground, and map {topology.name!r} is a "
                "network of roads. Take tour (the default) or spread"
            )
            raise PlanningError(msg)
        if self.inset is None and self.spacing is None:
            return
        ground = Ground(topology, np.ones(topology.n, dtype=np.bool_))
        angles = ground.directions if self.direction is None else (self.direction,)
        extents = [ground.extent(angle) for angle in angles]
        most = max(0.5 * min(extent) for extent in extents), max(map(max, extents))
        for name, value, room in zip(
            ("inset", "spacing"), (self.inset, self.spacing), most, strict=True
        ):
            if value is not None and value > max(room, ground.pitch):
                msg = (
                    f"policy.{name}: expected at most {max(room, ground.pitch):.6g} m, which is "
                    f"what map {topology.name!r} has room for, got {value:g}"
                )
                raise PlanningError(msg)

    @property
    def in_passes(self) -> bool:
        """True if the budget determines the spacing of the rows."""
        return self.spacing is None

    def build_route(self, ask: Ask) -> PlannedRoute:
        """Return the densest rows that fit into the budget."""
        ground = Ground(ask.request.topology, np.isfinite(ask.reach.ways.seconds))
        found = densest_rows(
            ground,
            ask.request.at,
            ask.request.remaining,
            ask.unread,
            spacing=self.spacing,
            inset=self.inset,
            direction=self.direction,
            limit=ask.request.limit.expansions,
            spent=ask.spent,
            known=ask.earlier,
        )
        if found is None:
            return PlannedRoute(())
        return PlannedRoute(found.laid.places, found.expanded, found.stopped)
