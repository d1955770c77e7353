"""Sample the messages of a topic for a short time, and propose parameters that suit their rate."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from gp_active_sensing.messages.conversions import header_of
from gp_active_sensing.mission.config import MissionConfig
from gp_active_sensing.mission.stream_config import PoseConfig, ReadingConfig

LISTEN_SECONDS = 12.0
"""Longest time for which a topic is sampled [s]: enough for two messages that come every 6 s."""
SLOWEST = 5.0
"""Longest time between two poses at which readings can still be assigned to places [s]."""
_ENOUGH = 3
"""A rate is computed from at least this number of messages."""
_SPAN = 1.0
"""A rate is computed if the first and the last message are at least this time apart [s]."""
_SEVERAL = 2.5
"""Proposed time limit, as a multiple of the time between two messages, so that one may be lost."""
_OLD = 0.8
"""Largest accepted time between two poses, as a fraction of `pose.max_age`."""
_ONE = 1.2
"""Proposed wait of a reading for a pose, as a multiple of the time between two poses."""
_FASTER = 1.1
"""Largest accepted rate of a topic, as a multiple of the configured rate."""

Needs = dict[str, tuple[float, str]]
"""For the name of each parameter: its proposed value, and a comment for the parameter file."""


@dataclass
class TopicSample:
    """Sample of the messages that were received on a topic.

    Args:
        messages: list with the newest message; [] = no message.
        times: arrival time of each message (monotonic seconds).
        silent: time from the last message to the end of the subscription [s].
        pace: seconds on the robot's clock per second of real time; 1 except in a simulation.
    """

    topic: str
    messages: list[Any] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    silent: float = 0.0
    pace: float = 1.0

    @property
    def is_known(self) -> bool:
        """True if enough messages came to compute the rate."""
        return len(self.times) >= _ENOUGH and self.times[-1] - self.times[0] >= _SPAN

    @property
    def is_single(self) -> bool:
        """True if only one message came, so that the rate is unknown."""
        return len(self.times) == 1

    @property
    def gap(self) -> float:
        """Mean time between two messages [s, real time]; NaN = fewer than two messages came.

        If the silence after the last message is more than 1 s and more than twice the mean, the
        silence is returned instead, since the topic has no constant rate.
        """
        if len(self.times) < 2:
            return math.nan
        mean = (self.times[-1] - self.times[0]) / (len(self.times) - 1)
        found = self.silent if self.silent > max(_SPAN, 2.0 * mean) else mean
        return found if found > 0.0 else math.nan

    @property
    def period(self) -> float:
        """Time between two messages on the robot's clock [s]."""
        return self.pace * self.gap

    @property
    def rate(self) -> float:
        """Rate of messages in real time [Hz]; NaN = fewer than two messages came."""
        return 1.0 / self.gap

    @property
    def frame(self) -> str:
        """Frame of the newest message; "" = no frame."""
        header = header_of(self.messages[-1]) if self.messages else None
        return "" if header is None else str(header.frame_id).lstrip("/")

    @property
    def in_words(self) -> str:
        """Description of the rate in words."""
        if self.is_single:
            return f"once in {LISTEN_SECONDS:g} s"
        if math.isnan(self.gap):
            return ""
        return f"{self.rate:.3g} Hz" if self.rate >= 0.95 else f"every {self.gap:.1f} s"


def pace_of(stamps: Sequence[float], times: Sequence[float]) -> float:
    """Return the advance of stamps per real second, or 1 if it is about 1; NaN = unknown."""
    if len(stamps) < 2 or stamps[-1] <= stamps[0] or times[-1] <= times[0]:
        return math.nan
    found = (stamps[-1] - stamps[0]) / (times[-1] - times[0])
    return 1.0 if math.isclose(found, 1.0, rel_tol=0.2) else found


def pose_needs(pose: PoseConfig, received: Collection[TopicSample]) -> Needs:
    """Return the parameters that must change to suit the rates of all received pose topics."""
    found: Needs = {}
    period = _largest([each.period for each in received])
    if period > _OLD * pose.max_age:
        max_age = round(_SEVERAL * period, 1)
        found["pose.max_age"] = (max_age, f"s: poses come every {period:.1f} s")
        wait = round(_ONE * _largest([each.gap for each in received]), 1)
        if wait > pose.wait:  # otherwise a reading would use an older pose
            found["pose.wait"] = (wait, "s: so long a reading waits for the pose after it")
    return found | _queue("pose", pose.rate, received)


def reading_needs(
    reading: ReadingConfig, mission: MissionConfig, received: Collection[TopicSample]
) -> Needs:
    """Return the parameters that must change to suit the rates of all received reading topics."""
    found: Needs = {}
    period = _largest([each.period for each in received])
    how = f"readings come every {period:.1f} s"
    for each in received:
        if each.is_single:
            period, how = each.pace * LISTEN_SECONDS, f"one reading came in {LISTEN_SECONDS:g} s"
    if _SEVERAL * period > mission.reading_timeout:
        found["mission.reading_timeout"] = (round(_SEVERAL * period, 1), f"s: {how}")
    return found | _queue("reading", reading.rate, received)


def _queue(stream: str, expected: float, received: Collection[TopicSample]) -> Needs:
    rate = _largest([each.rate for each in received])
    if rate <= _FASTER * expected:
        return {}
    return {f"{stream}.rate": (float(f"{rate:.2g}"), "Hz, as it comes; sizes the queue")}


def _largest(values: Collection[float]) -> float:
    return max((value for value in values if math.isfinite(value)), default=0.0)
