"""Hyper-parameters of a kernel in the units of the data, with their uncertainty."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from gp_active_sensing.kernel_model import KernelFit, KernelModel
from gp_active_sensing.kernels.composite import Parameter
from gp_active_sensing.kernels.grammar import Expression, Leaf, Sum

__all__ = ["Number", "numbers", "terms"]

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
    if isinstance(expression, Leaf):
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
