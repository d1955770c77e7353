"""Tables on the page of a model: kernels, hyper-parameters, coverage, dropped kernels."""

from __future__ import annotations

import html
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gp_active_sensing.kernel_model import KernelFit, KernelModel
from gp_active_sensing.kernels.composite import Parameter
from gp_active_sensing.kernels.grammar import BaseKernel, Expression, Sum
from gp_active_sensing.learning.kernel_lines import lengths_of, noise_of
from gp_active_sensing.report.kernel_check import ModelCheck

__all__ = [
    "Number",
    "coverage_table",
    "dropped_table",
    "kernel_table",
    "number_tables",
    "numbers",
    "said",
    "terms",
]

_WORDS = {
    "PER": "roughness within a period",
    "LIN": "length of the slope",
}
"""What a length-scale is that is not the length over which the field varies."""


@dataclass(frozen=True)
class Number:
    """A hyper-parameter, in the unit of the input or output that it is of.

    Args:
        of: the base kernel or term that it belongs to.
        what: length-scale, period, …
        along: name of the input, "" where it is not of one.
        value: median of its log-normal belief.
        low, high: two standard deviations of the logarithm to either side; both `value` of a point.
    """

    of: str
    what: str
    along: str
    value: float
    low: float
    high: float


def terms(expression: Expression) -> tuple[str, ...]:
    """Return what each scale multiplies: the additive terms, in the order of the scales."""
    if isinstance(expression, BaseKernel):
        return (str(expression),)
    if isinstance(expression, Sum):
        return tuple(t for part in expression.parts for t in terms(part))
    sums = [part for part in expression.parts if isinstance(part, Sum)]
    return tuple(t for part in sums for t in terms(part)) or (str(expression),)


def numbers(fit: KernelFit, model: KernelModel) -> Iterator[Number]:
    """Yield all hyper-parameters of a kernel, noise first, in the order of θ."""
    composite, scaling = fit.composite, model.scaling
    shown = terms(composite.expression)
    rows = zip(composite.parameters, fit.theta_mean.tolist(), fit.theta_std.tolist(), strict=True)
    for parameter, mean, std in rows:
        of, what, along = _described(parameter, composite.leaves, shown, model)
        size = scaling.output_scale if parameter.kind in ("noise", "scale") else 1.0
        dimensionless = parameter.kind == "length_scale" and of == "PER"
        if parameter.dimension >= 0 and not dimensionless:
            size = float(scaling.input_scale[parameter.dimension])
        floor = fit.noise_floor if parameter.kind == "noise" else 0.0
        low, value, high = (
            size * math.hypot(floor, math.exp(mean + k * std)) for k in (-2.0, 0.0, 2.0)
        )
        yield Number(of, what, along, value, low, high)


def _described(
    parameter: Parameter, leaves: tuple[str, ...], shown: tuple[str, ...], model: KernelModel
) -> tuple[str, str, str]:
    """Return whose it is, what it is, and along which input."""
    if parameter.kind == "noise":
        return "readings", "noise, standard deviation", ""
    if parameter.kind == "scale":
        return shown[parameter.leaf], "standard deviation", ""
    base = leaves[parameter.leaf]
    if parameter.kind == "alpha":
        return base, "mixture of lengths a", ""
    along = model.input_names[parameter.dimension]
    if parameter.kind == "period":
        return base, "period", along
    return base, _WORDS.get(base, "length-scale"), along


_FIRST = 16
"""Kernels in the table that is open; all others are in one to unfold."""
_DESCRIBED = 12
"""Kernels whose hyper-parameters are listed."""
_MOST_LENGTHS = 4
"""Inputs with a column of their own."""


def said(value: float, digits: int = 3) -> str:
    """Return a number as people write it."""
    size = abs(value)
    if value == 0.0:
        return "0"
    if size >= 1e6 or size < 1e-4:
        return f"{value:.{digits - 1}e}"
    return f"{float(f'{value:.{digits}g}'):,.10g}".replace("-", "−")


