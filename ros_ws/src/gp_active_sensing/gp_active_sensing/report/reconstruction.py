"""Reconstruct the steps or the map of a run from its journal and records.

The belief receives each event once. `ReportStep` objects are built only on request, because the
record of a stage may arrive after later stages.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np

from gp_active_sensing.belief import Belief
from gp_active_sensing.errors import RunError
from gp_active_sensing.export.field_map import FieldMap, Limit
from gp_active_sensing.records.event_lines import parse_events
from gp_active_sensing.records.events import (
    DecisionTaken,
    Event,
    ExpertAnswered,
    ReadingUsed,
    ReturnBegun,
)
from gp_active_sensing.records.metrics import SCORES, Scorer
from gp_active_sensing.report.source import RunData, load_run, section_of
from gp_active_sensing.report.steps import (
    BeliefUpdater,
    GrowingStep,
    Reconstruction,
    ReportStep,
    gathered,
    kernel_masses,
    masses,
    number_of,
)

logger = logging.getLogger(__name__)

GROUPS = 200
"""Number of reading groups after a merge in pairs; a merge is due above twice this number."""
_OF_MAIN = (
    "value", "promised", "explained", "regret", "recommended", "rms", "nlpd", "coverage", "reading_"
)  # fmt: skip
"""Prefixes of record keys that describe the main quantity."""
VALUES = 4_000_000
"""Largest number of map values over all steps. Some steps of a long run therefore have no map."""


def replay(data: RunData) -> Reconstruction:
    """Return the steps of a run from its journal and records.

    Each step with a map needs a prediction of all places.

    Raises:
        RunError: an event of the journal cannot be used.
    """
    events = tuple(parse_events(data.events))
    steps = 1 + sum(isinstance(event, DecisionTaken | ReturnBegun) for event in events)
    most = max(2, min(steps, VALUES // max(data.topology.n, 1)))
    shown = np.linspace(0, steps - 1, most).round().astype(int).tolist()
    growing = GrowingReconstruction(data, shown=shown if steps > 1 else None)
    growing.records(data.records)
    growing.add(events)
    growing.finish()
    return growing.now()


def _updater(data: RunData) -> BeliefUpdater:
    linked = data.linked_to
    source = None if linked is None else _updater(linked)
    return BeliefUpdater(data.fresh_belief(), data.topology, data.of, source)


class GrowingReconstruction:
    """Steps of a run, updated event by event.

    Args:
        data: the run without events; `add` receives the events.
        shown: indices of the steps that get a map; None = all. Above `VALUES` map values, every
            second step loses its map.
    """

    def __init__(self, data: RunData, shown: Collection[int] | None = None) -> None:
        self.data = data
        """The run; callers may replace it by the same run with newer records, summary or truth."""
        self._updater = _updater(data)
        self.parts: list[GrowingStep] = [GrowingStep(0)]
        """Data of each step; the last step can still change."""
        self.by_stage = False
        self.unused = 0
        self.looks = 0
        """Number of times that the results of the last step were computed."""
        self._prior = masses(self.belief, self.belief.prior_weights)
        self._prior_kernels = kernel_masses(self.belief, self.belief.prior_weights)
        self._records: dict[int, Mapping[str, Any]] = {}
        self._changed = True
        """True if the results of the last step must be computed again."""
        self._last: int | None = None
        """Place that the previous decision chose."""
        self._size = 1
        """Number of readings per group in a run without decisions."""
        self._count = 0
        """Number of readings so far in a run without decisions."""
        self._stamp_ns: int | None = None
        """Stamp of the last reading [ns]; None = no reading yet."""
        self._most = max(2, VALUES // max(data.topology.n, 1))
        """Largest number of steps with a map."""
        self._shown = None if shown is None else set(shown)
        self._follows = section_of(data.config, "mission").get("follow") == "probe"
        """True if the probe moves freely instead of following the plan."""
        self._seconds = 0.0

    @property
    def belief(self) -> Belief:
        """Belief after all readings so far."""
        return self._updater.belief

    def finish(self) -> None:
        """Update the link to another quantity with all readings, as at the end of a mission."""
        self._changed |= self._updater.finish()

    def add(self, events: Iterable[Event]) -> None:
        """Add events, in journal order."""
        for event in events:
            if isinstance(event, DecisionTaken | ReturnBegun):
                self._decide(event)
            else:
                if not self.by_stage and isinstance(event, ReadingUsed):
                    self._group(event)
                self._apply(event)

    def records(self, records: Iterable[Mapping[str, Any]], *, again: bool = False) -> None:
        """Add records of stages; with `again` remove the earlier records first."""
        if again:
            self._records.clear()
        self._records |= {int(r["stage"]): r for r in records if isinstance(r.get("stage"), int)}

    def _apply(self, event: Event) -> None:
        part = self.parts[-1]
        if not isinstance(event, ReadingUsed | ExpertAnswered):
            part.apply(event)
            return
        before = self.belief.covariance
        used = self._updater.add(event)
        if event.reading.quantity != self.data.of:
            self._changed |= self.belief.covariance is not before  # the link was updated
            return
        self._changed = True
        if used is None:
            self.unused += 1
        elif isinstance(event, ReadingUsed):
            part.used.append(used)

    def _decide(self, event: DecisionTaken | ReturnBegun) -> None:
        if not self.by_stage:
            self._merge_all()
            self.by_stage = True
        self._finish_stage()
        number = event.stage if isinstance(event, DecisionTaken) else self.parts[-1].number + 1
        at = self._last if event.at is None else event.at
        step = GrowingStep(number, event.plan, at, event.probe)
        self._begin(step)
        self._last = event.plan.waypoint
        if event.plan.waypoint is not None:
            went = self._record(step).get("went")
            places = {event.plan.waypoint, went if isinstance(went, int) else event.plan.waypoint}
            step.expected = self._expected(sorted(places))

    def _expected(self, wanted: Sequence[int]) -> dict[int, tuple[float, float]]:
        """Predict readings at the wanted places, or at all places if the probe moves freely."""
        anywhere = self._follows and self._shown is None  # complete records have the visited place
        places = np.arange(self.data.topology.n) if anywhere else np.array(wanted)
        mean, variance = self.belief.predict(places, noisy=True)
        found = zip(places.tolist(), mean.tolist(), np.sqrt(variance).tolist(), strict=True)
        return {p: (m, s) for p, m, s in found}

    def _group(self, event: ReadingUsed) -> None:
        """Add a reading of a run without decisions to the last group, or to a new group."""
        if event.reading.quantity != self.data.of:
            return
        stamp = event.reading.stamp_ns
        if self._count % self._size == 0:
            self._finish_stage()
            self._begin(GrowingStep(self._count))
            if len(self.parts) > 2 * GROUPS + 1:  # besides the first and the last step
                self._merge_pairs()
        self._count += 1
        part = self.parts[-1]
        part.number = self._count
        part.seconds += 1e-9 * (stamp - (stamp if self._stamp_ns is None else self._stamp_ns))
        self._stamp_ns = stamp

    def _merge_pairs(self) -> None:
        first, *full, still_open = self.parts
        pairs = zip(full[::2], full[1::2], strict=True)
        self.parts = [first, *(_merged(a, b) for a, b in pairs), still_open]
        self._size *= 2

    def _merge_all(self) -> None:
        whole = reduce(_merged, self.parts)
        whole.number = 0
        self.parts = [whole]

    def _begin(self, step: GrowingStep) -> None:
        self.parts.append(step)
        self._changed = True
        with_map = [part for part in self.parts if part.mean is not None]
        if len(with_map) > self._most:
            for part in with_map[1:-1:2]:
                part.mean = part.std = part.truth = None

    def _finish_stage(self) -> None:
        if not self._changed:
            return
        self._changed = False
        part, belief, data = self.parts[-1], self.belief, self.data
        part.length_scales = masses(belief, belief.weights)
        part.kernels = kernel_masses(belief, belief.weights)
        part.observed = int(belief.observed.sum())
        record = self._record(part)
        with_map = self._shown is None or len(self.parts) - 1 in self._shown
        lacks = data.truth is not None and not all(key in record for key in SCORES)
        if with_map or lacks:
            found = belief.mixture()
            promise = belief.promise(data.topology.weights, found)
            part.promised = None if promise is None else promise.error
            at = number_of(record.get("truth_seconds"), self._seconds + part.seconds)
            if data.truth is not None and lacks:
                part.scores = Scorer(data.truth, data.sensor).of(belief, at, found)
            if with_map:
                mean, variance = found.moments()
                part.mean, part.std = mean, np.sqrt(variance)
                part.truth = None if data.truth is None else data.truth.at(at)
        self.looks += 1
        part.version = self.looks

    def _record(self, part: GrowingStep) -> Mapping[str, Any]:
        if part.plan is None or not part.plan.waypoints:
            return {}
        found = self._records.get(part.number, part.so_far)
        if not self.data.of:
            return found
        own: Mapping[str, Any] = found.get("quantities", {}).get(self.data.of, {})
        return {**{k: v for k, v in found.items() if not k.startswith(_OF_MAIN)}, **own}

    def now(self) -> Reconstruction:
        """Return all steps so far."""
        self._finish_stage()
        steps, seconds = [], 0.0
        metres: dict[str, float] = {}
        for part in self.parts:
            self._seconds = seconds  # after the loop: start time of the last step
            record = self._record(part)
            step = self._step(part, record, seconds, metres)
            seconds = step.seconds
            steps.append(step)
        shown = [i for i, part in enumerate(self.parts) if part.mean is not None]
        maps = [self.parts[i] for i in shown]
        truths = [part.truth for part in maps if part.truth is not None]
        if self.data.truth is not None and not self.data.truth.changes:
            truths = truths[:1]
        return Reconstruction(
            by_stage=self.by_stage,
            steps=tuple(steps),
            shown=tuple(shown),
            mean=np.array([part.mean for part in maps]),
            std=np.array([part.std for part in maps]),
            truth=np.array(truths) if truths else None,
            belief=self.belief,
            prior=self._prior,
            prior_kernels=self._prior_kernels,
            unused=self.unused,
        )

    def _step(
        self, part: GrowingStep, record: Mapping[str, Any], seconds: float, metres: dict[str, float]
    ) -> ReportStep:
        """Return the step of `part`; set the probe's distance so far in `metres`."""
        probe = str(record.get("probe") or "")
        planned = metres.get(probe, 0.0) + part.metres
        metres[probe] = number_of(record.get("driven_metres"), planned)
        went = record.get("went")
        place = went if isinstance(went, int) else part.plan.waypoint if part.plan else None
        return ReportStep(
            number=part.number,
            seconds=number_of(record.get("driven_seconds"), seconds + max(part.seconds, 0.0)),
            metres=sum(metres.values()),
            plan=part.plan,
            at=part.at,
            record=record,
            readings=gathered(part.used),
            expected=None if place is None else part.expected.get(place),
            masses=part.length_scales,
            kernels=part.kernels,
            observed=part.observed,
            scores={key: number_of(record.get(key), part.scores[key]) for key in SCORES},
            promised=number_of(record.get("promised_error"), part.promised),
            limits=dict(part.limits),
        )


