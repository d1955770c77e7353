"""Places closed by limits, and the field between the places, on the pages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from gp_active_sensing.belief import BeliefConfig, belief_on
from gp_active_sensing.records.event_lines import parse_events
from gp_active_sensing.records.events import LimitsMoved
from gp_active_sensing.records.run_directory import RunDirectory
from gp_active_sensing.report.facts import RunTotals, facts_of
from gp_active_sensing.report.finer import finer_map, finer_spacing
from gp_active_sensing.report.payload import build_payload
from gp_active_sensing.report.reconstruction import replay
from gp_active_sensing.report.source import load_run
from gp_active_sensing.sim import load_scenario, run_scenario
from gp_active_sensing.topology import Topology, build_topology
from gp_active_sensing.topology.grids import make_grid, make_line
from gp_active_sensing.web.follow import RunFollower
from gp_active_sensing.web.view import FINER, LiveView
from tests.cases import for_each
from tests.unit.report.runs import unpack
from tests.unit.sim.scenarios import GRID, scenario

LIMITED: dict[str, Any] = {
    "map": {"kind": "grid", "columns": 8, "rows": 6, "spacing": 10.0},
    "limits": {"at_least": 32.0},
    "probe": {"start": 20},
}


def test_the_finer_map_is_what_the_belief_says_between_the_places() -> None:
    lake = make_grid(12, 8, 5.0, outline=[(-2, 0), (50, -2), (57, 30), (8, 37)])
    belief = belief_on(BeliefConfig(), lake)
    assert finer_map(lake, belief) is None
    for place in range(0, lake.n, 3):
        belief.observe(place, float(np.sin(lake.positions[place, 0] / 20.0)))
    found = finer_map(lake, belief)
    assert found is not None
    pairs = unpack(found["cells"])
    cells = (65536 * pairs[:, 0] + pairs[:, 1]).astype(int)
    row, column = np.divmod(cells, found["columns"])
    points = np.array(found["low"]) + found["side"] * np.column_stack([column, row])
    mean, variance = belief.predict_at(points)
    np.testing.assert_allclose(unpack(found["mean"])[:, 0], mean, atol=1e-3)
    np.testing.assert_allclose(unpack(found["std"])[:, 0], np.sqrt(variance), atol=1e-3)
    assert 2 * lake.n < len(points) < 8000


@for_each(
    "world", [make_line(12, 1.0), make_grid(90, 90, 1.0), build_topology(load_scenario("town").map)]
)
def test_maps_without_a_finer_one(world: Topology) -> None:
    assert finer_spacing(world) is None


def test_with_many_readings_the_finer_map_has_fewer_points() -> None:
    few, many = (finer_spacing(make_grid(20, 20, 5.0), read) for read in (10, 1500))
    assert few is not None
    assert many is not None
    assert few < many


def test_limits_are_counted_alike_everywhere(tmp_path: Path) -> None:
    summary = run_scenario(scenario(GRID, **LIMITED), tmp_path / "run")
    data = load_run(tmp_path / "run")
    events = tuple(parse_events(RunDirectory.open(tmp_path / "run").events()))
    closed: set[int] = set()
    for event in events:
        if isinstance(event, LimitsMoved):
            closed = closed.union(event.closed).difference(event.opened)
    steps = build_payload(data, replay(data))["steps"]
    drawn: set[int] = set()
    for step in steps:
        drawn = drawn.union(step.get("closed", ())).difference(step.get("opened", ()))
    assert drawn == closed
    assert sum("closed" in step or "opened" in step for step in steps) > 1
    limits = summary.limits
    assert limits["closed"] == len(closed) == limits["times_closed"] - limits["times_opened"]
    assert limits["open"] + limits["closed"] == 48
    values = [r["value"] for r in data.records]
    assert limits["read_beyond"] >= sum(value < 31.0 for value in values)
    said = dict(facts_of(data, RunTotals.of(events)))["limits"]
    assert said.startswith(f"{limits['open']} of 48 places open")


def test_a_live_page_gets_a_finer_map_when_it_asks(tmp_path: Path) -> None:
    run_scenario(scenario(GRID), tmp_path / "run")
    follower = RunFollower(tmp_path / "run")
    view = LiveView(follower)
    assert view.table(FINER) == ""
    while follower.advance(60.0):
        parts = view.parts()
    assert '"finer":true' in parts["run"]
    assert view.table(FINER) == view.table(FINER)
    assert '"n":6' in view.table(FINER)
