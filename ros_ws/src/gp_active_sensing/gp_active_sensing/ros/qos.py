"""Topics: their quality of service, and statistics of those that are subscribed to."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import Any

from rclpy.qos import (
    DurabilityPolicy,
    HistoryPolicy,
    QoSPolicyKind,
    QoSProfile,
    ReliabilityPolicy,
)
from rclpy.serialization import deserialize_message

from gp_active_sensing.messages.conversions import RateLimit

MIN_DEPTH = 10
MAX_DEPTH = 10_000
QUEUE_SECONDS = 2.0
"""Length of the queue of a stream, at its expected rate [s]."""
CATCH_UP_DEPTH = 1000
"""Messages asked of a publisher that keeps them, at least."""


def sensor(rate: float, *, reliable: bool = False, catch_up: bool = False) -> QoSProfile:
    """Return the profile to subscribe to a stream: best-effort, two seconds of it kept.

    Best-effort, because a reliable subscriber gets nothing from a best-effort publisher, which is
    what sensor drivers are; two seconds, because Python beside a planner on a busy machine may be
    away for more than one.

    Args:
        rate: expected rate [Hz].
        reliable: ask for every message all the same, where the publisher is known (a bag).
        catch_up: also ask for earlier messages, of a publisher that keeps them.
    """
    least = CATCH_UP_DEPTH if catch_up else MIN_DEPTH
    depth = min(MAX_DEPTH, max(least, math.ceil(QUEUE_SECONDS * rate)))
    everything = reliable or catch_up
    return QoSProfile(
        history=HistoryPolicy.KEEP_LAST,
        depth=depth,
        reliability=ReliabilityPolicy.RELIABLE if everything else ReliabilityPolicy.BEST_EFFORT,
        durability=DurabilityPolicy.TRANSIENT_LOCAL if catch_up else DurabilityPolicy.VOLATILE,
    )


def reliable(depth: int = 10, *, latched: bool = False) -> QoSProfile:
    """Return the profile of results: reliable, for anyone who listens now."""
    return QoSProfile(
        history=HistoryPolicy.KEEP_LAST,
        depth=depth,
        reliability=ReliabilityPolicy.RELIABLE,
        durability=DurabilityPolicy.TRANSIENT_LOCAL if latched else DurabilityPolicy.VOLATILE,
    )


def latched(depth: int = 1) -> QoSProfile:
    """Return the profile of the last word on something: late joiners get it too."""
    return reliable(depth, latched=True)


def policy_name(kind: int) -> str:
    """Return the name of the policy an incompatible-QoS event complains about."""
    try:
        return str(QoSPolicyKind(kind).name)
    except ValueError:
        return f"policy {kind}"


def words(profile: QoSProfile) -> str:
    """Return reliability and durability of a profile in words."""
    names = profile.reliability.name, profile.durability.name
    return ", ".join(name.lower().replace("_", " ") for name in names)


def advice(policy: str, *, publishing: bool) -> str:
    """Return what to change about an incompatible policy.

    Args:
        policy: name from `policy_name`.
        publishing: True when this node publishes the topic and the other side subscribes.
    """
    if policy == "RELIABILITY":
        return (
            "the subscriber asks for reliable delivery and the publisher offers best effort; "
            "make the publisher reliable or the subscriber best effort"
        )
    if policy == "DURABILITY":
        return (
            "the subscriber wants messages from before it came (transient local) and the "
            "publisher keeps none; make the subscriber volatile or the publisher transient local"
        )
    side = "subscriber" if publishing else "publisher"
    return f"relax the {policy.lower()} of the {side}, or override it with qos_overrides"


def incompatible(topic: str, event: Any, *, publishing: bool) -> tuple[str, str]:
    """Return the policy that an incompatible-QoS event complains about, and a warning."""
    policy = policy_name(int(event.last_policy_kind))
    side = "subscriber" if publishing else "publisher"
    text = (
        f"a {side} of topic {topic} has an incompatible quality of service and is not connected: "
        f"{advice(policy, publishing=publishing)}"
    )
    return policy, text


def why_silent(node: Any, topic: str, expected: str, start: str, setting: str) -> str:
    """Return what is known of the publishers of a topic on which no message comes.

    `start` and `setting` say what to do where nobody publishes it, and where it has another type.
    """
    found = node.get_publishers_info_by_topic(topic)
    types = sorted({info.topic_type for info in found})
    if not found:
        return f"nobody publishes it; {start}"
    if expected not in types:
        return f"it is published as {', '.join(types)}, expected {expected}; {setting}"
    kinds = sorted({words(info.qos_profile) for info in found})
    return f"{len(found)} publisher(s) ({', '.join(kinds)}), but no message comes"


class MessageGate:
    """Decodes messages whose size and rate are within limits, and refuses the others.

    A publisher that floods must not take the node's time or memory: a message beyond the limits
    costs a count.

    Args:
        refuse: takes the reason and its explanation.
        size: most bytes of a message.
        rate: most messages a second.
    """

    def __init__(
        self, kind: Any, refuse: Callable[[str, str], None], *, size: int, rate: float
    ) -> None:
        self._kind, self._refuse, self._size, self._most = kind, refuse, size, rate
        self._rate = RateLimit(rate, time.monotonic)

    def take(self, data: bytes, use: Callable[[Any], None]) -> None:
        """Decode a serialised message and use it."""
        if len(data) > self._size:
            self._refuse("too_large", f"has {len(data)} bytes, more than {self._size}")
            return
        if not self._rate.allows():
            most = f"{self._most:g} a second"
            why = f"comes faster than {most}, so not every one is used; this one"
            self._refuse("too_fast", why)
            return
        try:
            message = deserialize_message(data, self._kind)
        except Exception as error:
            name = self._kind.__name__
            self._refuse("undecodable", f"is not a valid {name} ({first_line(error)})")
            return
        try:
            use(message)
        except Exception as error:
            self._refuse("unreadable", f"cannot be read ({first_line(error)})")


def first_line(error: Exception) -> str:
    """Return the first line of an error's text, or its class where it has none."""
    return str(error).partition("\n")[0].strip()[:300] or type(error).__name__


