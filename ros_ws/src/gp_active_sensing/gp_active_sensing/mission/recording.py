"""Write the records of a mission: journal, stages, summary, map and report."""

from __future__ import annotations

import copy
import logging
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from gp_active_sensing.belief import Belief
from gp_active_sensing.belief.leave_one_out import PlacePredictability
from gp_active_sensing.belief.mixture import Mixture, most_probable
from gp_active_sensing.belief.promise import to_record
from gp_active_sensing.errors import ActiveSensingError, ConfigError
from gp_active_sensing.export import format_of
from gp_active_sensing.export.field_map import FieldMap
from gp_active_sensing.kernels import NONE
from gp_active_sensing.loop import SensingLoop
from gp_active_sensing.mission.journal import Journal
from gp_active_sensing.mission.log_messages import delays_of
from gp_active_sensing.mission.mission import Mission
from gp_active_sensing.mission.requests import Stage
from gp_active_sensing.mission.stages import StageRecords
from gp_active_sensing.planning.explain import gap_of
from gp_active_sensing.records.event_lines import to_line
from gp_active_sensing.records.events import (
    Event,
    JournalGap,
    MissionResumed,
    MissionStarted,
    ReadingUsed,
)
from gp_active_sensing.records.ground_truth import NOTHING, FieldKnowledge
from gp_active_sensing.records.metrics import NO_SCORES, Scorer, Scores, sampled
from gp_active_sensing.records.regret import Regret
from gp_active_sensing.records.run_directory import MAP, RunDirectory, stage_record
from gp_active_sensing.records.summary import RunCourse, RunSummary, summarise
from gp_active_sensing.topology import Topology
from gp_active_sensing.types import FloatArray, IntArray
from gp_active_sensing.util.process import versions

logger = logging.getLogger(__name__)

MOST_UNWRITTEN = 20_000
"""Largest number of events kept in memory while the disk is full. The oldest are dropped."""
TAIL = 100
"""Number of events of earlier processes in the first frame of the input log."""


