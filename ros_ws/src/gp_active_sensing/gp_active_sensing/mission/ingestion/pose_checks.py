"""Reject impossible poses: stamped far ahead, or farther away than a probe can drive."""

from __future__ import annotations

import logging
import math

from gp_active_sensing.mission.poses import Pose, PoseTrack
from gp_active_sensing.util.wording import moment

__all__ = ["FASTEST", "PoseFilter"]

logger = logging.getLogger(__name__)

FARTHEST = 1e8
"""Largest coordinate of a pose [m]; nothing on Earth is farther away."""
FASTEST = 150.0
"""Faster than this nothing moves that is sent to waypoints [m/s]."""


class PoseFilter:
    """Looks at the poses of one probe in the order in which they came.

    A pose far ahead of the node's clock would be the newest for a long time, and all honest ones
    after it would come too late: it is not used. A jump is only counted, since nobody can say
    which of the two poses is the right one.

    Args:
        track: the poses that are used.
        max_ahead: how far a pose may be ahead of the node's clock [s]; None = any time.
        jump: a shorter way is never a jump [m].
    """

    def __init__(self, track: PoseTrack, max_ahead: float | None, jump: float) -> None:
        self._track = track
        self._max_ahead = max_ahead
        self._jump = jump
        self._before: Pose | None = None
        self.jumps = 0
        """Poses that a probe cannot have driven to from where the pose before them was."""

    def unusable(self, pose: Pose, frame: str, now_ns: int | None) -> tuple[str, str] | None:
        """Return why a pose cannot be used, as the word of the reason and in words; None = it can.

        Args:
            pose: as it came.
            frame: of the map.
            now_ns: time of the node's clock; None = there is none yet.
        """
        if pose.frame.lstrip("/") != frame:
            why = (
                f"pose in frame {pose.frame[:100]!r}, the map is in {frame!r} (publish the pose in "
                "that frame, or set map.frame if the map is drawn in the pose's): it"
            )
            return "wrong_frame", why
        if not (abs(pose.x) <= FARTHEST and abs(pose.y) <= FARTHEST):  # NaN too
            return "pose_not_finite", f"pose at ({pose.x}, {pose.y})"
        if far := self.ahead(pose, now_ns):
            return "pose_ahead", far
        return None

    def ahead(self, pose: Pose, now_ns: int | None) -> str:
        """Return how far ahead of the clock a pose is, in words; "" when it may be used.

        Args:
            pose: as it came.
            now_ns: time of the node's clock; None = there is none yet.
        """
        if self._max_ahead is None or now_ns is None:
            return ""
        limit_ns = now_ns + round(1e9 * self._max_ahead)
        self._track.forget_after(limit_ns)  # those that came before there was a clock
        if pose.stamp_ns <= limit_ns:
            return ""
        return (
            f"pose at {moment(pose.stamp_ns)}, {1e-9 * (pose.stamp_ns - now_ns):.1f} s ahead of "
            f"the node's clock, more than pose.max_ahead ({self._max_ahead:g} s): set the clocks "
            "alike, or look for a second publisher; it"
        )

    def note(self, pose: Pose) -> None:
        """Record a pose that is used, and count a jump."""
        before, self._before = self._before, pose
        if before is None:
            return
        way = math.hypot(pose.x - before.x, pose.y - before.y)
        seconds = 1e-9 * abs(pose.stamp_ns - before.stamp_ns)
        if way <= self._jump or way <= FASTEST * seconds:
            return
        self.jumps += 1
        if self.jumps in (1, 10, 100) or self.jumps % 1000 == 0:
            logger.warning(
                "the pose jumped by %.0f m in %.3f s (%d jumps so far): two publishers on one "
                "topic, or a localisation that lost its place",
                way,
                seconds,
                self.jumps,
            )

    def restart(self) -> None:
        """Forget the pose before (the clock went back)."""
        self._before = None
