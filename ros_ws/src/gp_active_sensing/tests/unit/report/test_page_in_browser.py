from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest
from shapely.geometry import shape

from gp_active_sensing.report import write_report
from gp_active_sensing.report.reconstruction import map_of_run
from gp_active_sensing.sim import load_scenario, run_scenario, scenario_from_mapping
from tests.browser import OVERFLOW, TITLES, Browser, Open, Page
from tests.unit.report.runs import HOSTILE
from tests.unit.sim.scenarios import GRID, LINE, mapping, scenario
from tests.waiting import wait_until

# For each canvas: how many different colours it shows, and a sum that changes with the picture.
INK = """
[...document.querySelectorAll('canvas.map')].map((canvas) => {
  const { width, height } = canvas;
  const copy = new OffscreenCanvas(width, height).getContext('2d', { willReadFrequently: true });
  copy.drawImage(canvas, 0, 0);
  const data = copy.getImageData(0, 0, width, height).data;
  const seen = new Set();
  let sum = 0;
  for (let i = 0; i < data.length; i += 4) {
    if (data[i + 3] === 0) continue;
    seen.add((data[i] << 16) | (data[i + 1] << 8) | data[i + 2]);
    sum = (sum * 31 + data[i] + 7 * data[i + 1] + 13 * data[i + 2] + i) % 1000000007;
  }
  return [seen.size, sum];
})
"""
PATHS = "document.querySelectorAll('#charts svg path').length"


def report(path: Path, base: dict[str, Any] = GRID, **sections: Any) -> Path:
    run_scenario(scenario(base, **sections), path)
    return write_report(path)


def text(page: Page, name: str) -> str:
    return str(page.evaluate(f"document.getElementById('{name}').textContent"))


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return report(
        tmp_path_factory.mktemp("grid") / "run",
        map={"columns": 8, "rows": 6, "obstacles": [[[19, 19], [31, 31]]]},
        policy={"name": "bal", "horizon": 4, "samples": 3, "alpha": 1e-9},
        limit={"expansions": 2},
    )


def test_maps_and_charts_are_drawn(show: Open, grid: Path) -> None:
    page = show(grid)
    titles = page.evaluate(TITLES)
    assert titles[:4] == ["Truth", "Estimate", "Uncertainty", "Why this place"]
    assert len(titles) == 14
    ink = page.evaluate(INK)
    assert len(ink) == 3
    assert all(colours >= 15 for colours, _ in ink)
    assert page.evaluate(PATHS) >= 10
    assert text(page, "where") == "stage 6 of 6"
    assert text(page, "why-text").startswith("Chosen: ")
    assert "°" not in text(page, "outcome")
    # The hole of the obstacles is empty on all maps.
    assert page.evaluate(
        "[...document.querySelectorAll('canvas.map')].every((c) => {"
        " const [left, top, right, bottom] = c.dataset.box.split(',').map(Number);"
        " const [x, y] = [left + (right - left) * 2.5 / 8, top + (bottom - top) * 3.5 / 6];"
        " return c.getContext('2d').getImageData(x, y, 1, 1).data[3] === 0; })"
    )


def test_closed_places_and_the_finer_map_are_drawn(show: Open, tmp_path: Path) -> None:
    limits = {"at_least": 32.0}
    sizes = {"columns": 8, "rows": 6}
    page = show(report(tmp_path / "run", map=sizes, limits=limits, probe={"start": 20}))
    closed = int(page.evaluate("/(\\d+) places? closed/.exec(readout.textContent)[1]"))
    assert 0 < closed < 48
    picture = "document.querySelectorAll('canvas.map')[1].toDataURL()"
    places = page.evaluate(picture)
    press = "[...document.querySelectorAll('.choice')].find((b) => b.textContent === 'finer map')"
    page.evaluate(f"{press}.click()")
    assert page.evaluate(picture) != places
    page.key("ArrowLeft")
    assert page.evaluate(f"{press}.disabled"), "only of the newest stage is it known"
    assert page.complaints == []


