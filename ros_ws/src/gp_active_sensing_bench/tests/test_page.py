from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from gp_active_sensing.errors import RunError
from gp_active_sensing.sim import scenario_from_mapping
from gp_active_sensing.util.wording import fixed
from gp_active_sensing_bench import read_experiment
from gp_active_sensing_bench.outputs import COLUMNS, _spread, write_comparison
from gp_active_sensing_bench.records import ExperimentDirectory, load_records
from gp_active_sensing_bench.run import run_trial
from gp_active_sensing_bench.tables import differences, summary
from tests.browser import Browser
from tests.unit.report.runs import HOSTILE, data_of
from tests.unit.report.test_page import check
from tests.unit.sim.scenarios import LINE

EXPERIMENT: dict[str, Any] = {
    "name": "pair",
    "description": "two policies & two noises",
    "scenario": {k: v for k, v in LINE.items() if k not in ("policy", "seed")},
    "seeds": 3,
    "policies": {"ie": {}, HOSTILE: {"name": "random"}},
    "configurations": {"quiet": {}, "noisy": {"sensor.noise_std": 2.0}},
    "checkpoints": [2, 4, 6],
    "baseline": "ie",
    "metrics": ["rmspe", "plan_seconds"],
    "expected": "ie wins <maybe>",
}


def directory(path: Path, skip: int = 0, **changes: Any) -> Path:
    """An experiment's directory, all trials but some run."""
    experiment = read_experiment({**EXPERIMENT, **changes})
    made = ExperimentDirectory.create(path, experiment)
    for number, trial in enumerate(experiment.trials[skip:]):
        stages = run_trial(scenario_from_mapping(dict(trial.config))).records
        record = {
            "key": trial.key,
            **trial.labels(),
            "config": trial.config,
            "commit": "abc" if number else "def",
            "versions": {"numpy": "1"},
            "platform": "a machine",
            "seconds": 0.5,
            "reason": "the budget of readings is spent",
            "stages": [{**stage} for stage in stages],
        }
        made.append("records.jsonl", record)
    made.close()
    return path


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = directory(tmp_path_factory.mktemp("experiment") / "pair")
    write_comparison(out)
    return out


def test_what_is_on_the_page(whole: Path) -> None:
    text = check(whole / "report.html")
    assert "two policies &amp; two noises" in text
    assert "12 of 12 trials, 6 s of computing in all." in text
    assert "ie wins &lt;maybe&gt;" in text
    assert "seeds: 0 … 2" in text
    assert '<td class="text">abc</td>' in text
    assert "come from 2 versions" in text, "mixed commits are said"
    assert "noise_std: 2.0" in text
    assert "<img" not in text


def test_tables_are_those_of_the_records(whole: Path) -> None:
    text = (whole / "report.html").read_text(encoding="utf-8")
    records = load_records(whole).records
    for table in (
        summary(records, "rmspe", (2, 4, 6)),
        differences(records, "rmspe", (2, 4, 6), "ie"),
    ):
        for row in table.rows:
            for cell in row.cells:
                assert cell is not None
                shown = [f"{fixed(cell.mean, d)} ± {cell.error:.{d}f}" for d in range(5)]
                assert any(s in text for s in shown), shown


def test_charts_are_those_of_the_records(whole: Path) -> None:
    charts = data_of(whole / "report.html")["charts"]
    assert [c["title"] for c in charts] == [
        "RMSPE [K], quiet",
        "RMSPE [K], noisy",
        "Planning time a stage [s], quiet",
        "Planning time a stage [s], noisy",
    ]
    table = summary(load_records(whole).records, "rmspe", (2, 4, 6))
    row = next(r for r in table.rows if (r.configuration, r.policy) == ("noisy", HOSTILE))
    series = charts[1]["series"][1]
    assert series["name"] == HOSTILE
    assert series["mean"] == pytest.approx([c.mean for c in row.cells if c], rel=1e-5)
    assert series["error"] == pytest.approx([c.error for c in row.cells if c], rel=1e-5)


def test_missing_trials_are_said(tmp_path: Path) -> None:
    text = check(write_comparison(directory(tmp_path / "some", skip=5)))
    assert "7 of 12 trials" in text
    assert "5 of 12 trials have no record" in text


def test_nothing_yet(tmp_path: Path) -> None:
    made = ExperimentDirectory.create(tmp_path / "none", read_experiment(EXPERIMENT))
    made.close()
    out = made.path
    text = check(write_comparison(out))
    assert "0 of 12 trials" in text
    assert data_of(out / "report.html")["charts"] == []


def test_one_seed_has_no_error(tmp_path: Path) -> None:
    out = directory(tmp_path / "one", seeds=1)
    write_comparison(out)
    for chart in data_of(out / "report.html")["charts"]:
        for series in chart["series"]:
            assert all(math.isfinite(mean) for mean in series["mean"])
            assert series["error"] == [None, None, None]


def test_not_an_experiment(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="not the directory of an experiment"):
        write_comparison(tmp_path)


@pytest.mark.parametrize("count", [0, 1, 12, 13, 240])
def test_wide_tables_are_thinned(count: int) -> None:
    columns = _spread(count)
    assert len(columns) == min(count, COLUMNS)
    assert columns == sorted(set(columns))
    if count:
        assert columns[-1] == count - 1


@pytest.mark.slow
@pytest.mark.parametrize("looks", [{}, {"width": 390, "height": 844, "dark": True}])
def test_in_a_browser(browser: Browser, whole: Path, looks: dict[str, Any]) -> None:
    page = browser.page(**looks)
    page.open(whole / "report.html", ready="document.documentElement.dataset.ready")
    browser.wait(0.1)
    assert page.complaints == []
    assert page.requests == []
    assert page.evaluate("document.documentElement.dataset.ready") == "yes"
    assert page.evaluate("document.querySelectorAll('#charts svg').length") == 4
    # A point for each policy and number of readings, each with a whisker.
    assert page.evaluate("document.querySelectorAll('#charts svg circle').length") == 4 * 2 * 3
    assert page.evaluate("document.querySelectorAll('table').length") == 5
    assert page.evaluate(
        "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    )
    legend = page.evaluate("document.querySelector('.legend').textContent")
    assert legend == f"ie{HOSTILE}"
    assert page.evaluate("document.querySelectorAll('img').length + Number('bad' in window)") == 0
    page.close()
