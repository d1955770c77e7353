"""Check poses, and hold readings until the pose of their time has arrived."""

from __future__ import annotations

import logging
import math
from collections import deque
from dataclasses import replace

from gp_active_sensing.mission.clocks import elapsed
from gp_active_sensing.mission.ingestion.visits import PendingReading
from gp_active_sensing.mission.poses import Pose, PoseTrack
from gp_active_sensing.util.wording import moment

__all__ = ["FASTEST", "PoseFilter", "PoseSynchronizer"]


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
        self.bad_covariances = 0
        """Poses with a covariance that is none; they are used without."""
        self.bad_orientations = 0
        """Poses whose quaternion has length 0 or is not finite; they are used without a heading."""
        self._lost_said = False

    def unusable(
        self, pose: Pose, frame: str, now_ns: int | None, *, heights: bool = False
    ) -> tuple[str, str] | None:
        """Return why a pose cannot be used, as the word of the reason and in words; None = it can.

        Args:
            pose: as it came.
            frame: of the map.
            now_ns: time of the node's clock; None = there is none yet.
            heights: the places of the map have heights, so that a pose needs a z.
        """
        if pose.frame.lstrip("/") != frame:
            why = (
                f"pose in frame {pose.frame[:100]!r}, the map is in {frame!r} (publish the pose in "
                "that frame, or the transform between the two on /tf, where tf2_ros is installed; "
                "or set map.frame if the map is drawn in the pose's): it"
            )
            return "wrong_frame", why
        if not (abs(pose.x) <= FARTHEST and abs(pose.y) <= FARTHEST):  # NaN too
            return "pose_not_finite", f"pose at ({pose.x}, {pose.y})"
        if heights and not abs(pose.z) <= FARTHEST:
            why = (
                f"pose at ({pose.x:.1f}, {pose.y:.1f}) with z {pose.z}, where the map has heights "
                "(of a NavSatFix, give pose.zero_altitude, the altitude at which z is 0): it"
            )
            return "pose_not_finite", why
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

    def sure(self, pose: Pose, extent: float, rise: float = math.inf) -> Pose:
        """Return a pose without a covariance that is none, and warn of one that is very large.

        Args:
            pose: that is used.
            extent: of the map [m].
            rise: how far the map reaches upwards [m].
        """
        if pose.variance < 0.0 or pose.z_variance < 0.0:
            self.bad_covariances += 1
            if self.bad_covariances in (1, 10, 100) or self.bad_covariances % 1000 == 0:
                logger.warning(
                    "the covariance of a pose is not finite, or is no covariance: what is wrong "
                    "of it does not count (%d so far). Correct it in the localisation, or set "
                    "pose.covariance: ignore",
                    self.bad_covariances,
                )
            sure = max(pose.variance, 0.0), max(pose.z_variance, 0.0)
            pose = replace(pose, variance=sure[0], z_variance=sure[1])
        if pose.turn_variance < 0.0:
            self.bad_orientations += 1
            if self.bad_orientations in (1, 10, 100) or self.bad_orientations % 1000 == 0:
                logger.warning(
                    "the quaternion of a pose has length 0 or is not finite: its heading is not "
                    "known, the course over ground is used (%d so far)",
                    self.bad_orientations,
                )
            pose = replace(pose, turn_variance=0.0)
        wide, high = pose.variance > extent**2, pose.z_variance > rise**2
        if (wide or high) and not self._lost_said:
            logger.warning(
                "by its covariance a pose is uncertain by %.0f m%s: readings are worth next to "
                "nothing until it is better. If the localisation only fills in a large number, "
                "set pose.covariance: ignore",
                math.sqrt(pose.variance if wide else pose.z_variance),
                ", more than the map is wide" if wide else " upwards, more than the map is high",
            )
        self._lost_said = wide or high
        return pose

    def restart(self) -> None:
        """Forget the pose before (the clock went back)."""
        self._before = None


class PoseSynchronizer:
    """A bounded queue; what is in it is looked at only when something has changed for it.

    How long a reading has waited is asked with the time at which the message came that is being
    used: a pose that lies behind it in the inbox is not late because the mission was.

    Args:
        track: looks up poses.
        seconds: how long a reading waits for a pose that is not older than itself [s, real time].
        capacity: most readings.
    """

    def __init__(self, track: PoseTrack, seconds: float, capacity: int) -> None:
        self.capacity = capacity
        self._track = track
        self._seconds = seconds
        self._fresh: deque[PendingReading] = deque()
        self._patient: deque[PendingReading] = deque()
        """Those that have waited long enough: any pose near enough will do."""

    def __len__(self) -> int:
        return len(self._patient) + len(self._fresh)

    def has_pose(self, held: PendingReading, now: float) -> bool:
        """Return whether no better pose is worth waiting for (`now`: monotonic seconds)."""
        stamp_ns = held.reading.stamp_ns
        if not self._track.may_come(stamp_ns):
            return True
        return self._is_patient(held, now) and self._track.at(stamp_ns) is not None

    def _is_patient(self, held: PendingReading, now: float) -> bool:
        """Return whether a reading has waited long enough for the best pose."""
        return elapsed(held.received, now) >= self._seconds

    def add(self, held: PendingReading) -> PendingReading | None:
        """Let a reading wait; return the oldest one when there is no room for it any more."""
        oldest = None
        if len(self) >= self.capacity:
            oldest = (self._patient or self._fresh).popleft()
        self._fresh.append(held)
        return oldest

    def after_pose(self, now: float) -> list[PendingReading]:
        """Return the readings that a new pose came for."""
        found = [held for held in self._patient if self.has_pose(held, now)]
        if found:
            self._patient = deque(h for h in self._patient if not self.has_pose(h, now))
        ready = [h for h in self._fresh if not self._track.may_come(h.reading.stamp_ns)]
        if ready:
            self._fresh = deque(h for h in self._fresh if self._track.may_come(h.reading.stamp_ns))
        return found + ready

    def after_time(self, now: float) -> list[PendingReading]:
        """Return the readings that have waited long enough for another pose.

        They came in this order, so the first ones have waited the longest. One that has no pose at
        all yet is not looked at again before the next pose.
        """
        ready: list[PendingReading] = []
        while self._fresh and self._is_patient(self._fresh[0], now):
            held = self._fresh.popleft()
            if self.has_pose(held, now):
                ready.append(held)
            else:
                self._patient.append(held)
        return ready

    def take_all(self) -> list[PendingReading]:
        """Return everything that waits, and let nothing wait."""
        everything = [*self._patient, *self._fresh]
        self._patient.clear()
        self._fresh.clear()
        return everything
