"""A tf2_ros for tests: it is not among the wheels, and the nodes use little of it."""

from __future__ import annotations

import math
import types
from typing import Any

from geometry_msgs.msg import TransformStamped
from nav_msgs.msg import Odometry

from gp_active_sensing.messages.conversions import stamp_ns
from gp_active_sensing.ros import to_messages as outputs


class Tf(types.ModuleType):
    class TransformException(Exception):
        pass

    def __init__(self) -> None:
        super().__init__("tf2_ros")
        self.known: dict[tuple[str, str], TransformStamped] = {}
        self.asked: list[tuple[str, str]] = []
        self.taken: list[Any] = []
        tf = self

        class Buffer:
            def lookup_transform(self, target: str, source: str, time: Any) -> TransformStamped:
                tf.asked.append((target, source))
                if (target, source) not in tf.known:
                    msg = f'"{source}" passed to lookupTransform does not exist.'
                    raise tf.TransformException(msg)
                found = tf.known[target, source]
                newest = stamp_ns(found.header.stamp)
                if time.nanoseconds > newest > 0:
                    msg = f"Lookup would require extrapolation into the future ({source})."
                    raise tf.TransformException(msg)
                return found

        class TransformListener:
            def __init__(self, buffer: Buffer, node: Any) -> None:
                take = tf.taken.append
                self.tf_sub = node.create_subscription(Odometry, "/tf", take, 10)
                self.tf_static_sub = node.create_subscription(Odometry, "/tf_static", take, 10)

        self.Buffer, self.TransformListener = Buffer, TransformListener

    def move(
        self,
        child: str,
        x: float,
        stamp_ns: int,
        *,
        y: float = 0.0,
        z: float = 0.0,
        turn: float = 0.0,
        rotation: tuple[float, float, float, float] | None = None,
        parent: str = "map",
    ) -> None:
        """Say how a frame lies in another one; `rotation` x, y, z, w in place of `turn`."""
        found = TransformStamped(child_frame_id=child)
        found.header.frame_id, found.header.stamp = parent, outputs.time_of(stamp_ns)
        place, q = found.transform.translation, found.transform.rotation
        place.x, place.y, place.z = x, y, z
        q.z, q.w = math.sin(0.5 * turn), math.cos(0.5 * turn)
        if rotation is not None:
            q.x, q.y, q.z, q.w = rotation
        self.known[parent, child] = found