def test_the_slider_changes_maps_numbers_and_address(show: Open, grid: Path) -> None:
    page = show(grid)
    last, words = page.evaluate(INK), text(page, "readout")
    page.evaluate(
        "const s = document.getElementById('slider'); s.value = 2; "
        "s.dispatchEvent(new Event('input'))"
    )
    now = page.evaluate(INK)
    assert [a[1] == b[1] for a, b in zip(last, now, strict=True)] == [True, False, False]
    assert text(page, "where") == "stage 2 of 6"
    assert text(page, "readout") != words
    assert "2 of" in text(page, "readout")
    assert page.evaluate("location.hash") == "#stage=2"
    page.key("ArrowLeft")
    assert text(page, "where") == "stage 1 of 6"
    page.key("Home")
    assert text(page, "where") == "stage 0 of 6"
    assert text(page, "why-text").startswith("No decision yet")
    page.key("End")
    assert page.evaluate(INK) == last
    page.evaluate("document.getElementById('back').click()")
    assert text(page, "where") == "stage 5 of 6"
    page.evaluate("location.hash = '#stage=3'")
    page.until("document.getElementById('where').textContent === 'stage 3 of 6'")
    for fragment, stage in (("#stage=4", 4), ("#stage=400", 6), ("#nonsense", 6)):
        assert text(show(grid, fragment), "where") == f"stage {stage} of 6"


def test_the_mouse_asks_a_place_and_picks_a_stage(show: Open, grid: Path) -> None:
    page = show(grid)
    where = "document.querySelectorAll('canvas.map')[1].getBoundingClientRect()"
    box = "document.querySelectorAll('canvas.map')[1].dataset.box.split(',').map(Number)"
    x, y = page.evaluate(f"[{where}.x + {box}[0] + 8, {where}.y + {box}[3] - 8]")
    page.mouse(x, y)
    box = "[...document.querySelectorAll('.tip')].filter((t) => !t.hidden).map((t) => t.innerText)"
    (shown,) = page.evaluate(box)
    name, *lines = shown.splitlines()
    assert name == "c0r0"
    assert [line.split()[0] for line in lines] == ["truth", "estimate", "read"]
    chart = "document.querySelector('#charts .plot')"
    page.evaluate(f"{chart}.scrollIntoView({{block: 'center'}})")
    left, middle, width = page.evaluate(
        f"(({{x, y, width, height}}) => [x, y + height / 2, width])"
        f"({chart}.getBoundingClientRect())"
    )
    page.mouse(left + 46 + (width - 56) / 3, middle, click=True)
    assert text(page, "where") == "stage 2 of 6"


