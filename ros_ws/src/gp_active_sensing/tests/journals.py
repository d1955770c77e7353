"""Journals that are changed by hand, with numbers and checksums as if they had been written so."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from gp_active_sensing.records.journal import read_journal, seal

Events = list[dict[str, Any]]


def write_events(path: Path, events: Sequence[dict[str, Any]]) -> None:
    lines = [seal(event, number) for number, event in enumerate(events, start=1)]
    path.write_bytes(b"".join(lines))


def change_events(path: Path, change: Callable[[Events], object]) -> None:
    events = list(read_journal(path).events)
    change(events)
    write_events(path, events)


def events_of(run: Path, *kinds: str) -> Events:
    """Return the events of a run directory as they stand in their lines, of some kinds or all."""
    lines = (run / "journal.jsonl").read_text("utf-8").splitlines()
    events = [json.loads(line) for line in lines]
    return [event for event in events if not kinds or event["event"] in kinds]


def records_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (path / "records.jsonl").read_text("utf-8").splitlines()]
