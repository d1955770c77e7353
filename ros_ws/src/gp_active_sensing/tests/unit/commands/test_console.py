"""The lines that a terminal shows: of a stage, and at the end."""

from __future__ import annotations

from pathlib import Path

import pytest

from gp_active_sensing.commands.console import WIDTH, progress_of, stage_line, summary_lines
from gp_active_sensing.sim import run_scenario
from tests.unit.sim.scenarios import GRID, scenario


def test_a_stage_shows_the_used_budget_in_one_short_line() -> None:
    made = scenario(GRID, budget={"readings": None, "metres": 1200, "seconds": 600})
    record = {
        **{"stage": 1, "probe": "boat_1", "name": 40 * "x", "value": 2.0, "plan_seconds": 9.0},
        **{"observed": 1, "driven_metres": 90.4, "driven_seconds": 300.0},
        **{"promised_error": 12.3456, "rmspe": 0.123456, "regret": 3.0},
        **{"kernels": ["graph_matern12"], "length_scales": [[410.4]], "weights": [1.0]},
    }
    line = stage_line(record, made)
    assert len(line) <= WIDTH
    for part in ("  90/1200 m", "300/600 s", "read    2.0 ", "error   12.3", "RMSPE   0.12"):
        assert part in line
    assert progress_of(record, made) == (0.5, "90/1200 m, 300/600 s")


def test_seconds_of_several_probes_are_not_added_up(tmp_path: Path) -> None:
    summary = run_scenario(scenario(GRID, probes=2), tmp_path / "run").to_mapping()
    metres = [probe["metres"] for probe in summary["probes"]]
    seconds = [probe["seconds"] for probe in summary["probes"]]
    assert [probe["name"] for probe in summary["probes"]] == ["probe_1", "probe_2"]
    assert sum(metres) == pytest.approx(summary["metres"])
    assert sum(seconds) == pytest.approx(summary["seconds"])
    (line,) = [text for text in summary_lines(summary) if text.startswith("  driven")]
    assert f" {max(seconds):.0f} s " in line


def test_the_columns_of_a_stage_stay_where_they_are() -> None:
    common = {"name": "a", "plan_seconds": 0.0, "length_scales": [[4.0]], "weights": [1.0]}
    lines = [
        stage_line({"stage": 1, "observed": 1, "value": v, **common, **errors}, scenario(GRID))
        for v, errors in (
            (2.0, {"promised_error": None, "rmspe": 1.5}),
            (None, {"promised_error": 2.0, "rmspe": 12.5}),
            (-12.5, {"promised_error": 0.25, "rmspe": 3.0}),
        )
    ]
    for column in ("expected error", "RMSPE", "length-scale"):
        assert len({line.index(column) for line in lines}) == 1
