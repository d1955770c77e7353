"""Maps on which any place may be next; candidates drawn in a box of any dimension."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import numpy as np
import numpy.typing as npt

from gp_active_sensing.topology.places import Places
from gp_active_sensing.topology.search import Ways, WaysFrom
from gp_active_sensing.types import BoolArray, Cost, FloatArray, IntArray, Route

__all__ = ["DESIGNS", "FreeTopology", "draw_points", "make_points"]


class FreeTopology(Places):
    """Any place may be next; a move costs the straight distance.

    Args:
        name: name of the map.
        frame: metric frame of the positions.
        names: (n,) the map's own identifiers.
        positions: (n, 2) metres.
        features: (n, p) what the covariance is a function of; None = the positions.
        feature_names: (p,) their names.
        speed: of the probe [m/s].
    """

    free = True

    def __init__(
        self,
        name: str,
        frame: str,
        names: Sequence[str],
        positions: npt.ArrayLike,
        *,
        features: npt.ArrayLike | None = None,
        feature_names: Sequence[str] = ("x", "y"),
        speed: float = 1.0,
    ) -> None:
        super().__init__(
            name, frame, names, positions, features=features, feature_names=feature_names
        )
        self._speed = speed

    def neighbours(self, location: int) -> IntArray:
        """Return all the other places, sorted."""
        return np.delete(np.arange(self._n), location)

    def candidates(
        self, at: int | None, observed: BoolArray, unavailable: Collection[int] = ()
    ) -> IntArray:
        """Return every unobserved place that may be chosen, sorted."""
        self._check(at, observed)
        return self._open_places(observed, unavailable)

    def route(
        self, at: int | None, goal: int, observed: BoolArray, unavailable: Collection[int] = ()
    ) -> Route:
        """Return the straight way to `goal`; it costs nothing from nowhere."""
        self._check(at, observed)
        if at is None:
            return Route((goal,), Cost(0.0, 0.0))
        (x0, y0), (x1, y1) = self._positions[at], self._positions[goal]
        metres = float(np.hypot(x1 - x0, y1 - y0))
        return Route((goal,), Cost(metres, metres / self._speed))

    def ways_to(self, goal: int, by: str = "seconds") -> Ways:
        """Return the straight way to a place from every other; metres and seconds go together."""
        apart = np.hypot(*(self._positions - self._positions[goal]).T).tolist()
        following = [goal] * self._n
        following[goal] = -1
        costs = tuple(Cost(metres, metres / self._speed) for metres in apart)
        return Ways(goal, costs, tuple(following))

    def ways_from(self, at: int | None, by: str = "seconds") -> WaysFrom:
        """Return the straight way from a place to every one; it costs nothing from nowhere."""
        metres = np.zeros(self._n)
        if at is not None:
            metres = np.hypot(*(self._positions - self._positions[at]).T)
        return WaysFrom(metres, metres / self._speed, np.full(self._n, -1, dtype=np.int64))

    def reachable(
        self,
        at: int | None,
        observed: BoolArray,
        readings: int,
        unavailable: Collection[int] = (),
    ) -> BoolArray:
        """(n,) every unobserved place, when there is a reading left."""
        self._check(at, observed)
        mask = np.zeros(self._n, dtype=np.bool_)
        if readings > 0:
            mask[self._open_places(observed, unavailable)] = True
        return mask


DESIGNS = ("uniform", "latin", "sobol")
_STREAM = 0xB0C5


def make_points(
    count: int,
    low: Sequence[float],
    high: Sequence[float],
    *,
    design: str = "sobol",
    seed: int = 0,
    speed: float = 1.0,
    name: str = "points",
    frame: str = "map",
) -> FreeTopology:
    """Make a map of points of which any may be next; features are their coordinates x1 … xd.

    Args:
        count: number of points.
        low: (d,) lower corner of the box.
        high: (d,) upper corner.
        design: see `draw_points`.
        seed: key of the draw.
        speed: of the probe [m/s].
        name: name of the map.
        frame: metric frame of the positions.
    """
    points = draw_points(count, low, high, design=design, seed=seed)
    flat = np.zeros((count, 2))
    flat[:, : min(2, points.shape[1])] = points[:, :2]
    return FreeTopology(
        name,
        frame,
        [str(i) for i in range(count)],
        flat,
        features=points,
        feature_names=[f"x{i}" for i in range(1, points.shape[1] + 1)],
        speed=speed,
    )


def draw_points(
    count: int, low: Sequence[float], high: Sequence[float], *, design: str, seed: int
) -> FloatArray:
    """Return (count, d) points in the box from `low` to `high`, keyed by the seed.

    Args:
        count: number of points.
        low: (d,) lower corner.
        high: (d,) upper corner.
        design: "uniform" draws each by itself; "latin" has one point in each of `count` slices
            of every coordinate; "sobol" is a scrambled Sobol sequence, evener still.
        seed: key of the draw.
    """
    rng = np.random.default_rng([seed, _STREAM])
    corner, size = np.asarray(low, dtype=np.float64), np.subtract(high, low)
    d = len(corner)
    if design == "uniform":
        unit = rng.random((count, d))
    else:
        from scipy.stats import qmc  # heavy, and seldom wanted

        if design == "latin":
            unit = qmc.LatinHypercube(d, seed=rng).random(count)
        else:
            # Whole powers of two are balanced; the first points of the next one are drawn.
            unit = qmc.Sobol(d, seed=rng).random_base2(max(0, math.ceil(math.log2(count))))
    return np.asarray(corner + size * unit[:count], dtype=np.float64)
