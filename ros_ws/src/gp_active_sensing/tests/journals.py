"""Journals that are changed by hand, with numbers and checksums as if they had been written so."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from gp_active_sensing.records.journal import read_journal, seal

Events = list[dict[str, Any]]


def write_events(path: Path, events: Sequence[dict[str, Any]]) -> None:
    """Write the journal of these events."""
    lines = [seal(event, number) for number, event in enumerate(events, start=1)]
    path.write_bytes(b"".join(lines))


def change_events(path: Path, change: Callable[[Events], object]) -> None:
    """Change the events of a journal."""
    events = list(read_journal(path).events)
    change(events)
    write_events(path, events)
