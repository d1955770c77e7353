"""Difficult rows: correct results, or an error that names the problem."""

from __future__ import annotations

import dataclasses
import logging
from pathlib import Path

import numpy as np
import pytest

from gp_active_sensing.kernels.grammar import parse
from gp_active_sensing_learning.data.dataset import Dataset
from gp_active_sensing_learning.kernel_predictor import predict
from gp_active_sensing_learning.kernel_selection import VbksConfig, select_kernels
from tests.cases import for_each

pytestmark = pytest.mark.heavy("learn")

SMALL = VbksConfig(
    inducing=6, batch=16, iterations=20, restarts=1, evaluate_every=10, theta_samples=4
)
KERNELS = (parse("SE"), parse("LIN×PER"))


def made(X: np.ndarray, y: np.ndarray) -> Dataset:
    return Dataset(X, y, tuple("xyzuvw"[: X.shape[1]]), "speed", "some rows")


def noisy(X: np.ndarray) -> np.ndarray:
    return np.sin(X[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=len(X))


@for_each("distinct", [1, 5])
def test_duplicated_inputs_and_fewer_than_inducing_inputs(
    distinct: int, caplog: pytest.LogCaptureFixture
) -> None:
    X = np.repeat(np.linspace(0.0, 4.0, distinct)[:, None], 8, axis=0)
    y = noisy(X)
    several = dataclasses.replace(SMALL, memory=1e-6)  # as many groups as kernels
    with caplog.at_level(logging.WARNING):
        model = select_kernels(made(X, y), KERNELS, several)
    assert caplog.text.count("6 inducing inputs asked for") == 1
    assert model.fits[0].inducing.shape == (distinct, 1)
    mean, variance = predict(model, X)
    assert np.isfinite(mean).all()
    assert (variance > 0.0).all()
    assert model.rows == 8 * distinct


def test_single_precision_rows_on_disk_are_not_changed(tmp_path: Path) -> None:
    X = np.linspace(0.0, 9.0, 60, dtype=np.float32)[:, None]
    y = noisy(X).astype(np.float32)
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    on_disk = [np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in "Xy"]
    one = select_kernels(made(*on_disk), KERNELS, SMALL)
    other = select_kernels(made(X.astype(float), y.astype(float)), KERNELS, SMALL)
    assert [fit.bound for fit in one.fits] == [fit.bound for fit in other.fits]


def test_a_field_through_the_origin() -> None:
    """With `centre: false` nothing is shifted: a line through the origin is predicted as 0 at 0."""
    X = np.linspace(5.0, 9.0, 40)[:, None]
    y = 2.0 * X[:, 0] + 0.05 * np.random.default_rng(0).normal(size=40)
    config = dataclasses.replace(SMALL, centre=False, iterations=200)
    model = select_kernels(made(X, y), [parse("LIN")], config)
    assert model.scaling.output_shift == 0.0
    np.testing.assert_array_equal(model.scaling.input_shift, 0.0)
    mean, variance = predict(model, np.array([[0.0], [-3.0]]))
    assert mean[0] == pytest.approx(0.0, abs=1e-9)
    assert variance[0] == pytest.approx(0.0, abs=1e-9)
    assert mean[1] == pytest.approx(-6.0, abs=0.2)
