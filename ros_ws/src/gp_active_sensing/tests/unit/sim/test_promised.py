from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gp_active_sensing.report.reconstruction import replay
from gp_active_sensing.report.source import load_run
from gp_active_sensing.sim import run_scenario, scenario_from_mapping
from tests.journals import records_of

SMALL: dict[str, Any] = {
    "name": "pond",
    "map": {"kind": "grid", "columns": 7, "rows": 5, "spacing": 10.0},
    "field": {"kind": "gp", "length_scale": 20.0, "signal_std": 2.0, "mean": 5.0, "unit": "m"},
    "policy": {"name": "integrated_variance"},
    "probe": {"start": "c0r0"},
    "sensor": {"noise_std": 0.2},
    "budget": {"readings": 8},
}


def test_records_and_summary_hold_what_the_belief_promises(tmp_path: Path) -> None:
    for probes in (1, 2):
        area = {"outline": [[0, 0], [20, 20]], "weight": 3}
        grid = {**SMALL["map"], "weights": {"areas": [area], "elsewhere": 0.5}}
        out = tmp_path / f"run{probes}"
        summary = run_scenario(scenario_from_mapping({**SMALL, "map": grid, "probes": probes}), out)
        records = records_of(out)
        assert [r["promised_error"] is None for r in records[:4]] == [True, True, True, False]
        data = load_run(out)
        done, weights = replay(data), data.topology.weights
        mean, variance = done.belief.predict()
        exact = float(np.sqrt(np.average(variance, weights=weights)))
        assert records[-1]["promised_error"] == pytest.approx(exact)
        assert summary.promised_error == pytest.approx(exact)
        assert summary.promised_worst == pytest.approx(float(np.sqrt(variance.max())))
        assert summary.least_places == 8
        assert summary.least_error is not None
        assert summary.least_error < exact
        assert data.truth is not None
        error = float(np.sqrt(np.average(np.square(mean - data.truth.at(0.0)), weights=weights)))
        assert summary.rmse == pytest.approx(error)
        assert [step.promised for step in done.steps[1:]] == pytest.approx(
            [r["promised_error"] for r in records], nan_ok=True
        )
