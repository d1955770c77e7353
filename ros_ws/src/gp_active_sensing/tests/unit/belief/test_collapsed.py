"""Readings of a place collapsed to count, mean and scatter; places merged."""

from __future__ import annotations

import numpy as np

from gp_active_sensing.belief.collapsed import CollapsedReadings


def test_merged_places_are_those_of_one_place_with_all_their_readings() -> None:
    values = {0: [1.0, 1.5], 1: [4.0], 2: [-2.0, 0.5, 7.0]}
    apart, joined = CollapsedReadings(3), CollapsedReadings(2)
    for place, readings in values.items():
        for value in readings:
            apart.add(place, value, None)
            joined.add(min(place, 1), value, None)
    merged = apart.merged(np.array([0, 1, 2]), np.array([0, 1]))
    assert merged.count.tolist() == joined.count.tolist() == [2, 4]
    np.testing.assert_allclose(merged._plain, joined._plain)  # weight, mean, scatter
    assert merged._plain[2, 1] > 10.0, "what the places' means differ by is scatter"


def test_an_average_over_a_stay_and_a_plain_reading_count_by_their_precisions() -> None:
    both = CollapsedReadings(1)
    both.add(0, 1.0, None)
    both.add(0, 3.0, 0.25, 0.0)
    precision, mean, _, squares = both.collapse(np.array([0]), np.array([0.5]))
    expected = [2.0 + 4.0, (2.0 * 1.0 + 4.0 * 3.0) / 6.0, 2.0 * 4.0 / 6.0 * (3.0 - 1.0) ** 2]
    np.testing.assert_allclose([precision[0, 0], mean[0, 0], squares[0, 0]], expected)
