from __future__ import annotations

from pathlib import Path

import pytest

from gp_active_sensing.errors import RunError
from gp_active_sensing.web import follow as tail
from gp_active_sensing.web.follow import LineTail, stamp_of


def test_lines_come_once_and_whole(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    following = LineTail(path)
    assert following.read() == (False, [])
    path.write_bytes(b"one\ntw")
    assert following.read() == (False, [b"one"])
    with path.open("ab") as stream:
        stream.write(b"o\nthree\n")
    assert following.read() == (False, [b"two", b"three"])
    assert following.read() == (False, [])


def test_a_file_that_was_replaced_or_cut_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"one\ntwo\n")
    following = LineTail(path)
    following.read()
    path.write_bytes(b"1\n")
    assert following.read() == (True, [b"1"])
    (tmp_path / "other").write_bytes(b"another\n")
    (tmp_path / "other").rename(path)
    assert following.read() == (True, [b"another"])
    path.unlink()
    assert following.read() == (True, [])
    assert stamp_of(path) is None


def test_a_long_file_comes_in_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tail, "BLOCK", 10)
    path = tmp_path / "lines"
    lines = [f"line {i}".encode() for i in range(20)]
    path.write_bytes(b"\n".join(lines) + b"\n")
    blocks = [found for _, found in LineTail(path).blocks()]
    assert len(blocks) > 5
    assert [line for block in blocks for line in block] == lines


def test_what_is_no_file_of_lines_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(RunError, match="cannot read"):
        LineTail(tmp_path).read()
    monkeypatch.setattr(tail, "MOST_OF_LINE", 10)
    (tmp_path / "lines").write_bytes(b"x" * 20)
    with pytest.raises(RunError, match="expected lines of at most 10 bytes"):
        LineTail(tmp_path / "lines").read()
