"""A second probe as an expert: it drives to the places it is asked for and reads there."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gp_active_sensing.experts.base import Field
from gp_active_sensing.experts.simulated import SOUND, Faults, Measured, SimulatedExpert
from gp_active_sensing.topology.base import Topology
from gp_active_sensing.topology.search import WaysFrom
from gp_active_sensing.types import FloatArray

__all__ = ["RevisitExpert", "short_tour"]


def short_tour(first: FloatArray, between: FloatArray) -> tuple[int, ...]:
    """Return the order in which to visit k places, beginning anywhere else, ending anywhere.

    The nearest one next, then pieces of the order are turned round or moved elsewhere as long as
    that makes it shorter: a local optimum, near the shortest for the few tens of places that are
    asked for. Costs may differ with the direction, as on one-way roads. O(k³) a pass.

    Args:
        first: (k,) cost from where the tour begins to each place; infinite = no way.
        between: (k, k) cost from the row's place to the column's.

    Returns:
        Indices 0 … k-1 in order; places to which there is no way from the one before are left out.
    """
    order = _nearest_next(first, between)
    best = _length(order, first, between)
    while True:
        found = _improved(order, best, first, between)
        if found is None:
            return tuple(order)
        order, best = found


def _nearest_next(first: FloatArray, between: FloatArray) -> list[int]:
    order: list[int] = []
    left = set(range(len(first)))
    costs = first
    while left:
        place = min(left, key=lambda i: (costs[i], i))
        if not np.isfinite(costs[place]):
            break
        order.append(place)
        left.remove(place)
        costs = between[place]
    return order


def _length(order: list[int], first: FloatArray, between: FloatArray) -> float:
    if not order:
        return 0.0
    return float(first[order[0]] + between[order[:-1], order[1:]].sum())


def _improved(
    order: list[int], best: float, first: FloatArray, between: FloatArray
) -> tuple[list[int], float] | None:
    """Return the best order one change away, None when there is none that is shorter."""
    found = None
    least = best * (1.0 - 1e-12) - 1e-12
    k = len(order)
    for i in range(k):
        for j in range(i + 1, k + 1):
            piece, rest = order[i:j], order[:i] + order[j:]
            trials = [rest[:i] + piece[::-1] + rest[i:]]
            if j - i <= 3:  # a longer piece that moves is a shorter one that moves the other way
                trials += [rest[:m] + piece + rest[m:] for m in range(len(rest) + 1) if m != i]
            for trial in trials:
                length = _length(trial, first, between)
                if length < least:
                    found, least = trial, length
    return None if found is None else (found, least)


class RevisitExpert(SimulatedExpert):
    """Answers after having been there: later the longer the way on the map.

    It drives a short tour over the places of the newest question, at once, or from the end of the
    place that it is driving to; what it had not begun to drive to by then is called off. It crosses
    anything. A place without a way to it gets no answer.

    Args:
        field: what it measures.
        topology: where it drives.
        start: place where it stands at first; None = it begins at the first place asked for.
        speed: its own [m/s]; None = the map's.
        noise_std: of its sensor [field unit].
        delay: from a reading to the answer [s].
        seed: key of the draws.
        faults: how often an answer goes wrong.

    Raises:
        ValueError: a start that is not on the map.
    """

    def __init__(
        self,
        field: Field,
        topology: Topology,
        *,
        start: int | None = None,
        speed: float | None = None,
        noise_std: float,
        delay: float = 0.0,
        seed: int = 0,
        faults: Faults = SOUND,
    ) -> None:
        super().__init__(
            field, topology.n, noise_std=noise_std, delay=delay, seed=seed, faults=faults
        )
        self._check([] if start is None else [start])
        self._topology = topology
        self._speed = speed
        self._at = start
        """Where it stood before the tour."""
        self._tour: list[Measured] = []

    def _measure(self, places: Sequence[int], seconds: float) -> list[Measured]:
        begins = self._call_off(seconds)
        wanted = list(dict.fromkeys(places))
        if self._at is None and wanted:
            first = np.full(len(wanted), np.inf)
            first[0] = 0.0
        else:
            first = self._seconds(self._at, wanted)
        between = np.array([self._seconds(place, wanted) for place in wanted])
        now, before = begins, None
        tour: list[Measured] = []
        for index in short_tour(first, between.reshape(len(wanted), len(wanted))):
            now += float(first[index] if before is None else between[before, index])
            tour.append(Measured(now, wanted[index]))
            before = index
        self._tour = tour
        return tour

    def _call_off(self, seconds: float) -> float:
        """Give up the rest of the tour; return when the next one begins, from where it is then."""
        done = [stop for stop in self._tour if stop.seconds <= seconds]
        under_way = self._tour[len(done) : len(done) + 1]
        if done or under_way:
            self._at = (done + under_way)[-1].place
        begins = under_way[0].seconds if under_way else seconds
        self._forget_after(begins)
        return begins

    def _seconds(self, at: int | None, places: Sequence[int]) -> FloatArray:
        """(k,) how long it takes from a place to others [s], infinite where there is no way."""
        if not places:
            return np.zeros(0)
        by = "seconds" if self._speed is None else "metres"
        ways: WaysFrom = self._topology.ways_from(at, by)
        taken = ways.seconds if self._speed is None else ways.metres / self._speed
        found = taken[list(places)].copy()
        found[[place == at for place in places]] = 0.0  # it stands there: no need to drive round
        return np.asarray(found, dtype=np.float64)
