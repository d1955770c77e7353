"""Build the components of a mission from the parameters of the node ``active_sensing``."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from gp_active_sensing.belief import BeliefConfig, belief_on
from gp_active_sensing.belief.run_copy import with_mark
from gp_active_sensing.config import from_mapping, to_mapping
from gp_active_sensing.engine.config import START, SortieConfig
from gp_active_sensing.errors import RunError
from gp_active_sensing.loop import SensingLoop
from gp_active_sensing.mission.clocks import StepClock
from gp_active_sensing.mission.config import DEFAULT_PLAN_SECONDS, ActiveSensingConfig
from gp_active_sensing.mission.expert_queries import ExpertQueries
from gp_active_sensing.mission.flow import flows
from gp_active_sensing.mission.inbox import Inbox
from gp_active_sensing.mission.ingestion.ingestion import Ingestion
from gp_active_sensing.mission.live_map import FirstMap, LiveMap, NoMapYet
from gp_active_sensing.mission.matching import MapMatcher
from gp_active_sensing.mission.mission import Mission
from gp_active_sensing.mission.poses import PoseTrack
from gp_active_sensing.mission.probe import ProbeState
from gp_active_sensing.mission.recording import Recorder, check_exports
from gp_active_sensing.mission.restore import MissionRestorer
from gp_active_sensing.mission.run_dirs import AUTO, Events, choose_run, release
from gp_active_sensing.mission.sorties import Sortie
from gp_active_sensing.planning import build_policy
from gp_active_sensing.planning.base import Policy, asks_expert, drift_of
from gp_active_sensing.planning.turning import check_radius
from gp_active_sensing.records.earlier import EarlierRun
from gp_active_sensing.records.events import Event
from gp_active_sensing.records.ground_truth import NOTHING, FieldKnowledge
from gp_active_sensing.records.regret import regret_of
from gp_active_sensing.records.run_directory import RunDirectory
from gp_active_sensing.records.run_map import (
    as_begun_with,
    check_places,
    keep_map,
    kept_map,
    mark_of_places,
    worked_out,
)
from gp_active_sensing.topology import MapConfig, Topology, place_index
from gp_active_sensing.topology.config import build_settled
from gp_active_sensing.topology.live import LivePlaces
from gp_active_sensing.topology.loaders import find_map
from gp_active_sensing.types import Budget, Clock, PlanLimit
from gp_active_sensing.util.process import hand_back
from gp_active_sensing.util.resources import is_shipped

logger = logging.getLogger(__name__)

_LIVE_RADIUS = 0.5
"""Arrival radius in live traffic [m], so small that a car at a red light does not arrive."""

SECONDS_OF_QUEUE = 20.0
"""Each stream's queue has room for the messages that are expected in this time [s]."""

_FIXED = ("none", "stations")
"""Kinds of experts whose stations the parameter `expert.stations` may replace."""

KnowledgeOf = Callable[[Mapping[str, Any]], FieldKnowledge]

OpenRun = Callable[[], EarlierRun]

_SECTIONS = ("map", "belief", "policy", "budget", "limits", "limit")


@dataclass(frozen=True)
class MissionComponents:
    """Components of a mission that need no ROS topic."""

    mission: Mission
    recorder: Recorder
    matcher: MapMatcher
    belief: BeliefConfig
    """Initial configuration of the belief, with a checksum if it has a file of kernels."""
    map: MapConfig
    """Initial configuration of the map, with the computed spacing and origin."""
    places: Mapping[str, Any]
    """Fingerprint of the map's initial places, see `mark_of_places`."""


def beside(map: MapConfig, folders: Iterable[Path]) -> MapConfig:
    """Return `map` with the full path of its file if one of `folders` has this file."""
    if map.file and not Path(map.file).expanduser().is_file():
        for found in (folder / map.file for folder in folders):
            if found.is_file():
                named: dict[str, Any] = {"file": str(found.absolute())}
                return replace(map, **named)
    return map


def plan_limit(seconds: float | None, expansions: int | None) -> PlanLimit:
    """Return the limit of a decision; `DEFAULT_PLAN_SECONDS` applies if both arguments are None."""
    if seconds is None and expansions is None:
        return PlanLimit(seconds=DEFAULT_PLAN_SECONDS)
    return PlanLimit(seconds, expansions)


