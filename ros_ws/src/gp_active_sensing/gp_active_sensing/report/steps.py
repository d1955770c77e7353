"""Steps of a run: the events of each step, and the belief and plan afterwards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gp_active_sensing.belief import Belief
from gp_active_sensing.belief.link import follow
from gp_active_sensing.belief.mixture import rounded_scale, sum_by_scale
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
from gp_active_sensing.records.metrics import NO_SCORES
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

    def add(self, event: ReadingUsed | ExpertAnswered) -> tuple[int, float] | None:
        """Add a reading to the belief; return its place and value, or None if it was not used.

        A reading of another quantity can only update the `source`.
        """
        reading, place = event.reading, event.reading.location
        if reading.quantity != self.quantity:
            if self._source is not None and self._source.add(event) is not None:
                follow(self.belief, self._template, self._source.belief)
            return None
        if place is None and reading.position is not None:
            x, y, *up = reading.position
            place = self._topology.snap(x, y, np.inf, *up)
        if place is None:
            return None
        try:
            is_new = self._add(event, place)
        except (ReadingError, IndexError):
            return None
        if is_new:
            self.belief.adapt()
        return place, reading.value

    def finish(self) -> bool:
        """Update the link to the `source` quantity; return whether this changed the belief."""
        source = self._source
        return source is not None and follow(self.belief, self._template, source.belief, now=True)

    def _add(self, event: ReadingUsed | ExpertAnswered, place: int) -> bool:
        """Add a reading; return whether the place is newly observed."""
        belief, now, seconds = self.belief, event.reading, 1e-9 * event.reading.stamp_ns
        if isinstance(event, ExpertAnswered):
            belief.observe(
                place, now.value, now.noise_variance, seconds=seconds, expert=True, off=now.off
            )
            return False
        stay, now = (event.probe, place), event.average
        count = 1 if event.stay is None else event.stay.count
        before, number = self._stays.get(stay, (now, count))
        if count > number:  # a smaller count begins another stay
            gone = before.value, before.noise_variance, 1e-9 * before.stamp_ns, before.off
            belief.amend(place, gone, now.value, now.noise_variance, seconds=seconds, off=now.off)
            self._stays[stay] = replace(now, stamp_ns=before.stamp_ns), count
            return False
        is_new = not belief.observed[place]
        belief.observe(place, now.value, now.noise_variance, seconds=seconds, off=now.off)
        self._stays[stay] = now, count
        return is_new


@dataclass(frozen=True)
class ReportStep:
    """Belief after a stage or a group of readings; the first step precedes all events.

    Args:
        number: number of the stage, or number of readings so far.
        seconds: mission time [s].
        metres: driven distance [m].
        plan: decision that begins the step; None = no decision. A plan without a waypoint is the
            route to the end place.
        at: place of the probe at the decision; None = not known.
        record: line of the stage in ``records.jsonl``; {} = no record.
        readings: (place, mean, count) for the readings of each place in this step.
        expected: predicted mean and standard deviation of the reading at the visited place.
        masses: weights of the length-scales.
        kernels: weights of the kernels by name; {} for a single kernel.
        observed: number of places with a reading.
        scores: `records.metrics.Scores` of the map; all None if the truth is not known.
        promised: expected error of the map; None = not known.
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
    def value(self) -> float | None:
        """Reading at the place that the decision chose; None = no reading."""
        value = self.record.get("value")
        if isinstance(value, int | float):
            return float(value)
        goal = None if self.plan is None else self.plan.waypoint
        return next((mean for place, mean, _ in self.readings if place == goal), None)


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
class GrowingStep:
    """Events of a step, and results from the belief after these events.

    Args:
        number: number of the stage, or number of readings so far.
        plan, at: as in `ReportStep`.
        probe: name of the probe of the step; "" for a single probe.
        seconds: duration of the step [s].
        metres: driven distance [m].
        blocked: reason why the place of the step could not be reached.
        limits: places that limits on the field closed (True) or opened (False).
        expected: for each place, mean and standard deviation of a reading, predicted before the
            step.
        used: (place, value) of each used reading of the step, in order.
        length_scales: sum of the candidate weights for each length-scale.
        kernels: sum of the candidate weights for each kernel.
        observed: number of places with a reading.
        promised: expected error of the map; None = not known.
        scores: scores of the map; all None if the truth is not known.
        mean, std, truth: (n,) maps; None = the step has no map.
        version: value of `GrowingReconstruction.looks` when the results were computed.
    """

    number: int
    plan: Plan | None = None
    at: int | None = None
    probe: str = ""
    seconds: float = 0.0
    metres: float = 0.0
    blocked: str = ""
    limits: dict[int, bool] = field(default_factory=dict)
    expected: dict[int, tuple[float, float]] = field(default_factory=dict)
    used: list[tuple[int, float]] = field(default_factory=list)
    length_scales: Mapping[tuple[float, ...], float] = field(default_factory=dict)
    kernels: Mapping[str, float] = field(default_factory=dict)
    observed: int = 0
    promised: float | None = None
    scores: Mapping[str, Any] = field(default_factory=lambda: NO_SCORES)
    mean: FloatArray | None = None
    std: FloatArray | None = None
    truth: FloatArray | None = None
    version: int = 0

    @property
    def so_far(self) -> Mapping[str, Any]:
        """Substitute for the record of a stage until the record is written."""
        return {"blocked": self.blocked, **({"probe": self.probe} if self.probe else {})}

    def apply(self, event: Event) -> None:
        """Add an event other than a reading."""
        match event:
            case Moved():
                self.seconds += event.cost.seconds
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
    """Sum the (L,) candidate weights by length-scale; leave out candidates of the kernel `NONE`.

    The length-scales are rounded, so that they are the same in all steps.
    """
    candidates = zip(belief.hyperparameters, weights.tolist(), strict=True)
    scales = (("", h.length_scales, weight) for h, weight in candidates if h.kernel != NONE)
    return {rounded_scale(scale): weight for (_, scale), weight in sum_by_scale(scales).items()}


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
