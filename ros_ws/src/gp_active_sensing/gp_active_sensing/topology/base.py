"""Interface of every map: places, features, and where a probe may go next."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol, runtime_checkable

from gp_active_sensing.topology.attributes import Attributes
from gp_active_sensing.topology.links import Links
from gp_active_sensing.topology.search import Ways, WaysFrom
from gp_active_sensing.types import BoolArray, FloatArray, IntArray, Route

__all__ = ["Topology"]


@runtime_checkable
class Topology(Protocol):
    """A finite set of n sampling locations and the moves between them.

    Implementations are immutable. Locations are the indices 0 … n-1; `names` maps them to what
    the map's author called them.
    """

    @property
    def name(self) -> str:
        """Name of the map, for messages."""
        ...

    @property
    def frame(self) -> str:
        """Name of the metric frame of `positions` (a ROS frame id, usually "map")."""
        ...

    @property
    def n(self) -> int:
        """Number of locations."""
        ...

    @property
    def names(self) -> tuple[str, ...]:
        """(n,) the map's own identifiers."""
        ...

    @property
    def positions(self) -> FloatArray:
        """(n, 2) where a reading of each location belongs, metres (a segment's middle)."""
        ...

    @property
    def features(self) -> FloatArray:
        """(n, p) what the covariance is a function of (positions, unless the map has better)."""
        ...

    @property
    def feature_names(self) -> tuple[str, ...]:
        """(p,) names of the features; "x" and "y" are coordinates [m]."""
        ...

    @property
    def links(self) -> Links | None:
        """How the places are joined, for graph kernels; None where any place may be next."""
        ...

    @property
    def roads(self) -> bool:
        """Places are pieces of roads, which the field may follow."""
        ...

    @property
    def attributes(self) -> Attributes:
        """What the map says of its places beside where they are, for a mean."""
        ...

    @property
    def weights(self) -> FloatArray:
        """(n,) how much each place counts in the error of the map: not below 0, not all 0."""
        ...

    def columns(self, names: Sequence[str] | None = None) -> tuple[FloatArray, tuple[str, ...]]:
        """Return (n, p) columns of the map by name, and their p titles, for a linear mean.

        None = the features; where these are an embedding, what it is made of.

        Raises:
            ConfigError: a name that is no column of the map.
            MapError: a column that a place lacks.
        """
        ...

    @property
    def goals(self) -> FloatArray:
        """(n, 3) x, y [m] and heading [rad] of the waypoint of each location (a segment's end)."""
        ...

    @property
    def free(self) -> bool:
        """Any location may be next (no moves to obey)."""
        ...

    def neighbours(self, location: int) -> IntArray:
        """Return the locations one legal move after `location`, sorted."""
        ...

    def candidates(
        self, at: int | None, observed: BoolArray, unavailable: Collection[int] = ()
    ) -> IntArray:
        """Return the unobserved locations a probe standing at `at` can observe next, sorted.

        The unobserved neighbours (a map may add what is near, see `MapConfig.reach`) or, when there
        is none, the unobserved locations the fewest moves away through observed (or unavailable)
        ones, so that a probe is never stuck while something is reachable. Empty when nothing is.
        Where a probe can read without moving (line
        and grid, not roads) its own place is among them while it is unobserved.

        Args:
            at: where the probe stands; None = nowhere yet, any location may be first.
            observed: (n,) places already observed; they may be crossed.
            unavailable: places that may be crossed but are not to be chosen.
        """
        ...

    def route(
        self,
        at: int | None,
        goal: int,
        observed: BoolArray,
        unavailable: Collection[int] = (),
    ) -> Route:
        """Return the cheapest legal way (in seconds) to a candidate, crossing only such places.

        To what is near, beyond the neighbours, the shortest one, whatever it crosses.

        Raises:
            PlanningError: `goal` cannot be reached that way.
        """
        ...

    def reachable(
        self,
        at: int | None,
        observed: BoolArray,
        readings: int,
        unavailable: Collection[int] = (),
    ) -> BoolArray:
        """(n,) the unobserved locations that may be among the next `readings` observed ones.

        A superset is allowed (it must never miss one); crossing observed or unavailable places
        is free, so pass the same `unavailable` as to `candidates`.
        """
        ...

    def ways_to(self, goal: int, by: str = "seconds") -> Ways:
        """Return the cheapest way to a location from every other, whatever is crossed.

        Args:
            goal: where they lead.
            by: what is least, "metres" or "seconds".
        """
        ...

    def ways_from(self, at: int | None, by: str = "seconds") -> WaysFrom:
        """Return the cheapest way from a location to every one, itself included.

        Whatever is crossed. Where a probe can read without moving the way to its own place costs
        nothing, on roads it is the cheapest round.

        Args:
            at: where they begin; None = nowhere yet, any location may be first.
            by: what is least, "metres" or "seconds".
        """
        ...

    def geometry(self, location: int) -> FloatArray:
        """(m, 2) the line a probe drives to observe `location`, metres; one point on a grid."""
        ...

    def snap(self, x: float, y: float, max_distance: float) -> int | None:
        """Return the location nearest to a position, None when it is farther than allowed [m]."""
        ...
