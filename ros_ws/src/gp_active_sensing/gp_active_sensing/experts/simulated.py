"""Experts whose answers are computed: they take time and may go wrong; stations, and a model."""

from __future__ import annotations

import heapq
import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gp_active_sensing.experts.base import SOURCE, Field
from gp_active_sensing.types import FloatArray, IntArray, Reading

__all__ = [
    "SOUND",
    "Faults",
    "Measured",
    "ModelExpert",
    "SimulatedExpert",
    "StationsExpert",
    "of_map",
]

_STREAM = 0xE48E27
"""Keeps the draws apart from others keyed by the same seed."""


class Faults(NamedTuple):
    """How often answers go wrong.

    Args:
        dropout: probability that an answer never comes.
        nan: probability that it is not a number.
        wrong: probability that it says another place than the one that was asked for.
    """

    dropout: float = 0.0
    nan: float = 0.0
    wrong: float = 0.0


SOUND = Faults()
"""Nothing ever goes wrong."""


class Measured(NamedTuple):
    """A value that will be, or was, measured.

    Args:
        seconds: when it is valid.
        place: where.
    """

    seconds: float
    place: int


class _Due(NamedTuple):
    """An answer on its way; `number` keeps the order of those that come together."""

    seconds: float
    number: int
    measured: Measured
    visit: int


def of_map(values: FloatArray) -> Field:
    """Return a field that stands still as what an expert asks.

    Args:
        values: (n,) at all places of a map.
    """

    def field(places: IntArray, seconds: float) -> FloatArray:
        del seconds
        return np.asarray(values[places], dtype=np.float64)

    return field


class SimulatedExpert(ABC):
    """Answers from a field that can be computed, after a delay.

    Every draw is keyed by (seed, place, how often it was asked for there), so neither the order of
    questions nor what else is drawn changes an answer.

    Args:
        field: what is true, or what a model says.
        n: number of places of the map.
        noise_std: standard deviation that is added, and stated with each answer [field unit].
        delay: from the measurement to the answer [s].
        seed: key of the draws.
        faults: how often an answer goes wrong.
        places: where it can be asked; None = anywhere.

    Raises:
        ValueError: a standard deviation or delay that cannot be, a place that is not on the map.
    """

    def __init__(
        self,
        field: Field,
        n: int,
        *,
        noise_std: float,
        delay: float = 0.0,
        seed: int = 0,
        faults: Faults = SOUND,
        places: npt.ArrayLike | None = None,
    ) -> None:
        if not (math.isfinite(noise_std) and noise_std > 0.0):
            msg = f"noise_std of an expert: expected a number above 0, got {noise_std!r}"
            raise ValueError(msg)
        if not (math.isfinite(delay) and delay >= 0.0):
            msg = f"delay of an expert: expected 0 s or more, got {delay!r}"
            raise ValueError(msg)
        self._field = field
        self._n = n
        self._noise_std = noise_std
        self._delay = delay
        self._seed = seed
        self._faults = faults
        self._places: IntArray | None = None
        if places is not None:
            self._places = np.unique(np.asarray(places, dtype=np.int64))
            self._check(self._places.tolist())
        self._coming: list[_Due] = []
        self._asked: Counter[int] = Counter()
        self._number = 0

    @property
    def places(self) -> IntArray | None:
        """(k,) where it can be asked, sorted; None = anywhere on the map."""
        return self._places

    @property
    def due(self) -> float | None:
        """When the next answer comes [s]; None when none is on its way."""
        return self._coming[0].seconds if self._coming else None

    def ask(self, places: Sequence[int], seconds: float) -> None:
        """Ask for a value at each of some places.

        Raises:
            ValueError: a place that is not on the map.
        """
        places = [int(place) for place in places]
        self._check(places)
        for measured in self._measure(places, seconds):
            visit = self._asked[measured.place]
            self._asked[measured.place] += 1
            due = _Due(measured.seconds + self._delay, self._number, measured, visit)
            self._number += 1
            heapq.heappush(self._coming, due)

    def answers(self, seconds: float) -> list[Reading]:
        """Return what has come in by a time and was not returned before, the oldest first."""
        found: list[Reading] = []
        while self._coming and self._coming[0].seconds <= seconds:
            due = heapq.heappop(self._coming)
            if (reading := self._answer(due)) is not None:
                found.append(reading)
        return found

    @abstractmethod
    def _measure(self, places: Sequence[int], seconds: float) -> list[Measured]:
        """Return what will be measured because of a question, and when."""

    def _forget_after(self, seconds: float) -> None:
        """Call off what was to be measured later than a time."""
        kept = [due for due in self._coming if due.measured.seconds <= seconds]
        for due in self._coming:
            if due.measured.seconds > seconds:
                self._asked[due.measured.place] -= 1
        heapq.heapify(kept)
        self._coming = kept

    def _answer(self, due: _Due) -> Reading | None:
        """Return an answer, None for one that is lost: ``z = f(x, t) + noise_std ε``."""
        place, seconds = due.measured.place, due.measured.seconds
        rng = np.random.default_rng([self._seed, place, due.visit, _STREAM])
        # All are drawn, whatever the probabilities: changing one leaves the others as they were.
        silent, broken, elsewhere = rng.random(3)
        noise = float(rng.standard_normal())
        away = int(rng.integers(1, self._n)) if self._n > 1 else 0
        if silent < self._faults.dropout:
            return None
        exact = float(self._field(np.array([place], dtype=np.int64), seconds)[0])
        value = exact + self._noise_std * noise
        if broken < self._faults.nan:
            value = math.nan
        if elsewhere < self._faults.wrong:
            place = (place + away) % self._n
        return Reading(
            stamp_ns=round(1e9 * seconds),
            location=place,
            value=value,
            noise_variance=self._noise_std**2,
            source=SOURCE,
        )

    def _check(self, places: Sequence[int]) -> None:
        for place in places:
            if not 0 <= place < self._n:
                msg = f"an expert at place {place}; the map has places 0 … {self._n - 1}"
                raise ValueError(msg)


class ModelExpert(SimulatedExpert):
    """Answers anywhere on the map with what its field says at the time of the question.

    The standard deviation says how far the model is trusted. In a simulation the field is the
    truth, so that the answers are as good as they say.
    """

    def _measure(self, places: Sequence[int], seconds: float) -> list[Measured]:
        return [Measured(seconds, place) for place in places]


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
