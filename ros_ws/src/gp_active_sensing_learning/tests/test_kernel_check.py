"""Comparison of models with rows, and of kernels with each other."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import pytest

from gp_active_sensing.errors import ConfigError
from gp_active_sensing.kernel_model.model import KernelModel
from gp_active_sensing.kernels.composite import Composite
from gp_active_sensing.kernels.grammar import parse
from gp_active_sensing.types import FloatArray
from gp_active_sensing_learning.data.dataset import Dataset
from gp_active_sensing_learning.kernel_predictor import predict
from gp_active_sensing_learning.report.kernel_check import ModelCheck, alike, arranged, check
from learning_support.models import field_rows, hand_belief, made_model


def of_residuals(z: Sequence[float]) -> ModelCheck:
    values = np.array(z, dtype=np.float64)
    zeros = np.zeros(len(values))
    return ModelCheck(len(values), zeros[:, None], 2.0 * values, zeros, zeros + 2.0, seen=False)


def test_coverage_errors_and_surprise() -> None:
    # 0.674, 1.645 and 1.960 deviations hold 50, 90 and 95 %.
    found = of_residuals([0.0, 0.67, -0.68, 1.64, -1.65, 1.95, 1.97, 5.0]).coverage
    assert [c.level for c in found] == [0.50, 0.90, 0.95]
    assert [c.share for c in found] == [2 / 8, 4 / 8, 6 / 8]
    assert found[1].error == pytest.approx(np.sqrt(0.9 * 0.1 / 8))

    found = of_residuals([1.0, -1.0])
    assert found.rmse == pytest.approx(2.0)
    assert found.spread == pytest.approx(2.0)
    assert found.nlpd == pytest.approx(0.5 * np.log(2.0 * np.pi * 4.0) + 0.5)


def test_rows_are_predicted_as_new_readings() -> None:
    rows = field_rows()
    model = made_model(rows=rows)
    found = check(model, rows, samples=8, seed=0)
    mean, variance = predict(model, rows.inputs, noisy=True, samples=8)
    assert np.array_equal(found.mean, mean)
    assert np.array_equal(found.std, np.sqrt(variance))
    assert found.seen
    assert found.total == len(found.observed) == 300


def test_rows_that_were_learned_from_are_known_by_their_numbers() -> None:
    """The rows are recognised under another file name, and new rows in the old file are not."""
    rows = field_rows(2)
    model = made_model(rows=rows, settings={"rows_digest": rows.digest()})

    def seen(some: Dataset, model: KernelModel = model) -> bool:
        return check(model, some, samples=2, seed=0).seen

    assert seen(dataclasses.replace(rows, source="/home/me/yesterday.csv"))
    turned = Dataset(rows.inputs[:, ::-1], rows.outputs, ("y", "x"), "temperature", "turned.csv")
    assert seen(turned)
    assert arranged(model, turned) == [1, 0]
    one, other = (check(model, some, samples=2, seed=0).mean for some in (rows, turned))
    assert np.array_equal(one, other)
    with pytest.raises(ConfigError, match="expected the inputs of the model, x, y"):
        seen(dataclasses.replace(rows, input_names=("x", "z")))
    others = field_rows(2, seed=1)
    assert (others.source, len(others)) == (model.source, model.rows)
    assert not seen(others)
    assert not seen(rows.head(299))
    # One that does not know its rows: as many, of a file of that name.
    older = made_model(rows=rows)
    assert seen(others, older)
    assert not seen(dataclasses.replace(rows, source="/home/me/yesterday.csv"), older)


def test_rows_without_a_number_are_left_out() -> None:
    rows = field_rows(2)
    inputs, outputs = rows.inputs.copy(), rows.outputs.copy()
    inputs[3, 1] = np.nan
    outputs[7] = np.nan
    holed = dataclasses.replace(rows, inputs=inputs, outputs=outputs)
    assert len(check(made_model(rows=rows), holed, samples=2, seed=0).observed) == 298
    nothing = dataclasses.replace(rows, outputs=np.full(300, np.nan))
    with pytest.raises(ConfigError, match="a number in every column, got none"):
        check(made_model(rows=rows), nothing, samples=2, seed=0)


def inputs(model: KernelModel) -> FloatArray:
    return np.linspace(0.0, 20.0, 100)[:, None] * np.ones(model.dimensions)


def test_kernels_of_equal_covariance_are_alike_whatever_their_bounds() -> None:
    model = made_model(["SE", "RQ"])
    se = next(fit for fit in model.fits if fit.name == "SE")
    theta = np.array(
        [se.theta_mean[0], se.theta_mean[1], *([se.theta_mean[2] + np.log(2) / 2] * 2)]
    )
    twin = dataclasses.replace(
        se,
        composite=Composite(parse("SE×SE"), 1),
        theta_mean=theta,
        theta_root=0.05 * np.eye(4),
        bound=se.bound - 40.0,
    )
    model = dataclasses.replace(model, fits=(se, twin))
    (found,) = alike(model, inputs(model), samples=4, seed=0)
    assert found.kernels == (0, 1)
    assert found.why == ("its covariance is the same, to less than 0.1 %",)


def test_kernels_of_equal_evidence_and_prediction_are_alike() -> None:
    se = made_model(["SE"]).fits[0]
    point = dataclasses.replace(se, theta_root=np.zeros((3, 3)))
    # A wider prior with v as much smaller: the same mean, and nearly the same deviation.
    theta = se.theta_mean + np.array([0.0, np.log(1.05), 0.0])
    twin = dataclasses.replace(
        point, theta_mean=theta, mean=se.mean / 1.05, root=se.root / 1.05, bound=se.bound - 0.3
    )
    near = dataclasses.replace(
        made_model(["SE"]), fits=(point, twin), belief=hand_belief([0.6, 0.4])
    )
    (found,) = alike(near, inputs(near), samples=4, seed=0)
    assert found.why == ("its local ELBO is 0.30 nat away and it predicts the same",)
    far = dataclasses.replace(near, fits=(point, dataclasses.replace(twin, bound=se.bound - 5.0)))
    assert alike(far, inputs(far), samples=4, seed=0) == ()
