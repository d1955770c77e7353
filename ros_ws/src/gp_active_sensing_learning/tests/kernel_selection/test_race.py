"""Starts that are behind are dropped, half of them at a time: many starts, and the price of few."""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import Any

import numpy as np
import pytest

from gp_active_sensing.kernels.composite import Composite
from gp_active_sensing.kernels.grammar import parse
from gp_active_sensing_learning.data.dataset import Dataset
from gp_active_sensing_learning.kernel_selection import VbksConfig, select_kernels
from tests.cases import for_each

pytestmark = pytest.mark.heavy("learn")

CONFIG = VbksConfig(
    inducing=10, batch=80, iterations=200, restarts=8, evaluate_every=5, tolerance=0.0,
    hyperparameters="point",
)  # fmt: skip


def rows() -> Dataset:
    rng = np.random.default_rng(12)
    X = rng.uniform(-5.0, 5.0, size=(80, 1))
    y = np.sin(2.2 * X[:, 0]) + 0.3 * X[:, 0] + 0.1 * rng.normal(size=80)
    return Dataset(X, y, ("x",), "v", "made rows")


def population(names: tuple[str, ...], config: VbksConfig) -> Any:
    """Return starts of these kernels, before their first step."""
    import torch

    from gp_active_sensing_learning.kernel_selection.restarts import Restarts

    made = Restarts([Composite(parse(n), 1) for n in names], config, torch.device("cpu"))
    given = rows()
    made.begin(np.linspace(-2.0, 2.0, 6)[:, None], (given.inputs, given.outputs), {})
    return made


def left(made: Any) -> list[tuple[int, float]]:
    """Return kernel and best bound of the starts that go on."""
    numbers, best = made.state.number.tolist(), made.state.best.tolist()
    return [(made.members[n].kernel, b) for n, b in zip(numbers, best, strict=True)]


@for_each(("share", "wanted"), [(0.1, 5), (0.125, 3), (0.3, 2), (0.5, 1), (1.0, 1)])
def test_the_best_ones_stay(share: float, wanted: int) -> None:
    import torch

    made = population(("PER+SE", "RQ"), dataclasses.replace(CONFIG, restarts=5))
    bounds = torch.arange(10, dtype=torch.float64) * torch.tensor([3.0, -2.0]).repeat(5)
    made.state.best = bounds.clone()
    before = left(made)
    assert made.race(share) == (wanted < 5)
    for kernel in (0, 1):
        best = sorted((b for k, b in before if k == kernel), reverse=True)[:wanted]
        assert sorted((b for k, b in left(made) if k == kernel), reverse=True) == best


def test_one_that_has_converged_keeps_its_place() -> None:
    """It is no longer optimised, and others must beat it all the same."""
    import torch

    from gp_active_sensing_learning.kernel_selection.restarts import CUTS

    made = population(("PER+SE",), dataclasses.replace(CONFIG, restarts=4))
    made.state.best = torch.tensor([5.0, 9.0, 7.0, 8.0], dtype=torch.float64)
    made.state.cuts[1] = CUTS
    assert made.set_aside(made.state.best, first=False)
    assert made.race(0.125)
    assert left(made) == [(0, 8.0)]
    made.gather()
    made.choose()
    assert left(made) == [(0, 9.0)]


@pytest.mark.long
def test_the_race_loses_next_to_nothing() -> None:
    kernels = [parse(name) for name in ("PER+SE", "LIN+RQ", "PER×SE")]
    config = dataclasses.replace(CONFIG, tolerance=1e-3)
    raced = select_kernels(rows(), kernels, config)
    whole = select_kernels(rows(), kernels, dataclasses.replace(config, race=()))
    for fit in raced.fits:
        (other,) = (f for f in whole.fits if f.name == fit.name)
        assert fit.bound > other.bound - 1.0, fit.name


def test_kernels_race_among_their_own_starts_only() -> None:
    """One kernel is the same whether others, better or worse, are raced beside it or not."""
    (alone,) = select_kernels(rows(), [parse("LIN")], CONFIG).fits
    beside = select_kernels(rows(), [parse("LIN"), parse("PER+SE")], CONFIG).fits
    (found,) = (fit for fit in beside if fit.name == "LIN")
    assert found.bound == pytest.approx(alone.bound, abs=1e-6)
    assert Counter(fit.name for fit in beside) == {"LIN": 1, "PER+SE": 1}
