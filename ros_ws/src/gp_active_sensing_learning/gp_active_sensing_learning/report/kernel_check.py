"""Test a kernel model on rows, and predict curves and maps over its inputs."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from gp_active_sensing.errors import ConfigError
from gp_active_sensing.kernel_model.model import KernelModel
from gp_active_sensing.types import FloatArray
from gp_active_sensing_learning.data.dataset import Dataset
from gp_active_sensing_learning.kernel_predictor import predict

MOST_ROWS = 1500
"""Largest number of test rows."""
LEVELS = (0.50, 0.90, 0.95)
"""Nominal probabilities of the prediction intervals."""


@dataclass(frozen=True)
class Coverage:
    """Coverage of prediction intervals.

    Args:
        level: nominal probability of the intervals.
        share: fraction of the values inside their intervals.
        error: standard error of `share` for independent rows.
    """

    level: float
    share: float
    error: float


@dataclass(frozen=True, eq=False)
class ModelCheck:
    """Predictions of test rows, with the observed values.

    Args:
        total: number of rows before a random subset was drawn.
        inputs: (m, d) inputs of the test rows.
        observed: (m,) values of the test rows.
        mean, std: (m,) predictions of a reading, including noise.
        seen: True if the model was learned from the test rows.
    """

    total: int
    inputs: FloatArray
    observed: FloatArray
    mean: FloatArray
    std: FloatArray
    seen: bool

    @property
    def residuals(self) -> FloatArray:
        """Observed minus predicted values (m,), in standard deviations of the prediction."""
        return np.asarray((self.observed - self.mean) / self.std)

    @property
    def rmse(self) -> float:
        """Root mean squared error, in the unit of the outputs."""
        return float(np.sqrt(np.mean((self.observed - self.mean) ** 2)))

    @property
    def nlpd(self) -> float:
        """Mean negative log predictive density of the values [nat]."""
        terms = 0.5 * math.log(2.0 * math.pi) + np.log(self.std) + 0.5 * self.residuals**2
        return float(np.mean(terms))

    @property
    def spread(self) -> float:
        """Standard deviation of the values, which is the error of a constant prediction."""
        return float(np.std(self.observed))

    @property
    def coverage(self) -> tuple[Coverage, ...]:
        """Coverage of central intervals of the normal predictions."""
        distance = np.abs(self.residuals)
        found = []
        for level in LEVELS:
            share = float(np.mean(distance <= ndtri(0.5 + 0.5 * level)))
            error = math.sqrt(level * (1.0 - level) / len(distance))
            found.append(Coverage(level, share, error))
        return tuple(found)


def check(
    model: KernelModel, rows: Dataset, kernels: list[int] | None = None, *, samples: int, seed: int
) -> ModelCheck:
    """Predict at most `MOST_ROWS` random rows with an average over `kernels`; None = all kernels.

    `seed` determines the rows and the samples of θ.

    Raises:
        ConfigError: the names of the inputs differ from those of the model, or no row can be used.
    """
    order = arranged(model, rows)
    inputs, observed = rows.sample(MOST_ROWS, seed)
    inputs = inputs[:, order]
    whole = np.isfinite(inputs).all(axis=1) & np.isfinite(observed)
    if not whole.any():
        msg = f"{rows.source}: expected rows with a number in every column, got none"
        raise ConfigError(msg)
    inputs, observed = inputs[whole], observed[whole]
    mean, variance = predict(model, inputs, noisy=True, samples=samples, kernels=kernels, seed=seed)
    return ModelCheck(
        total=len(rows),
        inputs=inputs,
        observed=observed,
        mean=mean,
        std=np.sqrt(variance),
        seen=_seen(model, rows, order),
    )


def _seen(model: KernelModel, rows: Dataset, order: list[int]) -> bool:
    """Return whether the model was learned from `rows`, by comparison of the digests.

    Older models have no digest. For them, the number and the source of the rows are compared.
    """
    if len(rows) != model.rows:
        return False
    digest = model.settings.get("rows_digest")
    if digest is None:
        return rows.source == model.source
    if order != sorted(order):
        names = model.input_names
        rows = dataclasses.replace(rows, inputs=rows.inputs[:, order], input_names=names)
    return bool(rows.digest() == digest)


def arranged(model: KernelModel, rows: Dataset) -> list[int]:
    """Return the column in `rows` of each input of the model.

    Raises:
        ConfigError: the names of the inputs differ from those of the model.
    """
    if sorted(rows.input_names) != sorted(model.input_names):
        msg = (
            f"{rows.source}: expected the inputs of the model, {', '.join(model.input_names)}; "
            f"got {', '.join(rows.input_names)}"
        )
        raise ConfigError(msg)
    return [rows.input_names.index(name) for name in model.input_names]


CURVE = 161
"""Number of points on a curve."""
POINTS = 400
"""Largest number of rows shown on a map or a curve."""
_SIDE = 44
"""Number of cells along the longer side of a map."""
_MARGIN = 0.05
_MOST_SLICES = 8
_METRIC = ({"x", "y"}, {"easting", "northing"})
"""Pairs of inputs whose maps are drawn to scale."""

Predict = Callable[[FloatArray], tuple[FloatArray, FloatArray]]
"""Function from inputs (m, d) to mean and standard deviation (m,) of the field."""


def domain(
    model: KernelModel, check: ModelCheck | None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return minimum, maximum and median (d,) of the test rows' inputs, in original units.

    If `check` is None, the first kernel's inducing inputs are used in place of test rows.
    """
    if check is not None:
        X = check.inputs
    else:
        X = model.fits[0].inducing * model.scaling.input_scale + model.scaling.input_shift
    low, high = X.min(axis=0), X.max(axis=0)
    same = high <= low
    unit = np.where(same, model.scaling.input_scale, 0.0)
    return low - unit, high + unit, np.median(X, axis=0)


