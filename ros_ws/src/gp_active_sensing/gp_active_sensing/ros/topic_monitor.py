"""Statistics of a subscribed topic: number of messages, rate, time of the last one."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["SILENCE_SECONDS", "TopicMonitor", "pose_problems", "received_at"]

SILENCE_SECONDS = 5.0
"""A pose topic that is silent for longer is reported [s, real time]."""
LONGEST_QUEUED = 60.0
"""A message that seems to have lain in a queue for longer tells of a clock that was set [s]."""


def received_at(info: Mapping[str, Any]) -> float:
    """Return when a message reached this machine (monotonic seconds), from what rclpy says of it.

    Its callback runs later, while a plan keeps the processor busy much later; messages of two
    topics are then taken in another order than they came in. A middleware that does not say when
    a message came gives the time of the callback.
    """
    now = time.monotonic()
    queued = 1e-9 * (time.time_ns() - int(info.get("received_timestamp") or 0))
    return now - queued if 0.0 <= queued <= LONGEST_QUEUED else now


class TopicMonitor:
    """Counts the messages of a topic.

    Args:
        expected: type of the messages.
        take: the callback of the messages, and of when each came (monotonic seconds).
        depth: how many of them are kept until they are taken.
    """

    what = "topic"

    def __init__(
        self, expected: str, take: Callable[[Any, float], None], depth: float = math.inf
    ) -> None:
        self.expected = expected
        self.depth = depth
        self.why = ""
        """Why nothing comes, where that is known better than by asking for publishers."""
        self.count = 0
        self.rate = 0.0
        """Messages a second, at present."""
        self.subscription: Any = None
        self._take = take
        self._heard_at = time.monotonic()
        self._seen, self._seen_at = 0, time.monotonic() - 1.0

    def on_message(self, message: Any, received: float | None = None) -> None:
        """Hand a message on, and count it unless it could not be used.

        Args:
            message: serialised, or a pose that was looked up.
            received: when it came (monotonic seconds); None = now.
        """
        self._take(message, time.monotonic() if received is None else received)
        self.count += 1
        self._heard_at = time.monotonic()

    def look(self) -> None:
        """Find the rate; called every second."""
        count, now = self.count, time.monotonic()
        if now - self._seen_at >= 0.5:
            self.rate = (count - self._seen) / (now - self._seen_at)
            self._seen, self._seen_at = count, now

    @property
    def name(self) -> str:
        """Of the topic, with its namespace and after remapping."""
        return str(self.subscription.topic_name)

    @property
    def publishers(self) -> int:
        """How many publish it; 0 where poses are looked up."""
        return 0 if self.subscription is None else int(self.subscription.get_publisher_count())

    @property
    def silence(self) -> float:
        """How long no message has come [s, real time]; 0 before the first."""
        return time.monotonic() - self._heard_at if self.count else 0.0

    @property
    def quiet(self) -> bool:
        """It was heard, and is silent for too long now."""
        return self.silence > SILENCE_SECONDS


def pose_problems(streams: Mapping[str, TopicMonitor], jumps: int) -> list[str]:
    """Return what tells of poses that are not all of one probe.

    Args:
        streams: by topic.
        jumps: of the poses, of all probes.
    """
    several = {name: s.publishers for name, s in streams.items() if name.endswith("pose")}
    found = [f"{n} publishers of topic {name}" for name, n in several.items() if n > 1]
    return found + ([f"{jumps} jumps of a pose"] if jumps else [])
