"""What only rounding tells apart is a tie, and the first of a tie wins."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gp_active_sensing.util.ties import NAT, by_size, first_best, ties

UP = np.nextafter(1.0, 2.0)


def test_the_last_digit_does_not_decide() -> None:
    assert first_best(np.array([0.5, 1.0, UP])) == 1
    assert first_best(np.array([0.5, UP, 1.0])) == 1
    assert by_size(np.array([0.5, 1.0, UP, 2.0])).tolist() == [3, 1, 2, 0]


def test_a_difference_that_counts_decides() -> None:
    assert first_best(np.array([0.5, 1.0, 1.0 + 1e-8])) == 2
    assert by_size(np.array([0.5, 1.0, 1.0 + 1e-8])).tolist() == [2, 1, 0]
    # However small all of them are: the expected improvement of a search that is nearly over.
    assert first_best(np.array([1e-30, 3e-30, 2e-30])) == 1
    assert by_size(np.array([1e-30, 3e-30, 2e-30])).tolist() == [1, 2, 0]


def test_about_zero_the_floor_says_what_is_rounding() -> None:
    values = np.array([-1e-16, 1e-16, -2.0])
    assert first_best(values) == 1
    assert first_best(values, floor=NAT) == 0


def test_infinite_values() -> None:
    assert first_best(np.array([-np.inf, 1.0, -np.inf])) == 1
    assert first_best(np.array([-np.inf, -np.inf])) == 0
    assert first_best(np.array([1.0, np.inf, np.inf])) == 1
    assert by_size(np.array([-np.inf, 1.0, UP, np.inf])).tolist() == [3, 1, 2, 0]
    assert by_size(np.zeros(3)).tolist() == [0, 1, 2]


def test_each_row_by_itself() -> None:
    values = np.array([[[1.0, UP], [1.0, 2.0]], [[0.0, 0.0], [-1.0, -UP]]])
    assert first_best(values).tolist() == [[0, 1], [0, 0]]
    assert ties(values)[0].tolist() == [[True, True], [False, True]]


@pytest.mark.parametrize("size", [1.0, 1e-9, 1e12])
@given(seed=st.integers(0, 10**6))
def test_what_a_processor_does_to_the_last_digits_changes_nothing(size: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = size * np.repeat(rng.standard_normal(6), 3)[rng.permutation(18)]
    other = values * (1.0 + 4e-16 * rng.integers(-3, 4, size=18))
    assert first_best(values) == first_best(other) == np.argmax(values)
    assert by_size(values).tolist() == by_size(other).tolist()
