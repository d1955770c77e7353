"""Record the inputs and outcomes of each step, so that a mission can be repeated exactly.

The journal says what happened; messages that changed nothing yet (a pose, a reading that waits) and
the times at which a mission looked are not in it. A trace has both, as frames:

``{"n": 7, "now": 12300000000, "clock": 81.25, "took": [["p", "", 12290000000, 1500, "map", 3.0,
4.0, 0.5], ["r", "", 12290000000, 1400, 21.5, null, "reading"]], "events": [...]}``

=======  ==========================================================================================
n        number of the frame; one that is missing was lost on the way
now      the node's clock at a step [ns]; none for what happened between steps (commands, answers)
clock    monotonic clock then [s]
took     messages used: ``p`` (pose), ``r`` (reading) or ``a`` (answer of an expert), probe, stamp
         [ns], how long before `clock` it had come [µs]; then frame, x, y [m], heading [rad] of a
         pose, and where they are known the variances of position [m²] and heading [rad²], z [m]
         and its variance [m²]; value, noise variance and source of a reading, and where tf says it
         x, y (and z) of the sensor on the probe [m]; frame, x, y, value and noise variance of an
         answer
quiet    first and last of the steps since the frame before that used and brought about nothing
events   those of the journal
config   the configuration from there on, when it was changed
setup    instead of all these, in a mission's first frame: configuration and topics
=======  ==========================================================================================
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from gp_active_sensing.mission.inbox import Envelope, RawAnswer, RawReading
from gp_active_sensing.mission.poses import Pose
from gp_active_sensing.records.event_lines import to_line
from gp_active_sensing.records.events import Event
from gp_active_sensing.types import Clock

__all__ = ["InputLog", "taken_of"]

Frame = dict[str, Any]


class InputLog:
    """Makes frames of what it hears; the mission tells it under its lock.

    Args:
        sink: takes each frame.
        clock: monotonic seconds.
    """

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

    def setup(self, **details: Any) -> Frame:
        """Return the frame that comes before all others."""
        return {"n": 0, "setup": details}

    def begin(self, now_ns: int, at: float) -> None:
        """Remember that a step begins, at a time of the monotonic clock [s]."""
        with self._lock:
            self._now_ns, self._at = now_ns, at

    def used(self, message: Envelope) -> None:
        """Record a message."""
        with self._lock:
            if self._now_ns is None and not self._took:
                self._at = self._clock()
            self._took.append(_noted(message, self._at))

    def changed(self, **config: Any) -> None:
        """Record another configuration; only between two steps."""
        with self._lock:
            self._at = self._clock()
            self._send(None, {"config": config})

    def event(self, event: Event) -> None:
        """Record an event of the journal; one between two steps is a frame of its own."""
        with self._lock:
            self._events.append(to_line(event))
            if self._now_ns is None:
                if not self._took:
                    self._at = self._clock()
                self._send(None)

    def end(self, *, quiet: bool = True) -> None:
        """Say that a step is over.

        Args:
            quiet: it need not be done again unless it used or brought about something.
        """
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


def taken_of(entry: Sequence[Any]) -> tuple[str, Pose | RawReading | RawAnswer, float]:
    """Return probe and content of a message that was used, and how long it had been there [s].

    Raises:
        ValueError: it is none.
    """
    try:
        kind, probe, stamp_ns, before, *content = entry
        age = 1e-6 * float(before)
        if kind == "p":
            frame, x, y, heading, *known = content
            pose = Pose(
                int(stamp_ns), str(frame), float(x), float(y), float(heading), *map(float, known)
            )
            return str(probe), pose, age
        if kind == "a":
            frame, *numbers = content
            x, y, value, variance, *up = map(float, numbers)
            answer = RawAnswer(int(stamp_ns), str(frame), x, y, value, variance, *up)
            return str(probe), answer, age
        value, own, source, *sits = content
        noise = None if own is None else float(own)
        raw = RawReading(int(stamp_ns), float(value), noise, str(source))
        if sits:
            if len(sits) not in (2, 3):
                msg = f"expected x, y and perhaps z of the sensor, got {sits!r}"
                raise ValueError(msg)
            raw = replace(raw, mount=tuple(map(float, sits)))
        return str(probe), raw, age
    except (TypeError, ValueError) as error:
        msg = f"trace: not a message that was used ({error}): {entry!r}"
        raise ValueError(msg) from error


def _noted(message: Envelope, now: float) -> list[Any]:
    what = message.what
    before = round(1e6 * (now - message.received))
    if isinstance(what, Pose):
        content: list[Any] = ["p", message.probe, what.stamp_ns, before]
        content += [what.frame, what.x, what.y, what.heading]
        known = [what.variance, what.turn_variance]
        if math.isfinite(what.z):
            above = [what.z, what.z_variance] if what.z_variance else [what.z]
            return [*content, *known, *above]
        return [*content, *known] if any(known) else content
    if isinstance(what, RawAnswer):
        content = ["a", message.probe, what.stamp_ns, before]
        up = [what.z] if what.z else []
        return [*content, what.frame, what.x, what.y, what.value, what.noise_variance, *up]
    content = ["r", message.probe, what.stamp_ns, before]
    return [*content, what.value, what.noise_variance, what.source, *(what.mount or ())]
