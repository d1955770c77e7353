"""True (noise-free) field of a simulation, for the scores of maps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from gp_active_sensing.types import BoolArray, FloatArray


class GroundTruth:
    """True field of a simulation; in this class it is constant in time.

    Args:
        values: (n,) noise-free values at the places of a map.
        known: (n,) False for a place with a substitute value; None = all True.
    """

    changes: bool = False
    """True if the field changes with time."""

    def __init__(self, values: npt.ArrayLike, known: BoolArray | None = None) -> None:
        self._values = np.array(values, dtype=np.float64)
        self._values.setflags(write=False)
        self._known = None if known is None else np.array(known, dtype=np.bool_)

    def at(self, seconds: float) -> FloatArray:
        """Return the (n,) noise-free values at a time of the mission [s]; read-only."""
        del seconds
        return self._values

    def known(self, seconds: float) -> BoolArray:
        """Return (n,) True for places with a true value at a time of the mission [s].

        Other places have substitute values. Scores leave these places out.
        """
        if self._known is not None:
            return np.array(self._known)
        return np.ones(self._values.size or self.at(seconds).size, dtype=np.bool_)


class SensorModel(Protocol):
    """Probability distribution of a sensor's readings at given true values."""

    def chance(self, exact: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
        """Return the probability (m,) that a reading of each exact value is within [low, high]."""


@dataclass(frozen=True)
class FieldKnowledge:
    """Knowledge about the true field of a simulated mission; empty on a robot.

    Args:
        truth: noise-free field; None = not known.
        sensor: distribution of the sensor's readings; None = not known.
        unit: unit of the values; "" = not known.
        further: knowledge about further quantities, by name.
    """

    truth: GroundTruth | None = None
    sensor: SensorModel | None = None
    unit: str = ""
    further: Mapping[str, FieldKnowledge] = field(default_factory=dict)

    def of(self, quantity: str) -> FieldKnowledge:
        """Return the knowledge about a further quantity."""
        return self.further.get(quantity, NOTHING)


NOTHING = FieldKnowledge()
"""Empty knowledge about the field, as on a robot."""
