"""What is kept on disk between runs, and that nothing depends on it."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import numpy as np
import pytest

from gp_active_sensing.util import cache
from gp_active_sensing.util.cache import cache_folder, cached_arrays

COMPUTED: list[float] = []


def twice(key: float, **more: object) -> float:
    def compute() -> dict[str, np.ndarray]:
        COMPUTED.append(key)
        return {"twice": np.array([2.0 * key])}

    return float(cached_arrays("test", 1, {"key": key, **more}, compute)["twice"][0])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "gp_active_sensing"


def test_computed_once(folder: Path) -> None:
    COMPUTED.clear()
    assert [twice(3.0), twice(3.0), twice(4.0)] == [6.0, 6.0, 8.0]
    assert len(COMPUTED) == 2
    assert len(list(folder.glob("test-1-*.npz"))) == 2
    assert twice(3.0, more=np.arange(3)) == 6.0
    assert twice(3.0, more=np.arange(3.0)) == 6.0
    assert len(COMPUTED) == 4


def test_no_flipped_bit_is_believed_or_fails(folder: Path) -> None:
    COMPUTED.clear()
    twice(3.0)
    (path,) = folder.glob("*.npz")
    whole = path.read_bytes()
    for at in range(len(whole)):
        damaged = bytearray(whole)
        damaged[at] ^= 1 << at % 8
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match="checksum"):
            cache._read(path)
    assert twice(3.0) == 6.0
    assert (len(COMPUTED), path.read_bytes()) == (2, whole)


def test_a_file_of_another_name_or_none_at_all(folder: Path) -> None:
    COMPUTED.clear()
    twice(3.0)
    (path,) = folder.glob("*.npz")
    three = path.read_bytes()
    twice(4.0)
    (other,) = set(folder.glob("*.npz")) - {path}
    other.write_bytes(three)
    assert twice(4.0) == 8.0
    path.unlink()
    os.mkfifo(path)  # reading it would wait without end
    assert twice(3.0) == 6.0
    assert len(COMPUTED) == 4


def test_a_folder_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("not a folder", encoding="utf-8")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    COMPUTED.clear()
    with caplog.at_level(logging.INFO):
        assert [twice(3.0), twice(3.0)] == [6.0, 6.0]
    assert len(COMPUTED) == 2
    assert "is not kept" in caplog.text


def test_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", os.sep + "home")
    assert cache_folder() == Path(os.sep, "home", ".cache", "gp_active_sensing")
    for odd in ("", "cache", "~/cache"):
        monkeypatch.setenv("XDG_CACHE_HOME", odd)
        assert cache_folder() == Path(os.sep, "home", ".cache", "gp_active_sensing")


def test_the_oldest_go_when_there_is_no_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(cache, "MOST", 3 * 8_500)
    for number in range(5):
        cached_arrays("a", 1, {"k": number}, lambda: {"x": np.zeros(1000)})
        for file in cache_folder().glob("*.npz"):  # each a second older
            made = file.stat().st_mtime - 1.0
            os.utime(file, (made, made))
    assert len(list(cache_folder().glob("*.npz"))) == 3
    before = sorted(cache_folder().glob("*.npz"))
    for number in (2, 3, 4):  # the newest are there still
        cached_arrays("a", 1, {"k": number}, lambda: pytest.fail("computed again"))
    assert sorted(cache_folder().glob("*.npz")) == before
