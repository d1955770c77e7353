"""Metrics of a search, and where a search is read off: by visits, not by places."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from gp_active_sensing.errors import ConfigError
from gp_active_sensing_bench import load_experiment, load_records, run_experiment, summary
from gp_active_sensing_bench.metrics import metric_of, stages_until

KEYS = ("observed", "visits", "regret", "cumulative_regret", "recommended_regret")
ROWS = [(1, 1, 4.0, 4.0, 3.0), (1, 2, None, 4.0, 1.0), (2, 4, 1.0, 5.0, 0.5)]
STAGES = [dict(zip(KEYS, row, strict=True)) for row in ROWS]
RECORD: dict[str, Any] = {"stages": STAGES, "config": {"field": {"unit": "K"}}}


def test_visits_count_where_a_record_has_them() -> None:
    assert [len(stages_until(RECORD, n) or ()) for n in (1, 2, 3, 4, 5)] == [1, 2, 3, 3, 0]
    places = {"stages": [{"observed": n} for n in (1, 1, 2)]}
    assert [len(stages_until(places, n) or ()) for n in (1, 2, 3)] == [1, 3, 0]


def test_regrets_are_read_off_at_visits() -> None:
    plain = {"stages": [{"observed": 1, "rmspe": 2.0}], "config": {}}
    for name, expected in {
        "average_regret": (4.0, 4.0, 2.5),
        "cumulative_regret": (4.0, 4.0, 5.0),
        "simple_regret": (4.0, 4.0, 1.0),
        "recommended_regret": (3.0, 1.0, 0.5),
        "regret_bound": (None, None, None),
    }.items():
        metric = metric_of(name)
        assert tuple(metric.of(RECORD, n) for n in (1, 2, 4)) == expected, name
        assert metric.unit_of(RECORD) == "K"
        assert metric.of(plain, 1) is None


SCENARIO: dict[str, Any] = {
    "map": {"kind": "points", "count": 8, "low": [0.0], "high": [1.0]},
    "field": {"kind": "formula", "formula": "sin(6*x1)"},
    "sensor": {"noise_std": 0.1},
    "belief": {"length_scales": [0.2], "signal_std": [0.7], "noise_std": [0.1], "mean_std": 0.0},
    "limit": {"expansions": 5},
}


def experiment(folder: Path, policies: dict[str, Any], **more: Any) -> Path:
    path = folder / "search.yaml"
    data = {
        "scenario": {**SCENARIO, **more},
        "seeds": 2,
        "policies": policies,
        "budgets": [12],
        "metrics": ["average_regret", "regret_bound", "recommended_regret"],
    }
    path.write_text(yaml.safe_dump(data), encoding="utf-8")
    return path


def test_a_search_may_take_more_readings_than_there_are_places(tmp_path: Path) -> None:
    loaded = load_experiment(experiment(tmp_path, {"gp_ucb": {}, "mean_only": {}}))
    found = run_experiment(loaded, tmp_path / "out", jobs=1)
    table = summary(found.records, "average_regret", (12,))
    for row in table.rows:
        (cell,) = row.cells
        assert cell is not None
        assert np.isfinite(cell.mean)
        assert row.counts == (2,)
    bound = summary(load_records(tmp_path / "out").records, "regret_bound", (12,))
    cells = {row.policy: row.cells[0] for row in bound.rows}
    assert cells["mean_only"] is None
    assert cells["gp_ucb"] is not None
    cumulative = [r["stages"][-1]["cumulative_regret"] for r in found.records]
    assert max(cumulative) < cells["gp_ucb"].mean


def test_others_may_not(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^\S*search\.yaml|budgets"):
        load_experiment(experiment(tmp_path, {"gp_ucb": {}, "random": {}}, seek="maximise"))
