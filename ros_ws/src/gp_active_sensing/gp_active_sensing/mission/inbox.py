"""Bounded, thread-safe queue between ROS callbacks and the mission thread."""

from __future__ import annotations

import itertools
import math
import threading
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from gp_active_sensing.mission.clocks import noted
from gp_active_sensing.mission.poses import Pose
from gp_active_sensing.topology.base import Topology
from gp_active_sensing.types import Reading

BATCH = 200
"""Largest number of messages that are processed before a command can take effect."""


@dataclass(frozen=True)
class RawReading:
    """Reading as received, before it is assigned to a place.

    Args:
        stamp_ns: stamp of the message [ns].
        value: measured value in the sensor's unit.
        noise_variance: noise variance of the value; None = not given.
        mount: position of the sensor relative to the pose, from tf [m]: x ahead, y to the left,
            and perhaps z upwards; None = not from tf.
        quantity: name of a further quantity; "" = the main quantity.
    """

    stamp_ns: int
    value: float
    noise_variance: float | None
    source: str = "reading"
    mount: tuple[float, ...] | None = None
    quantity: str = ""


@dataclass(frozen=True)
class RawAnswer:
    """Answer of an expert as received, before it is assigned to a place.

    Args:
        stamp_ns: time at which the value was valid [ns].
        x, y: position in `frame` [m].
        value: estimated value in the sensor's unit.
        z: height [m]; used on a map with heights.
    """

    stamp_ns: int
    frame: str
    x: float
    y: float
    value: float
    noise_variance: float
    z: float = 0.0


def raw_answer(reading: Reading, topology: Topology) -> RawAnswer:
    """Convert an expert's answer: the position of its place replaces the place."""
    assert reading.location is not None
    x, y, *up = topology.points[reading.location].tolist()
    variance = math.nan if reading.noise_variance is None else reading.noise_variance
    return RawAnswer(reading.stamp_ns, topology.frame, x, y, reading.value, variance, *up)


@dataclass(frozen=True)
class RawBattery:
    """State of charge of a probe's battery as received, 0 to 1."""

    stamp_ns: int
    level: float


Message = Pose | RawReading | RawAnswer | RawBattery


class Envelope(NamedTuple):
    """Message with its time of arrival (monotonic seconds) and its probe ("" for answers)."""

    what: Message
    received: float
    probe: str = ""


class _Entry(NamedTuple):
    number: int
    arrival: Envelope


class Inbox:
    """Queue of messages from the callbacks to the mission, in order of arrival.

    There is a stream for each probe's poses, batteries and readings of one quantity, and for the
    answers of an expert. Each stream has the same capacity. A full stream drops its oldest message.
    """

    def __init__(self, capacity: int = 20_000) -> None:
        self.capacity = capacity
        self._streams: dict[tuple[str, str, str], deque[_Entry]] = {}
        self._back: deque[Envelope] = deque()
        self._number = itertools.count()
        self._condition = threading.Condition()
        self._awake = False
        self.received: Counter[str] = Counter()
        """Number of received messages; the keys are readings, poses, batteries and answers."""
        self.dropped: Counter[str] = Counter()
        """Number of messages that were dropped because their stream was full, keyed by kind."""
        self._refused: dict[str, Counter[str]] = {}

    def put(self, what: Message, received: float, probe: str = "") -> None:
        """Queue a message of a probe or an expert; return at once."""
        kind = "poses" if isinstance(what, Pose) else "readings"
        if isinstance(what, RawAnswer | RawBattery):
            kind = "answers" if isinstance(what, RawAnswer) else "batteries"
        with self._condition:
            self.received[kind] += 1
            quantity = what.quantity if isinstance(what, RawReading) else ""
            stream = self._streams.setdefault((kind, probe, quantity), deque())
            if len(stream) >= self.capacity:
                stream.popleft()
                self.dropped[kind] += 1
            stream.append(_Entry(next(self._number), Envelope(what, noted(received), probe)))
            self._condition.notify()

    def refuse(self, kind: str, reason: str, probe: str = "") -> int:
        """Count an unusable message; return the count for its reason.

        The kind is ``readings``, ``poses`` or ``answers``. The reason begins with ``pose_`` for a
        pose and with ``answer_`` for an answer.
        """
        with self._condition:
            self.received[kind] += 1
            counts = self._refused.setdefault(probe, Counter())
            counts[reason] += 1
            return counts[reason]

    @property
    def refused(self) -> Counter[str]:
        """Number of unusable messages for each reason."""
        with self._condition:
            return sum(self._refused.values(), Counter())

    def refused_of(self, probe: str) -> Counter[str]:
        """Return the number of a probe's unusable messages for each reason."""
        with self._condition:
            return Counter(self._refused.get(probe, {}))

    def wake(self) -> None:
        """End a call of `wait` without a message."""
        with self._condition:
            self._awake = True
            self._condition.notify()

    def wait(self, seconds: float) -> None:
        """Wait for a message or a call of `wake`, at most `seconds`."""
        with self._condition:
            self._condition.wait_for(lambda: len(self) or self._awake, timeout=seconds)
            self._awake = False

    def pop(self, most: int | None = None) -> list[Envelope]:
        """Remove and return at most `most` messages, oldest first; None = all."""
        with self._condition:
            return list(itertools.islice(iter(self._pop, None), most))

    def _pop(self) -> Envelope | None:
        if self._back:
            return self._back.popleft()
        streams = [stream for stream in self._streams.values() if stream]
        if not streams:
            return None
        return min(streams, key=lambda stream: stream[0].number).popleft().arrival

    def put_back(self, entries: Sequence[Envelope]) -> None:
        """Put messages back at the front of the queue."""
        with self._condition:
            self._back.extendleft(reversed(entries))

    def __len__(self) -> int:
        return len(self._back) + sum(map(len, list(self._streams.values())))
