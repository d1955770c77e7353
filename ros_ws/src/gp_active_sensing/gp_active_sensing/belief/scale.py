"""Unknown scale of the field: one factor on all variances, integrated out or estimated."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from gp_active_sensing.belief.prior import LocationCovariance
from gp_active_sensing.types import FloatArray, IntArray

__all__ = ["FEWEST", "Scaled", "integrate_scale", "unit_scale"]

FEWEST = 5
"""Places below which what they vary by says next to nothing."""
_MOST = 128
"""Places that are looked at, evenly spread over those there are."""
_STEPS = 2.0
"""Steps of c to a factor of two."""


def unit_scale(
    covariance: LocationCovariance, basis: FloatArray, places: IntArray, averages: FloatArray
) -> FloatArray | None:
    r"""Return an estimate of c (L,) of each candidate; None where too little is known.

    Where the scale is unknown, each candidate's covariance is known up to a factor c, which is
    integrated out. A variance that a reading brings has to be compared with c before that. What
    the readings vary by from place to place says about how large c is,

    .. math:: E[s^2] = c_\lambda (\bar k_{ii} - \bar k_{ij})

    with the sample variance s² of the places' averages and the candidate's mean covariance of a
    place with itself and with another. That is taken, in steps of √2, as c: a number that depends
    on the readings only, and not on when something was asked.

    Args:
        covariance: prior covariance under each λ at c = 1.
        basis: (n, q) basis of the prior mean, which is not part of what varies.
        places: (k,) with readings.
        averages: (k,) of their readings.
    """
    order = np.argsort(places)
    if order.size > _MOST:
        order = order[np.linspace(0, order.size - 1, _MOST).round().astype(np.int64)]
    places, averages = places[order], averages[order]
    count, known = len(places), basis.shape[1]
    if count < FEWEST + known:
        return None
    columns = np.column_stack([np.ones(count), basis[places]])
    rest = averages - averages.mean()
    rest -= columns @ np.linalg.lstsq(columns, rest, rcond=None)[0]
    variance = float(rest @ rest) / max(count - max(known, 1), 1)
    if not (math.isfinite(variance) and variance > 0.0):
        return None
    between = covariance.between(places, places)
    own = np.trace(between, axis1=1, axis2=2)
    apart = own / count - (between.sum(axis=(1, 2)) - own) / (count * (count - 1))
    # Of a field that hardly varies over the map the readings cannot tell how far it does elsewhere.
    apart = np.maximum(apart, 0.01 * own / count)
    return np.asarray(2.0 ** (np.round(_STEPS * np.log2(variance / apart)) / _STEPS))


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
