"""Compare a replayed mission with the recorded one.

Another processor, or another version of numpy, rounds otherwise: it takes the same decisions, with
numbers that agree to about fifteen digits. So what is compared agrees to `RELATIVE`; how much is
the same to the bit, as it is on one machine with one set of versions, is counted besides.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gp_active_sensing.records.run_directory import json_ready
from gp_active_sensing.util.ties import RELATIVE

__all__ = ["Comparison", "difference", "same_to_the_bit"]

ABSOLUTE = 1e-12
"""Numbers are equal that differ by this: they should both be zero."""

PLANNED = (
    "at",
    "waypoints",
    "path",
    "lower",
    "upper",
    "expanded",
    "deadline_hit",
    "horizon",
    "metres",
    "seconds",
    "candidates",
    "policy_state",
)
"""What makes two decisions the same to the bit: everything but the time that they took."""
_WORTH = ("lower", "upper")
_WAY = ("metres", "seconds")
_MOST_SAID = 20


def same_to_the_bit(recorded: Mapping[str, Any], replayed: Mapping[str, Any]) -> bool:
    """Return whether two decisions are the same in all of `PLANNED`, to the last digit."""
    return all(_plain(recorded.get(key)) == _plain(replayed.get(key)) for key in PLANNED)


def difference(recorded: Mapping[str, Any], replayed: Mapping[str, Any]) -> str:
    """Return in what two decisions differ, in words; "" when they are equal.

    Equal decisions are taken at the same place, lead to the same place, or to one that ties with
    it, and have the same bounds and the same costs of the way, all but for rounding: numbers agree
    to `RELATIVE` of the largest bound that either decision tells of, or to `ABSOLUTE`.

    Two places tie when both decisions tell of both as candidates, and each says that their lower
    bounds, by which policies choose, are equal but for rounding. A policy that tells of no
    candidates (`random`), or of the best hundred only, leaves no way to tell a tie: another place
    is then a difference. What the way costs is not compared after a tie.
    """
    slack = _slack(recorded, replayed)
    keys: tuple[str, ...] = _WORTH
    if recorded.get("at") != replayed.get("at"):
        return _said("at", recorded, replayed)
    if _place(recorded) == _place(replayed):
        keys += _WAY
    elif not (_tied(recorded, replayed, slack) and _tied(replayed, recorded, slack)):
        return _said("waypoints", recorded, replayed)
    for key in keys:
        a, b = recorded.get(key), replayed.get(key)
        if not _close(a, b, slack if key in _WORTH else ABSOLUTE):
            return _said(key, recorded, replayed)
    return ""


def _place(decision: Mapping[str, Any]) -> int | None:
    return next(iter(decision.get("waypoints") or ()), None)


def _bounds(decision: Mapping[str, Any]) -> dict[int, tuple[float, float]]:
    """Return lower and upper bound of each candidate."""
    return {int(x): (low, high) for x, low, high in decision.get("candidates") or ()}


def _slack(*decisions: Mapping[str, Any]) -> float:
    """Return by how much bounds may differ: they are sums whose parts are as large as the others'.

    A bound of about zero has no digits of its own.
    """
    told = [decision.get(key) for decision in decisions for key in _WORTH]
    told += [x for decision in decisions for both in _bounds(decision).values() for x in both]
    sizes = [abs(x) for x in told if isinstance(x, (int, float)) and math.isfinite(x)]
    return max(RELATIVE * max(sizes, default=0.0), ABSOLUTE)


def _tied(one: Mapping[str, Any], other: Mapping[str, Any], slack: float) -> bool:
    """Return whether a decision says that its own place and that of the other one tie."""
    bounds, own, its = _bounds(one), _place(one), _place(other)
    if own not in bounds or its not in bounds:
        return False
    return _close(bounds[own][0], bounds[its][0], slack)


def _close(a: Any, b: Any, slack: float) -> bool:
    """Return whether two numbers are equal but for rounding; other things are equal or not."""
    if _number(a) and _number(b):
        return math.isclose(a, b, rel_tol=RELATIVE, abs_tol=slack)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(_close(x, y, slack) for x, y in zip(a, b, strict=True))
    return _plain(a) == _plain(b)


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _said(key: str, recorded: Mapping[str, Any], replayed: Mapping[str, Any]) -> str:
    return f"{key}: recorded {_short(recorded.get(key))}, replayed {_short(replayed.get(key))}"


@dataclass
class Comparison:
    """How much of a recorded mission came out again.

    Args:
        decisions: recorded.
        decisions_equal: of them, with the same place and bounds, see `difference`.
        decisions_to_the_bit: of these, the same in everything to the last digit.
        readings: recorded as used.
        readings_equal: of them, used again with the same place, and the same value but for
            rounding.
        readings_extra: used again, and not recorded.
        messages_missing: used by the node, and not in the bag; taken from its journal.
        messages_differ: that say something else in the bag than in the journal.
        frames_lost: parts of the journal that are not in the bag.
        differences: in words, the first of them.
    """

    decisions: int = 0
    decisions_equal: int = 0
    decisions_to_the_bit: int = 0
    readings: int = 0
    readings_equal: int = 0
    readings_extra: int = 0
    messages_missing: int = 0
    messages_differ: int = 0
    frames_lost: int = 0
    differences: list[str] = field(default_factory=list)

    @property
    def equal(self) -> bool:
        """Everything came out again, but for rounding."""
        return (
            self.decisions == self.decisions_equal
            and self.readings == self.readings_equal
            and not self.readings_extra
        )

    def decision(
        self, stage: int, recorded: Mapping[str, Any], replayed: Mapping[str, Any]
    ) -> bool:
        """Count a recorded decision; return whether it came out again to the bit."""
        exact = same_to_the_bit(recorded, replayed)
        found = "" if exact else difference(recorded, replayed)
        self.decisions_to_the_bit += exact
        if found:
            self.no_decision(stage, found)
        else:
            self.decisions += 1
            self.decisions_equal += 1
        return exact

    def no_decision(self, stage: int, why: str) -> None:
        """Count a recorded decision that did not come out again."""
        self.decisions += 1
        self.differs(f"decision {stage}: {why}")

    def differs(self, what: str) -> None:
        """Record a difference."""
        if len(self.differences) < _MOST_SAID:
            self.differences.append(what)

    def compare_readings(
        self, recorded: Sequence[Mapping[str, Any]], replayed: Sequence[Mapping[str, Any]]
    ) -> None:
        """Compare the readings that were used."""
        before, after = (Counter(_plain(dict(event)) for event in events)
                         for events in (recorded, replayed))  # fmt: skip
        lost = [json.loads(text) for text in (before - after).elements()]
        extra = [json.loads(text) for text in (after - before).elements()]
        for event in list(lost):
            match = next((other for other in extra if _same_reading(event, other)), None)
            if match is not None:
                lost.remove(event)
                extra.remove(match)
        self.readings = before.total()
        self.readings_equal = self.readings - len(lost)
        self.readings_extra = len(extra)
        for event in lost[:3]:
            self.differs(f"reading: recorded and not replayed {_short(event)}")
        for event in extra[:3]:
            self.differs(f"reading: replayed and not recorded {_short(event)}")

    def to_mapping(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "decisions": self.decisions,
            "decisions_equal": self.decisions_equal,
            "decisions_to_the_bit": self.decisions_to_the_bit,
            "readings": self.readings,
            "readings_equal": self.readings_equal,
            "readings_extra": self.readings_extra,
            "messages_missing": self.messages_missing,
            "messages_differ": self.messages_differ,
            "frames_lost": self.frames_lost,
            "differences": list(self.differences),
        }


def _same_reading(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    """Return whether two events say the same but for rounding."""
    return a.keys() == b.keys() and all(_close(a[key], b[key], ABSOLUTE) for key in a)


def _plain(value: Any) -> str:
    """Return data as text; equal texts are equal to the bit."""
    return json.dumps(json_ready(value), sort_keys=True)


def _short(value: Any) -> str:
    text = json.dumps(json_ready(value))
    return text if len(text) <= 160 else f"{text[:157]}..."
