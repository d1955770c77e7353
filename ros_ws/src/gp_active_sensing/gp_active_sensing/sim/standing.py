"""A field as it is: what every kind of truth offers, and the kind that stands still."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gp_active_sensing.types import FloatArray

__all__ = ["Truth"]


class Truth:
    """A field as it is, known in simulation only; this one stands still.

    Args:
        values: (n,) noise-free values at the places of a map.
    """

    def __init__(self, values: npt.ArrayLike) -> None:
        self._values = np.array(values, dtype=np.float64)
        self._values.setflags(write=False)

    @property
    def changes(self) -> bool:
        """The field changes as time goes by."""
        return False

    def at(self, seconds: float) -> FloatArray:
        """Return the (n,) noise-free values at a time of the mission [s]; read-only."""
        del seconds
        return self._values
