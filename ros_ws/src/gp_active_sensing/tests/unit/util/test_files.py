"""Names for what nobody named, and files that are on disk when they are said to be written."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from gp_active_sensing.errors import ConfigError, RunError
from gp_active_sensing.kernel_model.model_file import model_mark, read_model
from gp_active_sensing.records.run_directory import RunDirectory
from gp_active_sensing.report import write_report
from gp_active_sensing.util import files
from gp_active_sensing.util.files import (
    cut_off,
    keep_beside,
    making_whole,
    open_to_append,
    read_whole,
    write_whole,
)
from gp_active_sensing.web.follow import LineTail
from tests.unit.report.runs import bag_run


@pytest.mark.skipif(os.name != "posix", reason="folders are synced on POSIX only")
def test_a_file_is_on_disk_before_it_has_its_name_and_the_name_before_it_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a power cut leaves an empty file under the name, or the old one after all."""
    path = tmp_path / "state.json"
    path.write_text("old")
    done: list[tuple[str, object]] = []
    fsync, replace = os.fsync, os.replace

    def synced(number: int) -> None:
        status = os.fstat(number)
        # What is in the file by then: a buffer that is not flushed is not synced either.
        done.append(("folder", None) if stat.S_ISDIR(status.st_mode) else ("file", status.st_size))
        fsync(number)

    def replaced(source: Path, target: Path) -> None:
        done.append(("rename", target))
        replace(source, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", replaced)
    write_whole(path, "new text")
    assert done == [("file", 8), ("rename", path), ("folder", None)]
    assert path.read_text() == "new text"
    assert os.listdir(tmp_path) == ["state.json"]


@pytest.fixture
def precious(tmp_path: Path) -> Path:
    """A file of somebody else's, at which planted links point."""
    path = tmp_path / "precious.txt"
    path.write_text("precious")
    return path


def test_a_report_follows_no_planted_link(
    tmp_path: Path, precious: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither one under the name of the page, nor one under the name that it is written under."""
    run = bag_run(tmp_path / "run", 3)
    (run / "report.html").symlink_to(precious)
    (run / ".report.html.part").symlink_to(precious)
    monkeypatch.setattr("secrets.token_hex", lambda count: "guessed")
    assert write_report(run) == run / "report.html"
    assert precious.read_text() == "precious"
    assert not (run / "report.html").is_symlink()
    assert "<html" in (run / "report.html").read_text()

    (run / ".report.html.guessed.part").symlink_to(precious)
    with pytest.raises(RunError, match=r"report\.html: cannot write: File exists"):
        write_report(run)
    assert precious.read_text() == "precious"
    assert (run / ".report.html.guessed.part").is_symlink()  # it is not ours to remove


def test_what_cannot_be_written_leaves_nothing_beside(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(ZeroDivisionError), making_whole(path) as stream:
        stream.write(bytes(1 // 0))
    assert os.listdir(tmp_path) == ["a.txt"]
    assert path.read_text() == "old"


def test_nothing_is_appended_behind_a_link(tmp_path: Path, precious: Path) -> None:
    link = tmp_path / "journal.jsonl"
    link.symlink_to(precious)
    with pytest.raises(OSError, match="symbolic links"):
        open_to_append(link)
    with open_to_append(tmp_path / "own") as stream:
        stream.write(b"a")
    with open_to_append(tmp_path / "own") as stream:
        stream.write(b"b")
    assert (tmp_path / "own").read_bytes() == b"ab"
    assert precious.read_text() == "precious"


@pytest.mark.parametrize("name", ["journal.jsonl", "records.jsonl"])
def test_nothing_behind_a_link_is_cut_off(tmp_path: Path, precious: Path, name: str) -> None:
    content = b'precious\n{"half'
    precious.write_bytes(content)
    RunDirectory.create(tmp_path / "run", {}).close()
    (tmp_path / "run" / name).symlink_to(precious)
    with (
        RunDirectory.begin_again(tmp_path / "run") as run,
        pytest.raises(RunError, match=f"{name}: expected a file, got a link"),
    ):
        run.repair()
    with pytest.raises(RunError, match="symbolic links"):
        cut_off(tmp_path / "run" / name, 3)
    assert precious.read_bytes() == content


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")])
def test_what_is_no_file_is_refused_and_not_read(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    run = RunDirectory.create(tmp_path / "run", {})
    run.close()
    for name in ("journal.jsonl", "records.jsonl", "summary.json", "model.npz"):
        make(run.path / name)
    refused = "expected a file, got a pipe, a device or a socket"
    for read in (run.events, run.records, run.summary):
        with pytest.raises(RunError, match=refused):
            read()
    with pytest.raises(ConfigError, match=refused):
        read_model(run.path / "model.npz")
    with pytest.raises(OSError, match=refused):
        model_mark(run.path / "model.npz")
    with pytest.raises(RunError, match=refused):
        keep_beside(run.path / "journal.jsonl", "replaced")
    with pytest.raises(RunError, match=refused):
        LineTail(run.path / "journal.jsonl").read()


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "summary.json"
    with path.open("wb") as stream:
        stream.truncate(2 << 20)
    with pytest.raises(OSError, match="expected at most 1 MiB, got more"):
        read_whole(path, 1 << 20)
    assert len(read_whole(path, 2 << 20)) == 2 << 20
    run = RunDirectory.create(tmp_path / "run", {})
    run.close()
    for name in ("journal.jsonl", "records.jsonl", "summary.json"):
        with (run.path / name).open("wb") as stream:
            stream.truncate(1 << 42)  # of zeros that take no room
    for read in (run.events, run.records, run.summary):
        with pytest.raises(RunError, match=r"expected at most \d+ MiB, got more"):
            read()


def test_only_this_module_makes_files_of_a_name_that_is_known_before() -> None:
    """Every other one would have to think of planted links again."""
    ours = Path(files.__file__).parents[1]
    found = {
        f"{path.relative_to(ours)}: {match}"
        for path in ours.rglob("*.py")
        if path != Path(files.__file__)
        for match in re.findall(
            r"open\([^()]*[\"'](?:[wa]b?\+?|r\+b?|rb\+)[\"']|\.write_(?:text|bytes)\(",
            path.read_text(encoding="utf-8"),
        )
    }
    assert found <= {
        "experiments/outputs.py: .write_text(",
        "experiments/records.py: .write_text(",
        'web/access.py: open(number, "w"',  # a descriptor, opened with O_EXCL
    }


def test_json_that_is_nested_too_deeply_is_an_error_with_its_place(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path / "run", {})
    run.close()
    deep = '{"a":' * 100_000 + "0" + "}" * 100_000
    for name in ("records.jsonl", "summary.json"):
        (run.path / name).write_text(deep + "\n")
    with pytest.raises(RunError, match=r"records\.jsonl, line 1: expected a JSON object"):
        run.records()
    with pytest.raises(RunError, match=r"summary\.json: cannot read the summary"):
        run.summary()
