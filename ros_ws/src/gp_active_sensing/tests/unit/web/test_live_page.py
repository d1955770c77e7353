"""The live page in a real browser."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("tornado", reason="the extra [web] is not installed")

from gp_active_sensing.records.event_lines import to_line
from gp_active_sensing.records.events import (
    MissionEnded,
    ProbeStatus,
    ReadingGated,
    StateChanged,
    StatusNoted,
    Whereabouts,
)
from gp_active_sensing.records.run_directory import RunDirectory
from gp_active_sensing.types import Reading
from gp_active_sensing.web.server import WatchServer
from tests.browser import Browser, Page
from tests.unit.mission.grids import LARGER, LARGEST, drive_on, steps, take
from tests.unit.report.runs import HOSTILE, bag_run, decided, node_run, plan, record, used
from tests.unit.report.test_mission_without_truth import mission
from tests.unit.sim.scenarios import GRID, mapping
from tests.unit.web.serving import Commands, serving
from tests.waiting import LIMIT

READY = "document.documentElement?.dataset.ready === 'yes'"
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"

Open = Callable[..., Page]


@pytest.fixture(autouse=True)
def _tokens_of_the_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def watch(browser: Browser) -> Iterator[Open]:
    """Open the page of a server; in the end it must have asked nobody else for anything."""
    opened: list[tuple[Page, str]] = []

    def watch(server: WatchServer, *, entry: bool = False, **looks: Any) -> Page:
        page = browser.page(**looks)
        opened.append((page, server.address))
        page.call("Network.clearBrowserCookies")
        page.call("Page.navigate", url=server.entry if entry else server.address)
        page.until(READY, LIMIT)
        return page

    yield watch
    for page, address in opened:
        assert all(url.startswith(address) for url in page.requests), page.requests
        page.close()


def text(page: Page, name: str) -> str:
    return str(page.evaluate(f"document.getElementById('{name}').textContent"))


def until_text(page: Page, name: str, part: str) -> None:
    page.until(f"document.getElementById('{name}').textContent.includes({json.dumps(part)})", LIMIT)


def press(page: Page, name: str) -> None:
    page.evaluate(f"document.querySelector('[data-do={name}]').click()")


def enabled(page: Page) -> list[str]:
    found = page.evaluate(
        "[...document.querySelectorAll('#buttons button:enabled')].map((b) => b.dataset.do)"
    )
    return list(found)


def test_a_mission_under_way(watch: Open, tmp_path: Path) -> None:
    what, run = tmp_path / "small.yaml", tmp_path / "run"
    what.write_text(json.dumps(mapping(GRID)))
    with serving(run) as server:
        page = watch(server)
        assert text(page, "heading") == "No mission yet"
        assert "has no config.yaml yet" in text(page, "reason")
        command = [sys.executable, "-m", "gp_active_sensing.cli", "run", str(what)]
        with subprocess.Popen([*command, "--out", str(run)], stdout=subprocess.DEVNULL) as process:
            until_text(page, "state", "stage")
            until_text(page, "heading", "grid · bal")
            assert process.wait(LIMIT) == 0
        until_text(page, "state", "Finished, stage 6")
        assert text(page, "where") == "stage 6 of 6"
        assert "6 of 6, 0 left" in text(page, "spent")
        assert "6 used" in text(page, "counts")
        assert text(page, "known").startswith("6 of 12 places are read.")
        assert page.evaluate("document.querySelectorAll('canvas.map').length") == 3
        assert page.evaluate("document.querySelectorAll('#charts figure').length") > 4
        assert page.evaluate("document.documentElement.dataset.link") == "over"
        assert page.evaluate("document.getElementById('buttons').hidden")
        page.evaluate("document.getElementById('stages').open = true")
        page.until("document.querySelectorAll('#stages tr').length === 7", LIMIT)
        assert page.complaints == []


@pytest.mark.long
def test_who_looks_at_an_earlier_stage_is_left_there(watch: Open, tmp_path: Path) -> None:
    run = node_run(tmp_path / "run")
    with serving(run) as server:
        page = watch(server)
        until_text(page, "where", "stage 2 of 2")
        page.evaluate("document.getElementById('back').click()")
        with RunDirectory.open(run) as more:
            more.append_event(decided(3, plan(2), 2))
            more.append_event(used(Reading(3, 2, 31.0)))
            more.append_record(record(3, plan(2), 31.0))
        until_text(page, "where", "stage 1 of 3")
        page.evaluate("document.getElementById('next').click()")
        page.evaluate("document.getElementById('next').click()")
        with RunDirectory.open(run) as more:
            more.append_event(decided(4, plan(3), 3))
        until_text(page, "where", "stage 4 of 4")
        assert page.complaints == []


def test_it_says_that_the_connection_is_lost_and_comes_back(watch: Open, tmp_path: Path) -> None:
    run = node_run(tmp_path / "run")
    with serving(run) as server:
        page, port = watch(server), server.port
        until_text(page, "link", "live")
    page.until("document.documentElement.dataset.link === 'lost'", LIMIT)
    assert "connection lost" in text(page, "link")
    assert text(page, "where") == "stage 2 of 2", "what was seen stays"
    with RunDirectory.open(run) as more:
        more.append_event(decided(3, plan(2), 2))
    with serving(run, port=port):
        until_text(page, "where", "stage 3 of 3")
        until_text(page, "link", "live")


def test_two_viewers_of_whom_one_commands(watch: Open, tmp_path: Path) -> None:
    run, commands = node_run(tmp_path / "run"), Commands()
    with RunDirectory.open(run) as more:
        more.append_event(to_line(StateChanged(stamp_ns=1, state="running", reason="")))
    with serving(run, commands) as server:
        looking = watch(server)
        until_text(looking, "said", "you may look and not command")
        assert enabled(looking) == []
        answer = looking.evaluate(
            "fetch('do/finish', {method: 'POST'}).then(async (a) => [a.status, await a.text()])"
        )
        assert answer[0] == 403
        assert "you may look and not command" in answer[1]
        assert commands.asked == []
        page = watch(server, entry=True)
        assert "token" not in page.evaluate("location.href")
        went = page.call("Page.getNavigationHistory")["entries"]
        assert not any("token" in entry["url"] for entry in went), "nor where back leads to"
        page.until("document.querySelector('[data-do=pause]').disabled === false", LIMIT)
        assert enabled(page) == ["pause", "finish"]
        press(page, "pause")
        until_text(page, "said", "pause: pause done")
        with RunDirectory.open(run) as more:
            more.append_event(to_line(StateChanged(stamp_ns=2, state="paused", reason="asked")))
        for viewer in (looking, page):
            until_text(viewer, "state", "Paused, stage 2")
        page.until("document.querySelector('[data-do=resume]').disabled === false", LIMIT)
        press(page, "resume")
        until_text(page, "said", "resume was refused: the mission is running")
        press(page, "finish")
        assert commands.asked == ["pause", "resume"], "finishing is asked for twice"
        until_text(page, "buttons", "Really finish?")
        press(page, "finish")
        until_text(page, "said", "finish done")
        with RunDirectory.open(run) as more:
            more.append_event(to_line(MissionEnded(reason="asked", stamp_ns=3)))
        for viewer in (looking, page):
            until_text(viewer, "state", "Finished")
        assert enabled(page) == []
        (complaint,) = page.complaints
        assert "status of 409" in complaint


@pytest.mark.long
def test_numbers_of_any_size_stay_inside_their_figure(watch: Open, tmp_path: Path) -> None:
    """Before the first reading of a field whose mean is not known, a million of its unit."""
    belief = {**GRID["belief"], "mean_std": 1e6}
    run = node_run(tmp_path / "run", belief=belief)
    with serving(run) as server:
        page = watch(server)
        page.key("Home")
        until_text(page, "where", "stage 0")
        outside = page.evaluate(
            "[...document.querySelectorAll('.ticks span')].filter((s) => { const a ="
            " s.getBoundingClientRect(), b = s.closest('figure').getBoundingClientRect();"
            " return a.left < b.left || a.right > b.right; }).map((s) => s.textContent)"
        )
        assert outside == []
        ends = page.evaluate(
            "[[0, 1e6], [0, 2e12], [-3e7, 0]].map(([a, b]) => GPAS.ticks(a, b, 3)"
            ".map((t) => t.label))"
        )
        assert ends == [["0", "5e5", "1e6"], ["0", "1e12", "2e12"], ["−3e7", "−2e7", "−1e7", "0"]]


@pytest.mark.long
def test_how_good_the_map_is_while_the_mission_goes_on(watch: Open, tmp_path: Path) -> None:
    run = bag_run(tmp_path / "run", reading={"topic": "/oxygen", "unit": "mg/L"})
    with serving(run) as server:
        page = watch(server)
        until_text(page, "quality", "How good is it?")
        until_text(page, "quality", "Each of the 12 places that were read was predicted")
        assert page.evaluate("document.querySelectorAll('#quality figure.chart svg').length") == 2
        assert not page.evaluate("document.getElementById('mission').hidden")
        page.evaluate("document.getElementById('mission').open = true")
        until_text(page, "mission", "readings used30")
        until_text(page, "mission", "/oxygen")
        with RunDirectory.open(run) as more:
            wild = Reading(31 * 10**9, 5, 99.0)
            more.append_event(to_line(ReadingGated(reading=wild, off=8.25)))
            more.append_event(used(Reading(32 * 10**9, 5, 33.0)))
        until_text(page, "mission", "readings used31")
        until_text(page, "mission", "1; the wildest was 99, 8.2 standard deviations off")
        until_text(page, "notes", "1 reading was set aside")
        assert page.evaluate("document.getElementById('mission').open"), "it stays open"
        assert page.complaints == []


@pytest.mark.long
def test_a_table_that_was_left_open_says_that_the_connection_is_lost(
    watch: Open, tmp_path: Path
) -> None:
    run = node_run(tmp_path / "run")
    with serving(run) as server:
        page, port = watch(server), server.port
    page.until("document.documentElement.dataset.link === 'lost'", LIMIT)
    page.evaluate("document.getElementById('mission').open = true")
    until_text(page, "mission", "The connection is lost")
    with serving(run, port=port):
        until_text(page, "mission", "readings used")
        assert "The connection is lost" not in text(page, "mission")


@pytest.mark.long
def test_without_scripts_it_says_what_to_do(browser: Browser, tmp_path: Path) -> None:
    with serving(node_run(tmp_path / "run")) as server:
        page = browser.page()
        page.call("Emulation.setScriptExecutionDisabled", value=True)
        page.call("Page.navigate", url=server.address)
        page.until(
            "document.body && document.body.innerText.includes('stays empty without')", LIMIT
        )
        shown = str(page.evaluate("document.body.innerText"))
        assert "connecting" not in shown, "nothing waits that will not come"
        assert "Configuration" not in shown
        page.close()


@pytest.mark.long
def test_a_map_that_grows_under_the_page(watch: Open, tmp_path: Path) -> None:
    run = tmp_path / "run"
    drive = drive_on(run, budget={"readings": 60})
    drive.start()
    area = "(({width, height}) => [width, height])(document.querySelector('canvas.map'))"
    with serving(run) as server:
        page = watch(server)
        steps(drive, 20)
        until_text(page, "readout", "of 16 places observed")
        until_text(page, "known", "of 16 places are read")
        page.until("Number(document.getElementById('slider').max) >= 10", LIMIT)
        before = page.evaluate(area)
        page.evaluate("document.getElementById('back').click()")
        stayed = text(page, "where").split(" of ")[0]
        assert take(drive, LARGER)
        steps(drive, 20)
        until_text(page, "readout", "of 32 places observed")
        assert text(page, "where").split(" of ")[0] == stayed, "who looked back is left there"
        assert page.evaluate(area) != before, "twice as wide now"
        page.key("End")
        assert take(drive, LARGEST)
        drive.run()
        until_text(page, "state", "Finished")
        n = drive.built.mission.loop.topology.n
        assert n > 60
        until_text(page, "known", f"60 of {n} places are read")
        until_text(page, "readout", f"60 of {n} places observed")
        assert text(page, "trouble") == ""
        assert page.complaints == []


def test_hostile_names_stay_texts(watch: Open, tmp_path: Path) -> None:
    stream = {"topic": HOSTILE, "type": HOSTILE, "field": HOSTILE}
    run = bag_run(
        tmp_path / "run",
        name=HOSTILE,
        description=HOSTILE,
        reading={"unit": HOSTILE, **stream},
        pose=stream,
        policy={"name": HOSTILE},
        map={**GRID["map"], "name": HOSTILE, "frame": HOSTILE},
    )
    with RunDirectory.open(run) as more:
        where = Whereabouts(1.0, (7, 3.0, 4.0))
        status = {HOSTILE: ProbeStatus(where, {HOSTILE: 3})}
        more.append_event(to_line(StatusNoted(probes=status, stamp_ns=2)))
        more.append_event(to_line(StateChanged(stamp_ns=1, state=HOSTILE, reason=HOSTILE)))
        gated = ReadingGated(probe=HOSTILE, reading=Reading(3, 5, 99.0), off=8.0)
        more.append_event(to_line(gated))
        more.append_event(decided(1, plan(0, 1), 4))
        more.append_record({**record(1, plan(0, 1), 30.0), "name": HOSTILE, "probe": HOSTILE})
        more.write_summary(
            {
                "status": HOSTILE,
                "reason": HOSTILE,
                "set_aside": [HOSTILE],
                "rejected_by_reason": {HOSTILE: 2},
            }
        )
    with serving(run) as server:
        page = watch(server)
        until_text(page, "heading", "<img src=x")
        until_text(page, "reason", "<img src=x")
        until_text(page, "counts", "<img src=x")
        until_text(page, "quality", "<img src=x")
        for table in ("mission", "stages"):
            page.evaluate(f"document.getElementById('{table}').open = true")
            until_text(page, table, "<img src=x")
        for row in ("sensor", "poses", "map", "messages not used", "places set aside"):
            found = f"[...document.querySelectorAll('#mission tr')].some((r) => \
r.cells[0].textContent === '{row}' && r.cells[1].textContent.includes('<img src=x'))"
            assert page.evaluate(found), row
        markup = "[...document.querySelectorAll('img')].map((i) => i.parentElement.outerHTML)"
        assert page.evaluate(markup) == []
        assert page.evaluate("window.bad === undefined")
        assert page.evaluate(OVERFLOW) <= 0
        assert page.complaints == []


@pytest.mark.long
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [390, 1400])
def test_it_fits_a_phone_and_a_desk(watch: Open, tmp_path: Path, width: int, dark: bool) -> None:
    with serving(mission(tmp_path / "run"), Commands()) as server:
        page = watch(server, entry=True, width=width, height=844, dark=dark)
        until_text(page, "state", "stage 2")
        for table, said in (("mission", "2026-11-23 12:00:03.0 UTC"), ("stages", "NLPD")):
            page.evaluate(f"document.getElementById('{table}').open = true")
            until_text(page, table, said)
        assert page.evaluate(OVERFLOW) <= 0
        sizes = page.evaluate(
            "[...document.querySelectorAll('#buttons button')].map((b) => b.offsetHeight)"
        )
        assert min(sizes) >= (44 if width < 480 else 38)
        assert page.complaints == []