def build_parts(
    config: ActiveSensingConfig,
    scenario: Mapping[str, Any] | None,
    *,
    clock: Clock = time.monotonic,
    driver: str = "ros",
    field_knowledge: KnowledgeOf = lambda scenario: NOTHING,
    topology: Topology | None = None,
    settled: MapConfig | None = None,
    open_run: OpenRun | None = None,
    first: FirstMap | None = None,
) -> MissionComponents:
    """Build the engine, the mission and its records.

    With ``run_dir`` "auto", a mission that cannot be restored stays unchanged. A new mission then
    begins in another directory, so that a node started at boot always works.

    Args:
        config: the node's parameters.
        scenario: plain data of the scenario that gave the default parameters; None = none.
        clock: monotonic clock [s].
        driver: name of the mission's driver in the records.
        field_knowledge: returns what is known of a scenario's field in advance
            (`sim.world.field_knowledge`); not called without a scenario.
        topology: the map, if it was built already.
        settled: configuration of `topology`, from `build_settled`; None = the map of `config`.
        open_run: opens a recorded run to simulate it again; `run_dir` and `resume` are then unused.
        first: first map from the topic `map.topic`. A resumed mission uses its stored map.

    Raises:
        NoMapYet: no map has come on the topic, and there is no mission to resume.
        ActiveSensingError: a map, belief, policy or run directory is not usable.
    """
    built = None if topology is None else (topology, settled or config.map)
    builder = _Builder(config, scenario, clock, driver, field_knowledge, built, open_run, first)
    try:
        parts = builder.build(resume=config.resume)
    except _NotRestored as error:
        if config.run_dir != AUTO:
            raise
        logger.error("a new mission begins, since the last one cannot be continued: %s", error)
        parts = builder.build(resume=False)
    hand_back()  # return the memory of a long journal to the system
    return parts


class _NotRestored(RunError):
    """Error: the journal is readable, but the mission cannot be resumed from it."""


