from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("tornado", reason="the extra [web] is not installed")

from gp_active_sensing.records import events as of
from gp_active_sensing.records.event_lines import to_line
from gp_active_sensing.records.run_directory import RunDirectory
from gp_active_sensing.types import Reading
from gp_active_sensing.web.server import WatchServer
from tests.browser import Browser, Page
from tests.unit.report.runs import HOSTILE, bag_run, decided, node_run, plan, record
from tests.unit.sim.scenarios import GRID, mapping
from tests.unit.web.serving import Commands, serving
from tests.waiting import LIMIT

READY = "document.documentElement?.dataset.ready === 'yes'"
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"

Open = Callable[..., Page]


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
    names = "[...document.querySelectorAll('#buttons button:enabled')].map((b) => b.dataset.do)"
    return list(page.evaluate(names))


def test_a_mission_under_way(watch: Open, tmp_path: Path) -> None:
    what, run = tmp_path / "small.yaml", tmp_path / "run"
    what.write_text(json.dumps(mapping(GRID)))
    with serving(run) as server:
        page = watch(server)
        assert text(page, "heading") == "No mission yet"
        assert str(run) in text(page, "reason")
        command = [sys.executable, "-m", "gp_active_sensing.cli", "run", str(what)]
        with subprocess.Popen([*command, "--out", str(run)], stdout=subprocess.DEVNULL) as process:
            until_text(page, "state", "stage")
            until_text(page, "heading", "grid · bal")
            assert process.wait(LIMIT) == 0
        until_text(page, "state", "Finished, stage 6")
        assert text(page, "where") == "stage 6 of 6"
        assert page.evaluate("document.querySelectorAll('.meter[data-level=bad]').length") == 0
        assert page.evaluate("document.querySelectorAll('canvas.map').length") == 3
        assert page.evaluate("document.querySelectorAll('#charts figure').length") > 4
        assert page.evaluate("document.documentElement.dataset.link") == "over"
        assert page.evaluate("document.getElementById('buttons').hidden")
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
        more.append_event(to_line(of.StateChanged(stamp_ns=1, state="running", reason="")))
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
        assert page.evaluate("document.cookie") == "", "other ports would be sent it"
        page.until("document.querySelector('[data-do=pause]').disabled === false", LIMIT)
        assert enabled(page) == ["pause", "finish"]
        press(page, "pause")
        until_text(page, "said", "pause: pause done")
        with RunDirectory.open(run) as more:
            more.append_event(to_line(of.StateChanged(stamp_ns=2, state="paused", reason="asked")))
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
            more.append_event(to_line(of.MissionEnded(reason="asked", stamp_ns=3)))
        for viewer in (looking, page):
            until_text(viewer, "state", "Finished")
        assert enabled(page) == []
        (complaint,) = page.complaints
        assert "status of 409" in complaint


def test_a_base_map_asks_its_server_only(browser: Browser, tmp_path: Path) -> None:
    run = node_run(tmp_path / "run", map={**GRID["map"], "datum": [48.0, 8.4]})
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        tiles = f"http://127.0.0.1:{nobody.getsockname()[1]}/"
        with serving(run, tiles=tiles + "{z}/{x}/{y}.png") as server:
            page = browser.page()
            page.call("Page.navigate", url=server.address)
            page.until(READY, LIMIT)
            until_text(page, "where", "stage 2")
            page.until("document.querySelectorAll('.tiles-below img').length > 0", LIMIT)
            foreign = [url for url in page.requests if not url.startswith(server.address)]
            assert foreign
            assert all(re.fullmatch(re.escape(tiles) + r"\d+/\d+/\d+\.png", url) for url in foreign)
            refused = f"fetch('{tiles}').catch(() => 'refused')"
            assert page.evaluate(refused) == "refused"
            page.close()


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
        where = of.ProbePosition(1.0, (7, 3.0, 4.0))
        status = {HOSTILE: of.ProbeStatus(where, {HOSTILE: 3})}
        more.append_event(to_line(of.StatusNoted(probes=status, stamp_ns=2)))
        more.append_event(to_line(of.StateChanged(stamp_ns=1, state=HOSTILE, reason=HOSTILE)))
        gated = of.ReadingGated(probe=HOSTILE, reading=Reading(3, 5, 99.0), off=8.0)
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
        markup = "[...document.querySelectorAll('img')].map((i) => i.parentElement.outerHTML)"
        assert page.evaluate(markup) == []
        assert page.evaluate("window.bad === undefined")
        assert page.evaluate(OVERFLOW) <= 0
        assert page.complaints == []


def test_the_strip_comes_first_on_desk_and_phone(watch: Open, tmp_path: Path) -> None:
    run = node_run(tmp_path / "run", budget={"readings": 8, "metres": 100.0, "seconds": None})
    with RunDirectory.open(run) as more:
        more.append_event(to_line(of.StateChanged(stamp_ns=1, state="running", reason="")))
        status = {"": of.ProbeStatus(of.ProbePosition(92.0, (7, 3.0, 4.0)), {})}
        alarms = ("the probe is off the map, 34 m from the shore",)
        more.append_event(to_line(of.StatusNoted(probes=status, stamp_ns=8, alarms=alarms)))
    with serving(run, Commands()) as server:
        for look in ({"width": 390, "height": 844}, {"width": 390, "dark": True}, {"width": 1280}):
            page = watch(server, **look)
            until_text(page, "alarms", "34 m from the shore")
            until_text(page, "probes", "distance")
            tops = page.evaluate(
                "['alarms', 'probes', 'spent', 'field'].map((id) => "
                "document.getElementById(id).getBoundingClientRect().top)"
            )
            assert tops == sorted(tops), tops
            assert page.evaluate(OVERFLOW) <= 0
            levels = "[...document.querySelectorAll('.meter')].map((m) => m.dataset.level)"
            assert page.evaluate(levels) == ["", "bad"]
            box = page.evaluate("document.getElementById('sound').getBoundingClientRect().toJSON()")
            page.mouse(box["x"] + 9, box["y"] + 9, click=True)  # a tone needs a gesture
            until_text(page, "sound", "Sound on")
            assert page.complaints == []
        assert page.evaluate("document.querySelectorAll('.ages span').length") == 2