def _merged(first: GrowingStep, second: GrowingStep) -> GrowingStep:
    """Add the events of the first step to the second step; return the second step."""
    second.used = first.used + second.used
    second.seconds += first.seconds
    second.metres += first.metres
    second.limits = first.limits | second.limits
    return second


def map_of_run(
    run_dir: Path,
    stage: int | None = None,
    *,
    spacing: float | None = None,
    limits: Sequence[Limit] = (),
    quantity: str = "",
) -> FieldMap:
    """Return the map of a run, which may be unfinished.

    Args:
        run_dir: directory of a simulation, mission or replay.
        stage: number of the last stage in the map; None = all readings.
        spacing: distance between neighbouring points of the map [m]; None = the points are the
            places.
        limits: limits whose exceedance probabilities the map contains.
        quantity: name of a quantity; "" = the main quantity. The map of the main quantity also has
            mean and standard deviation of each further quantity.

    Raises:
        RunError: there is no run directory, no such stage or quantity, no reading up to the stage,
            or no map with this spacing.
        ActiveSensingError: the map cannot be found or read.
    """
    data = load_run(run_dir)
    field = map_of(data.for_quantity(quantity), stage, spacing=spacing, limits=limits)
    further: dict[str, FieldMap] = {}
    for name in () if quantity else data.quantities[1:]:
        try:
            further[name] = map_of(data.for_quantity(name), stage, spacing=spacing)
        except RunError as error:  # no reading yet
            logger.warning("%s: %s", name, error)
    return replace(field, further=further)


