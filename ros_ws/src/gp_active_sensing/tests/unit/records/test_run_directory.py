from __future__ import annotations

import math
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from gp_active_sensing.errors import RunError
from gp_active_sensing.records.event_lines import parse_event, to_line
from gp_active_sensing.records.events import MissionStarted, ReadingUsed
from gp_active_sensing.records.run_directory import RunDirectory
from gp_active_sensing.types import Reading
from gp_active_sensing.util.files import InUse
from tests.commanding import ran

READING = Reading(123, 4, 0.1 + 0.2, 0.5, "sensor", (1.0, 2.0))


MADE: list[RunDirectory] = []


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    while MADE:
        MADE.pop().close()


def new(tmp_path: Path) -> RunDirectory:
    MADE.append(RunDirectory.create(tmp_path / "a" / "run", {"name": "x", "list": [1, 2.5]}))
    return MADE[-1]


def test_what_is_written_is_read(tmp_path: Path) -> None:
    with new(tmp_path) as run:
        run.append_event(to_line(MissionStarted(details={"seed": 1})))
        run.append_event(to_line(ReadingUsed(reading=READING)))
        run.append_record({"stage": 1, "weights": np.array([0.5, 0.5]), "n": np.int64(3)})
        run.write_summary({"ok": np.bool_(True)})
    again = RunDirectory.open(run.path)
    assert again.config == {"name": "x", "list": [1, 2.5]}
    assert [e["event"] for e in again.events()] == ["start", "reading"]
    assert parse_event(again.events()[1]) == ReadingUsed(reading=READING)
    assert again.records() == [{"stage": 1, "weights": [0.5, 0.5], "n": 3}]
    assert again.summary() == {"ok": True}
    assert again.cut_short == []


