"""Compute the speed of a probe from a topic with twists."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from gp_active_sensing.messages.conversions import stamp_ns
from gp_active_sensing.mission.ingestion.pose_sync import FASTEST
from gp_active_sensing.mission.poses import Pose
from gp_active_sensing.mission.stream_config import TWISTS

_SMOOTH = 1.0
"""Time constant of the average that smooths noisy velocities [s]."""
_VALID_NS = 1_000_000_000
"""Largest time between a velocity and the pose that uses it [ns]."""


class Twists:
    """Average velocity of a probe, computed from messages of one of the types `TWISTS`."""

    def __init__(self, type: str) -> None:
        self._path = TWISTS[type]
        self._stamp_ns: int | None = None
        self._velocity = (0.0, 0.0, 0.0)

    def note(self, message: Any, now_ns: int) -> None:
        """Add a message to the average; ignore a message that is older than the newest one.

        After a step of more than 1 s back in time, the average begins again. `now_ns` is the time
        of arrival [ns], used for a message without a stamp.

        Raises:
            ValueError: the velocity is not finite or too large.
        """
        found = message
        for name in self._path:
            found = getattr(found, name)
        new = float(found.x), float(found.y), float(found.z)
        if not all(abs(v) <= FASTEST for v in new):  # NaN too
            msg = f"has velocity {new}, expected finite numbers of at most {FASTEST:g} m/s"
            raise ValueError(msg)
        header = getattr(message, "header", None)
        stamp = (stamp_ns(header.stamp) if header is not None else 0) or now_ns
        seconds = math.inf if self._stamp_ns is None else 1e-9 * (stamp - self._stamp_ns)
        if seconds < -_SMOOTH:
            seconds = math.inf  # the clock went back
        if seconds <= 0.0:
            return
        part = -math.expm1(-seconds / _SMOOTH)
        x, y, z = (old + part * (v - old) for old, v in zip(self._velocity, new, strict=True))
        self._velocity, self._stamp_ns = (x, y, z), stamp

    def beside(self, pose: Pose) -> Pose:
        """Return the pose with the average speed; unchanged if the stamps are far apart."""
        if self._stamp_ns is None or abs(pose.stamp_ns - self._stamp_ns) > _VALID_NS:
            return pose
        return replace(pose, speed=math.hypot(*self._velocity))