def map_of(
    data: RunData,
    stage: int | None = None,
    *,
    spacing: float | None = None,
    limits: Sequence[Limit] = (),
) -> FieldMap:
    """Return the map of a loaded run; see `map_of_run`."""
    events = tuple(parse_events(data.events))
    if stage is not None:
        numbers = [event.stage for event in events if isinstance(event, DecisionTaken)]
        _check_stage(data.path, stage, max(numbers, default=0))
    updater = _updater(data)
    accepted = used = number = 0
    for event in events:
        if isinstance(event, DecisionTaken | ReturnBegun):
            number = event.stage if isinstance(event, DecisionTaken) else number + 1
            if stage is not None and number > stage:
                break
        elif isinstance(event, ReadingUsed | ExpertAnswered):
            accepted += event.reading.quantity == data.of
            used += updater.add(event) is not None
    if accepted > used:
        logger.warning(
            "%s: %d of %d readings could not be used (not finite, out of range, or off the map)",
            data.path,
            accepted - used,
            accepted,
        )
    updater.finish()
    belief = updater.belief
    title = str(data.config.get("name") or data.path.resolve().name)
    if stage is not None:
        title += f", stage {stage}"
    if not belief.observed.any():
        until = "" if stage is None else f" up to stage {stage}"
        msg = (
            f"{data.path}: no place has a reading{until}; there is no map yet, only what was "
            "believed before"
        )
        raise RunError(msg)
    return FieldMap.of(
        data.topology,
        belief,
        unit=data.unit,
        quantity=data.quantity,
        title=title,
        limits=limits,
        spacing=spacing,
    )


def _check_stage(path: Path, stage: int, last: int) -> None:
    if not last:
        msg = f"{path}: nothing was decided in this run, so it has no stages; leave --stage out"
        raise RunError(msg)
    if not 1 <= stage <= last:
        msg = f"{path}: has stages 1 … {last}, got {stage}"
        raise RunError(msg)