def fields(
    model: KernelModel, predict: Predict, check: ModelCheck | None
) -> tuple[list[dict[str, Any]], dict[str, Any] | None]:
    """Return a curve for each input, and a map for a model with two inputs.

    Along a curve, all other inputs have their median values. `predict` is called only once, because
    each call has a high fixed cost.
    """
    lines, plane = _lines(model, check), _plane(model, check)
    parts = [X for _, X in lines] + ([] if plane is None else [plane[1]])
    mean, std = predict(np.concatenate(parts))
    ends = np.cumsum([len(X) for X in parts])[:-1]
    found = [
        {"mean": significant(m, 8), "std": significant(s, 4)}
        for m, s in zip(np.split(mean, ends), np.split(std, ends), strict=True)
    ]
    curves = [spec | values for (spec, _), values in zip(lines, found, strict=False)]
    return curves, None if plane is None else plane[0] | found[-1]


def _lines(model: KernelModel, check: ModelCheck | None) -> list[tuple[dict[str, Any], FloatArray]]:
    low, high, middle = domain(model, check)
    found = []
    for d, name in enumerate(model.input_names[:_MOST_SLICES]):
        margin = _MARGIN * (high[d] - low[d])
        X = np.tile(middle, (CURVE, 1))
        X[:, d] = np.linspace(low[d] - margin, high[d] + margin, CURVE)
        others = {
            other: significant(middle[k]) for k, other in enumerate(model.input_names) if k != d
        }
        found.append(({"along": name, "x": significant(X[:, d], 8), "others": others}, X))
    return found


def _plane(
    model: KernelModel, check: ModelCheck | None
) -> tuple[dict[str, Any], FloatArray] | None:
    if model.dimensions != 2:
        return None
    low, high, _ = domain(model, check)
    extent = high - low
    scaled = {name.lower() for name in model.input_names} in _METRIC
    ratio = float(extent[1] / extent[0]) if scaled else 0.75
    ratio = ratio if 0.2 < ratio < 1.6 else 0.75
    columns = _SIDE if ratio <= 1.0 else max(8, round(_SIDE / ratio))
    rows = max(8, round(columns * ratio))
    axes = [low[d] + (np.arange(n) + 0.5) / n * extent[d] for d, n in enumerate((columns, rows))]
    spec = {
        "names": list(model.input_names),
        "low": significant(low, 8),
        "high": significant(high, 8),
        "columns": columns,
        "rows": rows,
        "ratio": ratio,
        "points": [] if check is None else significant(check.inputs[:: _every(check)], 8),
    }
    return spec, np.column_stack([grid.ravel() for grid in np.meshgrid(*axes)])


