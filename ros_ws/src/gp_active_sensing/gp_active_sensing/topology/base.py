"""Base classes of maps: places, their features, and the moves between places.

Planners call `GraphTopology` in their tree search for a few neighbours at a time. For such small
inputs, Python lists and bytes are faster than arrays and graph libraries.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from gp_active_sensing.errors import ConfigError, MapError, PlanningError
from gp_active_sensing.topology.geometry import FreeGround, Speeds
from gp_active_sensing.topology.search import (
    METRES,
    Move,
    MoveArrays,
    Ways,
    WaysFrom,
    cheapest,
    nearest_ring,
    search,
    ways_from,
    within,
)
from gp_active_sensing.topology.segments import Links
from gp_active_sensing.types import BoolArray, Cost, FloatArray, IntArray, Route

T = TypeVar("T", bound="Topology")

SAME_DISTANCE = 1e-6
"""Largest difference between two distances that count as equal [m]."""


def frozen_array(values: npt.ArrayLike) -> FloatArray:
    """Return a read-only float64 copy of values."""
    array = np.array(values, dtype=np.float64)
    array.setflags(write=False)
    return array


class Topology:
    """Set of n places and the moves between them; base class of all maps.

    Maps are immutable. Places are the indices 0 … n-1. Each argument is also an attribute. Further
    attributes are `n`, `points` (n, 2 or 3: positions and heights [m]) and `weights` (n,). A weight
    is the importance of a place in the error of the map; at least one weight is above 0. All arrays
    are read-only. A subclass implements `neighbours`, `candidates`, `route`, `reachable`, `ways_to`
    and `ways_from`.

    Args:
        frame: metric frame of the positions.
        names: (n,) unique identifiers of the places.
        positions: (n, 2) position of each place [m]; for a road segment, its middle.
        features: (n, p) inputs of the covariance; None = the points.
        feature_names: (p,) names of the features, for messages and reports; None = x, y and z.
        goals: (n, 3) x, y [m] and heading [rad] of the waypoint of each place; on roads, the end of
            the segment. None = the positions with heading 0.
        heights: (n,) z of each place, upwards [m]; None = the map lies in the plane.
        numbers: further columns of numbers (n,) by name; NaN = the place has no such number.

    Raises:
        ValueError: shapes of arrays do not fit, values are not finite, or names are repeated.
    """

    free = False
    """True = a probe may move from any place to any other place."""
    roads = False
    """True = the places are road segments."""
    datum: tuple[float, float] | None = None
    """Longitude and latitude of the frame's origin [degree]; None when unknown."""
    ground: FreeGround | None = None
    """Ground on which a probe may drive in straight lines; None = unknown."""
    lost: FloatArray = np.zeros((0, 2))
    """Positions (m, 2) [m] on free ground that no move reaches; they are no places."""
    reach = 0.0
    """Largest driving distance to the next observed place [m]; 0 = adjacent places only."""
    turn_excess = 0.0
    """Largest difference between the length of a move and the distance between its ends [m]."""
    notes: tuple[str, ...] = ()
    """Assumptions and omissions in this map, one sentence each."""

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
            ValueError: a weight is not finite or is below 0, or no weight is above 0.
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
        """Return the same map with another `ground`."""
        return self._with("ground", ground)

    def located(self: T, datum: tuple[float, float] | None) -> T:
        """Return the same map with another datum: longitude and latitude of the origin [degree]."""
        return self._with("datum", datum)

    def noted(self: T, notes: Iterable[str]) -> T:
        """Return the same map with other notes; each note is a sentence."""
        return self._with("notes", tuple(notes))

    def _with(self: T, attribute: str, value: object) -> T:
        other = copy.copy(self)
        setattr(other, attribute, value)
        return other

    def neighbours(self, location: int) -> IntArray:
        """Return the places that are one move from `location`, sorted."""
        raise NotImplementedError

    def candidates(
        self, at: int | None, observed: BoolArray, unavailable: Collection[int] = ()
    ) -> IntArray:
        """Return the unobserved places that a probe at `at` can observe next, sorted.

        Candidates are the unobserved neighbours of `at` and the unobserved places within `reach`.
        Without such places, candidates are the unobserved places that need the fewest moves. These
        moves lead through observed or unavailable places. A probe is thus never stuck while an
        unobserved place is reachable. On a line or a grid, the place `at` itself is a candidate
        while it is unobserved.

        Args:
            at: place of the probe. None = not on the map yet, so any place may be first.
            observed: (n,) True for an observed place; a probe may cross these places.
            unavailable: places that a probe may cross but must not observe.
        """
        raise NotImplementedError

    def route(
        self, at: int | None, goal: int, observed: BoolArray, unavailable: Collection[int] = ()
    ) -> Route:
        """Return the fastest path to `goal` through observed or unavailable places.

        For a neighbour, this is the direct move. For another place within `reach`, it is the
        shortest path through any places.

        Raises:
            PlanningError: no such path leads to `goal`.
        """
        raise NotImplementedError

    def reachable(
        self, at: int | None, observed: BoolArray, readings: int, unavailable: Collection[int] = ()
    ) -> BoolArray:
        """Return flags (n,): True for each unobserved place that needs at most `readings` readings.

        Some places that need more readings may also be True. Pass the same `unavailable` as to
        `candidates`, since a probe can cross these places without a reading.
        """
        raise NotImplementedError

    def ways_to(self, goal: int, by: str = "seconds") -> Ways:
        """Return the cheapest paths, through any places, from all places to `goal`.

        `by` is the cost: "metres" or "seconds".
        """
        raise NotImplementedError

    def ways_from(self, at: int | None, by: str = "seconds") -> WaysFrom:
        """Return the cheapest paths, through any places, from a place to all places.

        `at` None = the probe is not on the map yet. The path to `at` itself costs nothing. On
        roads, it is the cheapest round trip. `by` is the cost: "metres" or "seconds".
        """
        raise NotImplementedError

    @property
    def links(self) -> Links | None:
        """Pairs of places that a move joins, for graph kernels; None for a map without moves."""
        return None

    def columns(self, names: Sequence[str] | None = None) -> tuple[FloatArray, tuple[str, ...]]:
        """Return the columns (n, p) with the given names, and their titles (p,).

        Possible names are x, y, z, the keys of `numbers`, and the features. `names` None = the
        features. If the features are an embedding, None = the columns behind the embedding.

        Raises:
            ConfigError: a name is unknown.
            MapError: a place has no number of a given name.
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
        """Return the line (m, 2) or the point (1, 2) [m] on which a probe observes `location`."""
        return self.positions[location : location + 1]

    def snap(self, x: float, y: float, max_distance: float, z: float | None = None) -> int | None:
        """Return the place nearest to a position; the first one if several are nearest.

        The result is None if the nearest place is farther than `max_distance` [m] or the position
        is not finite. Heights count only if `z` is given.
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

    def _open(self, at: int | None, observed: BoolArray, unavailable: Collection[int]) -> BoolArray:
        """Return flags (n,): True for each place that is neither observed nor unavailable."""
        self._check(at, observed)
        chosen = ~observed
        if unavailable:
            chosen[list(unavailable)] = False
        return chosen

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


