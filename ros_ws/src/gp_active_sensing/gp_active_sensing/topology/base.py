"""What every map is: places, features, and where a probe may go next."""

from __future__ import annotations

import copy
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from gp_active_sensing.errors import ConfigError, MapError
from gp_active_sensing.topology.features import Attributes
from gp_active_sensing.topology.geometry import FreeGround
from gp_active_sensing.topology.links import Links
from gp_active_sensing.topology.search import Ways, WaysFrom
from gp_active_sensing.types import BoolArray, FloatArray, IntArray, Route

T = TypeVar("T", bound="Topology")

SAME_DISTANCE = 1e-6
"""Distances [m] closer than this are equal when the nearest place is looked for."""


def frozen_array(values: npt.ArrayLike) -> FloatArray:
    """Return a read-only copy as float64."""
    array = np.array(values, dtype=np.float64)
    array.setflags(write=False)
    return array


class Topology:
    """A finite set of n places and the moves between them; the base of every map.

    Maps are immutable. Places are the indices 0 … n-1; `names` maps them to what the map's author
    called them. The arguments are attributes, and so are `n`, `points` (n, 2 or 3: the positions
    with the heights [m]) and `weights` (n,), how much each place counts in the error of the map:
    not below 0, not all 0. All arrays are read-only. A subclass says how one moves: `neighbours`,
    `candidates`, `route`, `reachable`, `ways_to` and `ways_from`.

    Args:
        name: name of the map.
        frame: metric frame of the positions.
        names: (n,) the map's own identifiers, unique.
        positions: (n, 2) where a reading of each place belongs, a segment's middle [m].
        features: (n, p) what the covariance is a function of; None = the points.
        feature_names: (p,) their names, for messages and reports; None = x, y and z.
        goals: (n, 3) x, y [m], heading [rad] of each waypoint, a segment's end; None = the
            positions, heading 0.
        heights: (n,) z of each place, upwards [m]; None = the map lies in the plane.
        numbers: (n,) further numbers of the places by name, NaN where a place has none.

    Raises:
        ValueError: shapes that do not fit, values that are not finite, names that repeat.
    """

    free = False
    """Any place may be next: no moves to obey."""
    roads = False
    """Places are pieces of roads, which the field may follow."""
    datum: tuple[float, float] | None = None
    """Longitude and latitude of the frame's origin [degree]; None where that is not known."""
    ground: FreeGround | None = None
    """Where a probe may drive straight; None = along the moves only, or anywhere if `free`."""
    lost: FloatArray = np.zeros((0, 2))
    """(m, 2) places of free ground that were left out, since no move joins them to these [m]."""
    notes: tuple[str, ...] = ()
    """Notes on how the map was made: roles, assumptions and omissions, a sentence each."""

    def __init__(
        self,
        name: str,
        frame: str,
        names: Sequence[str],
        positions: npt.ArrayLike,
        *,
        features: npt.ArrayLike | None = None,
        feature_names: Sequence[str] | None = None,
        goals: npt.ArrayLike | None = None,
        heights: npt.ArrayLike | None = None,
        numbers: Mapping[str, npt.ArrayLike] | None = None,
    ) -> None:
        self.name = name
        self.frame = frame
        self.names = tuple(names)
        self.n = len(self.names)
        self.positions = self.points = frozen_array(positions)
        self.heights = None if heights is None else frozen_array(heights)
        if self.heights is not None:
            self.points = frozen_array(np.column_stack([self.positions, self.heights]))
        self.numbers = {key: frozen_array(values) for key, values in (numbers or {}).items()}
        self.features = self.points if features is None else frozen_array(features)
        axes = ("x", "y", "z")[: self.points.shape[1]] if features is None else ("x", "y")
        self.feature_names = axes if feature_names is None else tuple(feature_names)
        if goals is None:
            goals = np.column_stack([self.positions, np.zeros(len(self.positions))])
        self.goals = frozen_array(goals)
        self.weights = frozen_array(np.ones(self.n))
        self._check_shapes()
        if len(set(self.names)) != self.n:
            msg = f"map {name!r}: the names of places must differ"
            raise ValueError(msg)

    def _check_shapes(self) -> None:
        n = self.n
        if n == 0:
            msg = f"map {self.name!r}: expected at least one place, got none"
            raise ValueError(msg)
        for what, array, columns in (
            ("positions", self.positions, 2),
            ("features", self.features, len(self.feature_names)),
            ("goals", self.goals, 3),
            ("points", self.points, 2 if self.heights is None else 3),
        ):
            if array.shape != (n, columns):
                msg = f"map {self.name!r}: {what} must be ({n}, {columns}), got {array.shape}"
                raise ValueError(msg)
            if not np.isfinite(array).all():
                row = int(np.flatnonzero(~np.isfinite(array).all(axis=1))[0])
                msg = f"map {self.name!r}: {what} of place {self.names[row]!r} are not finite"
                raise ValueError(msg)

    def weighted(self: T, weights: npt.ArrayLike) -> T:
        """Return the same map with other weights (n,).

        Raises:
            ValueError: they are not finite, one is below 0, or none is above 0.
        """
        values = frozen_array(weights)
        if values.shape != (self.n,) or not np.isfinite(values).all() or (values < 0.0).any():
            msg = f"map {self.name!r}: expected {self.n} weights, finite and not below 0"
            raise ValueError(msg)
        if not values.any():
            msg = f"map {self.name!r}: expected at least one weight above 0, got none"
            raise ValueError(msg)
        return self._with("weights", values)

    def over(self: T, ground: FreeGround | None) -> T:
        """Return the same map with the ground that it lies on."""
        return self._with("ground", ground)

    def located(self: T, datum: tuple[float, float] | None) -> T:
        """Return the same map with longitude and latitude of its frame's origin [degree]."""
        return self._with("datum", datum)

    def noted(self: T, notes: Iterable[str]) -> T:
        """Return the same map with notes on how it was made, a sentence each."""
        return self._with("notes", tuple(notes))

    def _with(self: T, attribute: str, value: object) -> T:
        other = copy.copy(self)
        setattr(other, attribute, value)
        return other

    def neighbours(self, location: int) -> IntArray:
        """Return the places one legal move after `location`, sorted."""
        raise NotImplementedError

    def candidates(
        self, at: int | None, observed: BoolArray, unavailable: Collection[int] = ()
    ) -> IntArray:
        """Return the unobserved places a probe standing at `at` can observe next, sorted.

        The unobserved neighbours and what is within `reach` or, when there is none, the unobserved
        places the fewest moves away through observed (or unavailable) ones, so that a probe is
        never stuck while something is reachable. Where a probe can read without moving (line and
        grid, not roads) its own place is among them while it is unobserved.

        Args:
            at: where the probe stands; None = nowhere yet, any place may be first.
            observed: (n,) places already observed; they may be crossed.
            unavailable: places that may be crossed but are not to be chosen.
        """
        raise NotImplementedError

    def route(
        self, at: int | None, goal: int, observed: BoolArray, unavailable: Collection[int] = ()
    ) -> Route:
        """Return the cheapest legal way (in seconds) to a candidate, crossing only such places.

        To what is near, beyond the neighbours, the shortest one, whatever it crosses.

        Raises:
            PlanningError: `goal` cannot be reached that way.
        """
        raise NotImplementedError

    def reachable(
        self,
        at: int | None,
        observed: BoolArray,
        readings: int,
        unavailable: Collection[int] = (),
    ) -> BoolArray:
        """(n,) the unobserved places that may be among the next `readings` observed ones.

        A superset is allowed (it must never miss one); crossing observed or unavailable places
        is free, so pass the same `unavailable` as to `candidates`.
        """
        raise NotImplementedError

    def ways_to(self, goal: int, by: str = "seconds") -> Ways:
        """Return the cheapest way to a place from every other, whatever is crossed.

        `by` says what is least, "metres" or "seconds".
        """
        raise NotImplementedError

    def ways_from(self, at: int | None, by: str = "seconds") -> WaysFrom:
        """Return the cheapest way from a place (None = nowhere yet) to every one, itself included.

        Whatever is crossed. Where a probe can read without moving the way to its own place costs
        nothing, on roads it is the cheapest round. `by` is that of `ways_to`.
        """
        raise NotImplementedError

    @property
    def links(self) -> Links | None:
        """How the places are joined, for graph kernels; None where any place may be next."""
        return None

    @property
    def reach(self) -> float:
        """Return the distance within which other places may be next [m]; 0 by default."""
        return 0.0

    @property
    def turn_excess(self) -> float:
        """Return the largest excess of a move over the straight one [m]: it turns on the spot."""
        return 0.0

    @property
    def attributes(self) -> Attributes:
        """Return the attributes of the places: the map's further numbers."""
        return Attributes.of_numbers(self.n, self.numbers)

    def columns(self, names: Sequence[str] | None = None) -> tuple[FloatArray, tuple[str, ...]]:
        """Return (n, p) columns of the map by name, and their p titles, for a linear mean.

        None = the features; where these are an embedding, what it is made of.

        Raises:
            ConfigError: a name that is none of x, y, z, the further numbers and the features.
            MapError: a number that a place lacks.
        """
        if names is None:
            return self.features, self.feature_names
        known = dict(zip(("x", "y", "z"), self.points.T, strict=False))
        known |= {key: values for key, values in self.numbers.items() if key not in known}
        known |= dict(zip(self.feature_names, self.features.T, strict=True))
        unknown = [name for name in names if name not in known]
        if unknown or not names:
            shown = repr(unknown[0]) if unknown else "none"
            msg = f"features: expected some of {', '.join(known)}, got {shown}"
            raise ConfigError(msg)
        for name in names:
            lacking = np.flatnonzero(~np.isfinite(known[name]))
            if len(lacking):
                msg = (
                    f"map {self.name!r}: {name!r} was asked for, but place "
                    f"{self.names[lacking[0]]!r} has none ({len(lacking)} of {self.n} places are "
                    "so); add it to the map, or leave it out"
                )
                raise MapError(msg)
        return np.column_stack([known[name] for name in names]), tuple(names)

    def geometry(self, location: int) -> FloatArray:
        """(m, 2) the line a probe drives to observe `location`, metres; here one point."""
        return self.positions[location : location + 1]

    def snap(self, x: float, y: float, max_distance: float, z: float | None = None) -> int | None:
        """Return the place nearest to a position, the first of equally near ones.

        None when it is farther than `max_distance` [m] or the position is not finite. Without a z
        heights do not count.
        """
        if not (math.isfinite(x) and math.isfinite(y)):
            return None
        distances = np.hypot(self.positions[:, 0] - x, self.positions[:, 1] - y)
        if z is not None and self.heights is not None:
            distances = np.hypot(distances, self.heights - z)
            if not math.isfinite(z):
                return None
        nearest = float(distances.min())
        if nearest > max_distance:
            return None
        return int(np.argmax(distances <= nearest + SAME_DISTANCE))

    def _open_places(self, observed: BoolArray, unavailable: Collection[int]) -> IntArray:
        """Return every unobserved place that may be chosen, sorted."""
        self._check(None, observed)
        chosen = ~observed
        if unavailable:
            chosen[list(unavailable)] = False
        return np.flatnonzero(chosen)

    def _check(self, at: int | None, observed: BoolArray) -> None:
        if observed.shape != (self.n,) or observed.dtype != np.bool_:
            msg = (
                f"map {self.name!r}: observed must be ({self.n},) bool, "
                f"got {observed.shape} {observed.dtype}"
            )
            raise ValueError(msg)
        if at is not None and not 0 <= at < self.n:
            msg = f"map {self.name!r} has places 0 … {self.n - 1}, the probe stands at {at}"
            raise ValueError(msg)