@pytest.mark.long
def test_the_map_can_be_taken_home_from_the_page(
    browser: Browser, show: Open, grid: Path, tmp_path: Path
) -> None:
    page = show(grid, "#stage=4")
    words = "[...document.querySelectorAll('#downloads button')].map((b) => b.textContent)"
    assert page.evaluate(words) == ["CSV", "GeoJSON"]
    page.call("Page.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    for number, suffix in enumerate(("csv", "geojson")):
        page.evaluate(f"document.querySelectorAll('#downloads button')[{number}].click()")
        file = tmp_path / f"grid-stage4.{suffix}"
        wait_until(lambda file=file: browser.wait(0.02) or file.exists(), f"{file.name}")  # type: ignore[misc]
    field = map_of_run(grid.parent, 4)
    with (tmp_path / "grid-stage4.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["place"] for row in rows] == list(field.topology.names)
    for key, values, off in (("mean", field.mean, 0.01), ("std", field.std, 0.01)):
        assert [float(row[key]) for row in rows] == pytest.approx(values.tolist(), abs=off)
    assert [int(row["readings"]) for row in rows] == field.readings.tolist()
    data = json.loads((tmp_path / "grid-stage4.geojson").read_text())
    assert data["gp_active_sensing"]["crs"] == "local"
    for feature, (x, y) in zip(data["features"], field.topology.positions.tolist(), strict=True):
        cell = shape(feature["geometry"])
        assert cell.exterior.is_ccw
        assert (cell.centroid.x, cell.centroid.y) == pytest.approx((x, y), abs=0.02)


@pytest.mark.long
def test_a_phone(show: Open, grid: Path) -> None:
    page = show(grid, width=390, height=844, scale=2.0)
    assert page.evaluate(OVERFLOW) <= 0
    assert all(colours >= 15 for colours, _ in page.evaluate(INK))
    assert page.evaluate("document.querySelector('canvas.map').width") > 600, "crisp"
    page.evaluate("window.scrollTo(0, document.getElementById('charts').offsetTop)")
    top = page.evaluate("document.getElementById('slider').getBoundingClientRect().bottom")
    assert 0 < top < 120, "the slider stays in reach"
    page.look(width=844, height=390)
    page.until("document.querySelector('#charts svg').viewBox.baseVal.width !== 0")
    assert page.evaluate(OVERFLOW) <= 0


@pytest.fixture(scope="module")
def column(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("column") / "run"
    few = ("map.columns=3", "map.rows=3", "map.heights=[0, -4, -8, -12]", "budget.metres=null")
    few += ("budget.readings=8", "limit.expansions=20")
    run_scenario(load_scenario("thermocline", overrides=few), run)
    return write_report(run)


@pytest.mark.long
def test_a_map_with_heights(show: Open, column: Path) -> None:
    page = show(column, width=390, height=844, scale=2.0)
    assert page.evaluate(TITLES)[:3] == ["Truth", "Estimate", "Uncertainty"]
    assert all(colours >= 15 for colours, _ in page.evaluate(INK))
    assert re.search(r"c\dr\dz\d read [\d.]+ °C · 8 of 36 places read", text(page, "readout"))
    assert re.search(r"[\d.]+ across, [\d.]+ m up", text(page, "belief-rows"))
    last = page.evaluate(INK)
    page.key("Home")
    first = page.evaluate(INK)
    assert [a[1] == b[1] for a, b in zip(first, last, strict=True)] == [True, False, False]
    assert page.evaluate(OVERFLOW) <= 0


@pytest.mark.long
def test_a_line(show: Open, tmp_path: Path) -> None:
    page = show(report(tmp_path / "run", LINE))
    assert page.evaluate("document.querySelectorAll('canvas').length") == 0
    profile = "document.querySelector('#field svg').innerHTML"
    last = page.evaluate(profile)
    assert page.evaluate("document.querySelectorAll('#field svg circle').length") >= 6
    assert page.evaluate("document.querySelectorAll('#why-rows .track').length") >= 2
    page.key("ArrowLeft")
    assert page.evaluate(profile) != last
    assert page.evaluate("document.querySelectorAll('#why-rows .chosen').length") == 1


def test_hostile_texts_stay_texts(show: Open, tmp_path: Path) -> None:
    names = [f"{HOSTILE} {name}" for name in ("north", "south", "east")]
    rows = [f'"{name}",{10 * i},{i}' for i, name in enumerate(names)]
    (tmp_path / "farm.csv").write_text("\n".join(["name,x,y", *rows]))
    what = mapping(
        GRID,
        description=HOSTILE,
        field={"unit": HOSTILE, "quantity": HOSTILE},
        budget={"readings": 2},
        policy={"name": "ie"},
    )
    what["map"] = {"kind": "points", "file": str(tmp_path / "farm.csv")}
    run_scenario(scenario_from_mapping(what), tmp_path / "run")
    page = show(write_report(tmp_path / "run"))
    assert page.evaluate("document.querySelectorAll('img').length") == 0
    assert text(page, "readout").startswith("</script><script>")
    assert "<img src=x" in text(page, "why-text")
    assert "<img src=x" in str(page.evaluate("document.querySelector('.ramp-label').textContent"))
    x, y = page.evaluate(
        "(({x, y, width, height}) => [x + width / 2, y + height / 2])"
        "(document.querySelector('canvas.map').getBoundingClientRect())"
    )
    page.mouse(x, y)
    assert page.evaluate(OVERFLOW) <= 0
