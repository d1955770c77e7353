"""Check poses, and hold readings until the pose of their time has arrived."""

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
"""Largest coordinate of a pose [m]; nothing on Earth is farther away."""
FASTEST = 150.0
"""Faster than this nothing moves that is sent to waypoints [m/s]."""


Judgement = Literal["", "jumped", "relocated"]
"""Class of a pose: on the way driven, unusable, or the first one at another position."""
_NEAR, _PUSH = 5.0, 10.0
"""A way that is never a jump [m], and the largest acceleration of a probe [m/s²]."""
_CALM, _REGULAR = 20, 1.25
"""Poses that make a stream calm, and the longest time between two of them [s]."""
_AGREE, _LASTS = 3, 3.0
"""Poses that agree on another position, and for how long [s], before it is believed."""


class PoseFilter:
    """Looks at the poses of one probe in the order in which they came.

    A pose far ahead of the node's clock would be the newest for a long time, and all honest ones
    after it would come too late: it is not used. So is a jump, see `judge`.

    Args:
        max_ahead: how far a pose may be ahead of the node's clock [s]; None = any time.
        jump: a shorter way is never a jump, in a stream that is not calm [m].
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
        """Poses in a row that go on as those before them, as far as a probe can push."""
        self._velocity = (0.0, 0.0)
        self._speed = 0.0
        """How fast it was lately [m/s]."""
        self._strange: list[Pose] = []
        """First and last of the poses that agree on another position."""
        self._agree = 0
        """How many those are."""
        self.jumps = 0
        """Poses that a probe cannot have driven to from where the pose before them was."""
        self.bad_covariances = 0
        """Poses with a covariance that is none; they are used without."""
        self.bad_orientations = 0
        """Poses whose quaternion has length 0 or is not finite; they are used without a heading."""
        self._lost_logged = False

    def unusable(
        self, pose: Pose, frame: str, now_ns: int | None, *, heights: bool = False
    ) -> tuple[str, str] | None:
        """Return why a pose cannot be used, as the word of the reason and in words; None = it can.

        On a map with heights (`heights`) a pose needs a z.
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
        """Return how far ahead of the clock a pose is, in words; "" when it may be used."""
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

    def judge(self, pose: Pose, noise: float) -> Judgement:
        """Compare a pose with the one before it, and count a jump.

        In a stream that was calm for a while a pose is not used that the probe cannot have driven
        to, given how fast it was; once all poses go on from there for some seconds, the probe was
        somewhere else than thought. Of a stream that never was calm nobody can say which of two
        poses is the right one: both are used.

        The noise is the standard deviation of a pose [m].
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
        self._strange = [*self._strange[:1], pose] if self._strange else [pose]
        self._agree = self._agree + 1 if len(self._strange) > 1 else 1
        if self._agree < _AGREE or pose.stamp_ns - self._strange[0].stamp_ns < 1e9 * _LASTS:
            return "jumped"
        self._strange, self._speed = [], 0.0
        logger.warning(
            "%s: the position stays where it jumped to, (%.1f, %.1f), and is used from here on",
            self._name or "the probe", pose.x, pose.y,
        )  # fmt: skip
        return "relocated"

    def _drives_on(self, before: Pose, pose: Pose, near: float) -> bool:
        """Return whether a pose confirms a suspected jump as a real drive.

        So of a simulated probe, or one that a faster stream saw start, whose speed changes at once.
        """
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
        """Drop an invalid covariance of a pose, and warn of a very large one.

        The extent of the map, and its rise upwards, are in metres.
        """
        if pose.variance < 0.0 or pose.z_variance < 0.0:
            self.bad_covariances += 1
            if is_reported(self.bad_covariances):
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
            if is_reported(self.bad_orientations):
                logger.warning(
                    "the quaternion of a pose has length 0 or is not finite: its heading is not "
                    "known, the course over ground is used (%d so far)",
                    self.bad_orientations,
                )
            pose = replace(pose, turn_variance=0.0)
        wide, high = pose.variance > extent**2, pose.z_variance > rise**2
        if (wide or high) and not self._lost_logged:
            logger.warning(
                "by its covariance a pose is uncertain by %.0f m%s: readings are worth next to "
                "nothing until it is better. If the localisation only fills in a large number, "
                "set pose.covariance: ignore",
                math.sqrt(pose.variance if wide else pose.z_variance),
                ", more than the map is wide" if wide else " upwards, more than the map is high",
            )
        self._lost_logged = wide or high
        return pose

    def restart(self) -> None:
        """Drop earlier poses (the clock went back)."""
        self._before = None
        self._strange, self._calm, self._speed = [], 0, 0.0


def _apart(one: Pose, other: Pose) -> tuple[float, float]:
    """Return the distance between two poses [m], and the time [s]."""
    way = math.hypot(other.x - one.x, other.y - one.y)
    return way, 1e-9 * abs(other.stamp_ns - one.stamp_ns)


class PoseSynchronizer:
    """A bounded queue; what is in it is looked at only when something has changed for it.

    How long a reading has waited is asked with the time at which the message came that is being
    used: a pose that lies behind it in the inbox is not late because the mission was.

    Args:
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

    def has_pose(self, pending: PendingReading, now: float) -> bool:
        """Return whether no better pose is worth waiting for (`now`: monotonic seconds)."""
        stamp_ns = pending.reading.stamp_ns
        if not self._track.may_come(stamp_ns):
            return True
        return self._is_patient(pending, now) and self._track.at(stamp_ns) is not None

    def _is_patient(self, pending: PendingReading, now: float) -> bool:
        """Return whether a reading has waited long enough for the best pose."""
        return elapsed(pending.received, now) >= self._seconds

    def add(self, pending: PendingReading) -> PendingReading | None:
        """Let a reading wait; return the oldest one when there is no room for it any more."""
        oldest = None
        if len(self) >= self.capacity:
            oldest = (self._patient or self._fresh).popleft()
        self._fresh.append(pending)
        return oldest

    def after_pose(self, now: float) -> list[PendingReading]:
        """Return the readings that a new pose completes."""
        found = [pending for pending in self._patient if self.has_pose(pending, now)]
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
            pending = self._fresh.popleft()
            if self.has_pose(pending, now):
                ready.append(pending)
            else:
                self._patient.append(pending)
        return ready

    def newest_without(self, now: float, seconds: float) -> int | None:
        """Return the stamp of the newest reading that has waited so long [s]; None = none has."""
        waited = (h for h in self._patient if elapsed(h.received, now) >= seconds)
        return max((pending.reading.stamp_ns for pending in waited), default=None)

    def take_all(self) -> list[PendingReading]:
        """Return and drop all waiting readings."""
        everything = [*self._patient, *self._fresh]
        self._patient.clear()
        self._fresh.clear()
        return everything
