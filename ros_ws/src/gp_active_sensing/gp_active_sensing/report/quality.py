"""How good is a map without a known truth: how well its readings predict each other.

Each place that was read is predicted from the readings of all other places, see
`gp_active_sensing.belief.leave_one_out`. With the probability u that the belief gave to less than
what was read there, a belief that is right has u uniform: half of the places are within its central
50 % interval. The places left out lie beside others that were read, so intervals that are wide
there say nothing of places far from every reading.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from gp_active_sensing.belief import Belief
from gp_active_sensing.types import FloatArray, IntArray

MOST = 800
"""Places with readings; of more it is not worked out, which would take O(L D³)."""
FEW = 10
"""Smallest number of places for which the intervals are judged."""
SHARES = np.arange(5, 100, 5) / 100.0
"""Probabilities of the central intervals that are counted."""
_END = 1e-12


@dataclass(frozen=True)
class Calibration:
    """Leave-one-place-out predictions.

    Args:
        places: (D,) in the order in which they were first read.
        below: (D,) probability of less than what was read at each, by the readings elsewhere.
        error: root mean square of what was read less what was predicted, in the sensor's unit.
    """

    places: IntArray
    below: FloatArray
    error: float

    @property
    def off(self) -> FloatArray:
        """(D,) how far off each is, in standard deviations of a normal distribution."""
        return np.asarray(ndtri(np.clip(self.below, _END, 1.0 - _END)))

    def inside(self, share: float) -> float:
        """Return the share of the places within the central intervals of a probability."""
        return float(np.mean(np.abs(self.below - 0.5) <= 0.5 * share))

    @property
    def verdict(self) -> str:
        """Return the verdict as a sentence."""
        count = len(self.places)
        if count < FEW:
            return f"{count} places are too few to say how well the intervals fit."
        half, most = self.inside(0.5), self.inside(0.9)
        # Twice the standard deviation of a share of so many independent places.
        if most < 0.9 - 2.0 * np.sqrt(0.09 / count) or half < 0.5 - 2.0 * np.sqrt(0.25 / count):
            return "Beside places that were read the intervals are too narrow."
        return (
            "Beside places that were read the intervals hold what they promise. Places far from "
            "every reading cannot be checked."
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
    """Return the leave-one-place-out predictions; None where they are not computed.

    So with fewer than two places or more than `MOST`, and where readings age.
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
