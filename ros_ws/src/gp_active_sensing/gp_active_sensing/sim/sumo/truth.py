"""The truth of live traffic: mean speeds of the edges, now or as they were recorded."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gp_active_sensing.errors import RunError
from gp_active_sensing.records.ground_truth import GroundTruth
from gp_active_sensing.sim.sumo.session import Session
from gp_active_sensing.types import FloatArray

__all__ = ["EdgeSpeeds", "LiveTruth", "RecordedTruth"]

_BUCKETS = 10
_SAME_TIME = 1e-6


class EdgeSpeeds:
    """Mean speed of the cars on each edge within a window: ``Σ n v Δt / Σ n Δt`` over its steps.

    That is the speed of SUMO's edgeData: metres driven by all cars over the time they were there,
    so that standing at the edge's end counts. An edge without a car in the window keeps its last
    known mean; before the first car, its free speed.

    Args:
        session: the simulation.
        edges: (n,) ids.
        free: (n,) speeds of empty edges [m/s].
        window: [s]; kept in tenths, so that between one and 1.1 windows count.
    """

    def __init__(
        self, session: Session, edges: Sequence[str], free: FloatArray, window: float
    ) -> None:
        self._session = session
        self._index = {name: i for i, name in enumerate(edges)}
        lanes = session.api.edge.getLaneNumber
        self._lanes = [(i, f"{e}_{k}") for i, e in enumerate(edges) for k in range(lanes(e))]
        self._last = np.array(free, dtype=np.float64)
        self._steps = max(1, round(window / (_BUCKETS * session.dt)))
        self._done = 0
        shape = (2, len(self._index))
        self._current = np.zeros(shape)
        self._before: deque[FloatArray] = deque(maxlen=_BUCKETS)

    def note(self) -> None:
        """Add the step just made. O(lanes).

        By lane: SUMO's mean speed of an edge counts a lane without a car at its limit.
        """
        api, dt = self._session.api, self._session.dt
        for i, name in self._lanes:
            cars = api.lane.getLastStepVehicleNumber(name)
            if cars:
                self._current[0, i] += cars * api.lane.getLastStepMeanSpeed(name) * dt
                self._current[1, i] += cars * dt
        for car in api.simulation.getDepartedIDList():  # put there, not driven there
            i = self._index.get(api.vehicle.getRoadID(car), -1)
            if i >= 0:
                self._current[:, i] -= dt * api.vehicle.getSpeed(car), dt
        self._done += 1
        if self._done == self._steps:
            self._before.append(self._current)
            self._current = np.zeros_like(self._current)
            self._done = 0
            self._last = self.now()

    def now(self) -> FloatArray:
        """Return the (n,) speeds [m/s]."""
        metres, seconds = sum(self._before, self._current)
        known = seconds > 0.5 * self._session.dt
        means = np.divide(metres, seconds, out=np.zeros_like(metres), where=known)
        return np.where(known, means, self._last)


class _Snapshots(GroundTruth):
    """A field known at some times; between them it is as at the time before."""

    def __init__(self) -> None:
        super().__init__(())
        self._times: list[float] = []
        self._fields: list[FloatArray] = []

    @property
    def changes(self) -> bool:
        """The field changes as time goes by."""
        return True

    def add(self, seconds: float, values: FloatArray) -> None:
        """Keep the (n,) values of a time of the mission [s], not before the last one."""
        field = np.array(values, dtype=np.float64)
        field.setflags(write=False)
        self._times.append(seconds)
        self._fields.append(field)

    def at(self, seconds: float) -> FloatArray:
        """Return the (n,) values last known at a time of the mission [s]; read-only.

        Raises:
            RunError: nothing is known at all.
        """
        if not self._times:
            msg = "the speeds of live traffic are not known before it runs"
            raise RunError(msg)
        k = max(0, bisect_right(self._times, seconds + _SAME_TIME) - 1)
        return self._fields[k]


class LiveTruth(_Snapshots):
    """The mean speeds when the mission began and at the end of each drive since."""

    def begin(self, values: FloatArray) -> None:
        """Forget everything; the (n,) values are those at the mission's beginning."""
        self._times.clear()
        self._fields.clear()
        self.add(0.0, values)


class RecordedTruth(_Snapshots):
    """What `LiveTruth` was, from a run directory.

    Args:
        items: ``seconds`` and (n,) ``values``, one each.
        n: number of places of the map.

    Raises:
        RunError: not such items, or none.
    """

    def __init__(self, items: Sequence[Mapping[str, Any]], n: int) -> None:
        super().__init__()
        for item in items:
            try:
                seconds = float(item["seconds"])
                values = np.array(item["values"], dtype=np.float64)
            except (KeyError, TypeError, ValueError) as error:
                msg = f"truth.jsonl: expected seconds and values, got {str(item)[:80]}"
                raise RunError(msg) from error
            if values.shape != (n,) or not np.isfinite(values).all():
                msg = f"truth.jsonl: expected {n} finite values, got an array {values.shape}"
                raise RunError(msg)
            self.add(seconds, values)
        if not items:
            msg = "truth.jsonl: the speeds of the live traffic were not recorded"
            raise RunError(msg)
