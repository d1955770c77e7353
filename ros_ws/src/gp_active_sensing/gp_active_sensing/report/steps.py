"""Steps of a run: the events of each step, and the belief and plan afterwards."""

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


class BeliefUpdater:
    """Updater that adds the readings of a journal to a belief.

    Args:
        belief: the belief to update; with a `source`, a copy is updated.
        topology: the map.
        quantity: name of the quantity; "" = the main quantity.
        source: updater of the linked quantity; None = no link.
    """

    def __init__(
        self,
        belief: Belief,
        topology: Topology,
        quantity: str = "",
        source: BeliefUpdater | None = None,
    ) -> None:
        self._template, self._source = belief, source
        self.belief: Belief = belief if source is None else belief.copy()
        self._topology, self.quantity = topology, quantity
        self._stays: dict[tuple[str, int], tuple[Reading, int]] = {}
        """Average and number of the readings in the last stay, by probe and place."""

    def add(
        self, readings: Sequence[ReadingUsed], *, expert: bool = False
    ) -> Iterator[tuple[int, float]]:
        """Add readings to the belief; yield (place, value) of each accepted reading."""
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
                is_new = self._add(event, place, expert=expert)
            except (ReadingError, IndexError):
                continue
            if is_new:
                self.belief.adapt()
            yield place, reading.value

    def _add_source(self, event: ReadingUsed) -> None:
        if self._source is not None and list(self._source.add([event])):
            follow(self.belief, self._template, self._source.belief)

    def finish(self) -> bool:
        """Update the link to the `source` quantity; return whether this changed the belief."""
        source = self._source
        return source is not None and follow(self.belief, self._template, source.belief, now=True)

    def _add(self, event: ReadingUsed, place: int, *, expert: bool) -> bool:
        belief, stay = self.belief, (event.probe, place)
        now, count = event.average, 1 if event.stay is None else event.stay.count
        before, number = self._stays.get(stay, (now, count))
        seconds = 1e-9 * now.stamp_ns
        if count > number:  # a smaller count begins another stay
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
    """Belief and plan after a stage or a group of readings; the first step precedes all events.

    Args:
        number: number of the stage, or number of readings so far.
        seconds: mission time [s].
        metres: driven distance [m].
        plan: decision before the step; None = no decision. A plan without a waypoint is the route
            to the end place.
        at: place of the probe at the decision; None = not known.
        record: line of the stage in ``records.jsonl``; {} = no record.
        readings: (place, mean, count) for the readings of each place in this step.
        expected: predicted mean and standard deviation of the reading at the visited place.
        masses: weights of the length-scales.
        kernels: weights of the kernels by name; {} for a single kernel.
        observed: number of places with a reading.
        scores: scores of the map; all None if the truth is not known.
        promised: promised error of the map; None = not known.
        limits: places that limits on the field closed (True) or opened (False) after the readings.
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
        """Place of the stage."""
        return None if self.plan is None else self.plan.waypoint

    @property
    def value(self) -> float | None:
        """Reading at the place of the stage; None = no reading."""
        value = self.record.get("value")
        if isinstance(value, int | float):
            return float(value)
        return next((mean for place, mean, _ in self.readings if place == self.place), None)


@dataclass(frozen=True)
class Reconstruction:
    """All steps of a run, and the maps of some steps.

    Args:
        by_stage: True = each step is a stage; False = each step is a group of readings.
        steps: steps in order; the first precedes all events.
        shown: (m,) indices of the steps that have a map; the last step is one of them.
        mean, std: (m, n) mean and standard deviation of the noise-free field at these m steps.
        truth: (m, n) noise-free field at these steps; (1, n) = constant field; None = not known.
        belief: belief after the last reading.
        prior: weights of the length-scales before the first reading.
        prior_kernels: weights of the kernels before the first reading; {} for a single kernel.
        unused: number of unusable readings in the journal.
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
    """Reason why the place of the step could not be reached."""
    probe: str = ""
    """Name of the probe of the step; "" for a single probe."""
    limits: dict[int, bool] = field(default_factory=dict)
    """Places that limits on the field closed (True) or opened (False)."""

    @property
    def so_far(self) -> Mapping[str, Any]:
        """Data in place of the record of a stage, until the record is written."""
        return {"blocked": self.blocked, **({"probe": self.probe} if self.probe else {})}

    def apply(self, event: Event) -> None:
        """Add an event."""
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
    """Sum the (L,) candidate weights by length-scale; leave out candidates of the kernel `NONE`."""
    total: dict[tuple[float, ...], float] = {}
    for candidate, weight in zip(belief.hyperparameters, weights.tolist(), strict=True):
        if candidate.kernel == NONE:
            continue
        key = tuple(candidate.length_scales)
        total[key] = total.get(key, 0.0) + weight
    return total


def kernel_masses(belief: Belief, weights: FloatArray) -> dict[str, float]:
    """Sum the (L,) candidate weights by kernel; {} for a single kernel."""
    total: dict[str, float] = {}
    for candidate, weight in zip(belief.hyperparameters, weights.tolist(), strict=True):
        total[candidate.kernel] = total.get(candidate.kernel, 0.0) + weight
    return {} if set(total) == {""} else total


def gathered(used: Sequence[tuple[int, float]]) -> tuple[tuple[int, float, int], ...]:
    """Return (place, mean value, number of values) of each place, in order of first appearance."""
    by_place: dict[int, list[float]] = {}
    for place, value in used:
        by_place.setdefault(place, []).append(value)
    return tuple((p, float(np.mean(values)), len(values)) for p, values in by_place.items())


def number_of(value: Any, default: Any = None) -> Any:
    """Return a finite number, or the default for any other value."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and np.isfinite(value) else default
