from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from gp_active_sensing.cli import cli
from gp_active_sensing.errors import RunError
from gp_active_sensing.records.event_lines import parse_events
from gp_active_sensing.report import write_report
from gp_active_sensing.report.payload import build_payload
from gp_active_sensing.report.reconstruction import GrowingReconstruction, map_of_run, replay
from gp_active_sensing.report.source import load_run
from gp_active_sensing.web.follow import RunFollower
from gp_active_sensing.web.view import FINER, LiveView
from tests.browser import Open
from tests.journals import events_of
from tests.unit.mission.missions import Drive
from tests.unit.mission.test_quantities import SONDE
from tests.unit.report.runs import unpack


@pytest.fixture(scope="module")
def sonde(tmp_path_factory: pytest.TempPathFactory) -> Path:
    drive = Drive(tmp_path_factory.mktemp("sonde") / "run", **SONDE).start()
    drive.run()
    drive.built.recorder.conclude(drive.built.mission)
    run = drive.built.recorder.run
    assert run is not None
    return run.path


def test_each_quantity_has_the_map_of_its_own_readings(sonde: Path) -> None:
    data = load_run(sonde)
    assert data.quantities == ("heat", "ph", "depth")
    lines = events_of(sonde)
    whole = map_of_run(sonde)
    for name in ("ph", "depth"):
        field = map_of_run(sonde, quantity=name)
        used = [line for line in lines if line.get("quantity") == name]
        assert field.readings.sum() == sum(line["event"] == "reading" for line in used) > 0
        np.testing.assert_array_equal(whole.further[name].mean, field.mean)
        assert data.for_quantity(name).linked_to is data
        assert data.for_quantity(name).for_quantity("") is data
        done = replay(data.for_quantity(name))
        np.testing.assert_allclose(done.mean[-1], field.mean, atol=1e-9)
        assert done.steps[-1].promised == pytest.approx(
            data.summary["quantities"][name]["promised_error"], rel=0.2
        )
        assert [step.plan for step in done.steps] == [step.plan for step in replay(data).steps]
    assert np.abs(whole.mean - whole.further["ph"].mean).max() > 0.1
    with pytest.raises(RunError):
        map_of_run(sonde, quantity="oxygen")


def test_a_live_map_follows_the_readings_of_the_linked_quantity(sonde: Path) -> None:
    data = load_run(sonde).for_quantity("depth")
    growing, links = GrowingReconstruction(data), 0
    for event in parse_events(data.events):
        before = growing.belief.covariance
        growing.add([event])
        links += growing.belief.covariance is not before
        assert growing.now().mean[-1] == pytest.approx(growing.belief.predict()[0])
    assert links


def test_the_command_writes_one_quantity_or_all(sonde: Path, tmp_path: Path) -> None:
    pytest.importorskip("rasterio")
    import rasterio

    def export(*options: str) -> Path:
        found = CliRunner().invoke(cli, ["export", str(sonde), *options])
        assert found.exit_code == 0, found.output
        return Path(found.output.split()[0])

    table = export("--to", "csv", "--out", str(tmp_path / "all.csv"))
    [first, *_] = csv.DictReader(table.read_text().splitlines())
    assert list(first)[-6:] == ["ph", "ph_std", "ph_read", "depth", "depth_std", "depth_read"]
    fine = ("--spacing", "5", "--above", "7", "--quantity", "ph")
    one = export("--to", "geotiff", *fine, "--out", str(tmp_path / "ph.tif"))
    with rasterio.open(one) as raster:
        assert raster.descriptions == ("mean", "std", "above_7", "readings")
        assert raster.tags()["quantity"] == "ph"
    every = export("--to", "geotiff", "--out", str(tmp_path / "all.tif"))
    with rasterio.open(every) as raster:
        assert raster.descriptions[3:6] == ("ph_mean", "ph_std", "ph_readings")
        assert raster.units[0] == "degC"


def test_the_live_page_has_the_parts_of_every_quantity(sonde: Path) -> None:
    follower = RunFollower(sonde)
    view = LiveView(follower)
    while follower.advance(60.0):
        parts = view.parts()
    data = load_run(sonde)
    for name in ("", "ph", "depth"):
        own = f"{name}/" if name else ""
        seen = data.for_quantity(name)
        wanted = json.loads(json.dumps(build_payload(seen, replay(seen))))
        last = f"map.{len(wanted['steps']) - 1}"
        mean = unpack(json.loads(parts[f"{own}{last}"])["mean"])[0]
        span = wanted["maps"]["range"]
        np.testing.assert_allclose(mean, unpack(wanted["maps"]["mean"])[-1], atol=np.ptp(span) / 50)
        assert json.loads(parts[f"{own}head"])["quantity"] == (name or "heat")
        assert json.loads(view.table(FINER, name))["n"] == wanted["steps"][-1]["n"]
    assert view.table(FINER, "oxygen") == "null"


def test_the_chooser_of_the_report_shows_another_map(show: Open, sonde: Path) -> None:
    page = show(write_report(sonde))
    assert page.evaluate("[...chooser.children].map((b) => b.textContent)") == [
        "heat", "ph", "depth"
    ]  # fmt: skip
    picture = "document.querySelectorAll('canvas.map')[0].toDataURL()"
    heat, where = page.evaluate(picture), page.evaluate("where.textContent")
    page.evaluate("chooser.children[1].click()")
    assert page.evaluate(picture) != heat
    assert page.evaluate("where.textContent") == where
    label = page.evaluate("document.querySelector('.ramp-label').textContent")
    assert re.match("ph", label)
    page.evaluate("chooser.children[0].click()")
    assert page.evaluate(picture) == heat
    assert page.complaints == []


def test_a_run_that_is_over_is_not_shown_as_if_nothing_was_planned_in_it(sonde: Path) -> None:
    follower = RunFollower(sonde, clock=lambda: 0.0)  # no time passes: a line at each look
    follower.advance(0.0)
    parts = LiveView(follower).parts()
    assert follower.loading
    assert "nothing was planned" not in parts["page.notes"]
    assert "loaded" in json.loads(parts["mission"])["reason"]
    while follower.advance(60.0):
        pass
    mission = json.loads(LiveView(follower).parts()["mission"])
    assert not follower.loading
    assert "loaded" not in mission["reason"]
    assert "error of the map of heat" in mission["known"]
