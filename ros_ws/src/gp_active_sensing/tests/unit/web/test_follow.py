from __future__ import annotations

import json
import os
import re
from pathlib import Path

import numpy as np

from gp_active_sensing.report.reconstruction import replay
from gp_active_sensing.report.source import load_run
from gp_active_sensing.sim import load_scenario, run_scenario
from gp_active_sensing.web.follow import RunFollower
from gp_active_sensing.web.view import LiveView
from tests.unit.mission.grids import LARGER, LARGEST, drive_on, take


def test_no_viewer_is_taken_back_while_a_grown_map_is_read_from_the_start(tmp_path: Path) -> None:
    """However slowly it reads, and however often the map grows."""
    run = tmp_path / "run"
    drive = drive_on(run, budget={"readings": 60})
    drive.start()
    follower = RunFollower(run, clock=lambda: 0.0)  # no time passes: a line at each look
    view = LiveView(follower)
    seen = [0]
    numbers = set()

    def look(slow: bool) -> None:
        follower.advance(0.0 if slow else 1.0)
        view.parts()
        assert follower.found is not None
        seen.append(follower.found.lines)
        numbers.add(follower.number)

    for grown in (None, LARGER, LARGEST):
        if grown is not None:
            assert take(drive, grown)
        drive.steps(20)
        for _ in range(15):
            look(slow=True)
        look(slow=False)
    assert seen == sorted(seen), "it never shows less than it has shown"
    drive.run()
    for _ in range(4):
        look(slow=False)
    assert seen == sorted(seen)
    assert len(numbers) >= 2
    assert follower.found is not None
    data = load_run(run)
    found, wanted = follower.found.growing.now(), replay(data)
    assert len(found.steps) == len(wanted.steps)
    assert follower.found.data.topology.names == data.topology.names
    np.testing.assert_allclose(found.mean, wanted.mean)
    np.testing.assert_allclose(found.std, wanted.std)


def test_a_map_that_is_missing_is_said_and_waited_for(tmp_path: Path) -> None:
    run = tmp_path / "run"
    drive = drive_on(run, budget={"readings": 40})
    drive.start()
    drive.steps(10)
    follower = RunFollower(run)
    view = LiveView(follower)
    follower.advance(60.0)
    assert follower.found is not None
    assert take(drive, LARGER)
    drive.steps(10)
    hidden = tmp_path / "elsewhere"
    for kind in ("yaml", "pgm"):
        (run / f"map-2.{kind}").rename(hidden.with_suffix(f".{kind}"))
    for _ in range(5):
        follower.advance(60.0)
        view.parts()
    assert follower.found is None
    assert "says that map 2 has 32 places, and the newest that is kept has 16" in follower.problem
    assert "put the missing files map-2.yaml and map-2.pgm there" in follower.problem
    assert not follower.advance(60.0), "it does not flicker"
    for kind in ("yaml", "pgm"):
        hidden.with_suffix(f".{kind}").rename(run / f"map-2.{kind}")
    assert follower.advance(60.0)
    assert follower.problem == ""
    assert follower.found is not None
    assert follower.found.data.topology.n == 32
    for name in ("journal.jsonl", ".lock"):
        os.utime(run / name, (0, 0))
    assert not follower.advance(60.0), "a slow mission raises no alarm"
    drive.built.recorder.close()
    assert follower.advance(60.0)
    assert "no process on this machine writes this run" in view.parts()["mission"]


def test_a_promise_from_before_the_readings_is_not_what_they_began_with(tmp_path: Path) -> None:
    """It would be 100 °C, where nothing was said of the water, and all bars nearly full."""
    budget = ("budget.readings=null", "budget.metres=2000.0", "budget.error=0.1")
    scenario = load_scenario("lake", overrides=budget, policy="lawnmower")
    run_scenario(scenario, tmp_path / "run")
    follower = RunFollower(tmp_path / "run")
    follower.advance(60.0)
    told = json.loads(LiveView(follower).parts()["mission"])
    before = re.search(r"of the map: ([\d.]+) .*at first ([\d.]+)", told["known"])
    assert before is not None
    assert float(before[1]) < float(before[2]) < 10.0
    shares = {line["what"]: line["share"] for line in told["spent"]}
    assert 0.0 < shares["error of the map"] < 0.9
