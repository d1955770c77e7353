"""Check whether a probe has arrived, gets nearer, and whether its sensor gives readings."""

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
    """Watches the probe at its waypoint.

    Args:
        radius: distance to the waypoint at which it has arrived [m].
        timeout: how long to wait for a reading [s].
    """

    def __init__(
        self, loop: SensingLoop, ingestion: Ingestion, radius: float, timeout: float
    ) -> None:
        self.radius, self.timeout = radius, timeout
        self._loop, self._ingestion = loop, ingestion
        self._since_ns: int | None = None

    def forget(self) -> None:
        """Wait again."""
        self._since_ns = None

    def left(self, now_ns: int) -> float:
        """Return the remaining waiting time [s]; all of it before the wait begins."""
        waited = 0.0 if self._since_ns is None else 1e-9 * (now_ns - self._since_ns)
        return self.timeout - waited if waited < self.timeout else self.timeout

    def overdue(self, target: int, now_ns: int) -> bool:
        """Return whether it has waited long enough; the next wait then begins."""
        if not self.inside(target):
            self._since_ns = None
            return False
        if self._since_ns is None:
            self._since_ns = now_ns
        if now_ns - self._since_ns < 1e9 * self.timeout:
            return False
        self._since_ns = now_ns
        return True

    def inside(self, target: int) -> bool:
        """Return whether the probe is where the waypoint of a place is."""
        pose, matcher = self._ingestion.track.newest, self._ingestion.matcher
        if pose is None:
            return False
        if matcher.has_heights:
            return matcher.apart(target, pose.x, pose.y, pose.z) <= self.radius
        x, y, _ = self._loop.topology.goals[target]
        return math.hypot(pose.x - x, pose.y - y) <= self.radius


_CELL = 2.0
"""Side of a cell of new ground, in steps: so wide that a probe that stands, and whose position
wanders a little, stays in the few cells around it."""


class ProgressChecker:
    """Watches a drive.

    A probe gets on when the way that is left becomes shorter, or when it comes to where it has not
    been since it set out: a detour leads away at first. Standing, turning, and driving to and fro
    before an obstacle are neither. The time is that of the poses, so that a localisation that falls
    silent is not taken for an obstacle.
    """

    def __init__(self, loop: SensingLoop, ingestion: Ingestion) -> None:
        self._loop = loop
        self._ingestion = ingestion
        self._least = math.inf
        self._since_ns: int | None = None
        self._been: set[tuple[int, ...]] = set()

    def forget(self) -> None:
        """Restart with another waypoint."""
        self._least, self._since_ns = math.inf, None
        self._been.clear()

    def stalled(self, plan: Plan, *, step: float, patience: float) -> bool:
        """Return whether the probe has not come `step` [m] nearer for over `patience` [s]."""
        pose = self._ingestion.track.newest
        if pose is None:
            return False
        here = self._at(pose)
        cell = tuple(math.floor(c / (_CELL * step)) for c in here.tolist())
        left = self.left(plan)
        nearer = left <= self._least - step
        if nearer:
            self._least = left
        if self._since_ns is None or nearer or cell not in self._been:
            self._since_ns = pose.stamp_ns
            self._been.add(cell)
        return pose.stamp_ns - self._since_ns >= 1e9 * patience

    def _at(self, pose: Pose) -> FloatArray:
        """(2,) where a pose is; (3,) on a map with heights, z stretched [m]."""
        if (matcher := self._ingestion.matcher).has_heights:
            return np.array([pose.x, pose.y, matcher.stretch * pose.z])
        return np.array([pose.x, pose.y])

    def left(self, plan: Plan) -> float:
        """Return the remaining length of the way along its waypoints [m].

        A probe that is on none of them has all of them before it; infinite before the first pose.
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


_ASTRAY_SECONDS, _LOOK_SECONDS = 3.0, 0.5
"""Time off the ground before an alarm, and interval of the check [s]."""


class FurtherMonitor:
    """Watches the sensors of further quantities; used under the mission's lock.

    Args:
        quantities: names of those that are read wherever the main one is.
        lead: name of the quantity whose readings complete a visit; "" = the main one.
    """

    def __init__(self, quantities: Iterable[str], lead: str = "") -> None:
        self._lead = lead
        self._without: dict[str, set[int]] = {name: set() for name in quantities}
        """Places where the main quantity was read since each was read last."""

    def note(self, used: Iterable[Reading]) -> None:
        """Record readings that were used."""
        for reading in used:
            if reading.quantity in self._without:
                self._without[reading.quantity].clear()
            elif reading.quantity == self._lead and reading.location is not None:
                for places in self._without.values():
                    places.add(reading.location)

    def complaints(self, places: int) -> list[str]:
        """Return in words which quantities gave no reading at so many places in a row."""
        return [
            f"no reading of {name} at {len(found)} places in a row: check its sensor"
            for name, found in self._without.items()
            if 0 < places <= len(found)
        ]


class GroundMonitor:
    """Watches whether a probe is on the ground of its map.

    Args:
        limit: distance off the ground that is an alarm [m]; None = one spacing, on roads as far
            as a pose may be from its place.
    """

    def __init__(self, loop: SensingLoop, ingestion: Ingestion, limit: float | None) -> None:
        self._loop = loop
        self._ingestion = ingestion
        self._limit = limit
        self._since_ns: int | None = None
        self._looked_ns = 0
        self.astray: float | None = None
        """Distance to the ground, while that is an alarm [m]."""

    @property
    def limit(self) -> float:
        """Distance off the ground that is an alarm [m]."""
        if self._limit is not None:
            return self._limit
        matcher = self._ingestion.matcher
        return matcher.snap_distance if matcher.has_lines else matcher.spacing

    def look(self) -> bool:
        """Check the newest pose; return whether an alarm begins."""
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
        before = self.astray
        if pose.stamp_ns - self._since_ns >= 1e9 * _ASTRAY_SECONDS:
            self.astray = off
        return before is None and self.astray is not None

    def _off(self, pose: Pose) -> float:
        """Return the distance of a pose from the ground [m]; 0 where no ground is known."""
        ground, matcher = self._loop.whole.ground, self._ingestion.matcher
        if ground is not None and ground.bounded:
            x, y = ground.nearest(pose.x, pose.y)
            return math.hypot(pose.x - x, pose.y - y)
        if ground is None and not matcher.has_lines:
            return 0.0
        _, metres = matcher.nearest(pose.x, pose.y)
        return metres if matcher.has_lines else max(0.0, metres - _CORNER * matcher.spacing)


_CORNER = math.sqrt(0.5)
"""Distance of a square cell's corner from its place, in distances between places."""

