"""The lines that a terminal shows: of a stage, and at the end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gp_active_sensing.commands.console import stage_line, summary_lines
from gp_active_sensing.sim import run_scenario
from tests.unit.sim.scenarios import GRID, scenario

RECORD: dict[str, Any] = {
    "stage": 1,
    "name": "a",
    "value": 2.0,
    "lower": 1.0,
    "upper": 1.0,
    "plan_seconds": 0.1,
    "observed": 1,
}


def test_a_gap_is_shown_where_there_are_bounds() -> None:
    for policy, upper, shown in (
        ("bal", 1.5, "gap 0.500"),
        ("one_of_mine", 1.5, "gap 0.500"),
        ("tour", 1.0, ""),
    ):
        line = stage_line({**RECORD, "upper": upper}, policy=policy)
        assert ("gap" in line) == bool(shown)
        assert shown in line


def test_seconds_of_several_probes_are_not_added_up(tmp_path: Path) -> None:
    summary = run_scenario(scenario(GRID, probes=2), tmp_path / "run").to_mapping()
    metres = [probe["metres"] for probe in summary["probes"]]
    seconds = [probe["seconds"] for probe in summary["probes"]]
    assert [probe["name"] for probe in summary["probes"]] == ["probe_1", "probe_2"]
    assert sum(metres) == pytest.approx(summary["metres"])
    assert sum(seconds) == pytest.approx(summary["seconds"])
    (line,) = [text for text in summary_lines(summary) if text.startswith("  driven")]
    assert f" {max(seconds):.0f} s " in line
