"""Damage to a journal is found wherever it is, said, kept in a copy and cut out."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

import pytest

from gp_active_sensing.errors import RunError
from gp_active_sensing.records.journal import read_journal, repair_journal, seal, unseal

EVENTS: list[dict[str, Any]] = [
    {"event": "start", "seed": 3},
    {"event": "asked", "at": None, "pending": []},
    {"event": "decision", "stage": 1, "name": "Straße 7", "metres": 0.1},
    {"event": "moved", "metres": 12.5},
    {"event": "reading", "value": "nan", "position": [1.0, 2.5]},
    {"event": "end", "reason": "done"},
]
LINES = [seal(event, number) for number, event in enumerate(EVENTS, start=1)]
OLD = [json.dumps(event).encode() + b"\n" for event in EVENTS]


def journal(tmp_path: Path, *parts: bytes) -> Path:
    path = tmp_path / "journal.jsonl"
    path.write_bytes(b"".join(parts))
    return path


def test_a_line_is_read_as_it_was_written() -> None:
    for number, (event, line) in enumerate(zip(EVENTS, LINES, strict=True), start=1):
        assert unseal(line[:-1]) == (event, number)
        assert list(json.loads(line))[-2:] == ["n", "crc"]


def test_a_number_that_is_never_written_is_damage() -> None:
    for word in ("NaN", "Infinity", "-Infinity", "1e999", f"1{320 * '0'}.0", f"1{251 * '0'}e99"):
        body = b'{"event": "moved", "metres": 1.0, "seconds": %s, "n": 1}' % word.encode()
        assert unseal(b'%s, "crc": "%08x"}' % (body[:-1], zlib.crc32(body))) is None, word


def test_every_flipped_bit_is_found(tmp_path: Path) -> None:
    """Whatever is read after a flip was written; what is not read is said to be missing."""
    whole = b"".join(LINES)
    for at in range(len(whole)):
        for bit in range(8):
            changed = bytearray(whole)
            changed[at] ^= 1 << bit
            found = read_journal(journal(tmp_path, bytes(changed)))
            kept = [event for event in found.events if event["event"] != "gap"]
            assert len(kept) < len(EVENTS), f"byte {at}, bit {bit}"
            assert all(event in EVENTS for event in kept), f"byte {at}, bit {bit}"
            assert found.damage or found.rest, f"byte {at}, bit {bit}"
            missing = sum(event.get("failures", 0) for event in found.events)
            assert len(kept) + missing + bool(found.rest) >= len(EVENTS)


def test_a_line_that_is_missing_is_counted(tmp_path: Path) -> None:
    for missing in range(5):
        found = read_journal(journal(tmp_path, LINES[0], *LINES[missing + 1 :]))
        assert sum(event.get("failures", 0) for event in found.events) == missing
        assert found.number == len(LINES)
        assert len(found.damage) == bool(missing)


def test_doubled_lines_are_taken_once_and_said(tmp_path: Path) -> None:
    """As four doubled last lines were before: two writers, or a copy that was joined badly."""
    for number in range(1, len(LINES) + 1):
        path = journal(tmp_path, *LINES, *LINES[-number:])
        found = read_journal(path)
        assert found.events == EVENTS
        assert len(found.damage) == number
        assert repair_journal(path).events == EVENTS
        assert path.read_bytes() == b"".join(LINES)


def test_two_writers_are_refused(tmp_path: Path) -> None:
    other = seal({"event": "moved", "metres": 13.0}, 4)
    with pytest.raises(RunError, match="line 5: expected event 5, got another event 4: two proc"):
        read_journal(journal(tmp_path, *LINES[:4], other, *LINES[4:]))


def test_lines_without_checksums_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="no checksums"):
        read_journal(journal(tmp_path, *OLD))
    # A line without a seal after one with a seal is damage.
    assert read_journal(journal(tmp_path, *LINES[:4], OLD[4], LINES[5])).events[4] == {
        "event": "gap",
        "failures": 1,
        "damaged": True,
    }


def test_one_zero_byte_costs_one_line(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    damaged = bytearray(b"".join(LINES))
    damaged[len(LINES[0]) + 5] = 0
    path = journal(tmp_path, bytes(damaged))
    for found in (read_journal(path), repair_journal(path), read_journal(path)):
        assert [event["event"] for event in found.events] == [
            *("start", "gap", "decision", "moved", "reading", "end")
        ]
        assert found.events[1]["failures"] == 1
        assert found.number == len(EVENTS)
    assert found.damage == []
    assert (tmp_path / "journal.damaged-1.jsonl").read_bytes() == damaged
    assert "journal.damaged-1.jsonl" in caplog.text


def test_a_copy_is_never_replaced(tmp_path: Path) -> None:
    copies = []
    for number in range(3):
        broken = LINES[number][:5] + b"\0" + LINES[number][6:]
        path = journal(tmp_path, *LINES[:number], broken, *LINES[number + 1 :])
        copies.append(path.read_bytes())
        repair_journal(path)
    kept = [(tmp_path / f"journal.damaged-{k}.jsonl").read_bytes() for k in (1, 2, 3)]
    assert kept == copies


def test_only_what_is_before_the_damage(tmp_path: Path) -> None:
    for number, sound in enumerate((2, 0), start=1):
        rest = [b"\xff" + LINES[sound], *LINES[sound + 1 :]]
        path = journal(tmp_path, *LINES[:sound], *rest, b'{"half')
        whole = path.read_bytes()
        found = repair_journal(path, until_damage=True)
        assert found.events == EVENTS[:sound]
        assert path.read_bytes() == b"".join(LINES[:sound])
        assert (tmp_path / f"journal.damaged-{number}.jsonl").read_bytes() == whole


def test_the_end_that_a_power_cut_leaves_is_cut_off(tmp_path: Path) -> None:
    """Blocks of zeros are kept beside, each in a file of its own; half a line is not."""
    for number in (1, 2):
        end = LINES[3][:9] + bytes(512 * number)
        path = journal(tmp_path, *LINES[:3], end)
        assert repair_journal(path).events == EVENTS[:3]
        assert path.read_bytes() == b"".join(LINES[:3])
        assert (tmp_path / f"journal.cut-{number}.jsonl").read_bytes() == end
    path = journal(tmp_path, *LINES[:3], LINES[3][:-1])
    assert repair_journal(path).events == EVENTS[:3]
    assert path.read_bytes() == b"".join(LINES[:3])
    assert len(list(tmp_path.iterdir())) == 3
