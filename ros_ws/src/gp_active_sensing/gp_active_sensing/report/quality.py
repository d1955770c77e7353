"""Quality of a map without a known truth, from leave-one-out predictions.

Each place is predicted from the readings of all other places, see `Belief.leave_one_out`. The
central 50 % intervals of a correct belief contain half of the readings. The result does not apply
to places far from all readings.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from gp_active_sensing.belief import Belief
from gp_active_sensing.types import FloatArray, IntArray

MOST = 800
"""Largest number D of places with readings; the cost is O(L D³) with L belief candidates."""
FEW = 10
"""Smallest number of places for a verdict on the prediction intervals."""
SHARES = np.arange(5, 100, 5) / 100.0
"""Probabilities of the central prediction intervals on the page."""
_END = 1e-12


@dataclass(frozen=True)
class Calibration:
    """Leave-one-out predictions of the places with readings.

    Args:
        places: (D,) places in the order of their first readings.
        below: (D,) predicted probability of a value below the reading, for each place.
        error: root mean square of reading minus prediction, in the sensor's unit.
    """

    places: IntArray
    below: FloatArray
    error: float

    @property
    def off(self) -> FloatArray:
        """(D,) quantiles of the standard normal distribution at the probabilities `below`."""
        return np.asarray(ndtri(np.clip(self.below, _END, 1.0 - _END)))

    def inside(self, share: float) -> float:
        """Return the fraction of readings in predicted central intervals of probability `share`."""
        return float(np.mean(np.abs(self.below - 0.5) <= 0.5 * share))

    @property
    def verdict(self) -> str:
        """Verdict on the prediction intervals, as a sentence."""
        count = len(self.places)
        if count < FEW:
            return f"{count} places are too few to judge the predicted intervals."
        half, most = self.inside(0.5), self.inside(0.9)
        # Twice the standard deviation of the fraction for independent places.
        if most < 0.9 - 2.0 * np.sqrt(0.09 / count) or half < 0.5 - 2.0 * np.sqrt(0.25 / count):
            return "Near the places that were read, the predicted intervals are too narrow."
        return (
            "Near the places that were read, the predicted intervals are right. Places far from "
            "all readings cannot be checked."
        )

    def to_payload(self) -> dict[str, Any]:
        """Return plain data for the page."""
        return {
            "places": self.places.tolist(),
            "off": [round(value, 3) for value in self.off.tolist()],
            "shares": [round(100.0 * share) for share in SHARES.tolist()],
            "inside": [round(100.0 * self.inside(share), 1) for share in SHARES.tolist()],
            "half": round(100.0 * self.inside(0.5)),
            "most": round(100.0 * self.inside(0.9)),
            "error": float(f"{self.error:.4g}"),
            "verdict": self.verdict,
        }


def calibration_of(belief: Belief) -> Calibration | None:
    """Return the leave-one-out predictions of a belief.

    The result is None if readings lose weight with age. It is also None if fewer than 2 or more
    than `MOST` places have a reading.
    """
    if not 2 <= int(belief.observed.sum()) <= MOST:
        return None
    found = belief.leave_one_out()
    if found is None:
        return None
    spread = np.sqrt(found.variance + belief.average_noise(found.places))
    apart = (found.average - found.mean) / np.maximum(spread, np.finfo(np.float64).tiny)
    below = (found.weights * ndtr(apart)).sum(axis=0)
    inverse = belief.transform.inverse
    errors = inverse(found.read) - inverse(found.predicted)
    return Calibration(found.places, below, float(np.sqrt(np.mean(errors**2))))
