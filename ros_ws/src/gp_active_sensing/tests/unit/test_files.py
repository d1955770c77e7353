"""Names for what nobody named, and files that are on disk when they are said to be written."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from gp_active_sensing.files import unused, write_whole


def test_a_second_run_of_the_same_second_gets_a_name_of_its_own(tmp_path: Path) -> None:
    first = unused(tmp_path / "run")
    assert first == tmp_path / "run"
    first.mkdir()
    second = unused(tmp_path / "run")
    assert second == tmp_path / "run-2"
    second.mkdir()
    assert unused(tmp_path / "run") == tmp_path / "run-3"


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
