"""A replayed mission against the recorded one."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gp_active_sensing.records import json_ready

__all__ = ["Comparison", "same"]

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
"""What makes two decisions equal: everything but the time that they took."""
_MOST_SAID = 20


def same(a: Mapping[str, Any], b: Mapping[str, Any]) -> str:
    """Return the first key in which two decisions differ, "" when they are equal to the bit."""
    for key in PLANNED:
        if _plain(a.get(key)) != _plain(b.get(key)):
            return f"{key}: recorded {_short(a.get(key))}, replayed {_short(b.get(key))}"
    return ""


@dataclass
class Comparison:
    """How much of a recorded mission came out again.

    Args:
        decisions: recorded.
        decisions_equal: of them, equal to the bit.
        readings: recorded as used.
        readings_equal: of them, used again with the same place and value.
        readings_extra: used again, and not recorded.
        messages_missing: used by the node, and not in the bag; taken from its journal.
        messages_differ: that say something else in the bag than in the journal.
        frames_lost: parts of the journal that are not in the bag.
        differences: in words, the first of them.
    """

    decisions: int = 0
    decisions_equal: int = 0
    readings: int = 0
    readings_equal: int = 0
    readings_extra: int = 0
    messages_missing: int = 0
    messages_differ: int = 0
    frames_lost: int = 0
    differences: list[str] = field(default_factory=list)

    @property
    def equal(self) -> bool:
        """Everything came out again."""
        return (
            self.decisions == self.decisions_equal
            and self.readings == self.readings_equal
            and not self.readings_extra
        )

    def decision(self, stage: int, difference: str) -> None:
        """Count a recorded decision; `difference` is "" when it came out again."""
        self.decisions += 1
        if difference:
            self.differs(f"decision {stage}: {difference}")
        else:
            self.decisions_equal += 1

    def differs(self, what: str) -> None:
        """Take note of a difference."""
        if len(self.differences) < _MOST_SAID:
            self.differences.append(what)

    def compare_readings(
        self, recorded: Sequence[Mapping[str, Any]], replayed: Sequence[Mapping[str, Any]]
    ) -> None:
        """Compare the readings that were used."""
        before, after = (Counter(_plain(dict(event)) for event in events)
                         for events in (recorded, replayed))  # fmt: skip
        self.readings = before.total()
        self.readings_equal = (before & after).total()
        self.readings_extra = (after - before).total()
        for text, _ in (before - after).most_common(3):
            self.differs(f"reading: recorded and not replayed {_short(json.loads(text))}")
        for text, _ in (after - before).most_common(3):
            self.differs(f"reading: replayed and not recorded {_short(json.loads(text))}")

    def to_mapping(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "decisions": self.decisions,
            "decisions_equal": self.decisions_equal,
            "readings": self.readings,
            "readings_equal": self.readings_equal,
            "readings_extra": self.readings_extra,
            "messages_missing": self.messages_missing,
            "messages_differ": self.messages_differ,
            "frames_lost": self.frames_lost,
            "differences": list(self.differences),
        }


def _plain(value: Any) -> str:
    """Return data as text; equal texts are equal to the bit."""
    return json.dumps(json_ready(value), sort_keys=True)


def _short(value: Any) -> str:
    text = json.dumps(json_ready(value))
    return text if len(text) <= 160 else f"{text[:157]}..."