# -- places joined by moves ------------------------------------------------------------------------

_MOST_KEPT = 4096
"""Largest number of places whose paths within `reach` are cached."""


@dataclass(frozen=True)
class Components:
    """Connected parts of a map."""

    weak: int  # number of weakly connected parts
    largest: tuple[int, ...]  # places of the (first) largest strongly connected part, sorted
    outside: tuple[int, ...]  # all other places, sorted
    traps: tuple[int, ...]  # places without a move to another place, sorted


def components_of(following: Sequence[Sequence[int]]) -> Components:
    """Return the connected parts of a map; `following` (n,) has the next places of each place."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    n = len(following)
    # scipy 1.11 accepts only 32-bit indices in a graph.
    to = np.array([b for out in following for b in out], dtype=np.intc)
    starts = np.cumsum([0, *(len(out) for out in following)], dtype=np.intc)
    matrix = csr_array((np.ones(len(to)), to, starts), shape=(n, n))
    weak, _ = connected_components(matrix, directed=True, connection="weak")
    strong, labels = connected_components(matrix, directed=True, connection="strong")
    sizes = np.bincount(labels)
    first = np.unique(labels, return_index=True)[1]
    best = min(range(strong), key=lambda part: (-sizes[part], first[part]))
    return Components(
        int(weak),
        tuple(np.flatnonzero(labels == best).tolist()),
        tuple(np.flatnonzero(labels != best).tolist()),
        tuple(a for a, out in enumerate(following) if not set(out) - {a}),
    )


class GraphTopology(Topology):
    """Map of places with directed moves; a probe may cross observed and unavailable places.

    No path between two places may be cheaper than the direct move between them. Further arguments
    are those of `Topology`.

    Args:
        moves: (n,) moves out of each place.
        entry: (n,) cost of observing each place as the first place of a mission; None = 0.
        stay: True = a probe can observe its present place without moving.
        reach: largest driving distance to the next place, through any places [m]; 0 = adjacent
            places only.
    """

    def __init__(
        self,
        name: str,
        frame: str,
        names: Sequence[str],
        positions: npt.ArrayLike,
        moves: Sequence[Sequence[Move]],
        *,
        entry: Sequence[Cost] | None = None,
        stay: bool = True,
        reach: float = 0.0,
        **more: Any,
    ) -> None:
        super().__init__(name, frame, names, positions, **more)
        if len(moves) != self.n:
            msg = f"map {name!r}: expected moves of {self.n} places, got {len(moves)}"
            raise ValueError(msg)
        self._set_moves(moves)
        self._stay = stay
        self.reach = reach * (1.0 + 1e-9)  # a sum of equal steps may be slightly longer
        self._within: dict[int, dict[int, Route]] = {}
        self._ways: dict[tuple[int, str], Ways] = {}
        self._entry = tuple(entry) if entry is not None else (Cost(0.0, 0.0),) * self.n

    def without(self, gone: Collection[tuple[int, int]]) -> GraphTopology:
        """Return the same map without the moves `gone` (from, to)."""
        other = copy.copy(self)
        kept = [list(out) for out in self._moves]
        for a in {a for a, _ in gone}:
            kept[a] = [move for move in self._moves[a] if (a, move.to) not in gone]
        other._set_moves(kept)
        other._within, other._ways = {}, {}
        other.__dict__.pop("components", None)
        return other

    def closed_to(self, places: Collection[int]) -> GraphTopology:
        """Return the same map without moves into `places` and without the ground of `places`."""
        if not places:
            return self
        closed = set(places)
        other = self.without(
            {(a, m.to) for a, out in enumerate(self._moves) for m in out if m.to in closed}
        )
        if self.ground is None or self.roads or self.heights is not None:
            return other
        # distance between neighbouring places [m]
        width = min((m.metres for out in self._moves for m in out if m.metres > 0.0), default=0.0)
        return other.over(self.ground.without(self.positions[sorted(closed)], width))

    def _set_moves(self, moves: Sequence[Sequence[Move]]) -> None:
        self._moves = tuple(tuple(sorted(out)) for out in moves)
        self.__dict__.pop("arrays", None)
        self._next = tuple(tuple(move.to for move in out) for out in self._moves)
        neighbours = [np.array(out, dtype=np.int64) for out in self._next]
        for array in neighbours:
            array.setflags(write=False)
        self._neighbours = tuple(neighbours)

    @property
    def moves(self) -> tuple[tuple[Move, ...], ...]:
        """Moves out of each of the n places, sorted by destination."""
        return self._moves

    @cached_property
    def arrays(self) -> MoveArrays:
        """Moves as arrays."""
        return MoveArrays(self._moves)

    def neighbours(self, location: int) -> IntArray:
        """Return the places that are one move from `location`, as a sorted read-only array."""
        return self._neighbours[location]

    def candidates(
        self, at: int | None, observed: BoolArray, unavailable: Collection[int] = ()
    ) -> IntArray:
        """Return possible next places, see `Topology.candidates`."""
        if at is None:
            return np.flatnonzero(self._open(at, observed, unavailable))
        self._check(at, observed)
        crossable = _crossable(observed, unavailable)
        found = [b for b in self._next[at] if not crossable[b]]
        if self._stay and not crossable[at]:
            found = sorted({at, *found})
        if self.reach:
            found = sorted({*found, *(b for b in self._near_to(at) if not crossable[b])})
        if not found:
            found = nearest_ring(self._next, at, crossable)
        return np.array(found, dtype=np.int64)

    def _near_to(self, at: int) -> dict[int, Route]:
        near = self._within.get(at)
        if near is None:
            if len(self._within) >= _MOST_KEPT:
                self._within.clear()
            near = self._within[at] = within(self._moves, at, self.reach)
        return near

    def route(
        self, at: int | None, goal: int, observed: BoolArray, unavailable: Collection[int] = ()
    ) -> Route:
        """Return the direct move, else the shortest path within `reach`, else the fastest path.

        The fastest path leads through observed and unavailable places only.
        """
        self._check(at, observed)
        if at is None:
            return Route((goal,), self._entry[goal])
        if at == goal and self._stay:
            return Route((goal,), Cost(0.0, 0.0))
        for move in self._moves[at]:
            if move.to == goal:
                return Route((goal,), Cost(move.metres, move.seconds))
        if self.reach and (near := self._near_to(at).get(goal)) is not None:
            return near
        found = cheapest(self._moves, at, goal, _crossable(observed, unavailable))
        if found is None:
            msg = (
                f"map {self.name!r}: {self.names[goal]!r} cannot be reached from "
                f"{self.names[at]!r} through observed places; choose one of the candidates"
            )
            raise PlanningError(msg)
        return found

    def ways_to(self, goal: int, by: str = "seconds") -> Ways:
        """Return the cheapest paths from all places to `goal`; the result is cached."""
        if (goal, by) not in self._ways:
            found = self.arrays.tree(goal, by, back=True)
            self._ways[goal, by] = Ways(goal, found.metres, found.seconds, found.before)
        return self._ways[goal, by]

    def ways_from(self, at: int | None, by: str = "seconds") -> WaysFrom:
        """Return the cheapest paths from a place to all places. O(moves log places).

        With `at` None, the cost of a place is its cost of entry.
        """
        if at is None:
            metres, seconds = np.array(self._entry, dtype=np.float64).T.copy()
            return WaysFrom(metres, seconds, np.full(self.n, -1, dtype=np.int64))
        return ways_from(self.arrays, at, by, stay=self._stay)

    def reachable(
        self, at: int | None, observed: BoolArray, readings: int, unavailable: Collection[int] = ()
    ) -> BoolArray:
        """Return the flags of `Topology.reachable`. O(places and moves that the readings reach)."""
        if at is None:
            return self._open(at, observed, unavailable) & (readings > 0)
        self._check(at, observed)
        crossable = _crossable(observed, unavailable)
        found, seen = bytearray(self.n), bytearray(self.n)
        frontier = [at]
        if self._stay and readings > 0 and not crossable[at]:
            found[at] = seen[at] = 1
        if self.reach:
            return self._reachable_by_decisions(frontier, crossable, found, readings)
        moves = self._next
        for _ in range(readings):
            following: list[int] = []
            stack = frontier
            while stack:
                for b in moves[stack.pop()]:
                    if not seen[b]:
                        seen[b] = 1
                        if crossable[b]:
                            stack.append(b)
                        else:
                            found[b] = 1
                            following.append(b)
            if not following:
                break
            frontier = following
        return np.frombuffer(found, dtype=np.bool_)

    def _reachable_by_decisions(
        self, stood: list[int], crossable: bytes | bytearray, found: bytearray, decisions: int
    ) -> BoolArray:
        """Return flags (n,): True for each unobserved place that `decisions` decisions can reach.

        A decision leads to a place within reach, or through observed places to the next unobserved
        place. To save time, a decision may also start from any place that an earlier one passed.
        Some places that need more decisions are therefore also True.
        """
        known = set(stood)
        for _ in range(decisions):
            passed: set[int] = set()
            stack = sorted(known)
            while stack:
                for b in self._next[stack.pop()]:
                    if b not in known and b not in passed:
                        passed.add(b)
                        if crossable[b]:
                            stack.append(b)
            passed |= search(self._moves, sorted(known), METRES, most=self.reach).keys()
            if passed <= known:
                break
            known |= passed
        for b in known:
            if not crossable[b]:
                found[b] = 1
        return np.frombuffer(found, dtype=np.bool_)

    @cached_property
    def links(self) -> Links:
        """Pairs of places that a move joins in either direction."""
        moves = ((i, move) for i, out in enumerate(self._moves) for move in out)
        return Links.between(self.n, ((i, m.to, m.metres, 1.0 / m.metres) for i, m in moves))

    @cached_property
    def components(self) -> Components:
        """Connected parts of the map."""
        return components_of(self._next)


def _crossable(observed: BoolArray, unavailable: Collection[int]) -> bytes | bytearray:
    """Return one byte per place: 1 = a probe may cross the place without observing it."""
    flags = observed.tobytes()
    if not unavailable:
        return flags
    marked = bytearray(flags)
    for place in unavailable:
        marked[place] = 1
    return marked


class FreeTopology(Topology):
    """Map on which a probe may drive in a straight line from any place to any other place.

    Arguments are those of `Topology`, and `speed`: the speed of the probe [m/s], or `Speeds`.
    """

    free = True

    def __init__(
        self,
        name: str,
        frame: str,
        names: Sequence[str],
        positions: npt.ArrayLike,
        *,
        speed: float | Speeds = 1.0,
        **more: Any,
    ) -> None:
        super().__init__(name, frame, names, positions, **more)
        self.speeds = speed if isinstance(speed, Speeds) else Speeds(speed)

    def neighbours(self, location: int) -> IntArray:
        """Return all other places, sorted."""
        return np.delete(np.arange(self.n), location)

    def candidates(
        self, at: int | None, observed: BoolArray, unavailable: Collection[int] = ()
    ) -> IntArray:
        """Return the places that are neither observed nor unavailable, sorted."""
        return np.flatnonzero(self._open(at, observed, unavailable))

    def route(
        self, at: int | None, goal: int, observed: BoolArray, unavailable: Collection[int] = ()
    ) -> Route:
        """Return the straight line to `goal`; the cost is 0 if `at` is None."""
        self._check(at, observed)
        if at is None:
            return Route((goal,), Cost(0.0, 0.0))
        return Route((goal,), Cost(*self.speeds.leg(self.points[at], self.points[goal])))

    def ways_to(self, goal: int, by: str = "seconds") -> Ways:
        """Return the straight lines from all places to `goal`."""
        metres, seconds = self._legs(self.points[goal] - self.points)
        following = np.full(self.n, goal, dtype=np.int64)
        following[goal] = -1
        return Ways(goal, metres, seconds, following)

    def ways_from(self, at: int | None, by: str = "seconds") -> WaysFrom:
        """Return the straight lines from a place to all places; without a place, all cost 0."""
        offsets = np.zeros_like(self.points) if at is None else self.points - self.points[at]
        return WaysFrom(*self._legs(offsets), np.full(self.n, -1, dtype=np.int64))

    def _legs(self, offsets: FloatArray) -> tuple[FloatArray, FloatArray]:
        metres = self.speeds.metres(offsets)
        return metres, self.speeds.seconds(offsets, metres)

    def reachable(
        self, at: int | None, observed: BoolArray, readings: int, unavailable: Collection[int] = ()
    ) -> BoolArray:
        """Return flags (n,): True for each place that is neither observed nor unavailable.

        If `readings` is 0, all flags are False.
        """
        return self._open(at, observed, unavailable) & (readings > 0)


Places: TypeAlias = FreeTopology | GraphTopology
