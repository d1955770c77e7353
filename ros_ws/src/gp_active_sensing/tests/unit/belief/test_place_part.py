"""What belongs to each place alone is part of the field; readings of the place remove it."""

from __future__ import annotations

import numpy as np
import pytest

from gp_active_sensing.belief import BeliefConfig, build_belief

GRID = np.stack(np.meshgrid(np.arange(8.0), np.arange(8.0)), -1).reshape(-1, 2)
KNOWN = {"length_scales": (3.0,), "signal_std": (2.0,), "noise_std": (0.5,), "mean_std": 0.0}


def believed(**more: object):
    return build_belief(BeliefConfig(**(KNOWN | more)), GRID)  # type: ignore[arg-type]


def test_it_is_uncertain_where_nothing_was_read() -> None:
    belief = believed(place_std=(1.5,))
    assert belief.predict()[1] == pytest.approx(2.0**2 + 1.5**2)
    for place in range(64):
        if place != 27:
            belief.observe(place, 0.3)
    assert belief.predict(np.array([27]))[1] > 1.5**2, "its neighbours say nothing of it"


def test_a_place_that_is_read_often_is_known_down_to_the_sensor() -> None:
    """Were its own part noise, the place could never be known better than that."""
    own, noise = believed(place_std=(1.5,)), believed(noise_std=((0.5**2 + 1.5**2) ** 0.5,))
    for belief in (own, noise):
        for _ in range(100):
            belief.observe(27, 4.0)
    mean, variance = own.predict(np.array([27]))
    assert mean == pytest.approx(4.0, abs=0.01)
    assert variance == pytest.approx(0.5**2 / 100, rel=0.01)
    assert noise.predict(np.array([27]))[1] > 5.0 * variance
    beside = np.array([28])
    assert own.predict(beside)[0] < 0.8 * own.predict(np.array([27]))[0], "a part of it is its own"
