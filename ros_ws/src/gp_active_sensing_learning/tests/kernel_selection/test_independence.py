"""The optimisation of a kernel is independent of other kernels, processes and devices."""

from __future__ import annotations

import dataclasses
import logging
from typing import Any

import numpy as np
import pytest

from gp_active_sensing.errors import ConfigError
from gp_active_sensing.kernel_model.model import KernelFit, KernelModel
from gp_active_sensing.kernels.base import RationalQuadratic
from gp_active_sensing.kernels.grammar import parse
from gp_active_sensing_learning.kernel_selection import VbksConfig, select_kernels
from learning_support.small import KERNELS, SMALL, rows, same
from tests.cases import for_each

pytestmark = pytest.mark.heavy("learn")


def learned(expressions: Any, config: VbksConfig = SMALL, **options: Any) -> dict[str, KernelFit]:
    model = select_kernels(rows(), expressions, config, **options)
    return {fit.name: fit for fit in model.fits}


@pytest.fixture(scope="module")
def together() -> dict[str, KernelFit]:
    return learned(KERNELS)


def test_alone_or_among_others(together: dict[str, KernelFit]) -> None:
    """Results agree within rounding, because batched products may have another order."""
    for expression in (KERNELS[0], KERNELS[3]):
        alone = learned([expression])[str(expression)]
        same(alone, together[str(expression)], tolerance=1e-5)


@pytest.mark.slow
@pytest.mark.long
def test_two_processes_give_what_one_gives(together: dict[str, KernelFit]) -> None:
    pytest.importorskip("joblib")
    found = learned(KERNELS, jobs=2)
    assert list(found) == list(together)
    for name, fit in together.items():
        same(fit, found[name], tolerance=1e-5)


@pytest.fixture
def broken_rq(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Make the covariance of RQ NaN from some evaluation on."""
    right = RationalQuadratic.of_square
    after = [0]
    count = [0]

    def wrong(*given: Any) -> Any:
        count[0] += 1
        return right(*given) * (float("nan") if count[0] > after[0] else 1.0)

    monkeypatch.setattr(RationalQuadratic, "of_square", wrong)
    return after


@for_each("after", [0, 100])
def test_a_kernel_that_diverges_is_dropped_and_the_others_stay(
    after: int,
    together: dict[str, KernelFit],
    broken_rq: list[int],
    caplog: pytest.LogCaptureFixture,
) -> None:
    broken_rq[0] = after
    with caplog.at_level(logging.WARNING):
        model = select_kernels(rows(), KERNELS, SMALL)
    assert set(model.names) == set(together) - {"RQ"}
    ((name, why),) = model.dropped
    assert name == "RQ"
    assert "not finite" in why
    assert "RQ" in caplog.text  # the user is told of it
    with pytest.raises(ConfigError, match="no kernel could be learned"):
        select_kernels(rows(), [parse("RQ")], SMALL)
    for fit in model.fits:
        same(fit, together[fit.name])
    k = model.history.names.index("RQ")
    assert np.isnan(model.history.bounds[-1, k])
    assert model.history.probabilities[-1, k] == 0.0
    np.testing.assert_allclose(model.belief.probabilities.sum(), 1.0)


def test_the_belief_and_the_history_are_of_all_kernels() -> None:
    config = dataclasses.replace(SMALL, stages=(0.25, 0.5, 1.0), iterations=20)
    model: KernelModel = select_kernels(rows(), KERNELS, config)
    history = model.history
    assert history.rows.tolist() == [12.0, 24.0, 48.0]
    assert set(history.names) == set(map(str, KERNELS))
    np.testing.assert_allclose(history.probabilities.sum(axis=1), 1.0)
    np.testing.assert_allclose(history.softmax.sum(axis=1), 1.0)
    for fit, q, soft in zip(
        model.fits, model.belief.probabilities, model.belief.softmax, strict=True
    ):
        k = history.names.index(fit.name)
        assert history.bounds[-1, k] == fit.bound
        assert history.softmax[-1, k] == pytest.approx(soft)
        assert history.probabilities[-1, k] == pytest.approx(q, abs=0.01)
    bounds = [fit.bound for fit in model.fits]
    assert bounds == sorted(bounds, reverse=True)
    assert model.rows == 48
