"""A column of water in three dimensions, mapped from end to end without ROS."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from gp_active_sensing.sim import load_scenario, run_scenario
from gp_active_sensing.sim.probe import SimulatedProbe
from gp_active_sensing.topology import make_grid
from gp_active_sensing.topology.geometry import Speeds

SMALL = ("map.columns=3", "map.rows=3", "map.heights=[0, -4, -8, -12]")
FEW = ("budget.metres=null", "budget.readings=12", "limit.expansions=20")


def test_a_mission_through_the_thermocline(tmp_path: Path) -> None:
    for policy in ("tour", "bal"):
        scenario = load_scenario("thermocline", overrides=(*SMALL, *FEW), policy=policy)
        done = run_scenario(scenario, tmp_path / policy)
        assert (done.status, done.observed) == ("finished", 12)
        lines = (tmp_path / policy / "records.jsonl").read_text("utf-8").splitlines()
        records = [json.loads(line) for line in lines]
        assert len({record["position"][2] for record in records}) > 1
        assert records[-1]["rmspe"] < 6.0  # of water between 8 and 22 degrees
        assert max(len(scale) for scale in records[0]["length_scales"]) == 3


def test_a_probe_drives_up_and_down() -> None:
    grid = make_grid(2, 1, 4.0, heights=[0, -3], speed=Speeds(1.0, 0.5), moves="free")
    probe = SimulatedProbe(grid, 0)
    assert probe.pose == (0.0, 0.0, 0.0, 0.0)
    route = grid.route(0, 3, np.zeros(grid.n, dtype=np.bool_))
    assert route.cost == (5.0, 6.0)  # 5 m, of which 3 m down at 0.5 m/s
    probe.drive(route)
    probe.advance(3.0)
    x, y, _, z = probe.pose
    assert (x, y, z) == pytest.approx((2.0, 0.0, -1.5))
    assert probe.advance(3.0) == (3,)
    assert probe.pose == (4.0, 0.0, 0.0, -3.0)
    probe.drive(grid.route(3, 2, np.zeros(grid.n, dtype=np.bool_)))
    assert math.isclose(probe.seconds_to_next, 4.0)
