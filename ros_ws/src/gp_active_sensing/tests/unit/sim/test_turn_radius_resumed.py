"""A run with a turning radius that was cut off goes on as if it had not been."""

from __future__ import annotations

from pathlib import Path

from gp_active_sensing.sim import run_scenario
from tests.unit.sim.test_resume import cut, final, without_times
from tests.unit.sim.test_turn_radius import lake


def test_it_goes_on_as_if_nothing_had_happened(tmp_path: Path) -> None:
    what, whole = lake("tour", metres=600.0), tmp_path / "whole"
    summary = run_scenario(what, whole).to_mapping()
    data = (whole / "journal.jsonl").read_bytes()
    lines = [i + 1 for i, byte in enumerate(data) if byte == ord("\n")]
    for size in (lines[len(lines) // 3], lines[-3] - 5):
        target = tmp_path / str(size)
        cut(whole, target, size)
        again = run_scenario(what, target, resume=True).to_mapping()
        assert without_times(again) == without_times(summary)
        assert final(target) == final(whole)
