"""Check poses, and queue readings until the pose of their time has arrived."""

from __future__ import annotations

import logging
import math
from collections import deque
from dataclasses import replace
from typing import Literal

from gp_active_sensing.mission.clocks import elapsed
from gp_active_sensing.mission.ingestion.visits import PendingReading
from gp_active_sensing.mission.poses import Pose, PoseTrack
from gp_active_sensing.util.wording import is_reported, moment

logger = logging.getLogger(__name__)

FARTHEST = 1e8
"""Largest valid coordinate of a pose [m]."""
FASTEST = 150.0
"""Largest possible speed of a probe [m/s]."""


Judgement = Literal["", "jumped", "relocated"]
"""Class of a pose: normal (""), unusable after a jump, or the first pose after a relocation."""
_NEAR, _PUSH = 5.0, 10.0
"""A step up to `_NEAR` [m] is never a jump. `_PUSH` is a probe's largest acceleration [m/s²]."""
_CALM, _REGULAR = 20, 1.25
"""A stream is calm after `_CALM` regular poses, which are at most `_REGULAR` seconds apart."""
_AGREE, _LASTS = 3, 3.0
"""A jump is a relocation after `_AGREE` poses and `_LASTS` seconds at the new position."""


class PoseFilter:
    """Filter for the poses of one probe, in order of arrival.

    A pose far ahead of the node's clock is rejected, since later correct poses would seem too old.
    A pose after a jump is rejected as `judge` describes.

    Args:
        max_ahead: largest time by which a pose may be ahead of the node's clock [s]; None = no
            limit.
        jump: a longer jump is logged even if the pose is used [m].
    """

    def __init__(
        self, track: PoseTrack, max_ahead: float | None, jump: float, name: str = ""
    ) -> None:
        self._track = track
        self._max_ahead = max_ahead
        self._jump = jump
        self._name = name
        self._before: Pose | None = None
        self._calm = 0
        """Number of consecutive poses that need no larger acceleration than `_PUSH`."""
        self._velocity = (0.0, 0.0)
        self._speed = 0.0
        """Recent speed [m/s]."""
        self._strange: list[Pose] = []
        """First and last pose of a series of jumped poses that agree; [] = no such series."""
        self._agree = 0
        """Number of poses in the series whose first and last poses are in `_strange`."""
        self.jumps = 0
        self.bad_covariances = 0
        """Number of poses that were used without their invalid covariance."""
        self.bad_orientations = 0
        """Number of poses without a heading because of an invalid quaternion."""
        self._lost_logged = False

    def unusable(
        self, pose: Pose, frame: str, now_ns: int | None, *, heights: bool = False
    ) -> tuple[str, str] | None:
        """Return reason and text if a pose is unusable, otherwise None.

        `heights` True = the map has heights, so that the pose needs a valid z.
        """
        if pose.frame.lstrip("/") != frame:
            why = (
                f"pose in frame {pose.frame[:100]!r}, the map is in {frame!r} (publish the pose in "
                "that frame, or the transform between the two on /tf, where tf2_ros is installed; "
                "or set map.frame if the map is drawn in the pose's): it"
            )
            return "wrong_frame", why
        if not (abs(pose.x) <= FARTHEST and abs(pose.y) <= FARTHEST):  # also true for NaN
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
        """Return a text if a pose is too far ahead of the clock; otherwise ""."""
        if self._max_ahead is None or now_ns is None:
            return ""
        limit_ns = now_ns + round(1e9 * self._max_ahead)
        self._track.forget_after(limit_ns)  # poses from before the clock's start
        if pose.stamp_ns <= limit_ns:
            return ""
        return (
            f"pose at {moment(pose.stamp_ns)}, {1e-9 * (pose.stamp_ns - now_ns):.1f} s ahead of "
            f"the node's clock, more than pose.max_ahead ({self._max_ahead:g} s): set the clocks "
            "alike, or look for a second publisher; it"
        )

    def judge(self, pose: Pose, noise: float) -> Judgement:
        """Compare a pose with the previous pose; if it is a jump, count the jump.

        A stream of poses is calm if a probe could drive from each recent pose to the next. In a
        calm stream, a pose that the probe cannot have reached is rejected as a jump. If all poses
        of the next seconds agree with it, the jump is a relocation. In other streams, all poses are
        used. `noise` is the standard deviation of a pose [m].
        """
        before = self._before
        if before is None or pose.stamp_ns <= before.stamp_ns:
            return ""
        way, seconds = _apart(before, pose)
        near = max(_NEAR, 3.0 * math.sqrt(0.5 * pose.variance), 12.0 * noise)
        push = 0.0 if self._strange else _PUSH * seconds
        if way <= near + (self._speed + push) * seconds:
            if seconds <= _REGULAR:
                vx, vy = self._velocity
                ahead = math.hypot(
                    pose.x - before.x - vx * seconds, pose.y - before.y - vy * seconds
                )
                calm = ahead <= 0.5 * near + _PUSH * seconds**2
                self._calm = self._calm + 1 if calm else 0
                self._velocity = (pose.x - before.x) / seconds, (pose.y - before.y) / seconds
            self._strange = []
            self._speed = max(way / seconds, 0.8 * self._speed)
            return ""
        gap = seconds > _REGULAR and not self._strange
        if gap or self._calm < _CALM:
            self._calm = 0 if not gap else self._calm
            self._speed = min(way / seconds, FASTEST)
            if way > max(self._jump, FASTEST * seconds):
                self._log_jump(way, seconds, "two publishers on one topic, or a localisation that "
                               "lost its place")  # fmt: skip
            return ""
        if self._drives_on(before, pose, near):
            self._strange, self._speed = [], way / seconds
            return ""
        if self._strange:
            on, later = _apart(self._strange[-1], pose)
            if on > near + (self._speed + _PUSH * later) * later:
                self._strange = []
        if not self._strange:
            self._log_jump(way, seconds, "it is not used, unless all that follow agree with it")
        self._strange = [*self._strange[:1], pose]
        self._agree = self._agree + 1 if len(self._strange) > 1 else 1
        if self._agree < _AGREE or pose.stamp_ns - self._strange[0].stamp_ns < 1e9 * _LASTS:
            return "jumped"
        self._strange, self._speed = [], 0.0
        logger.warning(
            "%s: the position stays at (%.1f, %.1f) after its jump, and is used again",
            self._name or "the probe", pose.x, pose.y,
        )  # fmt: skip
        return "relocated"

    def _drives_on(self, before: Pose, pose: Pose, near: float) -> bool:
        """Return whether `pose` shows that the first jumped pose was a real drive."""
        if len(self._strange) != 1:
            return False
        first = self._strange[0]
        way, seconds = _apart(before, first)
        later = 1e-9 * (pose.stamp_ns - first.stamp_ns)
        if way > FASTEST * seconds or later <= 0.0:
            return False
        share = later / seconds
        x, y = first.x + share * (first.x - before.x), first.y + share * (first.y - before.y)
        return math.hypot(pose.x - x, pose.y - y) <= 0.5 * near + _PUSH * later**2

    def note(self, pose: Pose) -> None:
        """Record a pose that is used."""
        if self._before is None or pose.stamp_ns > self._before.stamp_ns:
            self._before = pose

    def _log_jump(self, way: float, seconds: float, why: str) -> None:
        self.jumps += 1
        if is_reported(self.jumps):
            logger.warning(
                "%s: the position jumped by %.0f m in %.3f s (%d jumps so far): %s",
                self._name or "the probe", way, seconds, self.jumps, why,
            )  # fmt: skip

    def sure(self, pose: Pose, extent: float, rise: float = math.inf) -> Pose:
        """Remove an invalid covariance or heading from a pose; warn of a large covariance.

        `extent` is the size of the map, and `rise` is the range of its heights [m].
        """
        if pose.variance < 0.0 or pose.z_variance < 0.0:
            self.bad_covariances += 1
            if is_reported(self.bad_covariances):
                logger.warning(
                    "the covariance of a pose is not finite, or is not a covariance: its invalid "
                    "part is not used (%d so far). Correct it in the localisation, or set "
                    "pose.covariance: ignore",
                    self.bad_covariances,
                )
            sure = max(pose.variance, 0.0), max(pose.z_variance, 0.0)
            pose = replace(pose, variance=sure[0], z_variance=sure[1])
        if pose.turn_variance < 0.0:
            self.bad_orientations += 1
            if is_reported(self.bad_orientations):
                logger.warning(
                    "the quaternion of a pose has length 0 or is not finite: the course over "
                    "ground is used as heading (%d so far)",
                    self.bad_orientations,
                )
            pose = replace(pose, turn_variance=0.0)
        wide, high = pose.variance > extent**2, pose.z_variance > rise**2
        if (wide or high) and not self._lost_logged:
            logger.warning(
                "the covariance of a pose states an uncertainty of %.0f m%s: readings have almost "
                "no effect until it is smaller. If the localisation only fills in a large number, "
                "set pose.covariance: ignore",
                math.sqrt(pose.variance if wide else pose.z_variance),
                ", more than the map is wide" if wide else " upwards, more than the map is high",
            )
        self._lost_logged = wide or high
        return pose

    def restart(self) -> None:
        """Forget all earlier poses."""
        self._before = None
        self._strange, self._calm, self._speed = [], 0, 0.0