@dataclass
class _Builder:
    """Builder of a mission in four steps: run directory, map, engine, mission."""

    config: ActiveSensingConfig
    scenario: Mapping[str, Any] | None
    clock: Clock
    driver: str
    field_knowledge: KnowledgeOf
    built: tuple[Topology, MapConfig] | None
    open_run: OpenRun | None
    first: FirstMap | None
    kept: dict[str, Any] = field(init=False)
    """Configuration for the records: that of the node, and the other keys of its scenario."""
    budget: Budget = field(init=False)
    back_to_start: bool = field(init=False)
    unit: str = field(init=False)
    units: dict[str, str] = field(init=False)
    """Units of the quantities besides the main one, keyed by name."""

    def build(self, *, resume: bool) -> MissionComponents:
        """Return the components; on an error, undo all changes to the run directory."""
        config, built = self.config, self.built
        if built is None and not config.map.topic:
            built = build_settled(config.map)
            file = getattr(config.map, "file", "")
            if file and is_shipped(path := find_map(file)):
                logger.info("map %s ships with the package: %s", file, path)
        policy = build_policy(config.policy)
        with contextlib.ExitStack() as undo:  # the node may be configured again after a failure
            run, events, earlier = self._open(undo, resume=resume)
            topology, settled, live = self._map(built, run, events)
            belief = self._belief_of(run)
            loop, matcher = self._engine(topology, policy, belief, run)
            recorder = self._recorder(undo, run, earlier, loop)
            mission = self._mission(loop, matcher, recorder)
            if live is not None:
                of_run = None if run is None else run.path
                further = {name: each.belief for name, each in config.further.items()}
                mission.map = LiveMap(live, belief, drift_of(policy), of_run, further)
            if events:
                self._restore(mission, recorder, events)
            places = mark_of_places(topology)
            found = worked_out(config.map, settled)
            recorder.begin(events, {**({"map": found} if found else {}), "places": places})
            undo.pop_all()
            return MissionComponents(mission, recorder, matcher, belief, settled, places)

    def _open(
        self, undo: contextlib.ExitStack, *, resume: bool
    ) -> tuple[RunDirectory | None, Events, EarlierRun | None]:
        earlier = None if self.open_run is None else self.open_run()
        self.kept = _effective(self.config, self.scenario)
        if earlier is not None:
            undo.callback(release, earlier.run, begun=not earlier.count)
            return earlier.run, [], earlier
        now = datetime.now(timezone.utc).astimezone()
        run, events = choose_run(self.config.run_dir, self.kept, now, resume=resume)
        undo.callback(release, run, begun=not events)
        return run, events, None

    def _map(
        self, built: tuple[Topology, MapConfig] | None, run: RunDirectory | None, events: Events
    ) -> tuple[Topology, MapConfig, LivePlaces | None]:
        config, live = self.config, None
        start: Mapping[str, Any] = events[0] if events else {}
        as_begun = as_begun_with(config.map, start)
        topology: Topology
        settled: MapConfig
        if built is None:
            live = _first_map(as_begun, run, self.first, begun=bool(events))
            topology = live.topology
            origin = live.config.origin or (0.0, 0.0)
            settled = replace(live.config, frame=config.map.frame, origin=origin)
        else:
            topology, settled = built
            if as_begun not in (config.map, settled):  # the mission began with another map
                topology, settled = build_settled(as_begun)
            # A live map is not checked: it may grow.
            check_radius(topology, config.drive.turn_radius)
        if run is not None and events:
            try:
                check_places(start, topology, run.path)
            except RunError as error:
                raise _NotRestored(str(error)) from error
        if config.drive.turn_radius > 0.0 and topology.roads:
            logger.info("drive.turn_radius has no effect on roads, whose geometry has the curves")
        return topology, settled, live

    def _belief_of(self, run: RunDirectory | None) -> BeliefConfig:
        """Return the configuration of the belief, with a checksum if it has a file of kernels."""
        belief = self.config.belief
        if belief.model is None:
            return belief
        if run is None:
            belief = with_mark(belief)
        else:
            belief = from_mapping(BeliefConfig, run.config["belief"], path="belief")
        self.kept = {**self.kept, "belief": to_mapping(belief)}
        return belief

    def _engine(
        self, topology: Topology, policy: Policy, belief: BeliefConfig, run: RunDirectory | None
    ) -> tuple[SensingLoop, MapMatcher]:
        config = self.config
        matcher = MapMatcher(topology, config.mission.snap_distance)
        of_run = None if run is None else run.path
        self.budget, self.back_to_start = _budget(config, topology)
        drift, quantities = drift_of(policy), []
        aims = config.budget.aims(config.main)
        for name, each in config.further.items():
            own = belief_on(each.belief, topology, drift, quiet=True)
            quantities.append(each.quantity(name, own, aims.get(name)))
        loop = SensingLoop(
            topology,
            belief_on(belief, topology, drift, run_dir=of_run),
            policy,
            budget=Budget(readings=self.budget.readings),
            seed=config.seed,
            limit=plan_limit(config.limit.seconds, config.limit.expansions),
            retries=config.mission.retries,
            snap_distance=matcher.snap_distance,
            speed=config.probe.own_speed,
            turn_radius=config.drive.turn_radius,
            aim=config.budget.aim(config.main),
            limits=config.limits.limits(),
            name=config.main,
            weight=config.readings[config.main].weight if config.main else 1.0,
            quantities=quantities,
            clock=self.clock,
        )
        return loop, matcher

    def _recorder(
        self,
        undo: contextlib.ExitStack,
        run: RunDirectory | None,
        earlier: EarlierRun | None,
        loop: SensingLoop,
    ) -> Recorder:
        config = self.config
        known = NOTHING if self.scenario is None else self.field_knowledge(self.kept)
        self.unit = config.reading.unit or known.unit
        self.units = {
            name: each.unit or known.of(name).unit for name, each in config.further.items()
        }
        exports = config.mission.export if self.driver != "sim" and run is not None else ()
        check_exports(exports, loop.topology)
        recorder = Recorder(
            *(run, self.kept),
            known=known,
            unit=self.unit,
            units=self.units,
            driver=self.driver,
            exports=exports,
        )
        undo.callback(recorder.close)
        if earlier is not None:
            recorder.is_written = earlier.has
        recorder.regret = regret_of(
            loop, known.truth, self.kept.get("seek"), probes=max(1, len(config.probes))
        )
        return recorder

    def _mission(self, loop: SensingLoop, matcher: MapMatcher, recorder: Recorder) -> Mission:
        config, clock = self.config, self.clock
        step_clock = StepClock(clock)

        def probe(name: str) -> ProbeState:
            def journal(event: Event) -> None:
                recorder.event(replace(event, probe=name))

            ingestion = Ingestion(
                loop,
                matcher,
                PoseTrack(config.pose.max_age, config.pose.history),
                coverage=config.mission.coverage,
                reading=replace(config.reading, unit=self.unit),
                pose=config.pose,
                clock=step_clock,
                running=clock,
                journal=journal,
                name=name,
            )
            carried = config.carried(name)
            if lead := loop.lead_of(carried):
                ingestion.measured.discard("")
            for quantity, each in config.further.items():
                if carried is not None and quantity not in carried:
                    continue
                receiver = loop.of(quantity, leads=quantity == lead)
                reading = replace(each.reading(), unit=self.units[quantity])
                ingestion.add(receiver, reading, quantity)
            return ProbeState(
                name,
                loop,
                ingestion,
                config.mission,
                arrival_radius=_radius(config, self.scenario, matcher),
                own_budget=replace(self.budget, readings=None),
                clock=clock,
                journal=journal,
                back_to_start=self.back_to_start,
                off_map=config.pose.off_map,
                flows=flows(config, loop),
                sortie=Sortie(config.probe.sortie, config.battery),
                carried=carried,
            )

        rates = [config.pose.rate, config.reading.rate]
        rates += [each.rate for each in config.further.values()]
        capacity = round(SECONDS_OF_QUEUE * max(rates))
        mission = Mission(
            loop,
            [probe(name) for name in config.probes or ("",)],
            Inbox(max(1000, capacity)),
            config.mission,
            clock=clock,
            journal=recorder.event,
            make_probe=probe,
            step_clock=step_clock,
        )
        mission.decisions.consulting = _consulting(config, loop, recorder)
        return mission

    def _restore(self, mission: Mission, recorder: Recorder, events: Events) -> None:
        """Restore the mission from its journal; raise _NotRestored on a failure."""
        try:
            MissionRestorer(mission, recorder).run(events)
        except Exception as error:
            what = error if isinstance(error, RunError) else f"cannot be continued: {error!r}"
            where = self.config.run_dir if recorder.run is None else recorder.run.path
            msg = f"{where}: {what}"
            raise _NotRestored(msg) from error


