"""A topic that is listened to: what has come of it, how often, and when the last."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

__all__ = ["SILENCE_SECONDS", "Stream"]

SILENCE_SECONDS = 5.0
"""A pose topic that is silent for longer is reported [s, real time]."""


class Stream:
    """Counts the messages of a topic.

    Args:
        expected: type of the messages.
        take: the callback of the messages.
        depth: how many of them are kept until they are taken.
    """

    what = "topic"

    def __init__(self, expected: str, take: Callable[[Any], None], depth: float = math.inf) -> None:
        self.expected = expected
        self.depth = depth
        self.why = ""
        """Why nothing comes, where that is known better than by asking for publishers."""
        self.count = 0
        self.rate = 0.0
        """Messages a second, of late."""
        self.subscription: Any = None
        self._take = take
        self._heard_at = time.monotonic()
        self._seen, self._seen_at = 0, time.monotonic() - 1.0

    def on_message(self, message: Any) -> None:
        """Hand a message on, and count it unless it could not be used."""
        self._take(message)
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
    def silence(self) -> float:
        """How long no message has come [s, real time]; 0 before the first."""
        return time.monotonic() - self._heard_at if self.count else 0.0

    @property
    def quiet(self) -> bool:
        """It was heard, and is silent for too long now."""
        return self.silence > SILENCE_SECONDS
