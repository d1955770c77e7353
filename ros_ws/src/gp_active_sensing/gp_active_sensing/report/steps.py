"""Steps of a run: what happened between two of them, and what was known after each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gp_active_sensing.belief import Belief
from gp_active_sensing.belief.link import follow
from gp_active_sensing.errors import ReadingError
from gp_active_sensing.kernels import NONE
from gp_active_sensing.records.events import (
    Event,
    ExpertAnswered,
    LimitsMoved,
    Moved,
    MoveShut,
    PlaceBlocked,
    ReadingUsed,
)
from gp_active_sensing.topology import Topology
from gp_active_sensing.types import FloatArray, Plan, Reading


class JournalTeller:
    """Passes readings to a belief in order.

    Args:
        belief: is changed.
        topology: the map.
        quantity: whose readings it takes; "" = the main one.
        source: teller of the quantity whose map the belief is to be linked to; None = none.
    """

    def __init__(
        self,
        belief: Belief,
        topology: Topology,
        quantity: str = "",
        source: JournalTeller | None = None,
    ) -> None:
        self._template, self._source = belief, source
        self.belief: Belief = belief if source is None else belief.copy()
        self._topology, self.quantity = topology, quantity
        self._stays: dict[tuple[str, int], tuple[Reading, int]] = {}
        """By probe and place: what the belief holds of the last stay, of how many readings."""

    def tell(
        self, readings: Sequence[ReadingUsed], *, expert: bool = False
    ) -> Iterator[tuple[int, float]]:
        """Take in readings; yield (place, value) of those that could be used."""
        for event in readings:
            reading, place = event.reading, event.reading.location
            if reading.quantity != self.quantity:
                self._add_source(event)
                continue
            if place is None and reading.position is not None:
                x, y, *up = reading.position
                place = self._topology.snap(x, y, np.inf, *up)
            if place is None:
                continue
            try:
                is_new = self._tell(event, place, expert=expert)
            except (ReadingError, IndexError):
                continue
            if is_new:
                self.belief.adapt()
            yield place, reading.value

    def _add_source(self, event: ReadingUsed) -> None:
        """Tell a reading of another quantity, if the belief is linked to that one."""
        if self._source is not None and list(self._source.tell([event])):
            follow(self.belief, self._template, self._source.belief)

    def finish(self) -> bool:
        """Link the map to all that was read, as a mission does in the end; say whether it changed.

        Without a link nothing changes.
        """
        source = self._source
        return source is not None and follow(self.belief, self._template, source.belief, now=True)

    def _tell(self, event: ReadingUsed, place: int, *, expert: bool) -> bool:
        belief, stay = self.belief, (event.probe, place)
        now, count = event.average, 1 if event.stay is None else event.stay.count
        before, number = self._stays.get(stay, (now, count))
        seconds = 1e-9 * now.stamp_ns
        if count > number:  # otherwise it begins a stay, or what it goes on with is lost
            gone = before.value, before.noise_variance, 1e-9 * before.stamp_ns, before.off
            belief.amend(place, gone, now.value, now.noise_variance, seconds=seconds, off=now.off)
            self._stays[stay] = replace(now, stamp_ns=before.stamp_ns), count
            return False
        is_new = not expert and not belief.observed[place]
        belief.observe(
            place, now.value, now.noise_variance, seconds=seconds, expert=expert, off=now.off
        )
        if not expert:
            self._stays[stay] = now, count
        return is_new


@dataclass(frozen=True)
class ReportStep:
    """State after a stage or a group of readings; the first one is before any.

    Args:
        number: of the stage, or of readings so far.
        seconds: time of the mission [s].
        metres: driven [m].
        plan: the decision that led here, None without one; one without a waypoint is the way to the
            end place.
        at: where the probe stood when it was taken, None when not known.
        record: the stage's line of ``records.jsonl``, {} without one.
        readings: (place, mean, count) of the readings of this step.
        expected: mean and standard deviation, before it, of the reading at the chosen place (or
            where the probe went instead).
        masses: belief over the length-scales; the candidates may follow the readings.
        kernels: belief over the kernels by their names, {} where there is one only.
        observed: number of places with a reading.
        scores: of the map, all None without a truth.
        promised: error of the map that the belief promises; None where that was neither kept nor
            worked out again.
        limits: places that the limits closed (True) or opened after its readings.
    """

    number: int
    seconds: float
    metres: float
    plan: Plan | None
    at: int | None
    record: Mapping[str, Any]
    readings: tuple[tuple[int, float, int], ...]
    expected: tuple[float, float] | None
    masses: Mapping[tuple[float, ...], float]
    kernels: Mapping[str, float]
    observed: int
    scores: Mapping[str, float | None]
    promised: float | None = None
    limits: Mapping[int, bool] = field(default_factory=dict)

    @property
    def rmspe(self) -> float | None:
        """Root mean squared prediction error, see `Scores`."""
        return self.scores["rmspe"]

    @property
    def nlpd(self) -> float | None:
        """Mean negative log predictive density, see `Scores` [nat]."""
        return self.scores["nlpd"]

    @property
    def place(self) -> int | None:
        """The place of the stage."""
        return None if self.plan is None else self.plan.waypoint

    @property
    def value(self) -> float | None:
        """Return the reading at the place of the stage, None without one."""
        value = self.record.get("value")
        if isinstance(value, int | float):
            return float(value)
        return next((mean for place, mean, _ in self.readings if place == self.place), None)


@dataclass(frozen=True)
class Reconstruction:
    """All steps of a run, and the maps of some of them.

    Args:
        by_stage: a step is a stage; otherwise a group of readings.
        steps: in order; the first is before any decision and reading.
        shown: (m,) numbers of the steps with a map; the last step is among them.
        mean, std: (m, n) estimate and uncertainty of the noise-free field.
        truth: (m, n) noise-free field; (1, n) when it does not change, None when not known.
        belief: after the last reading.
        prior: belief over the length-scales before the first reading.
        prior_kernels: belief over the kernels then, {} where there is one only.
        unused: readings of the journal that could not be used.
    """

    by_stage: bool
    steps: tuple[ReportStep, ...]
    shown: tuple[int, ...]
    mean: FloatArray
    std: FloatArray
    truth: FloatArray | None
    belief: Belief
    prior: Mapping[tuple[float, ...], float]
    prior_kernels: Mapping[str, float]
    unused: int


@dataclass
class StepEvents:
    """Events between two steps."""

    number: int
    plan: Plan | None = None
    at: int | None = None
    readings: list[ReadingUsed] = field(default_factory=list)
    answers: list[ReadingUsed] = field(default_factory=list)
    """Answers of an expert."""
    driven: float = 0.0
    metres: float = 0.0
    blocked: str = ""
    """Why the place could not be reached."""
    probe: str = ""
    """That was sent there; "" = the only one."""
    limits: dict[int, bool] = field(default_factory=dict)
    """Places that the limits closed (True) or opened."""

    @property
    def so_far(self) -> Mapping[str, Any]:
        """Return a substitute for the record of a stage without one."""
        return {"blocked": self.blocked, **({"probe": self.probe} if self.probe else {})}

    def apply(self, event: Event) -> None:
        """Add what an event says."""
        match event:
            case ReadingUsed():
                self.readings.append(event)
            case ExpertAnswered():
                self.answers.append(ReadingUsed(reading=event.reading))
            case Moved():
                self.driven += event.cost.seconds
                self.metres += event.cost.metres
            case LimitsMoved():
                self.limits |= dict.fromkeys(event.closed, True)
                self.limits |= dict.fromkeys(event.opened, False)
            case PlaceBlocked() if self.plan is not None:
                if event.location == self.plan.waypoint:
                    self.blocked = event.why
            case MoveShut() if self.plan is not None:
                self.blocked = f"the way there is shut: {event.why}"


def masses(belief: Belief, weights: FloatArray) -> dict[tuple[float, ...], float]:
    """Return weights (L,) by length-scale; candidates that differ in signal or noise add up.

    Candidates without spatial correlation have none.
    """
    total: dict[tuple[float, ...], float] = {}
    for candidate, weight in zip(belief.hyperparameters, weights.tolist(), strict=True):
        if candidate.kernel == NONE:
            continue
        key = tuple(candidate.length_scales)
        total[key] = total.get(key, 0.0) + weight
    return total


def kernel_masses(belief: Belief, weights: FloatArray) -> dict[str, float]:
    """Return weights (L,) by kernel; {} where all candidates have the same."""
    total: dict[str, float] = {}
    for candidate, weight in zip(belief.hyperparameters, weights.tolist(), strict=True):
        total[candidate.kernel] = total.get(candidate.kernel, 0.0) + weight
    return {} if set(total) == {""} else total


def gathered(used: Sequence[tuple[int, float]]) -> tuple[tuple[int, float, int], ...]:
    """Return (place, mean, count) of (place, value), in the order in which the places came."""
    by_place: dict[int, list[float]] = {}
    for place, value in used:
        by_place.setdefault(place, []).append(value)
    return tuple((p, float(np.mean(values)), len(values)) for p, values in by_place.items())


def number_of(value: Any, default: Any = None) -> Any:
    """Return a finite number of a record, or the default."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and np.isfinite(value) else default
