from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from gp_active_sensing.records.journal import read_journal, seal

EVENTS = [{"event": "start"}, {"event": "moved", "metres": 1.5}, {"event": "end", "reason": "done"}]


def journal(tmp_path: Path, count: int = 1) -> Path:
    path = tmp_path / "journal.jsonl"
    lines = [seal(event, n) for n, event in enumerate(EVENTS * count, start=1)]
    path.write_bytes(b"".join(lines))
    return path


def test_it_is_a_sequence(tmp_path: Path) -> None:
    events = read_journal(journal(tmp_path)).events
    assert len(events) == 3
    assert list(events) == EVENTS == list(events), "as often as it is asked"
    assert (events[0], events[-1], events[1:]) == (EVENTS[0], EVENTS[2], EVENTS[1:])
    assert events == EVENTS
    with pytest.raises(IndexError):
        events[3]
    assert events[0] is not events[0], "who changes one changes a copy"


def test_a_long_journal_takes_hardly_more_than_its_text(tmp_path: Path) -> None:
    path = journal(tmp_path, 10_000)
    size = path.stat().st_size
    tracemalloc.start()
    found = read_journal(path)
    held, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(found.events) == 30_000
    assert held < 1.6 * size, "a dict each would be four times its text"
    assert peak < 2.5 * size