def _apart(one: Pose, other: Pose) -> tuple[float, float]:
    """Return the distance [m] and the time [s] between two poses."""
    way = math.hypot(other.x - one.x, other.y - one.y)
    return way, 1e-9 * abs(other.stamp_ns - one.stamp_ns)


class PoseSynchronizer:
    """Bounded queue of readings that wait for a pose.

    The argument `now` of the methods is the arrival time of the message that is being processed. A
    wait in the inbox therefore does not make a pose late.

    Args:
        seconds: longest wait for a pose at or after the reading's stamp [s, real time].
        capacity: largest number of waiting readings.
    """

    def __init__(self, track: PoseTrack, seconds: float, capacity: int) -> None:
        self.capacity = capacity
        self._track = track
        self._seconds = seconds
        self._fresh: deque[PendingReading] = deque()
        self._patient: deque[PendingReading] = deque()
        """Readings that have waited for `seconds`; they may use any pose within `pose.max_age`."""

    def __len__(self) -> int:
        return len(self._patient) + len(self._fresh)

    def has_pose(self, pending: PendingReading, now: float) -> bool:
        """Return whether a reading need not wait any longer at `now` (monotonic seconds)."""
        stamp_ns = pending.reading.stamp_ns
        if not self._track.expects_pose(stamp_ns):
            return True
        return self._is_patient(pending, now) and self._track.at(stamp_ns) is not None

    def _is_patient(self, pending: PendingReading, now: float) -> bool:
        return elapsed(pending.received, now) >= self._seconds

    def add(self, pending: PendingReading) -> PendingReading | None:
        """Queue a reading; return the oldest reading if the queue was full."""
        oldest = None
        if len(self) >= self.capacity:
            oldest = (self._patient or self._fresh).popleft()
        self._fresh.append(pending)
        return oldest

    def after_pose(self, now: float) -> list[PendingReading]:
        """Remove and return the readings that need not wait any longer, after a pose was added."""
        found = [pending for pending in self._patient if self.has_pose(pending, now)]
        if found:
            self._patient = deque(h for h in self._patient if not self.has_pose(h, now))
        ready = [h for h in self._fresh if not self._track.expects_pose(h.reading.stamp_ns)]
        if ready:
            self._fresh = deque(
                h for h in self._fresh if self._track.expects_pose(h.reading.stamp_ns)
            )
        return found + ready

    def after_time(self, now: float) -> list[PendingReading]:
        """Remove and return the readings that have waited for `seconds` and have a pose."""
        ready: list[PendingReading] = []
        while self._fresh and self._is_patient(self._fresh[0], now):
            pending = self._fresh.popleft()
            if self.has_pose(pending, now):
                ready.append(pending)
            else:
                self._patient.append(pending)
        return ready

    def newest_without(self, now: float, seconds: float) -> int | None:
        """Return the stamp [ns] of the newest reading that has waited for `seconds`, or None."""
        waited = (h for h in self._patient if elapsed(h.received, now) >= seconds)
        return max((pending.reading.stamp_ns for pending in waited), default=None)

    def pop_all(self) -> list[PendingReading]:
        """Remove and return all waiting readings."""
        everything = [*self._patient, *self._fresh]
        self._patient.clear()
        self._fresh.clear()
        return everything
