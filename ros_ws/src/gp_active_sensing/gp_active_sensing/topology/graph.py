"""Places joined by directed moves: where to go next, in plain lists.

These methods run inside a planner's tree search, on a few neighbours at a time, where Python lists
and bytes beat arrays and graph libraries.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from gp_active_sensing.errors import PlanningError
from gp_active_sensing.topology.base import Topology
from gp_active_sensing.topology.links import Links
from gp_active_sensing.topology.search import (
    Components,
    Move,
    MoveArrays,
    MoveLattice,
    Ways,
    WaysFrom,
    cheapest,
    components_of,
    nearest_ring,
    reached,
    ways_from,
    ways_to,
    within,
)
from gp_active_sensing.types import BoolArray, Cost, IntArray, Route

_MOST_KEPT = 4096
"""Places for which the ways to what is near are kept."""


class GraphTopology(Topology):
    """Places with directed moves; observed and unavailable places may be crossed.

    The direct move to a place must be a cheapest way to it: it is taken without a search.

    The other arguments are those of `Topology`.

    Args:
        moves: (n,) moves out of each place.
        entry: (n,) cost of observing a place first, from nowhere; None = nothing.
        stay: whether a probe can observe the place where it stands without moving.
        reach: places within this driving distance [m] may also be next, whatever is crossed on the
            way; 0 = adjacent ones only.
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
        self._reach = reach * (1.0 + 1e-9)  # a sum of equal steps may be a hair longer
        self._within: dict[int, dict[int, Route]] = {}
        self._ways: dict[tuple[int, str], Ways] = {}
        self._entry = tuple(entry) if entry is not None else (Cost(0.0, 0.0),) * self.n

    def without(self, gone: Collection[tuple[int, int]]) -> GraphTopology:
        """Return the same map without some moves, from a place to a place."""
        other = copy.copy(self)
        kept = [list(out) for out in self._moves]
        for a in {a for a, _ in gone}:
            kept[a] = [move for move in self._moves[a] if (a, move.to) not in gone]
        other._set_moves(kept)
        other._within, other._ways = {}, {}
        other.__dict__.pop("components", None)
        return other

    def closed_to(self, places: Collection[int]) -> GraphTopology:
        """Return the same map without the moves into some places, and without their ground."""
        if not places:
            return self
        closed = set(places)
        other = self.without(
            {(a, m.to) for a, out in enumerate(self._moves) for m in out if m.to in closed}
        )
        if self.ground is None or self.roads or self.heights is not None:
            return other
        # Places beside one another are so far apart.
        width = min((m.metres for out in self._moves for m in out if m.metres > 0.0), default=0.0)
        return other.over(self.ground.without(self.positions[sorted(closed)], width))

    def _set_moves(self, moves: Sequence[Sequence[Move]]) -> None:
        self._moves = tuple(tuple(sorted(out)) for out in moves)
        for made_of_them in ("arrays", "lattice"):
            self.__dict__.pop(made_of_them, None)
        self._next = tuple(tuple(move.to for move in out) for out in self._moves)
        neighbours = [np.array(out, dtype=np.int64) for out in self._next]
        for array in neighbours:
            array.setflags(write=False)
        self._neighbours = tuple(neighbours)

    @property
    def moves(self) -> tuple[tuple[Move, ...], ...]:
        """(n,) the moves out of each place, sorted by where they lead."""
        return self._moves

    @cached_property
    def arrays(self) -> MoveArrays:
        """The same as arrays."""
        return MoveArrays(self._moves)

    @cached_property
    def lattice(self) -> MoveLattice | None:
        """The regular grid that the map is, None if it is none."""
        return MoveLattice.of(self.points, self.arrays)

    def neighbours(self, location: int) -> IntArray:
        """Return the places one legal move after `location`, sorted; read-only."""
        return self._neighbours[location]

    def candidates(
        self, at: int | None, observed: BoolArray, unavailable: Collection[int] = ()
    ) -> IntArray:
        """Return the unobserved places a probe standing at `at` can observe next, sorted.

        The unobserved neighbours, and with a `reach` those within it; when there is none, the
        unobserved places the fewest moves away through observed or unavailable ones. O(degree) or
        O(places within reach) in the first case, else O(moves).
        """
        if at is None:
            return self._open_places(observed, unavailable)
        self._check(at, observed)
        crossable = _crossable(observed, unavailable)
        found = [b for b in self._next[at] if not crossable[b]]
        if self._stay and not crossable[at]:
            found = sorted({at, *found})
        if self._reach:
            found = sorted({*found, *(b for b in self._near_to(at) if not crossable[b])})
        if not found:
            found = nearest_ring(self._next, at, crossable)
        return np.array(found, dtype=np.int64)

    @property
    def reach(self) -> float:
        """Places within so many metres of driving may be next; 0 = the adjacent ones only."""
        return self._reach

    def _near_to(self, at: int) -> dict[int, Route]:
        """Return the shortest ways to the places within reach; kept, they never change."""
        near = self._within.get(at)
        if near is None:
            if len(self._within) >= _MOST_KEPT:
                self._within.clear()
            near = self._within[at] = within(self._moves, at, self._reach)
        return near

    def route(
        self, at: int | None, goal: int, observed: BoolArray, unavailable: Collection[int] = ()
    ) -> Route:
        """Return the cheapest legal way to a candidate.

        The direct move; with a `reach` the shortest way within it, whatever it crosses; else the
        fastest one through observed and unavailable places.

        Raises:
            PlanningError: there is none.
        """
        self._check(at, observed)
        if at is None:
            return Route((goal,), self._entry[goal])
        if at == goal and self._stay:
            return Route((goal,), Cost(0.0, 0.0))
        for move in self._moves[at]:
            if move.to == goal:
                return Route((goal,), Cost(move.metres, move.seconds))
        if self._reach and (near := self._near_to(at).get(goal)) is not None:
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
        """Return the cheapest way to a place from every other, whatever is crossed; kept."""
        if (goal, by) not in self._ways:
            self._ways[goal, by] = ways_to(self.arrays, goal, by)
        return self._ways[goal, by]

    def ways_from(self, at: int | None, by: str = "seconds") -> WaysFrom:
        """Return the cheapest way from a place to every one, whatever is crossed.

        To the place itself it costs nothing, on roads it is the cheapest round. From nowhere it is
        the entry. O(moves log places).
        """
        if at is None:
            metres, seconds = np.array(self._entry, dtype=np.float64).T.copy()
            return WaysFrom(metres, seconds, np.full(self.n, -1, dtype=np.int64))
        return ways_from(self.arrays, at, by, stay=self._stay)

    def reachable(
        self,
        at: int | None,
        observed: BoolArray,
        readings: int,
        unavailable: Collection[int] = (),
    ) -> BoolArray:
        """(n,) the unobserved places at most `readings` unobserved places away.

        Crossing observed and unavailable places is free, so this contains every place that may
        be among the next `readings` observed ones. O(places and moves within reach). With a
        `reach`, the places that `readings` decisions may lead to.
        """
        found = bytearray(self.n)
        if at is None:
            mask = np.frombuffer(found, dtype=np.bool_)
            if readings > 0:
                mask[self._open_places(observed, unavailable)] = True
            return mask
        self._check(at, observed)
        crossable = _crossable(observed, unavailable)
        seen = bytearray(self.n)
        frontier = [at]
        if self._stay and readings > 0 and not crossable[at]:
            found[at] = seen[at] = 1
        if self._reach:
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
        """Return the (n,) places that a number of decisions can lead to.

        Each decision leads to a place within reach, or on through known places. Places crossed on
        the way are known afterwards, so the next decision may start from any of them.
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
            passed |= reached(self._moves, sorted(known), self._reach)
            if passed <= known:
                break
            known |= passed
        for b in known:
            if not crossable[b]:
                found[b] = 1
        return np.frombuffer(found, dtype=np.bool_)

    @cached_property
    def _joined(self) -> Links:
        moves = ((i, move) for i, out in enumerate(self._moves) for move in out)
        return Links.between(self.n, ((i, m.to, m.metres, 1.0 / m.metres) for i, m in moves))

    @property
    def links(self) -> Links:
        """How the places are joined, in either direction."""
        return self._joined

    @cached_property
    def components(self) -> Components:
        """How the map hangs together: parts, the largest round-trip set, traps."""
        return components_of(self._next)


def _crossable(observed: BoolArray, unavailable: Collection[int]) -> bytes | bytearray:
    """Return one byte a place: 1 where a probe may pass without observing."""
    flags = observed.tobytes()
    if not unavailable:
        return flags
    marked = bytearray(flags)
    for place in unavailable:
        marked[place] = 1
    return marked
