"""What a field varies by about a place of a map with heights: across, and up."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gp_active_sensing.belief import belief_on
from gp_active_sensing.belief.belief import Belief
from gp_active_sensing.belief.config import BeliefConfig
from gp_active_sensing.config import from_mapping
from gp_active_sensing.topology import Topology, make_grid
from gp_active_sensing.topology.generated import FreeTopology
from gp_active_sensing.types import FloatArray
from tests.cases import for_each

CLOSE = make_grid(7, 7, 5.0, heights=[-0.5 * k for k in range(7)])
"""Places so close that a field is nearly a slope from one to the next."""
SIGNAL = 2.0


def believed(topology: Topology, **given: Any) -> Belief:
    config = {"kernel": "se", "signal_std": [SIGNAL], "noise_std": [0.1], **given}
    return belief_on(from_mapping(BeliefConfig, config), topology)


def drawn(scales: FloatArray, deviations: FloatArray) -> float:
    """Return E (f(x + δ) − f(x))² of a squared-exponential field, by a hundred thousand draws."""
    rng = np.random.default_rng(5)
    offsets = deviations * rng.standard_normal((100_000, 3))
    correlation = np.exp(-0.5 * ((offsets / scales) ** 2).sum(axis=1))
    return float((2.0 * SIGNAL**2 * (1.0 - correlation)).mean())


@for_each("place", ["c3r3z3", "c0r0z0", "c6r3z6"])
@for_each("deviations", [(2.0, 1.0, 0.4), (0.0, 0.0, 0.4), (3.0, 2.0, 0.0)])
def test_it_is_that_of_drawn_positions(place: str, deviations: tuple[float, ...]) -> None:
    """Within a few per cent, of every candidate: two length-scales by three ratios of axes."""
    ratios = [0.02, 0.1, 0.5]
    belief = believed(CLOSE, length_scales=[60.0, 90.0], axis_ratio=ratios)
    x, y, z = deviations
    found = belief.varies_by(CLOSE.names.index(place), x * x + y * y, z * z)
    expected = [
        drawn(np.array(h.length_scales), np.array(deviations)) for h in belief.hyperparameters
    ]
    assert len(expected) == 6
    # Of a length-scale of 1.2 m upwards a layer of 0.5 m is no small step: it is said too small.
    assert found == pytest.approx(expected, rel=0.15)
    assert found[1:] == pytest.approx(expected[1:], rel=0.06)


def test_it_is_the_mean_of_the_steps_in_each_direction() -> None:
    """Against the covariance: four neighbours in the layer, one above and one below."""
    grid = make_grid(5, 5, 40.0, heights=[0, -3, -6])
    belief = believed(grid, length_scales=[30.0], axis_ratio=[0.1])
    place = grid.names.index("c2r2z1")
    step = [
        2.0 * SIGNAL**2 * (1.0 - np.exp(-0.5 * (d / ell) ** 2)) for d, ell in ((40, 30), (3, 3))
    ]
    assert belief.varies_by(place, 7.0) == pytest.approx([7.0 * step[0] / 1600.0], rel=1e-9)
    assert belief.varies_by(place, 0.0, 0.5) == pytest.approx([0.5 * step[1] / 9.0], rel=1e-9)
    both = belief.varies_by(place, 7.0, 0.5)
    assert both == pytest.approx([7.0 * step[0] / 1600.0 + 0.5 * step[1] / 9.0], rel=1e-9)


def test_where_no_place_lies_above_another_the_length_scales_tell_it() -> None:
    """A bottom with a gentle slope: all steps are across."""
    rng = np.random.default_rng(1)
    points = rng.uniform(0.0, 200.0, (60, 2))
    heights = -5.0 + 0.02 * points[:, 0] + rng.uniform(-0.3, 0.3, 60)
    bottom = FreeTopology("bottom", "map", [f"s{i}" for i in range(60)], points, heights=heights)
    belief = believed(bottom, length_scales=[300.0], axis_ratio=[0.05, 0.2])
    for place in range(0, 60, 7):
        for deviations in ((5.0, 5.0, 0.0), (0.0, 0.0, 1.0)):
            x, y, z = deviations
            found = belief.varies_by(place, x * x + y * y, z * z)
            expected = [
                drawn(np.array(h.length_scales), np.array(deviations))
                for h in belief.hyperparameters
            ]
            assert found == pytest.approx(expected, rel=0.1)


def test_one_average_beside_its_point_has_both_parts() -> None:
    """The belief's variance of a stay is its own, and what the field varies by across and up."""
    grid = make_grid(4, 4, 20.0, heights=[0.0, -2.0])
    belief = believed(grid, length_scales=[25.0], axis_ratio=[0.1], mean_std=0.0)
    belief.observe(5, 1.0, 0.04, off=(3.0, 0.5))
    noise = 0.04 + belief.varies_by(5, 9.0, 0.25)
    kept = SIGNAL**2 * noise / (SIGNAL**2 + noise)
    assert belief.predict()[1][5] == pytest.approx(float(kept[0]), rel=1e-6)
    belief.amend(5, (1.0, 0.04, 0.0, (3.0, 0.5)), 1.0, 0.04, off=3.0)
    noise = 0.04 + belief.varies_by(5, 9.0)
    kept = SIGNAL**2 * noise / (SIGNAL**2 + noise)
    assert belief.predict()[1][5] == pytest.approx(float(kept[0]), rel=1e-6)
