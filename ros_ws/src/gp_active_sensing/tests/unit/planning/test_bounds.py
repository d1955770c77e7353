"""Chain-rule bounds of `bal` and the bound of `ie`: no set of places has more information."""

from __future__ import annotations

import itertools

import numpy as np

from gp_active_sensing.planning.bal.bounds import (
    _thinned,
    initial_bounds,
)
from gp_active_sensing.planning.ie import _most
from tests.cases import for_each

NOISE = np.array([0.3, 0.05])


def covariance(kind: str, n: int = 6) -> np.ndarray:
    """(2, n, n): of places that tell nothing of each other, or of some that do."""
    if kind == "independent":
        return np.array([np.diag(np.linspace(1.0, 2.0, n)), np.diag(np.linspace(3.0, 1.0, n))])
    if kind == "one large":  # of which more is left when it was read than the others have
        return np.array([np.diag([9.0, 0.1, 0.1, 0.2, 0.05, 0.1]), np.diag([8.0] + 5 * [0.01])])
    x = np.random.default_rng(4).uniform(0.0, 6.0, n)
    apart = np.abs(x[:, None] - x)
    return np.array([2.0 * np.exp(-0.5 * (apart / ell) ** 2) for ell in (0.3, 2.0)])


def information(C: np.ndarray, places: tuple[int, ...]) -> np.ndarray:
    block = C[np.ix_(range(2), places, places)]
    return 0.5 * np.linalg.slogdet(np.eye(len(places)) + block / NOISE[:, None, None])[1]


def table(C: np.ndarray, k: int, first: tuple[int, ...] = ()) -> np.ndarray:
    """(sets, 2) information of every set of k places after `first`."""
    rest = [x for x in range(C.shape[1]) if x not in first]
    sets = itertools.combinations(rest, k)
    return np.array([information(C, (*first, *s)) - information(C, first) for s in sets])


@for_each("kind", ["independent", "correlated"])
@for_each("k", [1, 2, 3, 4])
@for_each("steps", [0, 1, 3])
def test_nor_than_the_bound_of_implicit_exploration(kind: str, k: int, steps: int) -> None:
    C = covariance(kind)
    best = _most(C, NOISE, k, min(steps, k), lambda: None)
    most = table(C, k).max(axis=0)
    assert (best >= most - 1e-9).all()
    if kind == "independent":
        np.testing.assert_allclose(best, most, rtol=1e-9)


def test_of_many_sets_the_best_under_each_candidate_are_kept() -> None:
    fixed = np.random.default_rng(0).uniform(size=(500, 5))
    fixed[:5] = -9.0  # bad on average, and together
    fixed[np.arange(5), np.arange(5)] = 1.5
    kept = _thinned(fixed)
    assert len(kept) < 50
    np.testing.assert_array_equal(kept.max(axis=0), fixed.max(axis=0))


def test_rounding_does_not_put_bounds_out_of_order() -> None:
    fixed = np.array([[[0.7, 0.3]]])
    lower, upper = initial_bounds(fixed, fixed[:, 0] - 1e-16, np.array([[[1.0, 0.0]]]))
    assert lower.item() <= upper.item()
