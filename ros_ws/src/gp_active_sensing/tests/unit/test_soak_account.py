"""The account of the soak finds what it is there to find."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
STAMPS = list(range(100, 200, 10))
VALUES = [20.0 + 0.1 * i for i in range(10)]

if not BENCHMARKS.is_dir():
    pytest.skip("the benchmarks are not installed", allow_module_level=True)


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    yield importlib.import_module("soak_account").account
    sys.modules.pop("soak_account", None)


def reading(first: int, last: int, **more: Any) -> dict[str, Any]:
    """Return the event of the average of readings, by their numbers."""
    event = {"event": "reading", "stamp_ns": STAMPS[last], "value": VALUES[last]}
    if last > first:
        value = float(np.mean(VALUES[first : last + 1]))
        event |= {"first_ns": STAMPS[first], "count": last - first + 1, "value": value}
    return {**event, **more}


def test_what_is_used_once_is_neither_lost_nor_doubled(account: Any) -> None:
    events = [{"event": "start"}, reading(0, 4), reading(5, 5), reading(6, 9)]
    found = account(STAMPS, VALUES, events)
    assert (found.sent, found.used, found.unused) == (10, 10, ())
    assert (found.doubled, found.wrong, found.foreign, found.after, found.gated) == (0, 0, 0, 0, 0)


def test_a_reading_in_no_event_is_found(account: Any) -> None:
    assert account(STAMPS, VALUES, [reading(0, 4), reading(6, 9)]).unused == (STAMPS[5],)


def test_readings_in_two_events_are_found(account: Any) -> None:
    assert account(STAMPS, VALUES, [reading(0, 5), reading(5, 9)]).doubled == 1
    assert account(STAMPS, VALUES, [reading(0, 9), reading(3, 3)]).doubled == 1


def test_an_average_of_other_readings_is_found(account: Any) -> None:
    events = [reading(0, 4, count=4), reading(5, 9, value=21.0)]
    assert account(STAMPS, VALUES, events).wrong == 2


def test_a_stranger_s_reading_in_the_journal_is_found(account: Any) -> None:
    events = [reading(0, 9), {"event": "reading", "stamp_ns": 155, "value": 3.0}]
    assert account(STAMPS, VALUES, events).foreign == 1


def test_readings_after_the_end_of_a_mission_are_told_apart(account: Any) -> None:
    found = account(STAMPS, VALUES, [reading(0, 6), {"event": "end"}])
    assert (found.sent, found.after, found.unused) == (7, 3, ())


def test_what_is_set_aside_at_the_end_is_counted(account: Any) -> None:
    aside = {"event": "gated", "stamp_ns": STAMPS[3], "value": VALUES[3]}
    found = account(STAMPS, VALUES, [reading(0, 2), aside, reading(4, 9)])
    assert found.gated == 1
    assert found.unused == (), "it is in the journal"
    back = reading(3, 3, taken_back="agreed")
    assert account(STAMPS, VALUES, [aside, back]).gated == 0


def test_an_average_is_of_those_that_are_not_set_aside(account: Any) -> None:
    aside = {"event": "gated", "stamp_ns": STAMPS[3], "value": VALUES[3]}
    others = float(np.mean([VALUES[i] for i in (0, 1, 2, 4)]))
    found = account(STAMPS, VALUES, [aside, reading(0, 4, count=4, value=others), reading(5, 9)])
    assert (found.wrong, found.unused, found.gated) == (0, (), 1)
    assert found.used + found.gated == found.sent == 10
    assert account(STAMPS, VALUES, [aside, reading(0, 4), reading(5, 9)]).wrong == 1