SILENCE_SECONDS = 5.0
"""A pose topic that is silent for longer is reported [s, real time]."""
LONGEST_QUEUED = 60.0
"""A message that seems to have lain in a queue for longer tells of a clock that was set [s]."""


def received_at(info: Mapping[str, Any]) -> float:
    """Return when a message reached this machine (monotonic seconds), by rclpy's information.

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
        self._received_at = time.monotonic()
        self._seen, self._seen_at = 0, time.monotonic() - 1.0

    def on_message(self, message: Any, received: float | None = None) -> None:
        """Hand a message on, and count it unless it could not be used; received None = now."""
        self._take(message, time.monotonic() if received is None else received)
        self.count += 1
        self._received_at = time.monotonic()

    def look(self) -> None:
        """Find the rate; called every second."""
        count, now = self.count, time.monotonic()
        if now - self._seen_at >= 0.5:
            self.rate = (count - self._seen) / (now - self._seen_at)
            self._seen, self._seen_at = count, now

    @property
    def name(self) -> str:
        """Return the name of the topic, with its namespace and after remapping."""
        return str(self.subscription.topic_name)

    @property
    def publishers(self) -> int:
        """How many publish it; 0 where poses are looked up."""
        return 0 if self.subscription is None else int(self.subscription.get_publisher_count())

    @property
    def silence(self) -> float:
        """How long no message has come [s, real time]; 0 before the first."""
        return time.monotonic() - self._received_at if self.count else 0.0

    @property
    def quiet(self) -> bool:
        """It was heard, and is silent for too long now."""
        return self.silence > SILENCE_SECONDS


def pose_problems(streams: Mapping[str, TopicMonitor], jumps: int) -> list[str]:
    """Return the signs that a pose topic carries the poses of several probes."""
    several = {
        name: s.publishers for name, s in streams.items() if name.rpartition("/")[2] == "pose"
    }
    found = [f"{n} publishers of topic {name}" for name, n in several.items() if n > 1]
    return found + ([f"{jumps} jumps of a pose"] if jumps else [])
