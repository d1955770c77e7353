"""Bounded, thread-safe queue between callbacks and the mission thread."""

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
"""Most entries used before a command (pause, finish) may come in between."""


@dataclass(frozen=True)
class RawReading:
    """Reading as received, before it has a place.

    Args:
        mount: where its sensor sits, by tf (x ahead, y to the left of the pose, and perhaps z above
            it) [m]; None = tf was not asked.
        quantity: name of a further quantity; "" = the main one.
    """

    stamp_ns: int
    value: float
    noise_variance: float | None
    source: str = "reading"
    mount: tuple[float, ...] | None = None
    quantity: str = ""


@dataclass(frozen=True)
class RawAnswer:
    """Value from an expert as received, before it has a place.

    Args:
        stamp_ns: when it was valid.
        frame: of the position.
        x, y: where [m].
        value: in the sensor's unit.
        noise_variance: of its noise.
        z: height [m], which counts on a map with heights.
    """

    stamp_ns: int
    frame: str
    x: float
    y: float
    value: float
    noise_variance: float
    z: float = 0.0


def raw_answer(reading: Reading, topology: Topology) -> RawAnswer:
    """Return an expert's answer as it is sent: with its position instead of its place."""
    assert reading.location is not None
    x, y, *up = topology.points[reading.location].tolist()
    variance = math.nan if reading.noise_variance is None else reading.noise_variance
    return RawAnswer(reading.stamp_ns, topology.frame, x, y, reading.value, variance, *up)


@dataclass(frozen=True)
class RawBattery:
    """The charge of a probe's battery as it came, 0 to 1."""

    stamp_ns: int
    level: float


Message = Pose | RawReading | RawAnswer | RawBattery
"""Message of a topic that the mission uses."""


class Envelope(NamedTuple):
    """Message, time of arrival (monotonic seconds), and name of its probe; "" for answers."""

    what: Message
    received: float
    probe: str = ""


class _Entry(NamedTuple):
    number: int
    arrival: Envelope


class Inbox:
    """Hands poses, readings and answers from the callbacks to the mission, in the order they came.

    Each stream (the poses or the readings of a quantity of one probe, an expert's answers) has its
    own room, so that one that floods pushes nothing of the others out. When it is full its oldest
    entry goes, and is counted.
    """

    def __init__(self, capacity: int = 20_000) -> None:
        self.capacity = capacity
        self._streams: dict[tuple[str, str, str], deque[_Entry]] = {}
        self._back: deque[Envelope] = deque()
        self._number = itertools.count()
        self._condition = threading.Condition()
        self._awake = False
        self.received: Counter[str] = Counter()
        """Messages that came, by kind: ``readings``, ``poses``; ``answers`` are values."""
        self.dropped: Counter[str] = Counter()
        """Those for which there was no room any more, by kind."""
        self._refused: dict[str, Counter[str]] = {}

    def put(self, what: Message, received: float, probe: str = "") -> None:
        """Queue a message of a probe or an expert; never wait for the mission."""
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
        """Count a message that cannot be used at all; return how many there are of this reason.

        The kind is ``readings``, ``poses`` or ``answers``; the reason of a pose begins with
        ``pose_``, that of an answer with ``answer_``.
        """
        with self._condition:
            self.received[kind] += 1
            counts = self._refused.setdefault(probe, Counter())
            counts[reason] += 1
            return counts[reason]

    @property
    def refused(self) -> Counter[str]:
        """Messages that could not be used at all, by reason."""
        with self._condition:
            return sum(self._refused.values(), Counter())

    def refused_of(self, probe: str) -> Counter[str]:
        """Return those of one probe."""
        with self._condition:
            return Counter(self._refused.get(probe, {}))

    def wake(self) -> None:
        """End a wait although nothing came."""
        with self._condition:
            self._awake = True
            self._condition.notify()

    def wait(self, seconds: float) -> None:
        """Wait until there is something, or for a time."""
        with self._condition:
            self._condition.wait_for(lambda: len(self) or self._awake, timeout=seconds)
            self._awake = False

    def take(self, most: int | None = None) -> list[Envelope]:
        """Take the queued messages, the oldest first, at most `most`."""
        with self._condition:
            taken = list(itertools.islice(iter(self._pop, None), most))
        return taken

    def _pop(self) -> Envelope | None:
        if self._back:
            return self._back.popleft()
        first = min(
            (stream for stream in self._streams.values() if stream),
            key=lambda stream: stream[0].number,
            default=None,
        )
        return None if first is None else first.popleft().arrival

    def put_back(self, entries: Sequence[Envelope]) -> None:
        """Return messages that were taken too early to the front of the queue."""
        with self._condition:
            self._back.extendleft(reversed(entries))

    def __len__(self) -> int:
        return len(self._back) + sum(map(len, list(self._streams.values())))
