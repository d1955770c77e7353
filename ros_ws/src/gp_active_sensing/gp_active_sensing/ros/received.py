"""What was heard on a topic for a moment, and which parameters its rate asks for."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from gp_active_sensing.messages.conversions import header_of
from gp_active_sensing.mission.config import MissionConfig
from gp_active_sensing.mission.stream_config import PoseConfig, ReadingConfig

LISTEN_SECONDS = 12.0
"""How long a topic is listened to, at most [s]: two messages come of one that says something every
six seconds."""
SLOWEST = 5.0
"""Poses that come more seldom leave open where a reading was taken [s]."""
_ENOUGH = 3
"""Messages that tell a rate, over a span."""
_SPAN = 1.0
"""The span [s]: a few messages at once say nothing about the rate."""
_SEVERAL = 2.5
"""Factor on the time between two messages that tolerates one lost message."""
_OLD = 0.8
"""Share of `pose.max_age` that poses may be apart without a larger value."""
_ONE = 1.2
"""Factor on the time between two poses that a reading waits for the later one."""
_FASTER = 1.1
"""Factor on the expected rate that messages may reach without a larger one. The node warns beyond
1.2."""

Needs = dict[str, tuple[float, str]]
"""By parameter: the value that a rate asks for, and what to say beside it."""


@dataclass
class Received:
    """Messages that came on a topic.

    Args:
        topic: its name.
        messages: the newest one.
        times: when each message came (monotonic seconds).
        silent: how long nothing more had come when the listening ended [s].
        pace: seconds of the robot's clock in one of this machine's; in a simulation not 1.
    """

    topic: str
    messages: list[Any] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    silent: float = 0.0
    pace: float = 1.0

    @property
    def is_known(self) -> bool:
        """Return whether its rate is known."""
        return len(self.times) >= _ENOUGH and self.times[-1] - self.times[0] >= _SPAN

    @property
    def is_single(self) -> bool:
        """Return whether it came only once, so that its rate is unknown."""
        return len(self.times) == 1

    @property
    def gap(self) -> float:
        """Time between two messages, by this machine's clock [s]; NaN before two have come.

        A long silence at the end counts as one: there are topics that say something only at times.
        """
        if len(self.times) < 2:
            return math.nan
        mean = (self.times[-1] - self.times[0]) / (len(self.times) - 1)
        found = self.silent if self.silent > max(_SPAN, 2.0 * mean) else mean
        return found if found > 0.0 else math.nan

    @property
    def period(self) -> float:
        """The same by the robot's clock [s]."""
        return self.pace * self.gap

    @property
    def rate(self) -> float:
        """Messages a second, by this machine's clock [Hz]; NaN before two have come."""
        return 1.0 / self.gap

    @property
    def frame(self) -> str:
        """Frame of the newest message, "" where it says none."""
        header = header_of(self.messages[-1]) if self.messages else None
        return "" if header is None else str(header.frame_id).lstrip("/")

    @property
    def in_words(self) -> str:
        """How often it came."""
        if self.is_single:
            return f"once in {LISTEN_SECONDS:g} s"
        if math.isnan(self.gap):
            return ""
        return f"{self.rate:.3g} Hz" if self.rate >= 0.95 else f"every {self.gap:.1f} s"


def pace_of(stamps: Sequence[float], times: Sequence[float]) -> float:
    """Return the seconds that stamps advance in one second of times; NaN where they do not tell."""
    if len(stamps) < 2 or stamps[-1] <= stamps[0] or times[-1] <= times[0]:
        return math.nan
    found = (stamps[-1] - stamps[0]) / (times[-1] - times[0])
    return 1.0 if math.isclose(found, 1.0, rel_tol=0.2) else found


def pose_needs(pose: PoseConfig, received: Collection[Received]) -> Needs:
    """Return the parameters that poses ask for by their rate; the slowest and the fastest count."""
    found: Needs = {}
    period = _largest([each.period for each in received])
    if period > _OLD * pose.max_age:
        found["pose.max_age"] = (_tenths(_SEVERAL * period), f"s: poses come every {period:.1f} s")
        wait = _tenths(_ONE * _largest([each.gap for each in received]))
        if wait > pose.wait:  # else a reading counts where the probe was up to a period earlier
            found["pose.wait"] = (wait, "s: so long a reading waits for the pose after it")
    return found | _queue("pose", pose.rate, received)


def reading_needs(
    reading: ReadingConfig, mission: MissionConfig, received: Collection[Received]
) -> Needs:
    """Return the parameters that readings ask for by their rate, slowest and fastest."""
    found: Needs = {}
    period = _largest([each.period for each in received])
    how = f"readings come every {period:.1f} s"
    for each in received:
        if each.is_single:
            period, how = each.pace * LISTEN_SECONDS, f"one reading came in {LISTEN_SECONDS:g} s"
    if _SEVERAL * period > mission.reading_timeout:
        found["mission.reading_timeout"] = (_tenths(_SEVERAL * period), f"s: {how}")
    return found | _queue("reading", reading.rate, received)


def _queue(stream: str, expected: float, received: Collection[Received]) -> Needs:
    """Return what the node's queue needs."""
    rate = _largest([each.rate for each in received])
    if rate <= _FASTER * expected:
        return {}
    return {f"{stream}.rate": (float(f"{rate:.2g}"), "Hz, as it comes; sizes the queue")}


def _largest(values: Collection[float]) -> float:
    """Return the largest that is known; 0 when none is."""
    return max((value for value in values if math.isfinite(value)), default=0.0)


def _tenths(seconds: float) -> float:
    return round(seconds, 1)
