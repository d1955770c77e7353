"""History of a probe's recent poses, to interpolate its position at the time of a reading."""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

Added = Literal["newest", "late", "restarted"]
WRONG_STAMPS = 3
"""Number of consecutive outdated poses after which the newest stored stamp counts as wrong."""


@dataclass(frozen=True)
class Pose:
    """Pose of a probe: metres in `frame`, heading in radians (NaN = unknown).

    Args:
        variance: sum of the variances of x and y [m²]; 0 = not given, below 0 = invalid.
        turn_variance: variance of the heading [rad²]; 0 = not given, below 0 = invalid quaternion.
        z: height [m]; NaN = unknown.
        z_variance: variance of z [m²]; 0 = not given, below 0 = invalid.
        speed: speed of the twist in the same message [m/s]; NaN = unknown.
    """

    stamp_ns: int
    frame: str
    x: float
    y: float
    heading: float
    variance: float = 0.0
    turn_variance: float = 0.0
    z: float = math.nan
    z_variance: float = 0.0
    speed: float = math.nan


def mounted(pose: Pose, mount: Sequence[float]) -> Pose:
    r"""Return the pose of a sensor that is mounted on a probe.

    `mount` is the sensor's position m relative to the pose [m]: x ahead, y to the left, and perhaps
    z upwards. R(ψ) is the rotation by the heading ψ. The heading has a normal error ε with variance
    :math:`\sigma_\psi^2`. The mean square shift that ε causes is added to the pose's variance:

    .. math:: E|R(\psi + \epsilon)\,m - R(\psi)\,m|^2 = 2|m|^2 (1 - e^{-\sigma_\psi^2/2})

    Without a heading the probe's position is returned, and |m|² is added to its variance. Roll
    and pitch are taken as 0.
    """
    ahead, left, *up = mount
    if any(up):
        pose = replace(pose, z=pose.z + up[0])
    if ahead == left == 0.0:
        return pose
    square = ahead * ahead + left * left
    if not math.isfinite(pose.heading):
        return replace(pose, variance=pose.variance + square)
    cos, sin = math.cos(pose.heading), math.sin(pose.heading)
    return replace(
        pose,
        x=pose.x + cos * ahead - sin * left,
        y=pose.y + sin * ahead + cos * left,
        variance=pose.variance - 2.0 * square * math.expm1(-0.5 * pose.turn_variance),
    )