def _every(check: ModelCheck) -> int:
    return max(1, -(-len(check.inputs) // POINTS))


def significant(values: Any, digits: int = 5) -> Any:
    """Round numbers to significant digits, with None in place of NaN and infinity."""
    if isinstance(values, np.ndarray):
        values = values.tolist()
    if isinstance(values, list):
        return [significant(value, digits) for value in values]
    return float(f"{values:.{digits}g}") if np.isfinite(values) else None


FIRST = 24
"""Number of the most probable kernels that are compared with one another."""
_NATS = 1.0
_PREDICTION = 0.1
"""Largest RMS difference between predictions that count as equal, relative to the RMS of the
predicted standard deviations."""
_COVARIANCE = 0.01
"""Largest relative difference between covariances that count as equal, in the Frobenius norm."""
_POINTS = 60


@dataclass(frozen=True)
class SimilarKernels:
    """Group of kernels that each agree with the first kernel of the group.

    Args:
        kernels: indices of the kernels in descending order of probability.
        why: for each kernel after the first, the reason why it agrees with the first.
    """

    kernels: tuple[int, ...]
    why: tuple[str, ...]


def alike(
    model: KernelModel, X: FloatArray, *, samples: int, seed: int
) -> tuple[SimilarKernels, ...]:
    """Return groups of two or more kernels that agree over the inputs X (m, d).

    The `FIRST` most probable kernels are compared. Two kernels agree if their covariances at the
    means of q(θ) differ by less than one per cent. They also agree if their local ELBOs differ by
    less than 1 nat and their predictions differ by less than a tenth of the predicted standard
    deviation. Each kernel joins the most probable kernel with which it agrees.
    """
    first = min(FIRST, len(model.fits))
    points = model.scaling.inputs(X[np.linspace(0, len(X) - 1, min(_POINTS, len(X))).astype(int)])
    covariances = [
        fit.composite.covariance(fit.theta_mean, points, points) for fit in model.fits[:first]
    ]
    predictions: dict[int, tuple[FloatArray, FloatArray]] = {}

    def predicted(i: int) -> tuple[FloatArray, FloatArray]:
        if i not in predictions:
            mean, variance = predict(model, X, samples=samples, kernels=[i], seed=seed)
            predictions[i] = mean, np.sqrt(variance)
        return predictions[i]

    def why(i: int, j: int) -> str:
        apart = _apart(covariances[i], covariances[j])
        if apart <= _COVARIANCE:
            return f"its covariance is the same, to {_per_cent(apart)}"
        behind = abs(model.fits[i].bound - model.fits[j].bound)
        if behind < _NATS and _same(predicted(i), predicted(j)):
            return f"its local ELBO is {behind:.2f} nat away and it predicts the same"
        return ""

    groups: dict[int, list[tuple[int, str]]] = {}
    for j in range(first):
        reasons = ((i, why(i, j)) for i in groups)
        leader, reason = next(((i, text) for i, text in reasons if text), (j, ""))
        groups.setdefault(leader, []).append((j, reason))
    return tuple(
        SimilarKernels(tuple(j for j, _ in members), tuple(reason for _, reason in members[1:]))
        for members in groups.values()
        if len(members) > 1
    )


def _apart(A: FloatArray, B: FloatArray) -> float:
    larger = max(float(np.linalg.norm(A)), float(np.linalg.norm(B)), 1e-300)
    return float(np.linalg.norm(A - B)) / larger


def _same(one: Sequence[FloatArray], other: Sequence[FloatArray]) -> bool:
    size = max(float(np.sqrt(np.mean(one[1] ** 2))), 1e-300)
    return all(
        float(np.sqrt(np.mean((a - b) ** 2))) <= _PREDICTION * size
        for a, b in zip(one, other, strict=True)
    )


def _per_cent(share: float) -> str:
    return "less than 0.1 %" if share < 1e-3 else f"{100.0 * share:.1f} %"
