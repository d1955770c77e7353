"""Check a probe's sensors, arrival, progress and position on the map."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence

import numpy as np

from gp_active_sensing.loop import SensingLoop
from gp_active_sensing.mission.inbox import Envelope, RawReading
from gp_active_sensing.mission.ingestion.ingestion import Ingestion
from gp_active_sensing.mission.poses import Pose
from gp_active_sensing.types import FloatArray, Plan, Reading


class GoalChecker:
    """Checker of a probe's arrival at its waypoint and of the wait for a reading.

    Args:
        radius: radius around the waypoint within which the probe counts as arrived [m].
        timeout: longest wait for a reading at the waypoint [s].
    """

    def __init__(
        self, loop: SensingLoop, ingestion: Ingestion, radius: float, timeout: float
    ) -> None:
        self.radius, self.timeout = radius, timeout
        self._loop, self._ingestion = loop, ingestion
        self._since_ns: int | None = None

    def forget(self) -> None:
        """Restart the waiting time at the next check."""
        self._since_ns = None

    def remaining(self, now_ns: int) -> float:
        """Return the remaining waiting time [s]; before the wait begins, it is `timeout`."""
        waited = 0.0 if self._since_ns is None else 1e-9 * (now_ns - self._since_ns)
        return self.timeout - waited if waited < self.timeout else self.timeout

    def overdue(self, target: int, now_ns: int) -> bool:
        """Return whether the probe has waited for `timeout`; if so, restart the waiting time."""
        if not self.inside(target):
            self._since_ns = None
            return False
        waited_ns = 0 if self._since_ns is None else now_ns - self._since_ns
        overdue = waited_ns >= 1e9 * self.timeout
        if self._since_ns is None or overdue:
            self._since_ns = now_ns
        return overdue

    def inside(self, target: int) -> bool:
        """Return whether the probe is within `radius` of the place `target`."""
        pose, matcher = self._ingestion.track.newest, self._ingestion.matcher
        if pose is None:
            return False
        if matcher.has_heights:
            return matcher.apart(target, pose.x, pose.y, pose.z) <= self.radius
        x, y, _ = self._loop.topology.goals[target]
        return math.hypot(pose.x - x, pose.y - y) <= self.radius


_CELL = 2.0
"""Side length of the cells of `ProgressChecker`, as a multiple of `step`."""


class ProgressChecker:
    """Checker of a probe's progress on a drive.

    A probe makes progress when its remaining way becomes shorter, or when it enters a new cell of a
    square grid, as on a detour. Time is measured by the stamps of poses, so that a silent
    localisation does not look like an obstacle.
    """

    def __init__(self, loop: SensingLoop, ingestion: Ingestion) -> None:
        self._loop = loop
        self._ingestion = ingestion
        self._least = math.inf
        self._since_ns: int | None = None
        self._been: set[tuple[int, ...]] = set()

    def forget(self) -> None:
        """Start the check again for the next waypoint."""
        self._least, self._since_ns = math.inf, None
        self._been.clear()

    def stalled(self, plan: Plan, *, step: float, patience: float) -> bool:
        """Return whether the probe has advanced by less than `step` [m] during `patience` [s]."""
        pose = self._ingestion.track.newest
        if pose is None:
            return False
        here = self._at(pose)
        cell = tuple(math.floor(c / (_CELL * step)) for c in here.tolist())
        left = self.remaining(plan)
        nearer = left <= self._least - step
        if nearer:
            self._least = left
        if self._since_ns is None or nearer or cell not in self._been:
            self._since_ns = pose.stamp_ns
            self._been.add(cell)
        return pose.stamp_ns - self._since_ns >= 1e9 * patience

    def _at(self, pose: Pose) -> FloatArray:
        """Return the position of a pose [m]: (2,), or on a map with heights (3,) with scaled z."""
        matcher = self._ingestion.matcher
        height = (matcher.stretch * pose.z,) if matcher.has_heights else ()
        return np.array([pose.x, pose.y, *height])

    def remaining(self, plan: Plan) -> float:
        """Return the remaining length of a plan's way [m]; infinite before the first pose.

        If the probe is at no place of the way, the length of the whole way is returned.
        """
        here, pose = self._ingestion.here, self._ingestion.track.newest
        if pose is None:
            return math.inf
        topology, places = self._loop.topology, list(plan.path)
        ends = topology.goals[places, :2]
        if topology.heights is not None:
            up = self._ingestion.matcher.stretch * topology.heights[places]
            ends = np.column_stack([ends, up])
        passed = plan.path.index(here.place) if here is not None and here.place in plan.path else 0
        steps = np.diff(ends[passed:], axis=0)
        nearest = float(np.linalg.norm(self._at(pose) - ends[passed]))
        return nearest + float(np.linalg.norm(steps, axis=1).sum())


class FurtherMonitor:
    """Monitor of the sensors of the further quantities; used under the mission's lock.

    Args:
        quantities: names of the quantities that are read at every visited place.
        lead: name of the quantity whose readings complete a visit; "" = the main quantity.
    """

    def __init__(self, quantities: Iterable[str], lead: str) -> None:
        self._lead = lead
        self._without: dict[str, set[int]] = {name: set() for name in quantities}
        """For each further quantity, the places that were visited since its last reading."""

    def note(self, used: Iterable[Reading]) -> None:
        """Record readings that were used."""
        for reading in used:
            if reading.quantity in self._without:
                self._without[reading.quantity].clear()
            elif reading.quantity == self._lead and reading.location is not None:
                for places in self._without.values():
                    places.add(reading.location)

    def complaints(self, places: int) -> list[str]:
        """Return a text for each quantity that had no reading at `places` consecutive places."""
        return [
            f"no reading of {name} at {len(found)} places in a row: check its sensor"
            for name, found in self._without.items()
            if 0 < places <= len(found)
        ]


_ASTRAY_SECONDS, _LOOK_SECONDS = 3.0, 0.5
"""Time outside the ground after which an alarm begins, and interval between checks [s]."""
_CORNER = math.sqrt(0.5)
"""Distance from a square cell's centre to its corner, as a fraction of the cell's side."""


class GroundMonitor:
    """Monitor of a probe's distance from the ground (the free area) of its map.

    Args:
        limit: there is an alarm beyond this distance from the ground [m]. None = the distance
            between neighbouring places, or `snap_distance` on roads.
    """

    def __init__(self, loop: SensingLoop, ingestion: Ingestion, limit: float | None) -> None:
        self._loop = loop
        self._ingestion = ingestion
        self._limit = limit
        self._since_ns: int | None = None
        self._looked_ns = 0
        self.astray: float | None = None
        """Distance from the free area or the roads during an alarm [m]; None = no alarm."""

    @property
    def limit(self) -> float:
        """Distance from the ground beyond which there is an alarm [m]."""
        if self._limit is not None:
            return self._limit
        matcher = self._ingestion.matcher
        return matcher.snap_distance if matcher.has_lines else matcher.spacing

    def check(self) -> bool:
        """Check the newest pose; return whether an alarm has begun."""
        pose = self._ingestion.track.newest
        if pose is None or abs(pose.stamp_ns - self._looked_ns) < 1e9 * _LOOK_SECONDS:
            return False
        self._looked_ns = pose.stamp_ns
        off = self._off(pose)
        if off <= self.limit:
            self._since_ns = self.astray = None
            return False
        if self._since_ns is None:
            self._since_ns = pose.stamp_ns
        if pose.stamp_ns - self._since_ns < 1e9 * _ASTRAY_SECONDS:
            return False
        before, self.astray = self.astray, off
        return before is None

    def _off(self, pose: Pose) -> float:
        ground, matcher = self._loop.whole.ground, self._ingestion.matcher
        if ground is not None and ground.bounded:
            x, y = ground.nearest(pose.x, pose.y)
            return math.hypot(pose.x - x, pose.y - y)
        if ground is None and not matcher.has_lines:
            return 0.0
        _, metres = matcher.nearest(pose.x, pose.y)
        return metres if matcher.has_lines else max(0.0, metres - _CORNER * matcher.spacing)


MUTE = "no reading"
"""Prefix of `ProbeState.gone` for a probe with a silent sensor."""
SHOWN = 5
"""Largest number of places that a message about a silent sensor names."""


def is_reading_of(message: Envelope, quantity: str) -> bool:
    """Return whether a message is a finite reading of a quantity."""
    what = message.what
    return isinstance(what, RawReading) and what.quantity == quantity and math.isfinite(what.value)


class SensorMonitor:
    """Counter of places without a reading; used under the mission's lock.

    Args:
        quantity: name of the quantity whose readings complete a visit; "" = the main quantity.
    """

    def __init__(self, quantity: str) -> None:
        self._quantity = quantity
        self.received = False
        """True after the first finite reading, even a reading without a place."""
        self.silent: list[int] = []
        """Places that were visited without a reading since the last used reading."""
        self._received_since = False
        """True if a reading has been received since the last used reading."""
        self._used_ns: int | None = None

    def record(self, messages: Collection[Envelope]) -> None:
        """Record received messages."""
        if any(is_reading_of(message, self._quantity) for message in messages):
            self.received = self._received_since = True

    def note(self, used: Sequence[Reading]) -> None:
        """Record readings that were used."""
        if used:
            self.received = True
            self._used_ns = max(self._used_ns or 0, *(reading.stamp_ns for reading in used))
            self.forget()

    def miss(self, place: int) -> None:
        """Record a place whose visit ended without a reading."""
        self.silent.append(place)

    def forget(self) -> None:
        """Restart the count of places without a reading."""
        self.silent = []
        self._received_since = False

    def complaint(self, names: Sequence[str], now_ns: int) -> str:
        """Return a text on the silent sensor: the missed places and the time without a reading."""
        since = "yet" if self._used_ns is None else f"for {1e-9 * (now_ns - self._used_ns):.0f} s"
        n = len(self.silent)
        more = ", …" if n > SHOWN else ""
        which = ", ".join(names[place] for place in self.silent[:SHOWN]) + more
        where = "1 place" if n == 1 else f"{n} places in a row"
        look = (
            "readings come and none is used, see rejected_… in /diagnostics"
            if self._received_since
            else "check the sensor"
        )
        return f"{MUTE} {since}, at {where} ({which}): {look}"
