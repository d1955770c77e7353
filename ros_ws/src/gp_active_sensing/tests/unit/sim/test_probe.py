from __future__ import annotations

import math

import numpy as np
import pytest

from gp_active_sensing.sim import SimulatedProbe
from gp_active_sensing.topology import make_grid, make_line
from gp_active_sensing.topology.geometry import Speeds
from gp_active_sensing.types import Cost, Route

LINE = make_line(10, 5.0)


def test_drives_along_the_line_and_passes_each_place() -> None:
    probe = SimulatedProbe(LINE, 0, 2.0)
    probe.drive(Route((1, 2, 3), Cost(15.0, 15.0)))
    assert not probe.arrived
    assert probe.advance(1.0) == ()
    assert probe.pose == pytest.approx((2.0, 0.0, 0.0))
    assert probe.seconds_to_next == pytest.approx(1.5)
    assert probe.advance(4.0) == (1, 2)
    assert probe.at == 2
    assert probe.pose == pytest.approx((10.0, 0.0, 0.0))
    assert not probe.arrived
    assert probe.advance(100.0) == (3,)
    assert probe.arrived
    assert (probe.arrived, probe.seconds_to_next, probe.at) == (True, 0.0, 3)
    assert probe.advance(1.0) == ()


def test_a_probe_that_is_nowhere_begins_at_its_first_place() -> None:
    probe = SimulatedProbe(LINE)
    assert probe.at is None
    probe.drive(Route((7,), Cost(0.0, 0.0)))
    assert probe.advance(0.0) == (7,)
    assert probe.pose[:2] == pytest.approx(tuple(LINE.positions[7]))


def test_a_new_route_begins_where_the_old_one_was_left() -> None:
    probe = SimulatedProbe(LINE, 0, 1.0)
    probe.drive(Route((1,), Cost(5.0, 5.0)))
    probe.advance(3.0)
    probe.drive(Route((0,), Cost(5.0, 5.0)))
    assert probe.pose[0] == pytest.approx(3.0)
    assert probe.pose[2] == pytest.approx(math.pi)
    assert probe.advance(3.0 + 1e-9) == (0,)


def test_a_point_is_read_on_arriving_only() -> None:
    grid = make_grid(3, 1, 10.0)
    probe = SimulatedProbe(grid, 0, speed=1.0)
    probe.drive(grid.route(0, 1, np.zeros(3, dtype=np.bool_)))
    probe.advance(9.0)
    assert probe.may_read is None
    assert probe.seconds_to_half == pytest.approx(1.0)


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


def test_bad_speeds_and_times() -> None:
    for speed in (0, -1.0, "fast", None):
        with pytest.raises(ValueError, match="expected a number above 0"):
            SimulatedProbe(LINE, 0, speed)  # type: ignore[arg-type]
    for dt in (-1.0, math.nan):
        with pytest.raises(ValueError, match="forward in time"):
            SimulatedProbe(LINE, 0).advance(dt)