class Recorder:
    """Writer of a mission's records; a failed write never stops the mission.

    Args:
        run: run directory; None = nothing is written.
        known: knowledge about the true field of a simulation; empty on a robot.
        unit: unit of the main quantity's readings.
        units: units of the further quantities, keyed by name.
        exports: formats in which the map is written.
    """

    def __init__(
        self,
        run: RunDirectory | None,
        config: Mapping[str, Any],
        *,
        known: FieldKnowledge = NOTHING,
        unit: str = "",
        units: Mapping[str, str] = MappingProxyType({}),
        driver: str = "ros",
        exports: Sequence[str] = (),
    ) -> None:
        self.run = run
        self.unit = unit
        self.driver = driver
        self.failures = 0
        self.stages = StageRecords(run, self._guard)
        self._maps = None if run is None else MapFiles(run, config, exports, unit, units)
        self.written: tuple[str, ...] = ()
        """Names of the map files that were written last."""
        if run is not None:
            run.open_files()
        self._config = config
        self.truth = known.truth
        self.scorer = None if known.truth is None else Scorer(known.truth, known.sensor)
        """Comparison of the map with the true field; None = the true field is unknown."""
        self.units = units
        self.scorers = {
            name: Scorer(more.truth, more.sensor)
            for name, more in known.further.items()
            if more.truth is not None
        }
        """Comparisons of the further quantities with their true fields, keyed by name."""
        self.regret: Regret | None = None
        """Regret of a search for an extreme value; None = the true field is unknown."""
        self._lock = threading.Lock()
        self._journal = None if run is None else Journal(run)
        self.earlier = 0
        """Number of events that earlier processes wrote to the journal."""
        self.tail: list[Mapping[str, Any]] = []
        """The newest `TAIL` events of earlier processes."""
        self._writing = threading.RLock()
        self._unwritten: deque[Mapping[str, Any]] = deque()
        self._forgotten = 0
        """Number of dropped events; the journal reports it in an event ``gap``."""
        self._forgotten_readings = 0
        self.muted = False
        """True during a restore, when the events are in the journal already."""
        self.is_written: Callable[[Mapping[str, Any]], bool] = lambda event: False
        """Function that returns whether an event is in the journal of a run to simulate again."""
        self.listener: Callable[[Event], None] = lambda event: None
        """Function that is called with each written event."""
        self._sampled: tuple[int, IntArray | None] | None = None
        """Number of places of the map, and the places at which stages are scored (None = all)."""
        self._final_summary: RunSummary | None = None

    def begin(
        self, earlier: Sequence[Mapping[str, Any]] = (), map: Mapping[str, Any] | None = None
    ) -> None:
        """Write the event for the start of a mission; after `earlier` events, for its resumption.

        `map` has the fields that describe the map in the first event, see `topology.config`.
        """
        self.earlier, self.tail = len(earlier), list(earlier[-TAIL:])
        seed = self._config.get("seed", 0)
        details = {"seed": seed, "versions": versions(), "driver": self.driver}
        if earlier:
            self.event(MissionResumed(details=details))
            return
        if self.run is not None and self.run.order:
            details["order"] = self.run.order
        self.event(MissionStarted(details={**details, **(map or {})}))

    def event(self, event: Event) -> None:
        """Write an event to the journal before the event takes effect."""
        if self.muted:
            return
        line = to_line(event)
        if self.is_written(line):
            self.listener(event)
            return
        with self._writing:
            if self._journal is not None and not (
                self._catch_up(self._journal) and self._guard(partial(self._journal.append, line))
            ):
                self._unwritten.append(copy.deepcopy(line))
                if len(self._unwritten) > MOST_UNWRITTEN:
                    self._forget()
        self.listener(event)

    def _forget(self) -> None:
        oldest = self._unwritten.popleft()
        self._forgotten += 1
        self._forgotten_readings += oldest["event"] == ReadingUsed.KIND

    def _catch_up(self, journal: Journal) -> bool:
        with self._writing:
            if self._forgotten:
                gap = JournalGap(failures=self._forgotten, readings=self._forgotten_readings)
                if not self._guard(partial(journal.append, to_line(gap))):
                    return False
                self._forgotten = self._forgotten_readings = 0
            while self._unwritten:
                if not self._guard(partial(journal.append, self._unwritten[0])):
                    return False
                self._unwritten.popleft()
            return True

    def stage(
        self, stage: Stage, loop: SensingLoop, found: Mixture | None = None, **details: Any
    ) -> str:
        """Write the record of a stage; return a summary of the stage for the log."""
        plan, belief, topology = stage.plan, loop.belief, loop.topology
        if self._sampled is None or self._sampled[0] != topology.n:
            self._sampled = topology.n, sampled(topology)
        places = self._sampled[1]
        means = None if self.regret is None else (found or belief.mixture()).moments()[0]
        if found is None:
            found = belief.mixture(places)
        elif places is not None:
            found = found.at(places)
        goal, observed, seconds = plan.waypoints[0], belief.observed, 1e-9 * stage.stamp_ns
        weights = topology.weights if places is None else topology.weights[places]
        scores: Scores = NO_SCORES
        more: dict[str, Any] = {"probe": stage.probe} if stage.probe else {}
        if stage.visits is not None:
            more["visits"] = stage.visits
        if stage.went is not None:
            more |= {"went": stage.went, "went_name": topology.names[stage.went]}
        if self.truth is not None and self.scorer is not None:
            if self.truth.changes:
                more["truth_seconds"] = seconds
            scores = self.scorer.of(belief, seconds, found, places)
            if self.regret is not None and means is not None:
                went = goal if stage.went is None else stage.went
                read = None if stage.value is None else went
                self.regret.resume(self.stages.figures)
                more |= self.regret.stage(read, means, seconds)
        if loop.quantities:
            more["quantities"] = self._further(loop, seconds, places, weights)
        count = int(observed.sum())
        more |= self._newest_explained.after(count, belief.leave_one_out).to_record()
        record = stage_record(
            stage=stage.number,
            plan=plan,
            name=topology.names[goal],
            position=topology.points[goal].tolist(),
            value=stage.value,
            weights=belief.weights.tolist(),
            length_scales=[h.length_scales for h in belief.hyperparameters],
            kernels=[h.kernel for h in belief.hyperparameters],
            **scores,
            **to_record(belief.promise(weights, found)),
            observed=count,
            set_aside=stage.value is None
            and stage.went is None
            and not (stage.again or bool(observed[goal])),
            driven_metres=stage.driven.metres,
            driven_seconds=stage.driven.seconds,
            **(more | details),
        )
        self.stages.add(record)
        return self._line(record, belief, again=stage.again)

    def _further(
        self, loop: SensingLoop, seconds: float, places: IntArray | None, weights: FloatArray
    ) -> dict[str, dict[str, Any]]:
        """Return the record's fields for each further quantity, keyed by its name."""
        found: dict[str, dict[str, Any]] = {}
        for name, each in loop.quantities.items():
            mixture, scorer = each.belief.mixture(places), self.scorers.get(name)
            found[name] = {"observed": int(each.belief.observed.sum())}
            found[name] |= to_record(each.belief.promise(weights, mixture))
            if scorer is not None:
                found[name] |= scorer.of(each.belief, seconds, mixture, places)
        return found

    def _line(self, record: Mapping[str, Any], belief: Belief, *, again: bool) -> str:
        unit = f" {self.unit}" if self.unit else ""
        value, goal = record["value"], record["location"]
        whose = f" of {record['probe']}" if record.get("probe") else ""
        policy = str((self._config.get("policy") or {}).get("name", ""))
        gap = gap_of(policy, record["lower"], record["upper"])
        elsewhere = "another place was read" if "went" in record else "read by another probe"
        without = "no reading, set aside" if record["set_aside"] else elsewhere
        without = "no reading in time, to be visited again" if again else without
        parts = [
            f"stage {record['stage']}{whose}: {record.get('went_name', record['name'])}",
            without if value is None else f"read {value:.4g}{unit}",
            *([f"chosen: {record['name']}"] if record.get("went") not in (None, goal) else []),
            *_believed(belief),
            *([] if gap is None else [f"gap {gap:.3g} nat"]),
            f"planned in {record['plan_seconds']:.2f} s",
        ]
        figures = {"promised_error": "expected error", "rmspe": "RMSPE", "regret": "regret"}
        for key, text in figures.items():
            if record.get(key) is not None:
                parts.append(f"{text} {record[key]:.4g}{unit}")
        return ", ".join(parts)

    def summarise(self, mission: Mission, status: str) -> RunSummary:
        """Return the summary of a mission at the present time."""
        with mission.lock:
            loop = mission.loop.snapshot()
            rejected, dropped = mission.rejected, dict(mission.inbox.dropped)
            until_ns = mission.until_ns
            probes = mission.probes.values()
            delays = delays_of((p.name, p.ingestion.lag, p.ingestion.delay) for p in probes)
            sorties = sum(p.sortie.number for p in probes if p.sortie.limited)
            driven = [(p.name, p.stages.driven) for p in probes if len(probes) > 1]
            books = None if mission.consulting is None else mission.consulting.books
            expert = {} if books is None else books.to_mapping()
        loop.finish_links()
        course = RunCourse(
            driver=self.driver,
            status=status,
            reason=mission.reason,
            metres=mission.driven.metres,
            seconds=mission.driven.seconds,
            probes=tuple({"name": n, "metres": c.metres, "seconds": c.seconds} for n, c in driven),
            sorties=sorties,
            unit=self.unit,
            rejected_by_reason=dict(rejected),
            dropped=dropped,
            delays=tuple(delays),
            expert=expert,
            latency=latencies(mission),
            run_dir="" if self.run is None else str(self.run.path),
        )
        records = list(self.stages.figures)
        further = {name: (unit, self.scorers.get(name)) for name, unit in self.units.items()}
        more = self.scorer, 1e-9 * until_ns, further
        self._final_summary = summarise(self._config, loop, records, course, *more)
        return self._final_summary

    @property
    def _newest_explained(self) -> PlacePredictability:
        """Leave-one-out score in the newest record, also of an earlier process."""
        figures = self.stages.figures
        return PlacePredictability.of_record(figures[-1] if figures else {})

    @property
    def explained_so_far(self) -> float | None:
        """Leave-one-out R² of all readings up to the newest stage; None = unknown."""
        return self._newest_explained.share

    @property
    def promised_so_far(self) -> float | None:
        """Map error that the model predicted after the newest stage; None = no stage yet."""
        value = (self.stages.figures or [{}])[-1].get("promised_error")
        return None if value is None else float(value)

    def final_summary(self, mission: Mission) -> RunSummary:
        """Return the stored final summary; if none is stored, compute a summary."""
        if self.run is None or self._final_summary is None:
            return self.summarise(mission, "finished")
        return self._final_summary

    def summary(self, mission: Mission, status: str) -> dict[str, Any]:
        """Return the summary as plain data for JSON."""
        return self.summarise(mission, status).to_mapping()

    def save(self, mission: Mission, status: str) -> bool:
        """Write the summary and the map; return whether both are written."""
        if self.run is None or self._journal is None:
            return False
        self._catch_up(self._journal)
        with self._lock:
            is_written = self._guard(partial(self.run.write_summary, self.summary(mission, status)))
            return self._guard(partial(self.export, mission)) and is_written

    def export(self, mission: Mission) -> None:
        """Write the map in the formats for other programs; raise RunError on a failure."""
        if self._maps is not None:
            with mission.lock:
                loop = mission.loop.snapshot()
            loop.finish_links()
            self.written = self._maps.write(loop)

    def conclude(
        self,
        mission: Mission,
        report: Callable[[Path], Path] | None = None,
        summary: Mapping[str, Any] | None = None,
    ) -> str:
        """Write all events, summary, map and report of a mission; return a text on problems.

        The text is "" if there are no problems or no run directory. `report` writes the report page
        of a run directory and returns its path; None = no page. `summary` None = compute it.
        """
        if self.run is None or self._journal is None:
            return ""
        self._catch_up(self._journal)
        problems = []
        if summary is None:
            summary = self.summary(mission, "finished")
        for write in (
            self._journal.sync,
            partial(self.run.write_summary, summary),
            partial(self.export, mission),
        ):
            try:
                write()
            except ActiveSensingError as error:
                self.failures += 1
                logger.error("%s", error)
                problems.append(str(error))
        self.stages.catch_up()
        if self.missing:
            problems.append(self.missing)
        if report is not None and not problems and self.report(report) is None:
            problems.append("no report page could be made; the log says why")
        return "; ".join(problems)

    @property
    def problem(self) -> str:
        """Text on known problems with the mission's records; "" = none."""
        if self.run is None:
            return ""
        return "; ".join(part for part in (self.run.trouble, self.missing) if part)

    @property
    def missing(self) -> str:
        """Text with the numbers of unwritten events and records; "" if all are written."""
        if self.run is None:
            return ""
        events = self._forgotten + len(self._unwritten)
        gaps = [
            f"{count} {what} could not be written to {self.run.path}"
            for count, what in ((events, "events"), (self.stages.unwritten, "records"))
            if count
        ]
        if self.stages.lost:
            gaps.append(f"the records of {self.stages.lost} stages are lost; the journal has them")
        return "; ".join(gaps)

    def report(self, write: Callable[[Path], Path]) -> Path | None:
        """Write the report page; return its path. Log a failure and return None."""
        if self.run is None:
            return None
        try:
            return write(self.run.path)
        except (ActiveSensingError, ImportError, OSError) as error:
            logger.warning("no report: %s", error)
        except Exception:
            logger.exception("no report; the records in %s are complete", self.run.path)
        return None

    def close(self) -> None:
        """Close the files; log and journal the numbers of unwritten events and records."""
        if self.run is None or self._journal is None:
            return
        self._catch_up(self._journal)
        self.stages.catch_up()
        problems = [self.missing] if self.missing else []
        while self._unwritten:
            self._forget()
        self._catch_up(self._journal)
        for close in (self._journal.close, self.run.close):
            try:
                close()
            except ActiveSensingError as error:
                problems.append(str(error))
        if problems:
            logger.error("%s", "; ".join(problems))

    def _guard(self, write: Callable[[], None]) -> bool:
        """Call a function that writes; count and log a failure. Return whether it succeeded."""
        try:
            write()
        except ActiveSensingError as error:
            self.failures += 1
            if self.failures in (1, 10, 100):
                logger.error("%s (failure %d; the mission continues)", error, self.failures)
            return False
        return True


