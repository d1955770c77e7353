"""Data for the charts on the page of a kernel model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from gp_active_sensing.kernel_model.model import KernelFit, KernelModel
from gp_active_sensing.report.frame import DOUBT, VALUES
from gp_active_sensing.types import FloatArray, IntArray
from gp_active_sensing_learning.report.kernel_check import (
    POINTS,
    ModelCheck,
    Predict,
    fields,
    significant,
)

BARS, LINES, MATRIX = 16, 8, 24
"""Largest number of kernels in the bar chart, in the line chart, and in the matrix."""
_FEW, _LEAST = 6, 0.001
"""Smallest number of bars. A further kernel has a bar if its probability is at least `_LEAST`."""
_FAINT = 40
"""Largest number of kernels with a faint line in the background of the chart of bounds."""
_TRACE = 160
"""Largest number of points on a line of the chart of bounds."""
_DOTS = 800
"""Largest number of rows that are drawn as points."""
_BINS = 30
_WIDEST = 5.0
"""Limit of the histogram of residuals, in standard deviations."""


def kernel_payload(
    model: KernelModel, predict: Predict, check: ModelCheck | None
) -> dict[str, Any]:
    """Return the data of all charts; `check` = None leaves out the charts of test rows."""
    shown = _lines(model)
    curves, plane = fields(model, predict, check)
    return {
        "output": output_of(model),
        "colours": {"values": VALUES, "doubt": DOUBT},
        "belief": _belief(model),
        "history": _history(model, shown),
        "traces": _traces(model, shown),
        "correlations": _correlations(model),
        "map": plane,
        "curves": curves,
        "check": None if check is None else _check(model, check),
    }


def output_of(model: KernelModel) -> str:
    """Return the name of the outputs, preceded by their transform."""
    transform = str(model.settings.get("transform") or "identity")
    return model.output_name if transform == "identity" else f"{transform} {model.output_name}"


def _belief(model: KernelModel) -> dict[str, Any]:
    """Return the probabilities of the most probable kernels, and the sum for all others."""
    belief = model.belief
    larger = np.maximum(belief.probabilities, belief.softmax)
    count = min(max(int((larger >= _LEAST).sum()), _FEW), BARS, len(larger))
    chosen = np.sort(np.argsort(-larger, kind="stable")[:count])
    left = np.ones(len(larger), dtype=np.bool_)
    left[chosen] = False
    return {
        "names": [model.names[k] for k in chosen],
        "q": significant(belief.probabilities[chosen]),
        "error": significant(belief.errors[chosen], 3),
        "softmax": significant(belief.softmax[chosen]),
        "others": int(left.sum()),
        "rest": significant(float(belief.probabilities[left].sum())),
        "restSoftmax": significant(float(belief.softmax[left].sum())),
    }


def _lines(model: KernelModel) -> list[str]:
    """Return the names of the kernels that had the largest probabilities at any stage."""
    history = model.history
    if not len(history.rows):
        return list(model.names[:LINES])
    ever = np.max(np.nan_to_num(history.probabilities), axis=0)
    last = {name: k for k, name in enumerate(model.names)}
    order = sorted(
        np.flatnonzero(ever > 0.0).tolist(),
        key=lambda k: (-ever[k], last.get(history.names[k], len(last))),
    )
    chosen = [history.names[k] for k in order[:LINES]]
    for name in reversed(model.names[:2]):  # always with the two most probable
        if name not in chosen and name in history.names:
            chosen = [name, *chosen[: LINES - 1]]
    return sorted(chosen, key=lambda name: last.get(name, len(last)))


def _history(model: KernelModel, shown: list[str]) -> dict[str, Any] | None:
    history = model.history
    if len(history.rows) < 2:
        return None
    at = {name: k for k, name in enumerate(history.names)}
    known = [name for name in shown if name in at]
    mine = [at[name] for name in known]
    others = [k for k in range(len(history.names)) if k not in mine]
    probabilities, softmax = (np.nan_to_num(a) for a in (history.probabilities, history.softmax))
    screening = model.settings.get("screening")
    return {
        "rows": significant(history.rows, 8),
        "screened": screening.get("inducing") if isinstance(screening, Mapping) else None,
        "lines": [
            {
                "name": name,
                "colour": shown.index(name),
                "q": significant(probabilities[:, k]),
                "softmax": significant(softmax[:, k]),
            }
            for name, k in zip(known, mine, strict=True)
        ],
        "others": len(others),
        "rest": significant(probabilities[:, others].sum(axis=1)),
        "restSoftmax": significant(softmax[:, others].sum(axis=1)),
    }


def _traces(model: KernelModel, shown: list[str]) -> dict[str, Any] | None:
    """Return the estimated local ELBOs, divided by the number of rows, at common iterations."""
    fits = {fit.name: fit for fit in model.fits if len(_steps(fit)[0])}
    known = [name for name in shown if name in fits]
    known += [name for name in fits if name not in known][: max(0, 2 - len(known))]
    faint = [name for name in fits if name not in known][:_FAINT]
    if not known:
        return None
    steps = {name: _steps(fits[name]) for name in (*known, *faint)}
    last = max(float(x[-1]) for x, _ in steps.values())
    first = min(float(x[0]) for x, _ in steps.values())
    at = np.unique(np.rint(np.linspace(first, last, _TRACE))) if last > first else np.array([last])
    values = {name: _resampled(*steps[name], at) for name in steps}
    known_values = np.concatenate(list(values.values()))
    # Leave the first steps out of the axis range, because their bounds are far lower.
    low, high = np.nanquantile(known_values, [0.12, 1.0]).tolist()
    margin = 0.08 * (high - low) or 1.0
    return {
        "x": significant(at, 8),
        "gaussian": not all(fit.point for fit in fits.values()),
        "range": [low - margin, high + margin],
        "lines": [
            {
                "name": name,
                "colour": shown.index(name) if name in shown else len(shown),
                "values": significant(values[name], 7),
            }
            for name in known
        ],
        "faint": [significant(values[name], 6) for name in faint],
        "others": len(fits) - len(known) - len(faint),
    }


def _steps(fit: KernelFit) -> tuple[FloatArray, FloatArray]:
    """Return iterations, counted over all stages, and bounds divided by the number of rows."""
    trace = np.asarray(fit.trace, dtype=np.float64).reshape(-1, 3)
    iteration, rows, bound = trace[np.isfinite(trace).all(axis=1)].T
    again = np.zeros(len(iteration))
    again[1:] = np.where(np.diff(iteration) < 0.0, iteration[:-1], 0.0)
    return iteration + np.cumsum(again), bound / np.maximum(rows, 1.0)


def _resampled(x: FloatArray, values: FloatArray, at: FloatArray) -> FloatArray:
    # A kernel has no values after its last step.
    half = 0.5 * (at[1] - at[0]) if len(at) > 1 else 0.5
    there = (at >= x[0] - half) & (at <= x[-1] + half)
    return np.where(there, np.interp(at, x, values), np.nan)


def _correlations(model: KernelModel) -> dict[str, Any] | None:
    first = min(MATRIX, len(model.fits))
    if first < 2:
        return None
    matrix = model.belief.correlations[:first, :first]
    return {
        "names": list(model.names[:first]),
        "values": np.round(matrix, 3).tolist(),
        "others": len(model.fits) - first,
    }


def _check(model: KernelModel, check: ModelCheck) -> dict[str, Any]:
    some = _some(len(check.observed), _DOTS)
    residuals = check.residuals
    return {
        "count": len(check.observed),
        "fit": _points(check.mean[some], check.observed[some], 8),
        "histogram": _histogram(residuals),
        "quantiles": _quantiles(residuals),
        "against": [
            {"name": name, **_trend(check.inputs[:, d], residuals)}
            for d, name in enumerate(model.input_names)
        ],
        "points": _points(check.inputs[some, 0], check.observed[some], 8)
        if model.dimensions == 1
        else None,
    }


def _some(count: int, most: int) -> IntArray:
    return np.unique(np.linspace(0, count - 1, min(count, most)).astype(np.int64))


def _points(x: FloatArray, y: FloatArray, digits: int = 5) -> dict[str, Any]:
    order = np.argsort(x, kind="stable")
    return {"x": significant(x[order], digits), "y": significant(y[order], digits)}


def _histogram(residuals: FloatArray) -> dict[str, Any]:
    edges = np.linspace(-_WIDEST, _WIDEST, _BINS + 1)
    counts, _ = np.histogram(np.clip(residuals, -_WIDEST, _WIDEST), edges)
    middle = 0.5 * (edges[1:] + edges[:-1])
    expected = np.diff(ndtr(edges))
    return {
        "x": significant(middle),
        "shares": significant(counts / len(residuals)),
        "normal": significant(expected),
        "beyond": bool((np.abs(residuals) > _WIDEST).any()),
    }


def _quantiles(residuals: FloatArray) -> dict[str, Any]:
    ordered = np.sort(residuals)
    count = len(ordered)
    normal = ndtri((np.arange(count) + 0.5) / count)
    # Keep all points of the tails, and a sample of the points between them.
    some = np.unique(
        np.concatenate(
            [np.arange(min(count, 40)), _some(count, POINTS), np.arange(max(0, count - 40), count)]
        )
    )
    return {"x": significant(normal[some]), "y": significant(ordered[some])}


def _trend(x: FloatArray, residuals: FloatArray) -> dict[str, Any]:
    """Return residuals over an input `x`, with their trend.

    Rows with similar `x` form a group. The trend is the mean of each group, with limits at plus and
    minus two standard errors.
    """
    some = _some(len(x), _DOTS)
    order = np.argsort(x[some], kind="stable")
    found = {"x": x[some][order], "y": residuals[some][order]}
    edges = np.quantile(x, np.linspace(0.0, 1.0, max(2, min(16, len(x) // 25)) + 1))
    which = np.clip(np.searchsorted(edges, x, side="right") - 1, 0, len(edges) - 2)
    groups = [residuals[which == g] for g in range(len(edges) - 1)]
    centres = [x[which == g].mean() if len(r) else np.nan for g, r in enumerate(groups)]
    kept = [g for g, r in enumerate(groups) if len(r) >= 3]
    means = np.array([groups[g].mean() for g in kept])
    errors = np.array([groups[g].std(ddof=1) / np.sqrt(len(groups[g])) for g in kept])
    at = np.array([centres[g] for g in kept])
    return {
        "x": significant(found["x"], 8),
        "y": significant(found["y"]),
        "mean": significant(np.interp(found["x"], at, means)) if kept else [],
        "low": significant(np.interp(found["x"], at, means - 2.0 * errors)) if kept else [],
        "high": significant(np.interp(found["x"], at, means + 2.0 * errors)) if kept else [],
    }
