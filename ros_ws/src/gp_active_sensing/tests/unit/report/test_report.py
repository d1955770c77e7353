from __future__ import annotations

import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import yaml

pytest.importorskip("matplotlib")

from gp_active_sensing.errors import RunError
from gp_active_sensing.events import reading_event
from gp_active_sensing.records import RunDirectory
from gp_active_sensing.report import write_report
from gp_active_sensing.report.maps import _sparse
from gp_active_sensing.report.source import load_run
from gp_active_sensing.sim import load_scenario, run_scenario
from gp_active_sensing.types import Reading
from tests.unit.sim.scenarios import GRID, LINE, mapping, scenario

VOID = {"meta", "br", "hr", "img", "link", "input"}


class Balance(HTMLParser):
    """Every element is closed, in order; nothing is loaded from elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.loads: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)
        self._look(attrs)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._look(attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def _look(self, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id":
                self.ids.append(str(value))
            elif name in ("src", "href", "xlink:href") and not str(value).startswith(
                ("#", "data:")
            ):
                self.loads.append(str(value))


def check(page: Path) -> str:
    text = page.read_text(encoding="utf-8")
    balance = Balance()
    balance.feed(text)
    assert balance.open == []
    assert balance.loads == [], "the page must open without a network"
    assert len(set(balance.ids)) == len(balance.ids), "identifiers must be unique on the page"
    assert "<script" not in text
    assert "@import" not in text
    assert "prefers-color-scheme: dark" in text
    assert "#0a0b0c" not in text, "a stand-in colour was not replaced"
    assert len(text) < 2_000_000
    return text


def titles(text: str) -> list[str]:
    return re.findall(r"<h3>(.*?)</h3>", text)


def test_line(tmp_path: Path) -> None:
    run_scenario(scenario(description="a <b>bold</b> test & more"), tmp_path / "run")
    text = check(write_report(tmp_path / "run"))
    assert titles(text)[0] == "Field along the line"
    assert "small · bal · seed 3" in text
    assert "a &lt;b&gt;bold&lt;/b&gt; test &amp; more" in text
    assert "numpy" in text
    assert "against the noise-free truth" in text


def test_grid_has_three_panels_and_four_curves(tmp_path: Path) -> None:
    run_scenario(scenario(GRID, map={"obstacles": [[[9, 9], [11, 11]]]}), tmp_path / "run")
    assert titles(check(write_report(tmp_path / "run"))) == [
        "Truth (noise-free)",
        "Estimate and visited places",
        "Uncertainty and driven path",
        "Prediction error (RMSPE)",
        "Belief over length-scales",
        "Bounds on the decision&#x27;s value",
        "Planning time a stage [s]",
    ]


def test_town(tmp_path: Path) -> None:
    what = load_scenario("town", policy="random", overrides=["budget.readings=5"])
    run_scenario(what, tmp_path / "run")
    text = check(write_report(tmp_path / "run"))
    assert "Truth (noise-free)" in text
    assert "[km/h]" in text


def test_a_big_map_stays_small_and_a_dollar_is_no_formula(tmp_path: Path) -> None:
    what = scenario(
        GRID,
        map={"columns": 40, "rows": 40},
        field={"unit": "$_\\frac", "quantity": "<price>"},
        policy={"name": "random"},
        budget={"readings": 2},
    )
    run_scenario(what, tmp_path / "run")
    text = check(write_report(tmp_path / "run"))
    assert "data:image/png;base64" in text
    assert "&lt;price&gt; [$_\\frac]" in text


def node_run(path: Path, **config: Any) -> Path:
    """A directory as a node leaves it: no truth, few keys, positions instead of places."""
    with RunDirectory.create(
        path, {"map": GRID["map"], "belief": GRID["belief"], "node": {"rate": 5}, **config}
    ) as run:
        run.append_event(reading_event(Reading(0, 0, 30.0)))
        run.append_event(reading_event(Reading(1, None, 35.0, position=(11.0, 1.0))))
        run.append_event(reading_event(Reading(2, 4, float("nan"))))
        run.append_record({"stage": 1, "location": 0, "name": "a", "value": 30.0})
    return path


def test_a_node_s_run_without_truth(tmp_path: Path) -> None:
    data = load_run(node_run(tmp_path / "run"))
    assert data.truth is None
    assert data.belief.observed.nonzero()[0].tolist() == [0, 1]
    text = check(write_report(tmp_path / "run"))
    assert titles(text) == ["Estimate and visited places", "Uncertainty and driven path"]


def test_a_run_with_no_reading_at_all(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path / "run", {"map": LINE["map"], "belief": LINE["belief"]})
    run.close()
    assert "No stage was completed" in check(write_report(tmp_path / "run"))


def test_the_estimate_is_the_belief_of_the_run(tmp_path: Path) -> None:
    summary = run_scenario(scenario(GRID), tmp_path / "run")
    data = load_run(tmp_path / "run")
    assert data.truth is not None
    weights = {tuple(w["length_scale"]): w["weight"] for w in summary.length_scales}
    for key, weight in zip(data.length_scales, data.belief.weights, strict=True):
        assert weight == pytest.approx(weights[key], abs=1e-9)


def test_interrupted_and_cut_short(tmp_path: Path) -> None:
    out = tmp_path / "run"
    run_scenario(scenario(GRID), out)
    (out / "summary.json").unlink()
    for name in ("journal.jsonl", "records.jsonl"):
        data = (out / name).read_bytes()
        (out / name).write_bytes(data[: int(0.6 * len(data))])
    text = check(write_report(out))
    assert "Run not ended" in text
    assert "journal.jsonl: the last line was cut short" in text


def test_a_truth_that_is_gone_is_said(tmp_path: Path) -> None:
    values = tmp_path / "values.csv"
    values.write_text("id,value\n" + "".join(f"{i},{i}\n" for i in range(12)))
    field = {"kind": "table", "file": str(values), "length_scale": None}
    run_scenario(scenario(field=field), tmp_path / "run")
    values.unlink()
    text = check(write_report(tmp_path / "run"))
    assert "the truth is not shown" in text
    assert "values.csv" in text


def test_the_page_depends_on_the_directory_only(tmp_path: Path) -> None:
    run_scenario(scenario(GRID), tmp_path / "run")
    shutil.copytree(tmp_path / "run", tmp_path / "moved")
    first = write_report(tmp_path / "run").read_bytes()
    assert write_report(tmp_path / "moved").read_bytes() == first
    assert write_report(tmp_path / "moved").read_bytes() == first


@pytest.mark.parametrize("missing", ["map", "belief"])
def test_a_configuration_without_a_map_or_belief(tmp_path: Path, missing: str) -> None:
    config = {k: v for k, v in mapping().items() if k != missing}
    RunDirectory.create(tmp_path / "run", config).close()
    with pytest.raises(RunError, match=f"expected a section '{missing}'"):
        write_report(tmp_path / "run")


def test_a_page_that_cannot_be_written(tmp_path: Path) -> None:
    out = node_run(tmp_path / "run")
    (out / "report.html").mkdir()
    with pytest.raises(RunError, match="cannot write"):
        write_report(out)


def test_configuration_shown_is_the_one_of_the_run(tmp_path: Path) -> None:
    out = node_run(tmp_path / "run", name="<x>", seed=5, policy={"name": "ie"})
    text = check(write_report(out))
    assert "&lt;x&gt; · ie · seed 5" in text
    shown = re.search(r"<pre>(.*?)</pre>", text, re.DOTALL)
    assert shown is not None
    assert "rate: 5" in shown.group(1)
    assert yaml.safe_load((out / "config.yaml").read_text())["node"] == {"rate": 5}


@pytest.mark.parametrize("count", [0, 1, 2, 11, 12, 13, 60, 240, 1000])
def test_numbers_are_sparse_and_include_first_and_last(count: int) -> None:
    chosen = _sparse(count)
    assert len(chosen) <= 14
    assert chosen == sorted(set(chosen))
    if count:
        assert (chosen[0], chosen[-1]) == (0, count - 1)


def test_records_are_plain_json(tmp_path: Path) -> None:
    run_scenario(scenario(GRID), tmp_path / "run")
    for line in (tmp_path / "run" / "records.jsonl").read_text().splitlines():
        assert json.loads(line)["stage"] >= 1
