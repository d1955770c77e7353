"""Stands in for tf2_ros, which has no wheel: put this folder on PYTHONPATH.

Transforms come as geometry_msgs/TransformStamped on /tf and /tf_static, one a message, since
tf2_msgs has no wheel either. They are looked up along the tree of frames, in the plane.
"""

from __future__ import annotations

import cmath
import math
from typing import Any

from geometry_msgs.msg import TransformStamped
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy


class TransformException(Exception):
    pass


class Buffer:
    """The newest transform of each frame in its parent's, and the time of it."""

    def __init__(self) -> None:
        self._known: dict[str, TransformStamped] = {}

    def take(self, found: TransformStamped) -> None:
        self._known[found.child_frame_id] = found

    def lookup_transform(self, target: str, source: str, time: Any) -> TransformStamped:
        there, up = self._to_root(source), self._to_root(target)
        common = next((frame for frame in there if frame in up), None)
        if common is None:
            msg = f'"{source}" and "{target}" are not connected'
            raise TransformException(msg)
        (place, turn, newest), (base, spin, newest_up) = there[common], up[common]
        newest = min(newest, newest_up)
        if time.nanoseconds > newest:
            msg = f"Lookup would require extrapolation into the future ({source})"
            raise TransformException(msg)
        place, angle = (place - base) / spin, cmath.phase(turn / spin)
        found = TransformStamped(child_frame_id=source)
        found.header.frame_id = target
        stamp = newest if newest < _ALWAYS else 0
        found.header.stamp.sec, found.header.stamp.nanosec = divmod(stamp, 10**9)
        found.transform.translation.x, found.transform.translation.y = place.real, place.imag
        rotation = found.transform.rotation
        rotation.z, rotation.w = math.sin(0.5 * angle), math.cos(0.5 * angle)
        return found

    def _to_root(self, frame: str) -> dict[str, tuple[complex, complex, int]]:
        """Return place (x + yi), turn and time of a frame in each frame above it."""
        place, turn, newest = 0j, 1.0 + 0j, _ALWAYS
        found = {frame: (place, turn, newest)}
        while (up := self._known.get(frame)) is not None:
            at, q = up.transform.translation, up.transform.rotation
            spin = cmath.rect(1.0, 2.0 * math.atan2(q.z, q.w))
            place, turn = complex(at.x, at.y) + spin * place, spin * turn
            stamp = up.header.stamp.sec * 10**9 + up.header.stamp.nanosec
            newest = min(newest, stamp or _ALWAYS)
            frame = up.header.frame_id
            found[frame] = place, turn, newest
        return found


_ALWAYS = 2**62
"""The time of what is static [ns]."""


class TransformBroadcaster:
    def __init__(self, node: Any) -> None:
        self._publisher = node.create_publisher(TransformStamped, "/tf", 100)

    def sendTransform(self, transforms: list[TransformStamped]) -> None:
        for found in transforms:
            self._publisher.publish(found)


class TransformListener:
    def __init__(self, buffer: Buffer, node: Any) -> None:
        latched = QoSProfile(
            depth=100,
            reliability=ReliabilityPolicy.RELIABLE,
            durability=DurabilityPolicy.TRANSIENT_LOCAL,
        )
        kind = TransformStamped
        self.tf_sub = node.create_subscription(kind, "/tf", buffer.take, 100)
        self.tf_static_sub = node.create_subscription(kind, "/tf_static", buffer.take, latched)