def _first_map(
    config: MapConfig, run: RunDirectory | None, first: FirstMap | None, *, begun: bool
) -> LivePlaces:
    """Return the places of a resumed run's stored map; for a new run, of the first received map."""
    if run is not None and begun:
        return FirstMap.of(config, kept_map(run.path)).places
    if first is None:
        msg = f"no map has come on topic {config.topic} yet"
        raise NoMapYet(msg)
    if run is not None:
        keep_map(run.path, 1, first.found)
    return first.places


def _consulting(
    config: ActiveSensingConfig, loop: SensingLoop, recorder: Recorder
) -> ExpertQueries | None:
    if not (config.expert.ask or config.expert.stations):
        return None
    from gp_active_sensing.experts.simulated import station_places

    places = station_places(config.expert, loop.topology)  # also checks the names
    if not config.expert.ask or not asks_expert(loop.policy):
        return None
    return ExpertQueries(loop, config.expert, places, recorder.event)


def _radius(
    config: ActiveSensingConfig, scenario: Mapping[str, Any] | None, matcher: MapMatcher
) -> float:
    """Return the radius around a waypoint within which a probe counts as arrived [m]."""
    if config.mission.arrival_radius is not None:
        return config.mission.arrival_radius
    if _is_live(scenario):
        return _LIVE_RADIUS
    return 5.0 if matcher.has_lines else min(5.0, 0.4 * matcher.spacing)


def _budget(config: ActiveSensingConfig, topology: Topology) -> tuple[Budget, bool]:
    """Return the budget, and whether the budget's end place is the probe's first place."""
    budget, end = config.budget.budget(), config.probe.end
    if end is None and (config.probe.sortie != SortieConfig() or config.battery.topic):
        end = START  # batteries are changed at the end place
    if end is None or (end == START and START not in topology.names):
        return budget, end is not None
    return replace(budget, end=place_index(topology, end, "probe.end")), False


def _effective(config: ActiveSensingConfig, scenario: Mapping[str, Any] | None) -> dict[str, Any]:
    whole = to_mapping(config)
    kept: dict[str, Any] = dict(scenario) if scenario is not None else {"name": "mission"}
    if config.name:
        kept["name"] = config.name
    kept.update({section: whole[section] for section in _SECTIONS})
    kept["probe"] = {**kept.get("probe", {}), **whole["probe"]}
    answers = {key: whole["expert"][key] for key in ("timeout", "max_age", "max_ahead")}
    if whole["expert"]["stations"] and kept.get("expert", {}).get("kind") in (None, *_FIXED):
        answers["stations"] = whole["expert"]["stations"]
    kept["expert"] = {**kept.get("expert", {}), **answers}
    kept["seed"] = config.seed
    if config.readings and scenario is None:
        kept["readings"] = whole["readings"]
    if simulated := kept.get("quantities"):
        kept["quantities"] = {
            name: each | {k: v for k, v in whole["readings"].get(name, {}).items() if k in each}
            for name, each in simulated.items()
        }
    if unit := config.reading.unit:
        section = "reading" if scenario is None else "field"
        kept[section] = {**kept.get(section, {}), "unit": unit}
    return kept


def _is_live(scenario: Mapping[str, Any] | None) -> bool:
    field = (scenario or {}).get("field")
    return isinstance(field, Mapping) and field.get("kind") == "sumo"
