"""Define the quality of service of topics, limit received messages, and monitor subscriptions."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import Any

from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSPolicyKind, QoSProfile, ReliabilityPolicy
from rclpy.serialization import deserialize_message

from gp_active_sensing.messages.conversions import RateLimit

MIN_DEPTH = 10
MAX_DEPTH = 10_000
QUEUE_SECONDS = 2.0
"""Time for which a subscription's queue can store messages at the expected rate [s]."""
CATCH_UP_DEPTH = 1000
"""Smallest queue length of a subscription that requests a publisher's earlier messages."""


def sensor(rate: float, *, reliable: bool = False, catch_up: bool = False) -> QoSProfile:
    """Return the profile of an input: best-effort, with a queue for two seconds of messages.

    Most sensor drivers use a best-effort publisher, from which a reliable subscriber gets no
    messages. The queue is long, since on a busy computer callbacks may be delayed by more than a
    second.

    Args:
        rate: expected rate [Hz].
        reliable: True = the publisher is known to be reliable, so the subscriber is also reliable.
        catch_up: True = also request earlier messages that the publisher stores.
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
    """Return a reliable profile for an output; it is latched if `latched` is True."""
    return QoSProfile(
        history=HistoryPolicy.KEEP_LAST,
        depth=depth,
        reliability=ReliabilityPolicy.RELIABLE,
        durability=DurabilityPolicy.TRANSIENT_LOCAL if latched else DurabilityPolicy.VOLATILE,
    )


def latched(depth: int = 1) -> QoSProfile:
    """Return the profile of a latched topic, whose late subscribers get the newest messages."""
    return reliable(depth, latched=True)


def words(profile: QoSProfile) -> str:
    """Describe the reliability and the durability of a profile in words."""
    names = profile.reliability.name, profile.durability.name
    return ", ".join(name.lower().replace("_", " ") for name in names)


def advice(policy: str, *, publishing: bool) -> str:
    """Return advice on how to make publisher and subscriber agree on a QoS policy.

    `policy` is the name of the policy. `publishing` True = this node publishes the topic.
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
    """Return the policy that an incompatible-QoS event reports, and the text of a warning."""
    try:
        policy = str(QoSPolicyKind(int(event.last_policy_kind)).name)
    except ValueError:
        policy = f"policy {event.last_policy_kind}"
    side = "subscriber" if publishing else "publisher"
    text = (
        f"a {side} of topic {topic} has an incompatible quality of service and is not connected: "
        f"{advice(policy, publishing=publishing)}"
    )
    return policy, text


def why_silent(node: Any, topic: str, expected: str, start: str, setting: str) -> str:
    """Return a text that explains why no message comes on a topic.

    `start` is the advice if the topic has no publisher. `setting` is the advice if the topic has
    another type than `expected`.
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
    """Decoder of serialised messages that limits their size and rate.

    Messages beyond the limits are only counted, so that no publisher can exhaust the node's time or
    memory.

    Args:
        refuse: called for each rejected message, with the reason and a text.
        size: largest size of a message [bytes].
        rate: largest rate of messages [Hz].
    """

    def __init__(
        self, kind: Any, refuse: Callable[[str, str], None], *, size: int, rate: float
    ) -> None:
        self._kind, self._refuse, self._size, self._most = kind, refuse, size, rate
        self._rate = RateLimit(rate, time.monotonic)

    def process(self, data: bytes, use: Callable[[Any], None]) -> None:
        """Decode a serialised message and pass it to `use`, or reject it if it exceeds a limit."""
        if len(data) > self._size:
            self._refuse("too_large", f"has {len(data)} bytes, more than {self._size}")
            return
        if not self._rate.allows():
            why = f"comes faster than {self._most:g} a second, so not every one is used; this one"
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
    """Return the first line of an error's text; if the text is empty, the error's class name."""
    return str(error).partition("\n")[0].strip()[:300] or type(error).__name__


SILENCE_SECONDS = 5.0
"""Time without a message after which a pose topic counts as silent [s, real time]."""
LONGEST_QUEUED = 60.0
"""Longest plausible wait of a message in a queue [s]; a longer wait = a clock was changed."""


def received_at(info: Mapping[str, Any]) -> float:
    """Return the time at which a message arrived (monotonic seconds), given rclpy's message info.

    The message's callback may run much later. If messages arrive on two topics, their callbacks may
    run in another order. Without the arrival in `info`, the present time is returned.
    """
    now = time.monotonic()
    queued = 1e-9 * (time.time_ns() - int(info.get("received_timestamp") or 0))
    return now - queued if 0.0 <= queued <= LONGEST_QUEUED else now


class TopicMonitor:
    """Statistics of the messages that arrive on a topic.

    Args:
        expected: type of the messages.
        take: called with each message and its arrival time (monotonic seconds).
        depth: length of the subscription's queue.
    """

    what = "topic"

    def __init__(
        self, expected: str, take: Callable[[Any, float], None], depth: float = math.inf
    ) -> None:
        self.expected = expected
        self.depth = depth
        self.why = ""
        """Reason why no message comes; "" = the reason is unknown."""
        self.count = 0
        self.rate = 0.0
        """Present rate of messages [Hz]."""
        self.subscription: Any = None
        self._take = take
        self._received_at = time.monotonic()
        self._seen, self._seen_at = 0, time.monotonic() - 1.0

    def on_message(self, message: Any, received: float | None = None) -> None:
        """Pass a message to `take`; if no error occurs, count it. `received` None = now."""
        self._take(message, time.monotonic() if received is None else received)
        self.count += 1
        self._received_at = time.monotonic()

    def update(self) -> None:
        """Update the rate; the owner must call this method every second."""
        count, now = self.count, time.monotonic()
        if now - self._seen_at >= 0.5:
            self.rate = (count - self._seen) / (now - self._seen_at)
            self._seen, self._seen_at = count, now

    @property
    def name(self) -> str:
        """Full name of the topic, after namespace and remapping are applied."""
        return str(self.subscription.topic_name)

    @property
    def publishers(self) -> int:
        """Number of publishers; 0 for poses from tf."""
        return 0 if self.subscription is None else int(self.subscription.get_publisher_count())

    @property
    def silence(self) -> float:
        """Time since the newest message [s, real time]; 0 before the first message."""
        return time.monotonic() - self._received_at if self.count else 0.0

    @property
    def quiet(self) -> bool:
        """True if `SILENCE_SECONDS` have passed since the last message."""
        return self.silence > SILENCE_SECONDS


def pose_problems(streams: Mapping[str, TopicMonitor], jumps: int) -> list[str]:
    """Return a text for each sign that a pose topic carries the poses of several probes."""
    several = {
        name: s.publishers for name, s in streams.items() if name.rpartition("/")[2] == "pose"
    }
    found = [f"{n} publishers of topic {name}" for name, n in several.items() if n > 1]
    return found + ([f"{jumps} jumps of a pose"] if jumps else [])
