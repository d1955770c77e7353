"""Record the inputs and outcomes of each step, so that a replay repeats the mission exactly.

The journal has the outcomes, but not the times of steps. It also lacks messages without an
immediate effect, such as a pose or a waiting reading. The input log has all of these, as frames:

``{"n": 7, "now": 12300000000, "clock": 81.25, "took": [["p", "", 12290000000, 1500, "map", 3.0,
4.0, 0.5], ["r", "", 12290000000, 1400, 21.5, null, "reading"]], "events": [...]}``

=======  ==========================================================================================
n        number of the frame; a gap in the numbers is a lost frame
now      time of the node's clock at a step [ns]; absent between steps (commands, plans)
clock    time of the monotonic clock [s]
took     used messages: ``p`` (pose), ``r`` (reading), ``a`` (answer of an expert) or ``b``
         (battery), probe, stamp [ns], time between arrival and `clock` [µs], then the other fields
         of the class (`Pose`, `RawReading`, …) in their order; defaults at the end are omitted
quiet    times of the first and last step without messages or events since the previous frame
events   events of the journal
config   changed configuration
setup    configuration and topics; only in the first frame of a mission
=======  ==========================================================================================
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from gp_active_sensing.mission.inbox import Envelope, Message, RawAnswer, RawBattery, RawReading
from gp_active_sensing.mission.poses import Pose
from gp_active_sensing.records.event_lines import to_line
from gp_active_sensing.records.events import Event
from gp_active_sensing.types import Clock

Frame = dict[str, Any]

_CLASSES: Mapping[str, type[Message]] = {
    "p": Pose,
    "r": RawReading,
    "a": RawAnswer,
    "b": RawBattery,
}
_CONVERSIONS: Mapping[str, Callable[[Any], Any]] = {
    "str": str,
    "float": float,
    "float | None": lambda value: None if value is None else float(value),
    "tuple[float, ...] | None": lambda value: None if value is None else tuple(map(float, value)),
}
"""Functions that convert a JSON value, keyed by the type of the message's field."""


class InputLog:
    """Log of a mission's inputs and events, as frames; used under the mission's lock."""

    def __init__(self, sink: Callable[[Frame], None], clock: Clock) -> None:
        self._sink = sink
        self._clock = clock
        self._lock = threading.RLock()
        self._number = 0
        self._now_ns: int | None = None
        self._at = 0.0
        self._took: list[list[Any]] = []
        self._events: list[dict[str, Any]] = []
        self._quiet: list[list[Any]] = []

    def begin(self, now_ns: int, at: float) -> None:
        """Start a step at time `now_ns` of the node's clock and `at` of the monotonic clock [s]."""
        with self._lock:
            self._now_ns, self._at = now_ns, at

    def used(self, message: Envelope) -> None:
        """Record a message that the mission processes."""
        with self._lock:
            if self._now_ns is None and not self._took:
                self._at = self._clock()
            self._took.append(_noted(message, self._at))

    def changed(self, **config: Any) -> None:
        """Record a changed configuration between two steps."""
        with self._lock:
            self._at = self._clock()
            self._send(None, {"config": config})

    def event(self, event: Event) -> None:
        """Record an event of the journal. An event between two steps gets a frame of its own."""
        with self._lock:
            self._events.append(to_line(event))
            if self._now_ns is None:
                if not self._took:
                    self._at = self._clock()
                self._send(None)

    def end(self, *, quiet: bool = True) -> None:
        """End a step. With `quiet`, a step without messages and events gets no frame."""
        with self._lock:
            now_ns, self._now_ns = self._now_ns, None
            if self._took or self._events or not quiet:
                self._send(now_ns)
            elif now_ns is not None:
                self._quiet[1:] = [[now_ns, self._at]]

    def _send(self, now_ns: int | None, more: Mapping[str, Any] = MappingProxyType({})) -> None:
        self._number += 1
        frame: Frame = {"n": self._number, "clock": self._at, **more}
        if now_ns is not None:
            frame["now"] = now_ns
        found = {"took": self._took, "quiet": self._quiet, "events": self._events}
        frame.update({key: value for key, value in found.items() if value})
        self._took, self._quiet, self._events = [], [], []
        self._sink(frame)


def parse_used(entry: Sequence[Any]) -> tuple[str, Message, float]:
    """Return the probe, the message and its time in the queue [s] from an entry of ``took``.

    Raises:
        ValueError: the entry is not a valid message.
    """
    try:
        kind, probe, stamp_ns, before, *content = entry
        fields = dataclasses.fields(_CLASSES[kind])[1 : 1 + len(content)]
        read = (_CONVERSIONS[str(field.type)] for field in fields)
        values = [convert(value) for convert, value in zip(read, content, strict=True)]
        return str(probe), _CLASSES[kind](int(stamp_ns), *values), 1e-6 * float(before)
    except (KeyError, TypeError, ValueError) as error:
        msg = f"trace: not a message that was used ({error!r}): {entry!r}"
        raise ValueError(msg) from error


def _noted(message: Envelope, now: float) -> list[Any]:
    what = message.what
    kind = next(kind for kind, cls in _CLASSES.items() if isinstance(what, cls))
    content = [(getattr(what, f.name), f.default) for f in dataclasses.fields(what)[1:]]
    while content and repr(content[-1][0]) == repr(content[-1][1]):  # also raised for NaN
        content.pop()
    before = round(1e6 * (now - message.received))
    return [kind, message.probe, what.stamp_ns, before, *(value for value, _ in content)]
