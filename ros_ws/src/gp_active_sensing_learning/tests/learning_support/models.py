"""Kernel models for tests of their page."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import softmax

from gp_active_sensing.kernel_model.model import History, KernelFit, KernelModel, KernelPosterior
from gp_active_sensing.kernels.composite import Composite
from gp_active_sensing.kernels.grammar import parse
from gp_active_sensing_learning.data.dataset import Dataset
from tests.kernel_models import make_model

NAMES = ("x", "y", "hours", "depth")


def field_rows(dimensions: int = 1, count: int = 300, seed: int = 0) -> Dataset:
    """Return noisy readings of a smooth field with a wave."""
    rng = np.random.default_rng([seed, dimensions])
    X = rng.uniform(0.0, 20.0, (count, dimensions))
    truth = 18.0 + np.sin(0.9 * X[:, 0]) + 0.1 * X.sum(axis=1)
    y = truth + 0.2 * rng.standard_normal(count)
    return Dataset(X, y, NAMES[:dimensions], "temperature", "yesterday.csv")


def made_model(
    kernels: Sequence[str] = ("SE", "PER+SE"),
    rows: Dataset | None = None,
    *,
    dropped: Sequence[tuple[str, str]] = (),
    settings: dict[str, Any] | None = None,
    **changes: Any,
) -> KernelModel:
    """Return a model of some kernels, fitted to rows in closed form."""
    rows = field_rows() if rows is None else rows
    X, y = rows.take(slice(None))
    thetas = {}
    for k, name in enumerate(kernels):
        composite = Composite(parse(name), rows.dimensions)
        theta = 0.3 * np.random.default_rng([7, k]).standard_normal(composite.size)
        theta[0] = np.log(0.2)
        thetas[name] = theta
    told = {"vbks": {"seed": 3, "inducing": 12}, "seconds": 12.5, "versions": {"numpy": "1"}}
    model = make_model(
        kernels,
        X,
        y,
        input_names=rows.input_names,
        thetas=thetas,
        theta_std=0.05,
        settings={**told, **(settings or {})},
    )
    made = {
        "fits": tuple(_with_trace(fit, len(y)) for fit in model.fits),
        "dropped": tuple(dropped),
        "output_name": rows.output_name,
        "source": rows.source,
        "history": _history(model, [name for name, _ in dropped]),
    }
    return dataclasses.replace(model, **{**made, **changes})


def _with_trace(fit: KernelFit, rows: int) -> KernelFit:
    steps = np.arange(0.0, 1001.0, 50.0)
    trace = fit.bound - 900.0 * np.exp(-steps / 120.0)
    return dataclasses.replace(
        fit,
        iterations=1000,
        outcome="converged: the bound rose by less than 0.001 nat a row in 3 estimates",
        trace=np.column_stack([steps, np.full(len(steps), float(rows)), trace]),
    )


def _history(model: KernelModel, gone: Sequence[str]) -> History:
    """Return a history of bounds that grow with the rows, and of q*; it ends with the model's q*.

    Dropped kernels have no bound.
    """
    bounds = np.array([fit.bound for fit in model.fits])
    rows, tables = [], []
    for stage in range(1, 5):
        share = stage / 4
        q = model.belief.probabilities if stage == 4 else softmax(0.02 * share * bounds)
        nothing = [0.0] * len(gone)
        rows.append(round(share * model.rows))
        tables.append(
            (
                [*(share * bounds), *([np.nan] * len(gone))],
                [*q, *nothing],
                [*softmax(share * bounds), *nothing],
            )
        )
    columns = [np.array(table, dtype=np.float64) for table in zip(*tables, strict=True)]
    return History(np.array(rows, dtype=np.float64), (*model.names, *gone), *columns)


def hand_belief(probabilities: Sequence[float]) -> KernelPosterior:
    """Return a belief with given probabilities, and simple correlations."""
    q = np.array(probabilities)
    K = len(q)
    root = np.eye(K) + 0.2 * np.tril(np.ones((K, K)), -1)
    return KernelPosterior(np.log(q), root, 1.0, q, 0.01 * q, q, -12.0)
