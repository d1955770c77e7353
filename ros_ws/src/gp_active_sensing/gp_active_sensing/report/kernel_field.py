"""What a model predicts over its inputs, as curves and maps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gp_active_sensing.report.kernel_check import Check
from gp_active_sensing.selection import KernelModel
from gp_active_sensing.types import FloatArray

__all__ = ["CURVE", "POINTS", "Predict", "curves", "domain", "places", "significant"]

CURVE = 181
"""Points of a curve."""
POINTS = 400
"""Rows drawn over a map or a curve."""
_SIDE = 56
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


def curves(model: KernelModel, predict: Predict, check: Check | None) -> list[dict[str, Any]]:
    """Return a curve for each input, the others at their medians; one input: the whole of it."""
    low, high, middle = domain(model, check)
    found = []
    for d, name in enumerate(model.input_names[:_MOST_SLICES]):
        margin = _MARGIN * (high[d] - low[d])
        along = np.linspace(low[d] - margin, high[d] + margin, CURVE)
        X = np.tile(middle, (CURVE, 1))
        X[:, d] = along
        mean, std = predict(X)
        found.append(
            {
                "along": name,
                "x": significant(along, 8),
                "mean": significant(mean, 8),
                "std": significant(std, 4),
                "others": {
                    other: significant(middle[k])
                    for k, other in enumerate(model.input_names)
                    if k != d
                },
            }
        )
    return found


def places(model: KernelModel, predict: Predict, check: Check | None) -> dict[str, Any] | None:
    """Return a map of mean and standard deviation over two inputs, None of another number."""
    if model.dimensions != 2:
        return None
    low, high, _ = domain(model, check)
    extent = high - low
    scaled = {name.lower() for name in model.input_names} in _METRIC
    ratio = float(extent[1] / extent[0]) if scaled else 0.75
    scaled, ratio = (scaled, ratio) if 0.2 < ratio < 1.6 else (False, 0.75)
    columns = _SIDE if ratio <= 1.0 else max(8, round(_SIDE / ratio))
    rows = max(8, round(columns * ratio))
    axes = [low[d] + (np.arange(n) + 0.5) / n * extent[d] for d, n in enumerate((columns, rows))]
    X = np.column_stack([grid.ravel() for grid in np.meshgrid(*axes)])
    mean, std = predict(X)
    return {
        "names": list(model.input_names),
        "low": significant(low, 8),
        "high": significant(high, 8),
        "columns": columns,
        "rows": rows,
        "ratio": ratio,
        "mean": significant(mean, 8),
        "std": significant(std, 4),
        "points": [] if check is None else significant(check.inputs[:: _every(check)], 8),
    }


def _every(check: Check) -> int:
    return max(1, -(-len(check.inputs) // POINTS))


def significant(values: Any, digits: int = 5) -> Any:
    """Return plain numbers with so many digits; what is not finite becomes None."""
    if isinstance(values, np.ndarray):
        values = values.tolist()
    if isinstance(values, list):
        return [significant(value, digits) for value in values]
    return float(f"{values:.{digits}g}") if np.isfinite(values) else None
