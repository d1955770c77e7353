"""Fixed stations as an expert: each says what it measures where it stands."""

from __future__ import annotations

from collections.abc import Sequence

import numpy.typing as npt

from gp_active_sensing.experts.base import Field
from gp_active_sensing.experts.simulated import SOUND, Faults, Measured, SimulatedExpert

__all__ = ["StationsExpert"]


class StationsExpert(SimulatedExpert):
    """Answers at the places of its stations, and nowhere else.

    Args:
        field: what the stations measure.
        n: number of places of the map.
        places: where they stand.
        noise_std: of a station [field unit].
        delay: from the measurement to the answer [s].
        seed: key of the draws.
        faults: how often an answer goes wrong.

    Raises:
        ValueError: no station, or one that is not on the map.
    """

    def __init__(
        self,
        field: Field,
        n: int,
        places: npt.ArrayLike,
        *,
        noise_std: float,
        delay: float = 0.0,
        seed: int = 0,
        faults: Faults = SOUND,
    ) -> None:
        super().__init__(
            field, n, noise_std=noise_std, delay=delay, seed=seed, faults=faults, places=places
        )
        if self._places is None or not self._places.size:
            msg = "stations: expected at least one place, got none"
            raise ValueError(msg)
        self._at = frozenset(self._places.tolist())

    def _measure(self, places: Sequence[int], seconds: float) -> list[Measured]:
        return [Measured(seconds, place) for place in places if place in self._at]