def kernel_table(model: KernelModel) -> str:
    """Return a row for each kernel, the first ones open, the others to unfold."""
    table = _rows(model, range(min(_FIRST, len(model.fits))))
    first = f'<figure class="table">{table}</figure>'
    if len(model.fits) <= _FIRST:
        return first
    rest = _rows(model, range(_FIRST, len(model.fits)))
    return (
        f"{first}<details><summary>The other {len(model.fits) - _FIRST} kernels</summary>{rest}"
        "</details>"
    )


def _rows(model: KernelModel, which: Sequence[int]) -> str:
    belief, best = model.belief, max(fit.bound for fit in model.fits)
    shown = model.input_names[:_MOST_LENGTHS]
    columns = [
        ("kernel", "text"), ("q*", ""), ("softmax(L)", ""), ("L [nat]", ""),
        ("behind [nat]", ""), ("noise", ""),
        *((f"length {name}", "") for name in shown), ("inducing", ""), ("iterations", ""),
        ("outcome", "text"),
    ]  # fmt: skip
    body = []
    for k in which:
        fit = model.fits[k]
        over = lengths_of(fit, model.scaling) or (None,) * model.dimensions
        body.append(
            (
                fit.name,
                f"{belief.probabilities[k]:.3f} ± {belief.errors[k]:.3f}",
                f"{belief.softmax[k]:.3f}",
                f"{fit.bound:,.1f}".replace("-", "−"),
                f"{best - fit.bound:,.1f}",
                said(noise_of(fit, model.scaling)),
                *("–" if length is None else said(length) for length in over[:_MOST_LENGTHS]),
                str(len(fit.inducing)),
                str(fit.iterations),
                fit.outcome.partition(":")[0],
            )
        )
    return _table(columns, body)


def number_tables(model: KernelModel) -> str:
    """Return the hyper-parameters of the first kernels, each to unfold."""
    found = []
    for k, fit in enumerate(model.fits[:_DESCRIBED]):
        point = fit.point
        columns = [("of", "text"), ("hyper-parameter", "text"), ("along", "text"), ("value", "")]
        columns += [] if point else [("from", ""), ("to", "")]
        body = [_number(number, point) for number in numbers(fit, model)]
        title = f"{fit.name}: {fit.composite.size} hyper-parameters"
        found.append(
            f"<details{'' if k else ' open'}><summary>{html.escape(title)}</summary>"
            f'<p class="more">{html.escape(fit.outcome)}.</p>{_table(columns, body)}</details>'
        )
    left = len(model.fits) - _DESCRIBED
    if left > 0:
        found.append(
            f'<p class="more">Those of the other {left} kernels are in the model file.</p>'
        )
    return "".join(found)


def _number(number: Number, point: bool) -> tuple[str, ...]:
    head = (number.of, number.what, number.along, said(number.value))
    return head if point else (*head, said(number.low), said(number.high))


def coverage_table(found: ModelCheck) -> str:
    """Return how many values the intervals hold, beside how many they should."""
    body = [
        (f"{100 * c.level:.0f} %", f"{100 * c.share:.1f} %", f"± {100 * c.error:.1f} %")
        for c in found.coverage
    ]
    return _table([("interval", ""), ("values inside", ""), ("standard error", "")], body)


def dropped_table(model: KernelModel) -> str:
    """Return the kernels that are not in the model, and why; "" when all are."""
    if not model.dropped:
        return ""
    columns = [("kernel", "text"), ("why it is not in the model", "text wrap")]
    summary = f"Kernels that are not in the model ({len(model.dropped)})"
    few = " open" if len(model.dropped) <= 8 else ""
    return f"<details{few}><summary>{summary}</summary>{_table(columns, model.dropped)}</details>"


def _table(columns: Sequence[tuple[str, str]], body: Sequence[Sequence[str]]) -> str:
    def cell(tag: str, look: str, text: str) -> str:
        of = f' class="{look}"' if look else ""
        return f"<{tag}{of}>{html.escape(text)}</{tag}>"

    head = "".join(cell("th", look, name) for name, look in columns)
    rows = "".join(
        "<tr>"
        + "".join(cell("td", look, text) for (_, look), text in zip(columns, row, strict=True))
        + "</tr>"
        for row in body
    )
    return f'<div class="scroll"><table><tr>{head}</tr>{rows}</table></div>'
