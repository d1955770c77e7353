from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad

from gp_active_sensing.errors import ConfigError
from gp_active_sensing.sim import FieldConfig, build_truth
from gp_active_sensing.sim.fields.plume import MOST_PUFFS, PlumeConfig, PlumeField
from gp_active_sensing.topology import make_grid

TURNING: dict[str, Any] = {
    "source": (20.0, -10.0),
    "source_velocity": (0.05, 0.02),
    "rate": 3.0,
    "flow_speed": 0.4,
    "flow_direction": 30.0,
    "swing": 20.0,
    "swing_period": 900.0,
    "size": 12.0,
    "diffusivity": 0.5,
    "lifetime": 400.0,
}
PLACES = np.array([[20.0, -10.0], [60.0, 10.0], [120.0, 60.0], [0.0, 0.0], [100.0, 0.0]])


def by_integration(c: PlumeConfig, x: np.ndarray, t: float) -> float:
    """The formula of the module, by an adaptive rule for each place."""

    def flow(time: float) -> tuple[float, float]:
        angle = c.flow_direction + c.swing * math.sin(2 * math.pi * time / c.swing_period)
        return (
            c.flow_speed * math.cos(math.radians(angle)),
            c.flow_speed * math.sin(math.radians(angle)),
        )

    def carried(i: int, age: float) -> float:
        return float(quad(lambda u: flow(u)[i], t - age, t, limit=200)[0])

    def puff(age: float) -> float:
        at = [c.source[i] + c.source_velocity[i] * (t - age) + carried(i, age) for i in (0, 1)]
        square = c.size**2 + 2 * c.diffusivity * age
        apart = (x[0] - at[0]) ** 2 + (x[1] - at[1]) ** 2
        weight = c.rate * math.exp(-age / c.lifetime) / (2 * math.pi * square)
        return weight * math.exp(-0.5 * apart / square)

    cuts = np.linspace(0.0, 20 * c.lifetime, 41)
    return sum(quad(puff, a, b, epsabs=1e-12, epsrel=1e-7)[0] for a, b in pairwise(cuts))


def test_it_is_the_integral_over_all_puffs() -> None:
    config = PlumeConfig(**TURNING)
    for t in (0.0, 700.0):
        found = PlumeField(config, PLACES[:2]).at(t)
        expected = [by_integration(config, place, t) for place in PLACES[:2]]
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-9)


def test_what_is_given_off_and_not_decayed_is_there() -> None:
    """The concentration over the whole plane holds ``rate · lifetime``."""
    config = PlumeConfig(rate=2.0, flow_speed=0.02, size=20.0, lifetime=300.0)
    cells = make_grid(70, 60, 10.0, origin=(-250.0, -300.0))
    mass = 100.0 * PlumeField(config, cells.positions).at(0.0).sum()
    assert mass == pytest.approx(2.0 * 300.0, rel=2e-3)


def test_it_lies_downstream_and_follows_source_and_flow() -> None:
    steady = PlumeConfig(flow_direction=90.0, lifetime=600.0)
    still = PlumeField(steady, np.array([[0.0, 100.0], [0.0, -100.0], [100.0, 0.0]]))
    assert not still.changes
    north, south, east = still.at(0.0)
    assert north > 100 * max(south, east)
    np.testing.assert_array_equal(still.at(0.0), still.at(1e5))
    grid = make_grid(41, 41, 10.0, origin=(-200.0, -200.0))
    moving = PlumeConfig(source=(-100.0, 0.0), source_velocity=(0.2, 0.0), flow_speed=0.0)
    for seconds in (0.0, 500.0, 1000.0):
        values = PlumeField(moving, grid.positions).at(seconds)
        x, y = grid.positions[int(values.argmax())]
        # The most is a little behind a source that moves.
        assert -100.0 + 0.2 * seconds - 20.0 <= x <= -100.0 + 0.2 * seconds
        assert y == 0.0


def test_as_a_field_it_is_scaled_and_named() -> None:
    grid = make_grid(5, 4, 20.0)
    config = FieldConfig(kind="plume", plume=PlumeConfig(**TURNING), scale=2.0, offset=3.0)
    truth = build_truth(config, grid, 0)
    assert truth.changes
    expected = 3.0 + 2.0 * PlumeField(PlumeConfig(**TURNING), grid.positions).at(100.0)
    np.testing.assert_allclose(truth.at(100.0), expected)
    with pytest.raises(ConfigError, match="plume: is for a field of kind plume"):
        FieldConfig(kind="gp", length_scale=1.0, plume=PlumeConfig(**TURNING))


def test_more_puffs_than_can_be_added_up_are_refused() -> None:
    with pytest.raises(ConfigError, match=rf"size: 0.001 m is so small .*{MOST_PUFFS} are the"):
        PlumeConfig(size=0.001)
