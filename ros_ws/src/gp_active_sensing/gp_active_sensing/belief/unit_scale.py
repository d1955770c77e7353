r"""What a variance in the unit of the readings is worth where the scale of the field is unknown.

There each candidate's covariance is known up to a factor c, which is integrated out: a variance
that a reading brings has to be set against c before it can be. What the readings vary by from place
to place says about how large c is,

.. math:: E[s^2] = c_\lambda (\bar k_{ii} - \bar k_{ij})

with the sample variance s² of the places' averages and the candidate's mean covariance of a place
with itself and with another. That is taken, in steps of √2, as c: a number that depends on the
readings only, and not on when something was asked.
"""

from __future__ import annotations

import math

import numpy as np

from gp_active_sensing.belief.covariance import LocationCovariance
from gp_active_sensing.types import FloatArray, IntArray

__all__ = ["FEWEST", "unit_scale"]

FEWEST = 5
"""Places below which what they vary by says next to nothing."""
_MOST = 128
"""Places that are looked at, evenly spread over those there are."""
_STEPS = 2.0
"""Steps of c to a factor of two."""


def unit_scale(
    covariance: LocationCovariance, basis: FloatArray, places: IntArray, averages: FloatArray
) -> FloatArray | None:
    """Return c (L,) of each candidate; None where too little is known.

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