@pytest.mark.parametrize("rest", [b"\xff\xfe", b'{"event": "whole"}'])
def test_a_half_written_last_line_is_reported_and_can_be_removed(
    tmp_path: Path, rest: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    with new(tmp_path) as run:
        run.append_event({"event": "start"})
    path = run.path / "journal.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole + rest)
    again = RunDirectory.open(run.path)
    assert again.events() == [{"event": "start"}]
    assert again.cut_short == ["journal.jsonl"]
    assert "half-written" in caplog.text
    again.repair()
    assert path.read_bytes() == whole
    again.append_event({"event": "end"})
    assert [e["event"] for e in again.events()] == ["start", "end"]
    again.close()


def test_a_damaged_line_is_an_error_with_its_number(tmp_path: Path) -> None:
    run = new(tmp_path)
    for line in ("{", "3"):
        (run.path / "records.jsonl").write_text(f"{{}}\n{line}\n{{}}\n")
        with pytest.raises(RunError, match=r"records\.jsonl, line 2: expected"):
            run.records()
    (run.path / "summary.json").write_text("[1]")
    with pytest.raises(RunError, match="expected an object"):
        run.summary()


def test_numbers_that_json_cannot_say(tmp_path: Path) -> None:
    with new(tmp_path) as run:
        run.append_event(to_line(ReadingUsed(reading=Reading(0, 1, math.nan))))
        run.append_record({"upper": math.inf})
    text = (run.path / "journal.jsonl").read_text() + (run.path / "records.jsonl").read_text()
    assert "NaN" not in text
    assert "Infinity" not in text
    event = parse_event(run.events()[0])
    assert isinstance(event, ReadingUsed)
    assert math.isnan(event.reading.value)


def test_directories_that_cannot_be_used(tmp_path: Path) -> None:
    run = new(tmp_path)
    run.close()
    with pytest.raises(RunError, match="is not empty"):
        RunDirectory.create(run.path, {})
    with pytest.raises(RunError, match="does not exist"):
        RunDirectory.open(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(RunError, match="is not a run directory"):
        RunDirectory.open(tmp_path / "empty")


def test_a_line_that_is_cut_by_a_full_disk_is_taken_back(tmp_path: Path) -> None:
    """A process that may write 1000 bytes: what was whole stays whole, and writing goes on."""
    code = """
import resource, signal, sys
from gp_active_sensing.errors import RunError
from gp_active_sensing.records.run_directory import RunDirectory
run = RunDirectory.create(sys.argv[1], {})
run.append_event({"event": "start"})
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
try:
    run.append_event({"event": "reading", "long": "x" * 20_000})
except RunError as error:
    print(error)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
run.append_event({"event": "end"})
"""
    done = ran(sys.executable, "-c", code, str(tmp_path / "run"))
    assert "journal.jsonl: cannot write" in done.stdout
    events = RunDirectory.open(tmp_path / "run").events()
    assert [event["event"] for event in events] == ["start", "end"]


def test_a_directory_in_use_is_locked(tmp_path: Path) -> None:
    one = new(tmp_path)
    before = sorted(path.name for path in one.path.iterdir())
    writers: list[Callable[[], object]] = [
        lambda: RunDirectory.begin_again(one.path),
        lambda: RunDirectory.create(one.path, {}),
        lambda: RunDirectory.open(one.path).append_event({"event": "end"}),
        lambda: RunDirectory.open(one.path).write_summary({}),
        lambda: RunDirectory.open(one.path).repair(),
        lambda: RunDirectory.open(one.path).clear(),
        lambda: RunDirectory.open(one.path).remove(),
    ]
    for write in writers:
        with pytest.raises(InUse, match=f"{one.path} is in use by process {os.getpid()}; wait"):
            write()
    assert sorted(path.name for path in one.path.iterdir()) == before
    one.close()
    with RunDirectory.begin_again(one.path) as other:
        other.append_event({"event": "end"})


def test_the_lock_of_a_killed_process_does_not_block(tmp_path: Path) -> None:
    """Nor does the file that it leaves, nor one that was removed while another waited for it."""
    code = """
import os, signal, sys
from gp_active_sensing.records.run_directory import RunDirectory
run = RunDirectory.create(sys.argv[1], {})
run.append_event({"event": "start"})
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = ran(sys.executable, "-c", code, str(tmp_path / "run"))
    assert done.returncode == -signal.SIGKILL
    assert (tmp_path / "run" / ".lock").read_text().strip().isdigit()
    with RunDirectory.begin_again(tmp_path / "run") as run:
        assert [event["event"] for event in run.events()] == ["start"], "on disk at once"
        run.append_event({"event": "end"})
        assert (tmp_path / "run" / ".lock").read_text() == f"{os.getpid()}\n"


def test_a_link_in_the_place_of_the_lock_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("1")
    run = new(tmp_path)
    run.close()
    (run.path / ".lock").unlink()
    (run.path / ".lock").symlink_to(tmp_path / "precious")
    with pytest.raises(RunError, match=r"\.lock: cannot open"):
        RunDirectory.begin_again(run.path)
    assert (tmp_path / "precious").read_text() == "1"


def test_damaged_records_are_kept_in_a_copy_and_left_out(tmp_path: Path) -> None:
    planned = {"plan_seconds": 0.1, "expanded": 3, "deadline_hit": False}
    missed = {"regret": None, "cumulative_regret": 0.0, "recommended": 4}
    with new(tmp_path) as run:
        run.append_record({"stage": 1, **planned, **missed})
    path = run.path / "records.jsonl"
    sound = path.read_text()
    lines = ("\0", "{}", '{"stage": "x"}', '{"stage": 2, "regret": 0.1, "cumulative_regret": 0.1}')
    for number, line in enumerate(lines, start=1):
        path.write_text(f"{line}\n{sound}")
        with RunDirectory.begin_again(run.path) as again:
            again.repair()
        assert path.read_text() == sound, line
        kept = run.path / f"records.damaged-{number}.jsonl"
        assert kept.read_text() == f"{line}\n{sound}"
