"""The report page of a long run: its size, the time to write it, the time to open it."""

from __future__ import annotations

import importlib.util
import sys
import tempfile
from pathlib import Path
from types import ModuleType

import numpy as np
from common import Section, median_seconds

from gp_active_sensing.report import write_report
from gp_active_sensing.sim import load_scenario, run_scenario

READINGS = 240
EXPANSIONS = 200
OPENINGS = 5
READY = "document.documentElement.dataset.ready === 'yes'"


def run() -> Section:
    section = Section(
        "The report page",
        "python benchmarks/run.py report",
        f"`sim/town.yaml`, {READINGS} readings, {EXPANSIONS} expansions a decision. Opening is "
        "from the start of the navigation to all maps and charts drawn, in headless Chromium, "
        f"median (and largest) of {OPENINGS}; a step is a move of the slider.",
        ("places", "stages", "page MB", "write s", "open s", "step ms"),
    )
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        out = Path(folder) / "run"
        limits = [f"limit.expansions={EXPANSIONS}", "limit.seconds=null"]
        scenario = load_scenario("town", overrides=[f"budget.readings={READINGS}", *limits])
        summary = run_scenario(scenario, out)
        seconds = median_seconds(lambda: write_report(out), 3)
        page = out / "report.html"
        opened, step = _open(page, Path(folder) / "profile")
        row = (summary.places, summary.stages, page.stat().st_size / 1e6, seconds, opened, step)
        section.rows.append(row)
    return section


def _open(page: Path, profile: Path) -> tuple[str, object]:
    """Seconds until the page is ready, milliseconds a step; without a browser, that."""
    browser = _browser_module()
    if browser.find_browser() is None:
        return "no browser found", "–"
    times = []
    with browser.Browser(profile) as chromium:
        for _ in range(OPENINGS + 1):
            shown = chromium.page()
            times.append(shown.open(page, ready=READY))
            step = shown.evaluate(
                "(() => { const back = document.getElementById('back'), t = performance.now();"
                " for (let i = 0; i < 100; i += 1) back.click();"
                " return (performance.now() - t) / 100; })()"
            )
            shown.close()
    times = times[1:]  # the first one warms the browser up
    return f"{np.median(times):.2f} ({max(times):.2f})", float(step)


def _browser_module() -> ModuleType:
    path = Path(__file__).parents[1] / "tests" / "browser.py"
    spec = importlib.util.spec_from_file_location("browser", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["browser"] = module
    spec.loader.exec_module(module)
    return module
