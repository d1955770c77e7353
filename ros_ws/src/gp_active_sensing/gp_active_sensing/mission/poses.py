"""History of recent poses: where the probe was at the time of a reading."""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

Added = Literal["newest", "late", "restarted"]
"""Result of a pose."""
WRONG_STAMPS = 3
"""Number of consecutive too old poses that prove the newest pose's stamp wrong."""


@dataclass(frozen=True)
class Pose:
    """Where the probe was: metres in `frame`, heading in radians (NaN = not known).

    Args:
        variance: expected square of the distance from where it really was [m²]: the variances of x
            and y added; 0 = the localisation says nothing of it, below 0 = nothing usable.
        turn_variance: of the heading [rad²]; 0 = likewise, below 0 = its quaternion was none.
        z: height [m]; NaN = not known.
        z_variance: of the height, where that counts [m²]; 0 and below 0 as of `variance`.
        speed: by the twist beside the pose [m/s]; NaN = not known.
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
    r"""Return where something is that is fixed to a probe; the pose itself for what is at it.

    With the heading ψ of variance :math:`\sigma_\psi^2` it is off by

    .. math:: E|R(\psi + \epsilon)\,m - R(\psi)\,m|^2 = 2|m|^2 (1 - e^{-\sigma_\psi^2/2})

    in the mean square, besides what the pose is. Where the heading is not known it is taken to be
    at the pose, and is off by |m|. A probe is taken to be level: its roll and pitch do not count.

    Args:
        pose: of the probe.
        mount: x ahead and y to the left of it, and perhaps z above it [m].
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
    """Poses in order of their stamps.

    Args:
        max_age: longest time between a reading and the nearer of the poses around it [s].
        history: how long poses are kept [s].
        capacity: most poses kept, however fast they come.
    """

    def __init__(self, max_age: float, history: float, capacity: int = 50_000) -> None:
        self._max_age_ns = round(1e9 * max_age)
        self._history_ns = round(1e9 * history)
        self._capacity = capacity
        self._stamps: list[int] = []
        self._poses: list[Pose] = []
        self._too_old: list[Pose] = []
        self._cut_ns = -1
        """Stamp of the first pose after the probe was elsewhere than thought."""

    def __len__(self) -> int:
        return len(self._poses)

    @property
    def newest(self) -> Pose | None:
        """The pose with the latest stamp."""
        return self._poses[-1] if self._poses else None

    def clear(self) -> None:
        """Forget everything (the clock went back)."""
        self._stamps.clear()
        self._poses.clear()
        self._too_old.clear()

    def cut(self) -> None:
        """Join the newest pose to none before it: the probe did not drive there."""
        self._cut_ns = self._stamps[-1] if self._stamps else -1

    def forget_after(self, stamp_ns: int) -> None:
        """Forget the poses that are newer than a time."""
        if self._stamps and self._stamps[-1] > stamp_ns:
            kept = bisect.bisect_right(self._stamps, stamp_ns)
            del self._stamps[kept:]
            del self._poses[kept:]

    def add(self, pose: Pose, now_ns: int | None = None) -> Added | None:
        """Add a pose with finite coordinates; None when it is too old to be kept.

        One stamp from a far future must not make all that follow too old: when several in a row
        are, and follow on each other, it is given up and the track begins again with them. While
        a pose of now would be kept, the stamps of the old ones are wrong, and that of the newest
        is not.
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
        # In bulk, so that a list that loses its front costs nothing on average.
        if old > 256 or old > len(self._stamps) // 2:
            del self._stamps[:old]
            del self._poses[:old]

    def at(self, stamp_ns: int) -> Pose | None:
        """Return the pose at a time; None when there is none near enough (yet).

        The newest pose at or before the time; where the next pose is known too, in between the
        two. One of them must be within `max_age`.
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

    def may_come(self, stamp_ns: int) -> bool:
        """Return whether a better pose for this time may still arrive: none as new or newer has."""
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


def heading_between(before: Pose | None, after: Pose, least: float = 0.5) -> float:
    """Return the direction of movement, NaN when it is shorter than `least` [m]."""
    if before is None:
        return math.nan
    dx, dy = after.x - before.x, after.y - before.y
    return math.atan2(dy, dx) if math.hypot(dx, dy) >= least else math.nan


class Headings:
    """Fills in headings that are not known from the movement."""

    def __init__(self) -> None:
        self._moved_from: Pose | None = None

    def clear(self) -> None:
        """Forget where the probe came from."""
        self._moved_from = None

    def filled(self, pose: Pose, before: Pose | None) -> Pose:
        """Return a pose with a heading, if there is any."""
        if math.isfinite(pose.heading):
            return pose
        heading = heading_between(self._moved_from, pose)
        if math.isfinite(heading) or self._moved_from is None:
            self._moved_from = pose
        elif before is not None:
            heading = before.heading
        return replace(pose, heading=heading)
