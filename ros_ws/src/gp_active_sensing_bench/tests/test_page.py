"""The page of an experiment: what the records say, and nothing of a hostile label."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gp_active_sensing.errors import RunError
from gp_active_sensing.sim import scenario_from_mapping
from gp_active_sensing.util.wording import fixed
from gp_active_sensing_bench import read_experiment
from gp_active_sensing_bench.outputs import COLUMNS, _spread, write_outputs
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
    experiment = read_experiment({**EXPERIMENT, **changes})
    made = ExperimentDirectory.create(path, experiment)
    for number, trial in enumerate(experiment.trials[skip:]):
        stages = run_trial(scenario_from_mapping(dict(trial.config))).records
        record = {
            "key": trial.key,
            **trial.labels(),
            "config": trial.config,
            **{"commit": "abc" if number else "def", "versions": {"numpy": "1"}, "seconds": 0.5},
            "stages": [{**stage} for stage in stages],
        }
        made.append("records.jsonl", record)
    made.close()
    return path


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = directory(tmp_path_factory.mktemp("experiment") / "pair")
    write_outputs(out)
    return out


def test_what_is_on_the_page(whole: Path) -> None:
    text = check(whole / "report.html")
    for said in ("two policies &amp; two noises", "12 of 12 trials", "ie wins &lt;maybe&gt;"):
        assert said in text
    for said in ("seeds: 0 … 2", ">abc</td>", ">def</td>", "noise_std: 2.0"):
        assert said in text
    assert "<img" not in text


def test_tables_and_charts_are_those_of_the_records(whole: Path) -> None:
    text = (whole / "report.html").read_text(encoding="utf-8")
    records = load_records(whole).records
    means = summary(records, "rmspe", (2, 4, 6))
    for table in (means, differences(records, "rmspe", (2, 4, 6), "ie")):
        for row in table.rows:
            for cell in row.cells:
                assert cell is not None
                shown = [f"{fixed(cell.mean, d)} ± {cell.error:.{d}f}" for d in range(6)]
                assert any(s in text for s in shown), shown
    marked = [
        abs(cell.mean) > 2.0 * cell.error
        for metric in ("rmspe", "plan_seconds")
        for row in differences(records, metric, (2, 4, 6), "ie").rows
        for cell in row.cells
        if cell is not None
    ]
    assert text.count("<td><b>") == sum(marked) < len(marked)
    charts = data_of(whole / "report.html")["charts"]
    kinds = ("RMSPE [K]", "Planning time a stage [s]")
    assert [c["title"] for c in charts] == [f"{k}, {c}" for k in kinds for c in ("quiet", "noisy")]
    row = next(r for r in means.rows if (r.configuration, r.policy) == ("noisy", HOSTILE))
    series = charts[1]["series"][1]
    assert series["name"] == HOSTILE
    assert series["mean"] == pytest.approx([c.mean for c in row.cells if c], rel=1e-5)
    assert series["error"] == pytest.approx([c.error for c in row.cells if c], rel=1e-5)


@pytest.mark.filterwarnings("ignore:constrained_layout")  # a legend wider than its figure
def test_a_page_of_what_is_there_so_far(tmp_path: Path) -> None:
    out = directory(tmp_path / "some", skip=3, seeds=1)
    assert "1 of 4 trials" in check(write_outputs(out).page)
    errors = [s["error"] for c in data_of(out / "report.html")["charts"] for s in c["series"]]
    assert [None] * 3 in errors, "one seed has no standard error"
    made = ExperimentDirectory.create(tmp_path / "none", read_experiment(EXPERIMENT))
    made.close()
    assert "0 of 12 trials" in check(write_outputs(made.path).page)
    assert data_of(made.path / "report.html")["charts"] == []
    with pytest.raises(RunError):
        write_outputs(tmp_path)


def test_wide_tables_are_thinned() -> None:
    for count in (0, 1, 12, 13, 240):
        columns = _spread(count)
        assert len(columns) == min(count, COLUMNS)
        assert columns == sorted(set(columns))
        assert columns[-1:] == [count - 1][:count]


@pytest.mark.long
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
