"""Predictions of a kernel model over its inputs, as curves and maps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gp_active_sensing.kernel_model import KernelModel
from gp_active_sensing.report.kernel_check import Check
from gp_active_sensing.types import FloatArray

__all__ = ["CURVE", "POINTS", "Predict", "domain", "fields", "significant"]

CURVE = 161
"""Points of a curve."""
POINTS = 400
"""Rows drawn over a map or a curve."""
_SIDE = 44
"""Cells along the longer side of a map."""
_MARGIN = 0.05
_MOST_SLICES = 8
_METRIC = ({"x", "y"}, {"easting", "northing"})
"""Inputs with one unit, drawn to scale."""

Predict = Callable[[FloatArray], tuple[FloatArray, FloatArray]]
"""From inputs (m, d) to mean and standard deviation (m,) of the noise-free function."""


def domain(model: KernelModel, check: Check | None) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return least, largest and middle (d,) of the inputs shown, in given units.

    They are those of the rows; without rows those of the inducing inputs of the first kernel.
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
    model: KernelModel, predict: Predict, check: Check | None
) -> tuple[list[dict[str, Any]], dict[str, Any] | None]:
    """Return a curve for each input, and a map where there are two.

    Along a curve the other inputs are at their medians. All of it is predicted at once, since a
    prediction costs much that does not depend on the number of its inputs.
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


def _lines(model: KernelModel, check: Check | None) -> list[tuple[dict[str, Any], FloatArray]]:
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


def _plane(model: KernelModel, check: Check | None) -> tuple[dict[str, Any], FloatArray] | None:
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


def _every(check: Check) -> int:
    return max(1, -(-len(check.inputs) // POINTS))


def significant(values: Any, digits: int = 5) -> Any:
    """Return plain numbers with so many digits; what is not finite becomes None."""
    if isinstance(values, np.ndarray):
        values = values.tolist()
    if isinstance(values, list):
        return [significant(value, digits) for value in values]
    return float(f"{values:.{digits}g}") if np.isfinite(values) else None
