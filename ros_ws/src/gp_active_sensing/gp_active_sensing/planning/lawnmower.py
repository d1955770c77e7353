"""Rows back and forth, evenly spaced: the densest that the budget lasts for."""

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
from gp_active_sensing.planning.routes.base import Ask, BuiltRoute, RoutePolicy
from gp_active_sensing.planning.routes.boustrophedon import CORNERS, Ground, Rows, rows_of
from gp_active_sensing.planning.routes.distances import distances_of, unit_of
from gp_active_sensing.planning.routes.follow import RouteDrive, fits, trip_of
from gp_active_sensing.topology.base import Topology
from gp_active_sensing.types import BoolArray, Budget


@dataclass(frozen=True)
class PlannedRows:
    """Rows on a map, their places in order, and the drive along them, None without a way."""

    rows: Rows
    places: tuple[int, ...]
    trip: RouteDrive | None


class Found(NamedTuple):
    """The densest rows, whether the budget lasts for all of them, and how they were found."""

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
    """Return the evenly spaced rows that leave the places of a map the least distance on average.

    Among those that fit into the budget, of each direction and inset the densest by bisection; of
    equals the shortest. Where none fits, the fewest rows. None on a map without places to visit.

    Args:
        ground: the map.
        at: where the probe stands; None = nowhere yet.
        remaining: of the budget, with the way home.
        unread: (n,) places that may be read for the first time.
        spacing: between rows [m]; None = what is best, as for the next two.
        inset: of rows from the edge [m].
        direction: of the rows [degrees].
        limit: most rows to lay, but at least one.
        spent: whether time is up.
        known: places from which a distance counts, too: those that were read.
    """
    if not len(ground.places):
        return None
    layer = _Layer(ground, at, remaining, unread, limit, spent)
    best: tuple[tuple[float, float], PlannedRows] | None = None
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
                rank = (round(away, 6), round(length + layer.home(laid), 6))
                if best is None or rank < best[0]:
                    best = (rank, laid)
    if best is not None:
        return Found(best[1], True, layer.expanded, layer.stopped)
    assert fewest is not None, "a map with places has room for a row"
    return Found(fewest, layer.fits(fewest), layer.expanded, layer.stopped)


class _Layer:
    """Lays rows and says whether a budget lasts for them; arguments as of `densest_rows`."""

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
        """Readings are what is short, and nothing is read on the way."""
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
        """A limit is reached."""
        return self.expanded >= self._limit or self._spent()

    def place_rows(self, rows: Rows) -> PlannedRows:
        """Lay rows from a corner."""
        if rows not in self._laid:
            self.expanded += 1
            places = rows_of(self._ground, rows, self.by)
            trip = trip_of(
                self._ground.topology, places, self._at, self._unread, self.by, self._ways
            )
            self._laid[rows] = PlannedRows(rows, places, trip)
        return self._laid[rows]

    def corners(self, rows: Rows) -> Iterator[PlannedRows]:
        """Yield the same rows from each corner, from the nearest one first."""
        nearest = self._ground.corner(rows.direction, self._at)
        for corner in (nearest, *(c for c in range(CORNERS) if c != nearest)):
            laid = replace(rows, corner=corner)
            if corner == nearest or not self.stopped or laid in self._laid:
                yield self.place_rows(laid)

    def fits(self, laid: PlannedRows) -> bool:
        """Return whether the budget lasts for all of the rows and the way home."""
        return fits(laid.trip, self._constraint)

    def home(self, laid: PlannedRows) -> float:
        """Return how far it is home from the end of the rows, in the unit of `by`; 0 without."""
        home = self._constraint.costs_home(self.by)
        if home is None or laid.trip is None or not laid.trip.path:
            return 0.0
        cost = float(home[laid.trip.path[-1]])
        return cost if math.isfinite(cost) else 0.0

    def densest(self, family: Sequence[Rows]) -> int | None:
        """Return the number of the densest rows that fit from the nearest corner, by bisection."""
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
    """Drive evenly spaced rows back and forth, whatever is read.

    The first decision lays the rows for the remaining budget, with the way home. Settings that are
    not given are chosen among all evenly spaced rows that fit. The choice has the least mean
    distance from a place of the map to the nearest place of a row. Every place of a row is read
    where moves bind or metres are the limit. Where any place may be next and readings are the
    limit, places along a row are as far apart as rows. Rows stay inside the outline. Where an
    obstacle interrupts them, one side is driven after the other.

    Places that are set aside or too expensive are left out. With a remaining budget after the rows,
    the nearest places follow. Where an error of the map ends the mission, a pass has its own rows,
    and the next pass has rows between them. Several probes share the rows.

    The state is the route. Roads have no rows: use `spread` there.
    """

    spacing: float | None = param(
        None,
        help="between the middles of neighbouring rows; null = the densest that the budget lasts "
        "for",
        unit="m",
        above=0.0,
    )
    inset: float | None = param(
        None,
        help="least distance of the outermost rows, and of the ends of rows, from the edge; null = "
        "half, a quarter or none of the spacing, whichever is best",
        unit="m",
        low=0.0,
    )
    direction: float | None = param(
        None,
        help="direction of the rows, anticlockwise from x; null = x, y or the map's long axis, "
        "whichever is best",
        unit="degrees",
        low=-360.0,
        high=360.0,
    )

    def check(self, belief: Belief, topology: Topology) -> None:
        """Refuse a map of roads, and rows that it has no room for.

        Raises:
            PlanningError: it is one, or it has none.
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
        """Rows are as far apart as the budget says, unless their spacing is given."""
        return self.spacing is None

    def build_route(self, ask: Ask) -> BuiltRoute:
        """Lay the densest rows that the budget lasts for."""
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
            return BuiltRoute(())
        return BuiltRoute(found.laid.places, found.expanded, found.stopped)
