"""Names for what nobody named."""

from __future__ import annotations

from pathlib import Path

from gp_active_sensing.files import unused


def test_a_second_run_of_the_same_second_gets_a_name_of_its_own(tmp_path: Path) -> None:
    first = unused(tmp_path / "run")
    assert first == tmp_path / "run"
    first.mkdir()
    second = unused(tmp_path / "run")
    assert second == tmp_path / "run-2"
    second.mkdir()
    assert unused(tmp_path / "run") == tmp_path / "run-3"
