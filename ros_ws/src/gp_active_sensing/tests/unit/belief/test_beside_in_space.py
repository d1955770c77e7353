"""Variance of a field around a place of a map with heights, horizontally and vertically."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gp_active_sensing.belief import belief_on
from gp_active_sensing.belief.belief import Belief
from gp_active_sensing.belief.config import BeliefConfig
from gp_active_sensing.config import from_mapping
from gp_active_sensing.topology import Topology, make_grid
from gp_active_sensing.types import FloatArray
from tests.cases import for_each

CLOSE = make_grid(7, 7, 5.0, heights=[-0.5 * k for k in range(7)])
"""Map of places so close that a field is nearly linear between neighbours."""
SIGNAL = 2.0


def believed(topology: Topology, **given: Any) -> Belief:
    config = {"kernel": "se", "signal_std": [SIGNAL], "noise_std": [0.1], **given}
    return belief_on(from_mapping(BeliefConfig, config), topology)


def drawn(scales: FloatArray, deviations: FloatArray) -> float:
    """Return E (f(x + δ) − f(x))² of a squared-exponential field, from 100,000 draws."""
    rng = np.random.default_rng(5)
    offsets = deviations * rng.standard_normal((100_000, 3))
    correlation = np.exp(-0.5 * ((offsets / scales) ** 2).sum(axis=1))
    return float((2.0 * SIGNAL**2 * (1.0 - correlation)).mean())


@for_each("place", ["c3r3z3", "c0r0z0", "c6r3z6"])
@for_each("deviations", [(2.0, 1.0, 0.4), (0.0, 0.0, 0.4), (3.0, 2.0, 0.0)])
def test_it_is_that_of_drawn_positions(place: str, deviations: tuple[float, ...]) -> None:
    """The variances agree within a few per cent for two length-scales and three ratios of axes."""
    scales = [[ell, ell, ell * ratio] for ell in (60.0, 90.0) for ratio in (0.02, 0.1, 0.5)]
    belief = believed(CLOSE, length_scales=scales)
    x, y, z = deviations
    found = belief.varies_by(CLOSE.names.index(place), x * x + y * y, z * z)
    expected = [
        drawn(np.array(h.length_scales), np.array(deviations)) for h in belief.hyperparameters
    ]
    assert len(expected) == 6
    # Of a length-scale of 1.2 m upwards a layer of 0.5 m is no small step: it is said too small.
    assert found == pytest.approx(expected, rel=0.15)
    assert found[1:] == pytest.approx(expected[1:], rel=0.06)


def test_one_average_beside_its_point_has_both_parts() -> None:
    """The variance of a stay is its own plus the field's horizontal and vertical variance."""
    grid = make_grid(4, 4, 20.0, heights=[0.0, -2.0])
    belief = believed(grid, length_scales=[[25.0, 25.0, 2.5]], mean_std=0.0)
    belief.observe(5, 1.0, 0.04, off=(3.0, 0.5))
    noise = 0.04 + belief.varies_by(5, 9.0, 0.25)
    kept = SIGNAL**2 * noise / (SIGNAL**2 + noise)
    assert belief.predict()[1][5] == pytest.approx(float(kept[0]), rel=1e-6)
    belief.amend(5, (1.0, 0.04, 0.0, (3.0, 0.5)), 1.0, 0.04, off=3.0)
    noise = 0.04 + belief.varies_by(5, 9.0)
    kept = SIGNAL**2 * noise / (SIGNAL**2 + noise)
    assert belief.predict()[1][5] == pytest.approx(float(kept[0]), rel=1e-6)
