"""Missions that end when the map is good enough: simulated, of nodes, resumed, with a way home."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gp_active_sensing.belief.aim import FEWEST, SURE, assurance, met, not_seen, parts_that_count
from gp_active_sensing.config import from_mapping
from gp_active_sensing.engine.config import BudgetConfig
from gp_active_sensing.errors import ConfigError
from gp_active_sensing.mission import changes
from gp_active_sensing.planning.base import no_plan
from gp_active_sensing.planning.request import PlanRequest
from gp_active_sensing.sim import build_world, run_scenario
from gp_active_sensing.sim.world import build_loop
from gp_active_sensing.topology import make_grid
from gp_active_sensing.types import WORST, Aim, Budget, Plan, Reading
from tests.journals import records_of
from tests.unit.mission.missions import Drive
from tests.unit.sim.scenarios import GRID, mapping, scenario

WANTED = {"readings": 12, "error": 2.0}
WHY = "the expected error of the map is"


def aimed(**sections: Any) -> Any:
    return scenario(mapping(GRID), **{"budget": WANTED, **sections})


def test_it_ends_at_the_first_reading_after_which_it_holds(tmp_path: Path) -> None:
    summary = run_scenario(aimed(), tmp_path / "run")
    assert summary.reason.startswith(WHY)
    assert summary.reason.endswith("at most 2 was asked for")
    assert 0 < summary.observed < 12
    promised = [record["promised_error"] for record in records_of(tmp_path / "run")]
    assert promised[-1] <= 2.0
    assert summary.promised_error == promised[-1]
    whole = run_scenario(aimed(budget={"readings": 12, "error": None}), tmp_path / "whole")
    assert whole.observed == 12
    same = records_of(tmp_path / "whole")[: summary.stages]
    assert [r["promised_error"] for r in same] == promised
    # One reading earlier it did not hold.
    world = build_world(aimed())
    loop = build_loop(aimed(), world.topology)
    weights = world.topology.weights
    assert loop.good_enough() == ""
    for record in same:
        assert loop.good_enough() == ""
        loop.tell([Reading(0, record["location"], record["value"])])
    assert loop.good_enough() == summary.reason
    assert assurance(loop.belief, weights, 2.0) >= SURE


def test_a_promise_alone_is_not_enough() -> None:
    given = scenario(GRID)
    loop = build_loop(given, build_world(given).topology)
    for place, value in ((0, 30.0), (5, 36.0), (11, 33.5)):
        loop.tell([Reading(0, place, value)])
    weights = loop.topology.weights
    promise = loop.belief.promise(weights)
    assert promise is not None
    assert assurance(loop.belief, weights, promise.error) < SURE
    assert met(Aim(promise.error), loop.belief, loop.topology) == ""
    assert met(Aim(1e6), loop.belief, loop.topology).startswith(WHY)
    assert met(Aim(promise.error, WORST), loop.belief, loop.topology) == ""
    assert met(Aim(1e6, WORST), loop.belief, loop.topology).startswith(
        "the expected error of its worst place is"
    )


def nothing_known() -> Any:
    """A loop on 8 × 5 places whose belief does not know the scale."""
    given = scenario(mapping(GRID, map={"columns": 8, "rows": 5}), belief=None)
    return build_loop(given, build_world(given).topology)


def test_a_few_readings_that_are_alike_are_not_enough() -> None:
    loop = nothing_known()
    parts = parts_that_count(loop.topology, FEWEST)
    for i, part in enumerate(parts):
        assert met(Aim(1e6), loop.belief, loop.topology) == ""
        loop.tell([Reading(0, int(part[0]), 30.0 + 0.01 * i)])
    assert met(Aim(1e6), loop.belief, loop.topology).startswith(WHY)


def test_all_readings_in_one_part_of_the_map_are_not_enough() -> None:
    loop = nothing_known()
    parts = parts_that_count(loop.topology, FEWEST)
    for place in np.concatenate(parts[:-1]).tolist():
        loop.tell([Reading(0, place, 30.0 + 0.01 * place)])
    assert loop.belief.readings.sum() > 3 * FEWEST
    (left,) = not_seen(loop.belief, loop.topology)
    assert np.array_equal(left, parts[-1])
    assert met(Aim(1e6), loop.belief, loop.topology) == ""
    # Not asked for where nothing can be read, as the loop says.
    loop.aim = Aim(1e6)
    assert loop.good_enough() == ""
    loop.set_aside.update(left[1:].tolist())
    assert loop.good_enough() == ""
    loop.blocked.add(int(left[0]))
    assert loop.good_enough().startswith(WHY)
    loop.blocked.clear()
    loop.tell([Reading(0, int(left[0]), 30.0)])
    assert not_seen(loop.belief, loop.topology) == []
    assert loop.good_enough().startswith(WHY)


def test_parts_of_a_map_are_of_the_places_that_count() -> None:
    topology = make_grid(9, 7, 2.0)
    parts = parts_that_count(topology, 10)
    assert sorted(np.concatenate(parts).tolist()) == list(range(63))
    assert {len(part) for part in parts} == {6, 7}
    spread = [np.ptp(topology.positions[part], axis=0).max() for part in parts]
    assert np.mean(spread) < 0.6 * np.ptp(topology.positions, axis=0).max()
    few = topology.weighted(np.where(np.arange(63) < 4, 1.0, 0.0))
    assert [part.tolist() for part in parts_that_count(few, 10)] == [[0], [1], [2], [3]]


def test_a_policy_is_told_what_is_asked_for_on_a_snapshot_too() -> None:
    asked = []

    @dataclass(frozen=True)
    class Spy:
        def plan(self, request: PlanRequest, state: Any = None) -> tuple[Plan, Any]:
            asked.append(request.aim)
            return no_plan("enough"), state

    given = scenario(GRID)
    loop = build_loop(given, build_world(given).topology)
    loop.policy = Spy()
    loop.ask(0)
    loop.aim = Aim(0.5, WORST)
    loop.ask(0)
    loop.snapshot().ask(0)
    assert asked == [None, Aim(0.5, WORST), Aim(0.5, WORST)]


def test_the_way_home_is_kept(tmp_path: Path) -> None:
    given = aimed(probe={"start": 0, "end": "start"}, budget={**WANTED, "metres": 400.0})
    summary = run_scenario(given, tmp_path / "run")
    assert summary.reason.startswith(WHY)
    events = [json.loads(x) for x in (tmp_path / "run" / "journal.jsonl").read_text().splitlines()]
    home = next(event for event in events if event["event"] == "home")
    assert home["path"][-1] == 0
    assert home["reason"] == summary.reason == events[-1]["reason"]


@pytest.mark.parametrize("probes", [2, 3])
def test_several_probes_all_end(tmp_path: Path, probes: int) -> None:
    summary = run_scenario(aimed(probes=probes), tmp_path / "run")
    assert (summary.status, summary.observed < 12) == ("finished", True)
    # The reason names each probe's end, since what is promised then differs.
    assert summary.reason.count(WHY) == probes


def nodes(run_dir: Path | None, **more: Any) -> Drive:
    return Drive(run_dir, budget={"readings": 25, "error": 0.8}, **more)


def test_a_mission_of_the_nodes() -> None:
    drive = nodes(None)
    drive.start()
    drive.run()
    mission = drive.built.mission
    assert mission.state == "ended"
    assert mission.reason.startswith(WHY)
    assert 3 < int(mission.loop.belief.observed.sum()) < 25


def test_it_may_change_while_a_mission_runs_and_is_known_after_a_restart(tmp_path: Path) -> None:
    drive = nodes(tmp_path / "run")
    drive.start()
    while len(drive.decided) < 2:
        drive.step()
    mission = drive.built.mission
    changes.set_budget(mission, Budget(readings=25), Aim(1e-3))
    assert mission.loop.aim == Aim(1e-3)
    for _ in range(20):
        drive.step()
    drive.kill()
    drive.start()
    mission = drive.built.mission
    assert mission.loop.aim == Aim(1e-3)
    changes.set_budget(mission, Budget(readings=25), None)
    assert mission.loop.aim is None
    changes.set_budget(mission, Budget(readings=25), Aim(1e6, WORST))
    drive.run()
    assert mission.reason.startswith("the expected error of its worst place is")


def test_how_it_is_given() -> None:
    assert BudgetConfig().aim() is None
    given = from_mapping(BudgetConfig, {"error": 0.5, "error_of": "worst"})
    assert given.aim() == Aim(0.5, WORST)
    for wrong, message in (
        ({"error": 0}, "error: must be more than 0"),
        ({"error": 1, "error_of": "median"}, "error_of: expected one of mean, worst"),
    ):
        with pytest.raises(ConfigError, match=message):
            from_mapping(BudgetConfig, wrong)
    again = scenario(mapping(GRID), budget=WANTED)
    assert again.budget.error == 2.0
