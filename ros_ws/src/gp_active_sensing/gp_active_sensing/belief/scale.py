"""A field whose scale nobody knows: one factor on all variances, integrated out."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gp_active_sensing.types import FloatArray

__all__ = ["Scaled", "integrate_scale"]

_FLOOR = 1e-24
"""Least mean square of the residuals, relative to that of the readings."""


class Scaled(NamedTuple):
    """What the readings say once the scale is integrated out.

    Args:
        log_evidence: (L,) up to a constant.
        factor: (L,) on all variances of a candidate: their expectation.
    """

    log_evidence: FloatArray
    factor: FloatArray


def integrate_scale(
    rest: FloatArray, quadratic: FloatArray, readings: float, known: int, size: float
) -> Scaled:
    r"""Integrate a common factor c on signal, noise and mean variance out, with ``p(c) ∝ 1/c``.

    With Q = zᵀ K⁻¹ z at c = 1 and ν = readings less the coefficients of a vague mean,

    .. math:: p(z | \lambda) \propto |K|^{-1/2} Q^{-\nu/2}, \quad E[c | z, \lambda] = Q / (\nu - 2)

    [Rasmussen2006, Sec. 2.7; Ohagan1994]. Where ν is 3 or less the expectation does not exist or is
    Q; Q is used. With ν < 1 nothing is known of the scale: c = 1, whatever the unit.

    Args:
        rest: (L,) log-evidence at c = 1 without its part -Q/2.
        quadratic: (L,) Q.
        readings: number n of readings, those that have aged as a part of one.
        known: coefficients of the mean that use up readings.
        size: mean square of the readings about the first one, by which equal readings are told
            from a scale of zero.
    """
    freedom = readings - known
    if freedom < 1:
        return Scaled(np.zeros_like(rest), np.ones_like(quadratic))
    Q = np.maximum(quadratic, _FLOOR * max(size, 1e-200) * readings)
    return Scaled(rest - 0.5 * freedom * np.log(Q), Q / max(freedom - 2, 1))
