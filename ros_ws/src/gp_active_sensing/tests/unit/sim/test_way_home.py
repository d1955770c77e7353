from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gp_active_sensing.commands.console import home_line
from gp_active_sensing.errors import ConfigError
from gp_active_sensing.records.run_directory import RunDirectory
from gp_active_sensing.report.reconstruction import replay
from gp_active_sensing.report.source import load_run
from gp_active_sensing.sim import Scenario, build_loop, build_world, run_scenario
from tests.journals import events_of
from tests.unit.sim.scenarios import GRID, scenario
from tests.unit.sim.test_resume import killed_and_resumed

CORNER = 11


def way(events: list[dict[str, Any]], start: int) -> list[int]:
    """Return every place driven, from the decisions and the way home."""
    places = [start]
    for event in events:
        if event["event"] in ("decision", "home"):
            places += event["path"]
    return places


@pytest.mark.slow
def test_it_is_back_within_the_budget(tmp_path: Path) -> None:
    cases = itertools.product(
        ("random", "ie", "bal"),
        (
            {"readings": None, "metres": 90.0},
            {"readings": None, "seconds": 40.0},
            {"readings": 5, "metres": 200.0},
            {"readings": 6, "metres": 95.0, "seconds": 44.0},
        ),
        (0.0, 25.0),
        (("start", 0), (CORNER, CORNER), ("c1r1", 5)),
    )
    # Every fifth one: each policy meets each budget, reach and end.
    for number, (policy, budget, reach, (end, place)) in list(enumerate(cases))[::5]:
        what = scenario(
            GRID,
            probe={"start": 0, "speed": 2.0, "end": end},
            map={"reach": reach},
            budget=budget,
            policy={"name": policy},
        )
        out = tmp_path / str(number)
        summary = run_scenario(what, out)
        events = events_of(out)
        assert way(events, 0)[-1] == place
        assert events[-1].items() >= {"event": "end", "reason": summary.reason}.items()
        driven = [e for e in events if e["event"] == "moved"]
        assert summary.metres == pytest.approx(sum(e["metres"] for e in driven))
        assert summary.metres <= (budget.get("metres") or np.inf) + 1e-6
        assert summary.seconds <= (budget.get("seconds") or np.inf) + 1e-6
        assert summary.observed <= (budget["readings"] or np.inf)
        assert summary.observed >= 2
        # On the way home it crosses new places, beyond the budget of readings.
        assert set(summary.rejected_by_reason) <= {"budget_spent"}
        steps = [
            abs(np.subtract(divmod(a, 4), divmod(b, 4))).sum()
            for a, b in zip(way(events, 0), way(events, 0)[1:], strict=False)
        ]
        assert max(steps) <= 1, "from cell to cell"


def homeward() -> Scenario:
    """A mission that has to drive home across places that nobody has read."""
    return scenario(
        GRID,
        probe={"start": 0, "speed": 2.0, "end": 0},
        policy={"name": "random"},
        budget={"readings": 9},
        sensor={"readings": 2, "dropout": 0.3},
        seed=5,
    )


def test_the_way_home_is_an_event_and_no_stage(tmp_path: Path) -> None:
    homes: list[str] = []
    told = lambda plan, probe: homes.append(home_line(plan, probe))  # noqa: E731
    summary = run_scenario(homeward(), tmp_path / "run", on_home=told)
    assert len(homes) == 1
    events = events_of(tmp_path / "run")
    kinds = [event["event"] for event in events]
    first = kinds.index("home")
    later = [kind for kind in kinds[first + 1 :] if kind not in ("reading", "status")]
    assert later == ["moved", "end"]
    records = RunDirectory.open(tmp_path / "run").records()
    assert summary.stages == kinds.count("decision") == len(records)
    home = events[first]
    assert home["at"] == way(events[:first], 0)[-1]
    assert home["path"][-1] == 0
    assert home["reason"] == summary.reason == "the budget of readings is spent"
    read = {event["location"] for event in events[:first] if event["event"] == "reading"}
    after = {event["location"] for event in events[first:] if event["event"] == "reading"}
    assert after
    assert after <= read, "only what costs no reading more is read"


@pytest.mark.parametrize("kills", [4, pytest.param(None, marks=pytest.mark.long)])
def test_a_run_killed_anywhere_goes_on_to_the_same_end(tmp_path: Path, kills: int | None) -> None:
    by_metres = scenario(
        GRID,
        map={"reach": 20.0},
        probe={"start": 0, "speed": 2.0, "end": "start"},
        budget={"readings": None, "metres": 90.0},
    )
    for number, what in enumerate((homeward(), by_metres)):
        out = tmp_path / f"whole{number}"
        killed_and_resumed(what, out, run_scenario(what, out).to_mapping(), kills)


def test_a_mission_that_cannot_end_does_not_begin() -> None:
    for sections, message in (
        ({"probe": {"start": 0, "end": "c9r9"}}, r"probe\.end: no place 'c9r9' on map 'grid'\."),
        ({"probe": {"start": 0, "end": 12}}, r"probe\.end: map 'grid' has places 0 … 11, got 12"),
        ({"probe": {"start": 0, "end": 11}, "budget": {"metres": 49.0}}, r"probe\.end: the way"),
        ({"probe": {"start": 0, "end": 11}, "budget": {"seconds": 24.0}}, r"probe\.end: .* takes"),
        ({"probe": {"start": None, "end": "start"}}, r"probe\.end: start is where the probe"),
    ):
        sections["probe"].setdefault("speed", 2.0)
        with pytest.raises(ConfigError, match=message):
            build_world(scenario(GRID, **sections))


def test_a_random_start_is_one_that_it_can_come_back_to() -> None:
    for seed in range(8):
        what = scenario(
            GRID, probe={"start": "random", "end": "start"}, seed=seed, budget={"metres": 20.0}
        )
        world = build_world(what)
        assert world.budget.end == world.start
        # One end for all: starts from which it is too far are passed over.
        what = scenario(
            GRID, probe={"start": "random", "end": 0}, seed=seed, budget={"metres": 40.0}
        )
        world = build_world(what)
        assert world.start is not None
        assert sum(divmod(world.start, 4)) <= 4
        assert build_loop(what, world.topology).remaining == world.budget


def test_the_report_shows_the_way_home(tmp_path: Path) -> None:
    summary = run_scenario(homeward(), tmp_path / "run")
    data = load_run(tmp_path / "run")
    last = replay(data).steps[-1]
    assert last.plan is not None
    assert last.plan.waypoint is None
    assert last.plan.path[-1] == 0
    assert last.number == summary.stages + 1
    assert last.metres == pytest.approx(summary.metres)
    assert last.seconds == pytest.approx(summary.seconds)
