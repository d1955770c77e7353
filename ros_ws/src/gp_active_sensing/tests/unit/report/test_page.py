from __future__ import annotations

import shutil
from html.parser import HTMLParser
from pathlib import Path

import pytest

from gp_active_sensing.errors import RunError
from gp_active_sensing.records.run_directory import RunDirectory
from gp_active_sensing.report import page as page_module
from gp_active_sensing.report import write_report
from gp_active_sensing.sim import run_scenario
from tests.unit.report.runs import data_of, node_run
from tests.unit.sim.scenarios import GRID, mapping, scenario

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
        for name, value in attrs:
            if name == "id":
                self.ids.append(str(value))
            elif name in ("src", "href", "srcset", "action"):
                self.loads.append(str(value))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def check(page: Path) -> str:
    text = page.read_text(encoding="utf-8")
    balance = Balance()
    balance.feed(text)
    assert balance.open == []
    assert balance.loads == [], "the page must open without a network"
    assert len(set(balance.ids)) == len(balance.ids), "identifiers must be unique on the page"
    assert "@import" not in text
    assert "url(" not in text.replace("url(#", "")
    assert "prefers-color-scheme: dark" in text
    assert "<noscript>" in text
    assert len(text) < 1_000_000
    return text


def test_line(tmp_path: Path) -> None:
    run_scenario(scenario(description="a <b>bold</b> test & more"), tmp_path / "run")
    text = check(write_report(tmp_path / "run"))
    assert "small · bal · seed 3" in text
    assert "a &lt;b&gt;bold&lt;/b&gt; test &amp; more" in text
    data = data_of(tmp_path / "run" / "report.html")
    assert data["places"]["shape"] == "line"
    summary = RunDirectory.open(tmp_path / "run").summary()
    assert data["steps"][-1]["held"][1] == pytest.approx(100 * summary["coverage_90"], abs=0.01)
    assert f"R² = {summary['explained']:.2f}" in text


def test_a_node_s_run_without_truth(tmp_path: Path) -> None:
    text = check(write_report(node_run(tmp_path / "run")))
    assert "RMSPE, against" not in text
    assert "readings of the journal that could not be used: 1" in text
    assert data_of(tmp_path / "run" / "report.html")["maps"]["truth"] is None


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


def test_a_configuration_without_a_map(tmp_path: Path) -> None:
    config = {k: v for k, v in mapping().items() if k != "map"}
    RunDirectory.create(tmp_path / "run", config).close()
    with pytest.raises(RunError, match="expected a section 'map'"):
        write_report(tmp_path / "run")


def test_a_page_too_large_is_thinned_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_scenario(scenario(GRID, map={"columns": 12, "rows": 12}), tmp_path / "run")
    whole = len(write_report(tmp_path / "run").read_bytes())
    monkeypatch.setattr(page_module, "MOST_BYTES", whole - 500)
    text = check(write_report(tmp_path / "run"))
    assert len(text.encode()) < whole
    assert "of the 7 steps have maps of their own" in text
