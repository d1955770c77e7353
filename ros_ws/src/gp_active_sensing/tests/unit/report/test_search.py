"""The page of a search: regret with its bound, the highest place, the ways of several probes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gp_active_sensing.report import write_report
from gp_active_sensing.report.payload import build_payload
from gp_active_sensing.report.reconstruction import replay
from gp_active_sensing.report.source import load_run
from gp_active_sensing.sim import run_scenario
from tests.browser import Browser
from tests.unit.report.runs import data_of
from tests.unit.sim.scenarios import GRID, LINE, mapping, scenario

UCB: dict[str, Any] = {"name": "gp_ucb", "scale": 1.0}
KNOWN = {"length_scales": [20], "mean_value": 33.0, "mean_std": 0.0}


def search(path: Path, base: dict[str, Any] = GRID, **sections: Any) -> dict[str, Any]:
    built = scenario(mapping(base, belief=KNOWN, policy=UCB, budget={"readings": 8}), **sections)
    run_scenario(built, path, clock=lambda: 0.0)
    data = load_run(path)
    return build_payload(data, replay(data))


def records_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (path / "records.jsonl").read_text("utf-8").splitlines()]


def test_regret_is_that_of_the_records_with_the_bound_on_its_mean(tmp_path: Path) -> None:
    found = search(tmp_path / "run")
    records = records_of(tmp_path / "run")
    regret = found["regret"]
    assert regret["each"][0] is regret["average"][0] is regret["bound"][0] is None
    each = [record["regret"] for record in records]
    assert regret["each"][1:] == pytest.approx(each, rel=1e-4)
    running = np.cumsum(each) / np.arange(1, len(each) + 1)
    assert regret["average"][1:] == pytest.approx(running.tolist(), rel=1e-4)
    bounds = [record["regret_bound"] / t for t, record in enumerate(records, start=1)]
    assert regret["bound"][1:] == pytest.approx(bounds, rel=1e-4)
    assert found["objective"] == "maximise"
    assert found["probes"] == []


def test_of_several_probes_stages_are_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    found = search(tmp_path / "run", probes=2, policy={"name": "gp_ucb", "scale": 5.0})
    records = records_of(tmp_path / "run")
    by_number = {record["stage"]: record["regret"] for record in records}
    expected = [by_number[step["n"]] for step in found["steps"] if step["n"]]
    assert found["regret"]["each"][1:] == pytest.approx(expected, rel=1e-4)
    assert "bound" not in found["regret"]
    assert found["probes"] == ["probe_1", "probe_2"]


def test_a_mission_that_looks_for_nothing_shows_none(tmp_path: Path) -> None:
    built = scenario(GRID, budget={"readings": 3})
    run_scenario(built, tmp_path / "run")
    page = write_report(tmp_path / "run")
    found = data_of(page)
    assert found["regret"] is None
    assert found["objective"] == ""
    assert "regret" not in page.read_text("utf-8").split("<details>")[1].split("</table>")[0]


def test_tiles_and_table_say_what_was_found(tmp_path: Path) -> None:
    search(tmp_path / "run", policy={"objective": "minimise", **UCB})
    page = write_report(tmp_path / "run").read_text("utf-8")
    assert "regret, mean over the stages; bound" in page
    assert "which was found; lowest" in page
    table = page.split("<details>")[1].split("</table>")[0]
    assert ">regret</th>" in table
    assert ">probe</th>" not in table


def test_driven_is_the_way_of_all_probes(tmp_path: Path) -> None:
    search(tmp_path / "run", probes=2)
    records = records_of(tmp_path / "run")
    newest = {record["probe"]: record["driven_metres"] for record in records}
    page = write_report(tmp_path / "run").read_text("utf-8")
    assert f"<b>{sum(newest.values()):.0f} m</b><span>driven</span>" in page
    assert ">probe</th>" in page


@pytest.mark.long
@pytest.mark.parametrize("base", [GRID, LINE], ids=["grid", "line"])
@pytest.mark.parametrize("probes", [1, 2])
def test_the_page_is_drawn(
    tmp_path: Path, browser: Browser, base: dict[str, Any], probes: int
) -> None:
    search(tmp_path / "run", base, probes=probes)
    page = browser.page()
    page.open(
        write_report(tmp_path / "run"), ready="document.documentElement.dataset.ready === 'yes'"
    )
    titles = page.evaluate("[...document.querySelectorAll('h3')].map((h) => h.textContent)")
    assert any(title.startswith("Regret") for title in titles)
    legends = page.evaluate("[...document.querySelectorAll('.legend')].map((l) => l.textContent)")
    assert any("of the place found" in legend for legend in legends)
    assert any("highest" in legend for legend in legends)
    on_map = base is GRID and probes == 2
    assert any("probe_1probe_2" in legend for legend in legends) == on_map
    assert page.complaints == []
    page.close()
