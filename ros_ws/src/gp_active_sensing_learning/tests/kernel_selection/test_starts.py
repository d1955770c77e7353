"""Starts of a kernel: the promising ones of many, apart from each other, always the same."""

from __future__ import annotations

import numpy as np
import pytest

from gp_active_sensing.kernels.composite import Composite
from gp_active_sensing.kernels.grammar import parse
from gp_active_sensing_learning.kernel_selection import VbksConfig

pytestmark = pytest.mark.heavy("learn")


def chosen(name: str, restarts: int, seed: int = 0) -> list[int]:
    import torch

    from gp_active_sensing_learning.kernel_selection.state import best_starts

    rng = np.random.default_rng(3)
    X = np.sort(rng.normal(size=(120, 1)), axis=0)
    y = np.sin(6.0 * X[:, 0])
    y /= y.std()
    config = VbksConfig(restarts=restarts, seed=seed)
    kernel = Composite(parse(name), 1)
    return best_starts(kernel, (X, y), X[::8], config, torch.device("cpu"), torch.float64)


def test_they_are_as_many_as_asked_for_and_apart() -> None:
    from gp_active_sensing_learning.kernel_selection.state import start_of

    numbers = chosen("PER+SE", 5)
    assert len(set(numbers)) == len(numbers) == 5
    kernel = Composite(parse("PER+SE"), 1)
    thetas = [start_of(kernel, number, 0) / kernel.prior[1] for number in numbers]
    away = [np.sqrt(np.mean((a - b) ** 2)) for i, a in enumerate(thetas) for b in thetas[:i]]
    assert min(away) > 0.3
