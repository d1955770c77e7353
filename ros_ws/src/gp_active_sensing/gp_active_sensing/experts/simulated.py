"""Simulated experts: fixed stations, a model, and a second probe that drives to the places."""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gp_active_sensing.errors import ConfigError
from gp_active_sensing.experts.base import SOURCE, AnswersConfig, ExpertConfig, Field
from gp_active_sensing.planning.routes.ordering import short_tour
from gp_active_sensing.topology import place_index
from gp_active_sensing.topology.base import Topology
from gp_active_sensing.types import FloatArray, IntArray, Reading

_STREAM = 0xE48E27
"""Key that distinguishes the random draws of experts from other draws with the same seed."""


class Measurement(NamedTuple):
    """Past or future measurement at a place and a time [s]."""

    seconds: float
    place: int


class _DueAnswer(NamedTuple):
    """Answer that becomes available at `seconds`; `number` sorts simultaneous answers."""

    seconds: float
    number: int
    measured: Measurement
    visit: int


class SimulatedExpert:
    """Expert that computes answers from a field, after a delay.

    Times are seconds of the driver's clock. An answer's stamp is the time at which its value was
    valid. The random numbers of an answer depend only on the seed, the place, and the number of
    earlier questions about the place.

    Args:
        field: true field, or a model of the field.
        n: number of places of the map.
        places: places at which the expert can be asked; None = all places.
        noise_std: standard deviation of the added noise, stated with each answer [field unit].
        delay: time from the measurement to the answer [s].
        seed: seed of the random draws.
        faults: probability of each kind of faulty answer: lost, not a number, or wrong place.

    Raises:
        ValueError: an invalid standard deviation or delay, or a place that is not on the map.
    """

    def __init__(
        self,
        field: Field,
        n: int,
        places: npt.ArrayLike | None = None,
        *,
        noise_std: float,
        delay: float = 0.0,
        seed: int = 0,
        faults: float = 0.0,
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
        self._coming: list[_DueAnswer] = []
        self._asked: Counter[int] = Counter()
        self._number = 0

    @property
    def due(self) -> float | None:
        """Time of the next answer [s]; None = no answer is due."""
        return self._coming[0].seconds if self._coming else None

    def ask(self, places: Sequence[int], seconds: float) -> None:
        """Ask for a value at each of the `places`, without waiting.

        Raises:
            ValueError: a place that is not on the map.
        """
        places = [int(place) for place in places]
        self._check(places)
        for measured in self._measure(places, seconds):
            visit = self._asked[measured.place]
            self._asked[measured.place] += 1
            due = _DueAnswer(measured.seconds + self._delay, self._number, measured, visit)
            self._number += 1
            heapq.heappush(self._coming, due)

    def answers(self, seconds: float) -> list[Reading]:
        """Return the new answers up to a time [s], the oldest first."""
        found: list[Reading] = []
        while self._coming and self._coming[0].seconds <= seconds:
            due = heapq.heappop(self._coming)
            if (reading := self._answer(due)) is not None:
                found.append(reading)
        return found

    def _measure(self, places: Sequence[int], seconds: float) -> list[Measurement]:
        """Return the measurements that a question causes."""
        known = self._places
        return [Measurement(seconds, place) for place in places if known is None or place in known]

    def _forget_after(self, seconds: float) -> None:
        kept = [due for due in self._coming if due.measured.seconds <= seconds]
        for due in self._coming:
            if due.measured.seconds > seconds:
                self._asked[due.measured.place] -= 1
        heapq.heapify(kept)
        self._coming = kept

    def _answer(self, due: _DueAnswer) -> Reading | None:
        """Return the answer ``z = f(x, t) + noise_std ε``; None = a lost answer."""
        place, seconds = due.measured.place, due.measured.seconds
        rng = np.random.default_rng([self._seed, place, due.visit, _STREAM])
        # Always draw all numbers: a changed probability then leaves the other draws unchanged.
        silent, broken, elsewhere = rng.random(3)
        noise = float(rng.standard_normal())
        away = int(rng.integers(1, self._n)) if self._n > 1 else 0
        if silent < self._faults:
            return None
        exact = float(self._field(np.array([place], dtype=np.int64), seconds)[0])
        value = exact + self._noise_std * noise
        if broken < self._faults:
            value = math.nan
        if elsewhere < self._faults:
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


class RevisitExpert(SimulatedExpert):
    """Expert whose probe drives to the places of a question before it answers.

    The probe drives a short tour through the places of the newest question. It first finishes the
    current drive to a place, and drops the rest of the earlier tour. An unreachable place gets no
    answer. Arguments that are not listed are as in `SimulatedExpert`.

    Args:
        topology: map of the probe.
        start: first place of the probe; None = the first place of the first question.
        speed: speed of the probe [m/s]; None = the speeds of the map.

    Raises:
        ValueError: the start is not on the map.
    """

    def __init__(
        self,
        field: Field,
        topology: Topology,
        *,
        start: int | None = None,
        speed: float | None = None,
        noise_std: float,
        delay: float = 0.0,
        seed: int = 0,
        faults: float = 0.0,
    ) -> None:
        super().__init__(
            field, topology.n, noise_std=noise_std, delay=delay, seed=seed, faults=faults
        )
        self._check([] if start is None else [start])
        self._topology = topology
        self._speed = speed
        self._at = start
        """Place of the probe before the tour; None = no place yet."""
        self._tour: list[Measurement] = []

    def _measure(self, places: Sequence[int], seconds: float) -> list[Measurement]:
        now, before = self._cancel_tour(seconds), None
        wanted = list(dict.fromkeys(places))
        if not wanted:
            return []
        if self._at is None:
            first = np.full(len(wanted), np.inf)
            first[0] = 0.0
        else:
            first = self._seconds(self._at, wanted)
        between = np.array([self._seconds(place, wanted) for place in wanted])
        for index in short_tour(between, first).order.tolist():
            takes = float(first[index] if before is None else between[before, index])
            if math.isinf(takes):
                continue
            now += takes
            self._tour.append(Measurement(now, wanted[index]))
            before = index
        return self._tour

    def _cancel_tour(self, seconds: float) -> float:
        """Cancel the rest of the tour. Return the time at which the next tour begins [s]."""
        done = [stop for stop in self._tour if stop.seconds <= seconds]
        under_way = self._tour[len(done) : len(done) + 1]
        if done or under_way:
            self._at = (done + under_way)[-1].place
        begins = under_way[0].seconds if under_way else seconds
        self._tour = []
        self._forget_after(begins)
        return begins

    def _seconds(self, at: int, places: Sequence[int]) -> FloatArray:
        by = "seconds" if self._speed is None else "metres"
        ways = self._topology.ways_from(at, by)
        taken = ways.seconds if self._speed is None else ways.metres / self._speed
        found = taken[list(places)].copy()
        found[[place == at for place in places]] = 0.0  # no time to the current place
        return np.asarray(found, dtype=np.float64)


def station_places(config: AnswersConfig, topology: Topology) -> tuple[int, ...] | None:
    """Return the places of the stations, sorted; None = there are no stations.

    Raises:
        ConfigError: a station is not on the map, or occurs twice.
    """
    problems: list[str] = []
    places: list[int] = []
    for number, text in enumerate(config.stations):
        try:
            places.append(_place(topology, text, f"expert.stations[{number}]"))
        except ConfigError as error:
            problems += error.problems
    twice = sorted({topology.names[p] for p in places if places.count(p) > 1})
    if twice:
        problems.append(f"expert.stations: {', '.join(map(repr, twice))} is there more than once")
    if problems:
        raise ConfigError(problems)
    return tuple(sorted(places)) or None


def build_expert(
    config: ExpertConfig, topology: Topology, field: Field, seed: int
) -> SimulatedExpert | None:
    """Return the simulated expert of a scenario; None = the scenario has no expert.

    Raises:
        ConfigError: a station or the start is not on the map.
    """
    if config.kind == "none":
        return None
    how: dict[str, Any] = {"noise_std": config.noise_std, "delay": config.delay}
    how |= {"seed": seed, "faults": config.faults}
    if config.kind == "probe":
        start = config.start
        return RevisitExpert(
            field,
            topology,
            start=None if start is None else _place(topology, start, "expert.start"),
            speed=config.own_speed,
            **how,
        )
    places = station_places(config, topology) if config.kind == "stations" else None
    return SimulatedExpert(field, topology.n, places, **how)


def _place(topology: Topology, text: str, key: str) -> int:
    """Return the place with a name; digits are an index, unless a place has that name."""
    is_index = text.isascii() and text.isdigit() and text not in topology.names
    return place_index(topology, int(text) if is_index else text, key)