def latencies(mission: Mission) -> dict[str, dict[str, float | int | None]]:
    """Return statistics of two latencies [ms].

    ``reading_to_belief``: from the arrival of a reading to its use in the belief.
    ``arrival_to_waypoint``: from the end of a visit to the choice of the next waypoint.
    """
    return {
        "reading_to_belief": mission.reading_latency.summary(),
        "arrival_to_waypoint": mission.decisions.latency.summary(),
    }


def _believed(belief: Belief) -> list[str]:
    """Describe the most probable length-scale, and its kernel if the belief has several kernels."""
    candidates = zip(belief.hyperparameters, belief.weights, strict=True)
    best = most_probable((h.kernel, h.length_scales, float(w)) for h, w in candidates)
    if best.kernel == NONE:
        return [f"places do not predict each other (probability {best.kernel_weight:.0%})"]
    scale = "/".join(f"{ell:.4g}" for ell in best.length_scale)
    parts = [f"kernel {best.kernel} ({best.kernel_weight:.0%})"] if best.kernel else []
    return [*parts, f"length-scale {scale} ({best.weight:.0%})"]


def check_exports(formats: Sequence[str], topology: Topology) -> None:
    """Check before a mission that its map can be written in the given formats.

    Raises:
        ConfigError: a format is not possible for this map.
    """
    problems = []
    for format in formats:
        try:
            format_of(format).check(topology)
        except ActiveSensingError as error:
            problems.append(f"mission.export: {format}: {error}")
    if problems:
        raise ConfigError(problems)


