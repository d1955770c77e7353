"""What starts on one field are worth, against closed forms and simulation."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"

if not BENCHMARKS.is_dir():
    pytest.skip("the benchmarks are not installed", allow_module_level=True)


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    yield importlib.import_module("effective_number")
    sys.modules.pop("effective_number", None)


def drawn(rho: float, fields: int, starts: int, seed: int) -> np.ndarray:
    """Return (fields, starts) values with variance 1 and that correlation within a field."""
    rng = np.random.default_rng(seed)
    common = np.sqrt(rho) * rng.standard_normal((fields, 1))
    return common + np.sqrt(1.0 - rho) * rng.standard_normal((fields, starts))


def test_starts_that_are_independent_count_in_full(module: Any) -> None:
    assert module.effective_number(20, 0.0) == 20.0


def test_starts_that_are_all_alike_count_once(module: Any) -> None:
    assert module.effective_number(20, 1.0) == 1.0


@pytest.mark.parametrize("rho", [0.2, 0.7])
def test_the_variance_of_a_mean_over_starts_is_that_of_so_many_fields(
    module: Any, rho: float
) -> None:
    means = drawn(rho, 40_000, 20, seed=1).mean(axis=1)
    assert 1.0 / means.var() == pytest.approx(module.effective_number(20, rho), rel=0.03)


@pytest.mark.parametrize("rho", [0.0, 0.3, 0.8])
def test_the_correlation_is_found_again(module: Any, rho: float) -> None:
    found = module.within_fields(drawn(rho, 4000, 4, seed=2))
    assert found.value == pytest.approx(rho, abs=0.03)
    assert found.low <= rho <= found.high


@pytest.mark.parametrize("rho", [0.2, 0.6])
def test_the_interval_holds_as_often_as_it_says(module: Any, rho: float) -> None:
    held = [
        one.low <= rho <= one.high
        for one in (module.within_fields(drawn(rho, 10, 4, seed)) for seed in range(1000))
    ]
    assert np.mean(held) == pytest.approx(0.95, abs=0.02)


def test_a_table_by_hand(module: Any) -> None:
    # Means 1 and 4: between = 2 * 4.5 = 9; within = (4 * 1) / 2 = 2; rho = 3.5 / (4.5 + 1).
    found = module.within_fields(np.array([[0.0, 2.0], [3.0, 5.0]]))
    assert found.value == pytest.approx(3.5 / 5.5)
    assert (found.fields, found.starts) == (2, 2)


def test_fields_that_differ_while_starts_do_not(module: Any) -> None:
    found = module.within_fields(np.array([[1.0, 1.0], [2.0, 2.0], [5.0, 5.0]]))
    assert found.value == found.low == found.high == 1.0
    assert found.worth(20) == (1.0, 1.0, 1.0)


def test_the_worth_of_starts_has_the_ends_of_the_interval(module: Any) -> None:
    found = module.Correlation(0.5, 0.2, 0.8, fields=10, starts=4)
    assert found.worth(20) == tuple(module.effective_number(20, r) for r in (0.5, 0.8, 0.2))


@pytest.mark.parametrize(
    "values", [[[1.0, 2.0]], [[1.0], [2.0]], [[1.0, np.nan], [2.0, 3.0]], [1.0, 2.0]]
)
def test_too_few_values_are_refused(module: Any, values: Any) -> None:
    with pytest.raises(ValueError, match="at least two fields with two starts"):
        module.within_fields(np.array(values))


def test_equal_values_are_refused(module: Any) -> None:
    with pytest.raises(ValueError, match="all the same"):
        module.within_fields(np.ones((3, 3)))


@pytest.mark.parametrize(("starts", "rho"), [(0, 0.5), (3, -0.1), (3, 1.1)])
def test_impossible_numbers_are_refused(module: Any, starts: int, rho: float) -> None:
    with pytest.raises(ValueError, match="at least 1 start and a correlation in 0 … 1"):
        module.effective_number(starts, rho)
