"""Quality of service: which profile each topic has, and what to say when two do not match."""

from __future__ import annotations

import math

from rclpy.qos import (
    DurabilityPolicy,
    HistoryPolicy,
    QoSPolicyKind,
    QoSProfile,
    ReliabilityPolicy,
)

__all__ = ["advice", "latched", "policy_name", "reliable", "sensor", "words"]

MIN_DEPTH = 10
MAX_DEPTH = 10_000
QUEUE_SECONDS = 2.0
"""What is kept of a stream until it is taken, at its expected rate [s]."""
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
        catch_up: ask for those sent before, too; only of a publisher that keeps them.
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
    """Return the profile of results: reliable, for anyone who listens now.

    Args:
        depth: messages kept for a subscriber that is slow.
        latched: and for one that comes later.
    """
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
