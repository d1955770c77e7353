"""What all maps share: named places with positions, features and waypoints."""

from __future__ import annotations

import copy
import math
from collections.abc import Collection, Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from gp_active_sensing.errors import ConfigError
from gp_active_sensing.topology.attributes import Attributes
from gp_active_sensing.topology.links import Links
from gp_active_sensing.types import BoolArray, FloatArray, IntArray

__all__ = ["SAME_DISTANCE", "Places", "frozen_array"]

P = TypeVar("P", bound="Places")

SAME_DISTANCE = 1e-6
"""Distances [m] closer than this are equal when the nearest place is looked for."""


def frozen_array(values: npt.ArrayLike) -> FloatArray:
    """Return a read-only copy as float64."""
    array = np.array(values, dtype=np.float64)
    array.setflags(write=False)
    return array


class Places:
    """n places; moves between them are the business of the subclasses.

    Args:
        name: name of the map.
        frame: metric frame of the positions.
        names: (n,) the map's own identifiers, unique.
        positions: (n, 2) metres.
        features: (n, p) what the covariance is a function of; None = the positions.
        feature_names: (p,) their names, for messages and reports.
        goals: (n, 3) x, y [m], heading [rad] of each waypoint; None = the positions, heading 0.

    Raises:
        ValueError: shapes that do not fit, values that are not finite, names that repeat.
    """

    free = False
    roads = False

    def __init__(
        self,
        name: str,
        frame: str,
        names: Sequence[str],
        positions: npt.ArrayLike,
        *,
        features: npt.ArrayLike | None = None,
        feature_names: Sequence[str] = ("x", "y"),
        goals: npt.ArrayLike | None = None,
    ) -> None:
        self._name = name
        self._frame = frame
        self._names = tuple(names)
        self._n = len(self._names)
        self._positions = frozen_array(positions)
        self._features = self._positions if features is None else frozen_array(features)
        self._feature_names = tuple(feature_names)
        if goals is None:
            goals = np.column_stack([self._positions, np.zeros(len(self._positions))])
        self._goals = frozen_array(goals)
        self._weights = frozen_array(np.ones(self._n))
        self._check_shapes()
        self._by_name = {text: i for i, text in enumerate(self._names)}
        if len(self._by_name) != self._n:
            msg = f"map {name!r}: the names of places must differ"
            raise ValueError(msg)

    def _check_shapes(self) -> None:
        n = self._n
        if n == 0:
            msg = f"map {self._name!r}: expected at least one place, got none"
            raise ValueError(msg)
        for what, array, columns in (
            ("positions", self._positions, 2),
            ("features", self._features, len(self._feature_names)),
            ("goals", self._goals, 3),
        ):
            if array.shape != (n, columns):
                msg = f"map {self._name!r}: {what} must be ({n}, {columns}), got {array.shape}"
                raise ValueError(msg)
            if not np.isfinite(array).all():
                row = int(np.flatnonzero(~np.isfinite(array).all(axis=1))[0])
                msg = f"map {self._name!r}: {what} of place {self._names[row]!r} are not finite"
                raise ValueError(msg)

    @property
    def name(self) -> str:
        """Name of the map, for messages."""
        return self._name

    @property
    def frame(self) -> str:
        """Name of the metric frame of `positions` (a ROS frame id)."""
        return self._frame

    @property
    def n(self) -> int:
        """Number of locations."""
        return self._n

    @property
    def names(self) -> tuple[str, ...]:
        """(n,) the map's own identifiers."""
        return self._names

    @property
    def positions(self) -> FloatArray:
        """(n, 2) where a reading of each location belongs, metres; read-only."""
        return self._positions

    @property
    def features(self) -> FloatArray:
        """(n, p) what the covariance is a function of; read-only."""
        return self._features

    @property
    def feature_names(self) -> tuple[str, ...]:
        """(p,) names of the columns of `features`."""
        return self._feature_names

    @property
    def goals(self) -> FloatArray:
        """(n, 3) x, y [m] and heading [rad] of the waypoint of each location; read-only."""
        return self._goals

    @property
    def weights(self) -> FloatArray:
        """(n,) how much each place counts in the error of the map; read-only."""
        return self._weights

    def weighted(self: P, weights: npt.ArrayLike) -> P:
        """Return the same map with other weights.

        Args:
            weights: (n,) finite, not below 0, at least one above 0.

        Raises:
            ValueError: they are not so.
        """
        values = frozen_array(weights)
        if values.shape != (self._n,) or not np.isfinite(values).all() or (values < 0.0).any():
            msg = f"map {self._name!r}: expected {self._n} weights, finite and not below 0"
            raise ValueError(msg)
        if not values.any():
            msg = f"map {self._name!r}: expected at least one weight above 0, got none"
            raise ValueError(msg)
        other = copy.copy(self)
        other._weights = values
        return other

    @property
    def links(self) -> Links | None:
        """How the places are joined, for graph kernels; None where any place may be next."""
        return None

    @property
    def attributes(self) -> Attributes:
        """What the map says of its places beside where they are: here nothing."""
        return Attributes.none(self._n)

    def columns(self, names: Sequence[str] | None = None) -> tuple[FloatArray, tuple[str, ...]]:
        """Return (n, p) columns of the map by name, and their titles; None = the features.

        Raises:
            ConfigError: a name that is none of x, y and the features.
        """
        if names is None:
            return self._features, self._feature_names
        known = dict(zip(("x", "y"), self._positions.T, strict=True))
        known |= dict(zip(self._feature_names, self._features.T, strict=True))
        unknown = [name for name in names if name not in known]
        if unknown or not names:
            shown = repr(unknown[0]) if unknown else "none"
            msg = f"features: expected some of {', '.join(known)}, got {shown}"
            raise ConfigError(msg)
        return np.column_stack([known[name] for name in names]), tuple(names)

    def index_of(self, name: str) -> int | None:
        """Return the index of a place by the map's own identifier, None when there is none."""
        return self._by_name.get(name)

    def geometry(self, location: int) -> FloatArray:
        """(m, 2) the line a probe drives to observe `location`, metres; here one point."""
        return self._positions[location : location + 1]

    def snap(self, x: float, y: float, max_distance: float) -> int | None:
        """Return the place nearest to a position, the first of equally near ones.

        None when it is farther than `max_distance` [m] or the position is not finite.
        """
        if not (math.isfinite(x) and math.isfinite(y)):
            return None
        distances = np.hypot(self._positions[:, 0] - x, self._positions[:, 1] - y)
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
        if observed.shape != (self._n,) or observed.dtype != np.bool_:
            msg = (
                f"map {self._name!r}: observed must be ({self._n},) bool, "
                f"got {observed.shape} {observed.dtype}"
            )
            raise ValueError(msg)
        if at is not None and not 0 <= at < self._n:
            msg = f"map {self._name!r} has places 0 … {self._n - 1}, the probe stands at {at}"
            raise ValueError(msg)