class MapFiles:
    """Writer of map files to a run directory.

    Args:
        config: configuration of the mission, with the names of the mission and the quantity.
        formats: names of formats, see `gp_active_sensing.export.FORMATS`.
        units: units of the further quantities, keyed by name.
    """

    def __init__(
        self,
        run: RunDirectory,
        config: Mapping[str, Any],
        formats: Sequence[str],
        unit: str,
        units: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._run = run
        self._formats = tuple(formats)
        field = config.get("field")
        quantity = field.get("quantity") if isinstance(field, Mapping) else None
        self._unit, self._units = unit, units
        self._quantity = str(quantity or next(iter(config.get("readings") or ()), "value"))
        self._title = str(config.get("name") or run.path.name)

    def write(self, loop: SensingLoop) -> tuple[str, ...]:
        """Write the present map; return the file names, or () before the first reading.

        No other thread may change the engine during this call.

        Raises:
            RunError: a file cannot be written.
        """
        if not self._formats or not loop.belief.observed.any():
            return ()
        field_of = partial(FieldMap.of, loop.topology, title=self._title)
        further = {
            name: field_of(each.belief, unit=self._units.get(name, ""), quantity=name)
            for name, each in loop.quantities.items()
            if each.belief.observed.any()
        }
        field = field_of(loop.belief, unit=self._unit, quantity=self._quantity)
        field = replace(field, further=further)
        names: list[str] = []
        for format in self._formats:
            for name, content in format_of(format).render(field, MAP).items():
                self._run.write_file(name, content)
                names.append(name)
        return tuple(names)
