"""Data for the scripts of a model's page."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

from gp_active_sensing.kernel_model.model import KernelModel
from gp_active_sensing.types import FloatArray
from gp_active_sensing_learning.kernel_predictor import predict
from gp_active_sensing_learning.kernel_sets import kernel_set
from gp_active_sensing_learning.report.kernel_check import CURVE, ModelCheck, check
from gp_active_sensing_learning.report.kernel_payload import BARS, MATRIX, kernel_payload
from learning_support.models import field_rows, made_model
from tests.cases import for_each


def payload(model: KernelModel, found: ModelCheck | None = None) -> dict[str, object]:
    def predicted(X: FloatArray) -> tuple[FloatArray, FloatArray]:
        mean, variance = predict(model, X, samples=2)
        return mean, np.sqrt(variance)

    data = kernel_payload(model, predicted, found)
    json.dumps(data, allow_nan=False)
    return data


@for_each("count", [1, 2, 12, 144])
def test_of_many_kernels_some_are_shown_and_the_others_counted(count: int) -> None:
    kernels = [str(expression) for expression in kernel_set("k144")][:count]
    model = made_model(kernels, field_rows(count=20))
    data = payload(model)
    belief, matrix = data["belief"], data["correlations"]
    assert isinstance(belief, dict)
    assert len(belief["names"]) == min(count, BARS)
    assert belief["others"] == count - len(belief["names"])
    assert sum(belief["q"]) + belief["rest"] == pytest.approx(1.0, abs=1e-3)
    if count == 1:
        assert matrix is None
    else:
        assert isinstance(matrix, dict)
        assert len(matrix["values"]) == min(count, MATRIX)
        assert matrix["others"] == max(0, count - MATRIX)


def test_traces_are_a_row_and_end_where_the_kernel_ended() -> None:
    model = made_model(["SE", "PER"])
    long, short = model.fits
    # Two stages, the second with all rows and iterations that begin again.
    trace = np.array([[0, 100, -500.0], [100, 100, -200.0], [0, 300, -600.0], [100, 300, -300.0]])
    short = dataclasses.replace(short, trace=trace)
    data = payload(dataclasses.replace(model, fits=(long, short)))["traces"]
    assert isinstance(data, dict)
    x = data["x"]
    values = {line["name"]: line["values"] for line in data["lines"]}
    assert x[-1] == 1000
    assert values[long.name][-1] == pytest.approx(long.trace[-1, 2] / 300, rel=1e-5)
    known = [v for v in values[short.name] if v is not None]
    assert known[0] == pytest.approx(-5.0)
    assert known[-1] == pytest.approx(-1.0, abs=0.05)
    assert values[short.name][-1] is None
    after = [v for at, v in zip(x, values[short.name], strict=True) if 210 < at]
    assert after == [None] * len(after)


def test_a_trace_that_is_not_finite_leaves_a_gap() -> None:
    model = made_model(["SE"])
    trace = np.array([[0, 300, np.nan], [50, 300, -1e3], [100, 300, np.inf], [150, 300, -9e2]])
    fit = dataclasses.replace(model.fits[0], trace=trace)
    assert payload(dataclasses.replace(model, fits=(fit,)))["traces"] is not None
    fit = dataclasses.replace(model.fits[0], trace=np.full((2, 3), np.nan))
    assert payload(dataclasses.replace(model, fits=(fit,)))["traces"] is None


@for_each("dimensions", [1, 2, 3])
def test_predictions_over_the_inputs(dimensions: int) -> None:
    rows = field_rows(dimensions)
    model = made_model(["SE"], rows)
    found = check(model, rows, samples=2, seed=0)
    data = payload(model, found)
    curves, of_map = data["curves"], data["map"]
    assert isinstance(curves, list)
    assert [curve["along"] for curve in curves] == list(rows.input_names)
    assert all(len(curve["mean"]) == len(curve["x"]) == CURVE for curve in curves)
    first = curves[0]
    X = np.tile(np.median(rows.inputs, axis=0), (CURVE, 1))
    X[:, 0] = first["x"]
    mean, variance = predict(model, X, samples=2)
    assert first["mean"] == pytest.approx(mean, rel=1e-4)
    assert first["std"] == pytest.approx(np.sqrt(variance), rel=1e-3)
    assert (of_map is None) == (dimensions != 2)
    if isinstance(of_map, dict):
        cells = of_map["columns"] * of_map["rows"]
        assert len(of_map["mean"]) == len(of_map["std"]) == cells
        # The first cell is the lower left one.
        corner = np.array([of_map["low"]]) + 0.5 * (
            np.array([of_map["high"]]) - np.array([of_map["low"]])
        ) / np.array([[of_map["columns"], of_map["rows"]]])
        assert of_map["mean"][0] == pytest.approx(predict(model, corner, samples=2)[0][0], rel=1e-4)
