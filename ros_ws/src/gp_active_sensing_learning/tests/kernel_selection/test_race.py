"""Successive halving of starts: many starts at the cost of a few."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from gp_active_sensing.kernels.composite import Composite
from gp_active_sensing.kernels.grammar import parse
from gp_active_sensing_learning.kernel_selection import VbksConfig, select_kernels
from learning_support.small import rows
from tests.cases import for_each

pytestmark = pytest.mark.heavy("learn")

CONFIG = VbksConfig(
    inducing=10, batch=80, iterations=200, restarts=8, evaluate_every=5, tolerance=0.0,
    hyperparameters="point",
)  # fmt: skip


def population(names: tuple[str, ...], config: VbksConfig) -> Any:
    import torch

    from gp_active_sensing_learning.kernel_selection.restarts import Restarts

    made = Restarts([Composite(parse(n), 1) for n in names], config, torch.device("cpu"))
    given = rows(80)
    made.begin(np.linspace(-2.0, 2.0, 6)[:, None], (given.inputs, given.outputs))
    return made


def left(made: Any) -> list[tuple[int, float]]:
    """Return kernel and best bound of the remaining starts."""
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


@pytest.mark.long
def test_the_race_loses_next_to_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    from gp_active_sensing_learning.kernel_selection import restarts

    kernels = [parse(name) for name in ("PER+SE", "LIN+RQ", "PER×SE")]
    config = dataclasses.replace(CONFIG, tolerance=1e-3)
    raced = select_kernels(rows(80), kernels, config)
    monkeypatch.setattr(restarts, "RACE", ())
    whole = select_kernels(rows(80), kernels, config)
    for fit in raced.fits:
        (other,) = (f for f in whole.fits if f.name == fit.name)
        assert fit.bound > other.bound - 1.0, fit.name
