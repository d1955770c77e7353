"""What a sensor's readings differ by, one from the next: a few glitches are of no consequence."""

from __future__ import annotations

import numpy as np
import pytest

from gp_active_sensing.mission.ingestion.noise_level import NoiseLevel
from gp_active_sensing.types import FloatArray


def spread_of(values: FloatArray) -> float:
    spread = NoiseLevel()
    for difference in np.diff(values).tolist():
        spread.add(difference)
    return spread.variance


@pytest.mark.parametrize("seed", range(5))
def test_it_is_the_variance_of_white_noise(seed: int) -> None:
    values = 20.0 + 0.3 * np.random.default_rng(seed).standard_normal(2001)
    assert spread_of(values) == pytest.approx(0.09, rel=0.15)


@pytest.mark.parametrize("at", [5, 100, 995])
def test_no_data_as_a_number_is_of_no_consequence(at: int) -> None:
    values = 20.0 + 0.3 * np.random.default_rng(1).standard_normal(1001)
    values[at] = -999.0
    assert spread_of(values) == pytest.approx(0.09, rel=0.2)


def test_two_readings_of_a_hundred_may_be_glitches() -> None:
    rng = np.random.default_rng(2)
    values = 20.0 + 0.3 * rng.standard_normal(1001)
    values[rng.random(1001) < 0.02] = -999.0
    assert 0.07 < spread_of(values) < 0.18  # a plain mean says 20 000


def test_a_glitch_at_the_very_start_is_over_after_two_blocks() -> None:
    values = 20.0 + 0.3 * np.random.default_rng(3).standard_normal(22)
    values[3] = -999.0
    assert spread_of(values[:6]) > 1e4
    assert spread_of(values) < 0.5


def test_readings_of_a_coarse_scale_vary_by_steps() -> None:
    values = np.round(20.5 + 0.3 * np.random.default_rng(4).standard_normal(2001))
    assert spread_of(values) == pytest.approx(0.25, rel=0.3)  # one of two values each time


def test_a_sensor_that_becomes_noisier_is_found_so() -> None:
    rng = np.random.default_rng(5)
    quiet, noisy = 0.1 * rng.standard_normal(5000), 0.5 * rng.standard_normal(1100)
    assert spread_of(np.append(quiet, noisy)) == pytest.approx(0.25, rel=0.2)


def test_nothing_is_known_of_one_reading() -> None:
    assert NoiseLevel().variance == 0.0