MUTE = "no reading"
"""Prefix of the reason of a pause or an idle probe with a silent sensor."""
SHOWN = 5
"""Places that are named."""


def is_reading_of(message: Envelope, quantity: str = "") -> bool:
    """Return whether a message is a reading of a quantity, wherever it was taken."""
    what = message.what
    return isinstance(what, RawReading) and what.quantity == quantity and math.isfinite(what.value)


class SensorMonitor:
    """Counts silent places; used under the mission's lock.

    Args:
        quantity: whose readings complete a visit; "" = the main one.
    """

    def __init__(self, quantity: str = "") -> None:
        self._quantity = quantity
        self.received = False
        """A reading with a finite value has come, whether it could be placed or not."""
        self.silent: list[int] = []
        """Places set aside in a row since a reading was used last."""
        self._received_since = False
        """A reading has come since then."""
        self._used_ns: int | None = None

    def record(self, messages: Collection[Envelope]) -> None:
        """Record what came."""
        if any(is_reading_of(message, self._quantity) for message in messages):
            self.received = self._received_since = True

    def note(self, used: Sequence[Reading]) -> None:
        """Record readings that were used."""
        if used:
            self.received = True
            self._used_ns = max(self._used_ns or 0, *(reading.stamp_ns for reading in used))
            self.forget()

    def miss(self, place: int) -> None:
        """Record a place that was set aside without a reading."""
        self.silent.append(place)

    def forget(self) -> None:
        """Count silent places from here on."""
        self.silent = []
        self._received_since = False

    def complaint(self, names: Sequence[str], now_ns: int) -> str:
        """Return the problem in words."""
        since = "yet" if self._used_ns is None else f"for {1e-9 * (now_ns - self._used_ns):.0f} s"
        n = len(self.silent)
        which = ", ".join([*(names[place] for place in self.silent[:SHOWN]), *["…"][: n > SHOWN]])
        where = "1 place" if n == 1 else f"{n} places in a row"
        look = (
            "readings come and none is used, see rejected_… in /diagnostics"
            if self._received_since
            else "check the sensor"
        )
        return f"{MUTE} {since}, at {where} ({which}): {look}"