class PoseTrack:
    """Recent poses in order of their stamps.

    Args:
        max_age: longest time between a reading and the nearest pose [s].
        history: time for which poses are kept [s].
        capacity: largest number of poses.
    """

    def __init__(self, max_age: float, history: float, capacity: int = 50_000) -> None:
        self._max_age_ns = round(1e9 * max_age)
        self._history_ns = round(1e9 * history)
        self._capacity = capacity
        self._stamps: list[int] = []
        self._poses: list[Pose] = []
        self._too_old: list[Pose] = []
        self._cut_ns = -1
        """Stamp of the first pose after a relocation [ns]; -1 = no relocation."""

    def __len__(self) -> int:
        return len(self._poses)

    @property
    def newest(self) -> Pose | None:
        """Pose with the latest stamp; None = no pose."""
        return self._poses[-1] if self._poses else None

    def clear(self) -> None:
        """Drop all poses."""
        self._stamps.clear()
        self._poses.clear()
        self._too_old.clear()

    def cut(self) -> None:
        """Mark a relocation, across which poses are not interpolated."""
        self._cut_ns = self._stamps[-1] if self._stamps else -1

    def forget_after(self, stamp_ns: int) -> None:
        """Drop the poses with a stamp later than `stamp_ns`."""
        if self._stamps and self._stamps[-1] > stamp_ns:
            kept = bisect.bisect_right(self._stamps, stamp_ns)
            del self._stamps[kept:]
            del self._poses[kept:]

    def add(self, pose: Pose, now_ns: int | None = None) -> Added | None:
        """Add a pose with finite coordinates; return None if the pose is too old.

        A single stamp in the far future would make all later poses too old. If `WRONG_STAMPS`
        consecutive poses are too old but have rising stamps, the track is therefore cleared, and
        the last of these poses is added. The track is not cleared while it would accept a pose
        stamped with the present time `now_ns` [ns].
        """
        oldest_ns = self._stamps[-1] - self._history_ns if self._stamps else pose.stamp_ns
        if pose.stamp_ns < oldest_ns:
            if now_ns is not None and oldest_ns <= now_ns:
                return None
            if self._too_old and pose.stamp_ns < self._too_old[-1].stamp_ns:
                self._too_old.clear()
            self._too_old.append(pose)
            if len(self._too_old) < WRONG_STAMPS:
                return None
            self.clear()
            self._insert(pose)
            return "restarted"
        self._too_old.clear()
        newest = self._insert(pose)
        self._forget(self._stamps[-1] - self._history_ns)
        return "newest" if newest else "late"

    def _insert(self, pose: Pose) -> bool:
        index = bisect.bisect_right(self._stamps, pose.stamp_ns)
        self._stamps.insert(index, pose.stamp_ns)
        self._poses.insert(index, pose)
        return index == len(self._poses) - 1

    def _forget(self, before_ns: int) -> None:
        old = bisect.bisect_left(self._stamps, before_ns)
        old = max(old, len(self._stamps) - self._capacity)
        # Poses are dropped in bulk, for a constant average cost.
        if old > 256 or old > len(self._stamps) // 2:
            del self._stamps[:old]
            del self._poses[:old]

    def at(self, stamp_ns: int) -> Pose | None:
        """Return the pose at a stamp [ns]; None = no pose is within `max_age` of the stamp.

        The pose is interpolated between the poses before and after the stamp. Without a later pose,
        the earlier pose is returned.
        """
        after = bisect.bisect_right(self._stamps, stamp_ns)
        if after == 0:
            return None
        before = self._poses[after - 1]
        apart = stamp_ns - before.stamp_ns
        if after == len(self._poses) or self._stamps[after] == self._cut_ns:
            return before if apart <= self._max_age_ns else None
        following = self._poses[after]
        if min(apart, following.stamp_ns - stamp_ns) > self._max_age_ns:
            return None
        return _between(before, following, stamp_ns)

    def expects_pose(self, stamp_ns: int) -> bool:
        """Return whether all poses so far are older than a stamp [ns]."""
        return not self._stamps or self._stamps[-1] < stamp_ns


def _between(before: Pose, after: Pose, stamp_ns: int) -> Pose:
    span = after.stamp_ns - before.stamp_ns
    part = (stamp_ns - before.stamp_ns) / span if span > 0 else 0.0
    turn = math.remainder(after.heading - before.heading, math.tau)
    return Pose(
        stamp_ns,
        before.frame,
        before.x + part * (after.x - before.x),
        before.y + part * (after.y - before.y),
        before.heading + part * turn,
        before.variance + part * (after.variance - before.variance),
        before.turn_variance + part * (after.turn_variance - before.turn_variance),
        before.z + part * (after.z - before.z),
        before.z_variance + part * (after.z_variance - before.z_variance),
    )


def heading_between(before: Pose | None, after: Pose) -> float:
    """Return the direction of movement [rad]; NaN if the distance is below 0.5 m."""
    if before is None:
        return math.nan
    dx, dy = after.x - before.x, after.y - before.y
    return math.atan2(dy, dx) if math.hypot(dx, dy) >= 0.5 else math.nan


class Headings:
    """Estimator of the headings of poses without a heading, from the movement."""

    def __init__(self) -> None:
        self._moved_from: Pose | None = None

    def clear(self) -> None:
        """Forget the previous position."""
        self._moved_from = None

    def filled(self, pose: Pose, before: Pose | None) -> Pose:
        """Return the pose; if it has no heading, add the estimated heading."""
        if math.isfinite(pose.heading):
            return pose
        heading = heading_between(self._moved_from, pose)
        if math.isfinite(heading) or self._moved_from is None:
            self._moved_from = pose
        elif before is not None:
            heading = before.heading
        return replace(pose, heading=heading)
