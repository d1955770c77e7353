"""Load the data of a report from a run directory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gp_active_sensing.belief import Belief, BeliefConfig, belief_on
from gp_active_sensing.belief.drift import DriftConfig
from gp_active_sensing.belief.link import AUTO
from gp_active_sensing.config import from_mapping
from gp_active_sensing.errors import ActiveSensingError, ConfigError, RunError, suggest
from gp_active_sensing.planning import build_policy
from gp_active_sensing.planning.base import drift_of
from gp_active_sensing.records.events import MapChanged
from gp_active_sensing.records.ground_truth import GroundTruth
from gp_active_sensing.records.regret import objective_of
from gp_active_sensing.records.run_directory import RunDirectory
from gp_active_sensing.records.run_map import check_places, kept_places, stored_map
from gp_active_sensing.sim.fields.config import FieldConfig
from gp_active_sensing.sim.fields.truth import build_truth
from gp_active_sensing.sim.scenario import scenario_from_mapping
from gp_active_sensing.sim.sensor import SensorConfig, SimulatedSensor
from gp_active_sensing.sim.world import further_sensor
from gp_active_sensing.topology import MapConfig, Topology, build_topology
from gp_active_sensing.topology.map_config import OccupancyConfig
from gp_active_sensing.util.wording import symbol


@dataclass(frozen=True)
class RunData:
    """Run with its map and its true field, loaded from a directory.

    Args:
        path: run directory.
        config: content of ``config.yaml``.
        topology: the map.
        belief: configuration of the belief before the first reading.
        truth: noise-free field; None = not known.
        events: events of the journal, in order.
        records: record of each stage.
        summary: content of ``summary.json``; {} = the run did not end.
        notes: remarks for the page, such as a half-written line that was left out.
        drift: how the policy assumes that the field changes; None = as in `belief`.
        objective: "maximise" or "minimise"; "" = neither.
        sensor: simulated sensor that measures the true field; None = no simulation.
        first: first map of the run, if the map comes from a topic; None = `topology`.
        of: name of the selected further quantity; "" = the main quantity.
    """

    path: Path
    config: Mapping[str, Any]
    topology: Topology
    belief: BeliefConfig
    truth: GroundTruth | None
    events: tuple[Mapping[str, Any], ...]
    records: tuple[Mapping[str, Any], ...]
    summary: Mapping[str, Any]
    notes: tuple[str, ...]
    drift: DriftConfig | None = None
    objective: str = ""
    sensor: SimulatedSensor | None = None
    first: Topology | None = None
    of: str = ""
    whole: RunData | None = None
    """The same run with the main quantity selected; None = this object."""

    @property
    def linked_to(self) -> RunData | None:
        """The same run with the linked quantity selected; None = no link."""
        if self.whole is None:
            return None
        sections = further_sections(self.config)
        link = str(sections[self.of].get("link") or "")
        if link != AUTO:
            return self.whole.for_quantity(link) if link else None
        if any(each.get("link") == self.of for each in sections.values()):
            return None
        drifts = (self.drift or each.belief.drift for each in (self, self.whole))
        return None if any(drift.changing for drift in drifts) else self.whole

    @property
    def quantities(self) -> tuple[str, ...]:
        """Names of the quantities, main quantity first; () for a single quantity."""
        further = tuple(further_sections(self.config))
        return (self.main, *further) if further else ()

    @property
    def main(self) -> str:
        """Name of the main quantity."""
        return main_quantity(self.config)

    def for_quantity(self, name: str) -> RunData:
        """Return the same run with another quantity selected; "" = the main quantity.

        Raises:
            RunError: the run has no such quantity.
        """
        if name in ("", self.main):
            return self.whole or self
        sections = further_sections(self.config)
        if name not in sections:
            known = ", ".join(self.quantities or (self.main,))
            msg = (
                f"{self.path}: no quantity {name!r}; the run has {known}.{suggest(name, sections)}"
            )
            raise RunError(msg)
        belief = from_mapping(BeliefConfig, sections[name].get("belief") or {}, path=name)
        own = section_of(section_of(self.summary, "quantities"), name)
        summary = {"least_error": None, "least_places": None, **own}
        sensor = _simulated(self.config, name, self.topology)
        truth = None if sensor is None else sensor.truth
        alone = replace(self, truth=truth, sensor=sensor, objective="")
        return replace(alone, of=name, whole=self, belief=belief, summary=summary)

    @property
    def unit(self) -> str:
        """Unit of the field; "" = not given."""
        if self.of:
            section = further_sections(self.config)[self.of]
            return str(section.get("unit") or section_of(section, "field").get("unit") or "")
        readings = section_of(self.config, "readings")
        reading = readings.get(self.main) or section_of(self.config, "reading")
        return str(section_of(self.config, "field").get("unit", reading.get("unit", "")))

    @property
    def symbol(self) -> str:
        """Unit of the field with symbols, such as °C for degC."""
        return symbol(self.unit)

    @property
    def quantity(self) -> str:
        """Name of the selected quantity; by default derived from the reading topic."""
        return self.of or self.main

    @property
    def policy(self) -> str:
        """Name of the policy; "" = not given."""
        policy = self.config.get("policy")
        name = policy.get("name") if isinstance(policy, Mapping) else policy
        return str(name or "")

    @property
    def versions(self) -> Mapping[str, str]:
        """Versions of the software that made the run."""
        first: Mapping[str, Any] = next((e for e in self.events if e.get("event") == "start"), {})
        return section_of(first, "versions")

    def fresh_belief(self) -> Belief:
        """Return the belief before the first reading, over the places of the last map.

        Its candidates (kernel, length-scale, noise) are computed from the first map.
        """
        first = self.topology if self.first is None else self.first
        belief = self._belief_on(first)
        if first is not self.topology:
            belief.move_to(self._belief_on(self.topology))
        return belief

    def _belief_on(self, topology: Topology) -> Belief:
        return belief_on(self.belief, topology, self.drift, run_dir=self.path, quiet=True)


def section_of(config: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return the mapping stored under a key; {} if there is no mapping."""
    found = config.get(name)
    return found if isinstance(found, Mapping) else {}


def _simulated(config: Mapping[str, Any], name: str, topology: Topology) -> SimulatedSensor | None:
    if name not in section_of(config, "quantities"):
        return None
    try:
        return further_sensor(scenario_from_mapping(config), name, topology)
    except ActiveSensingError:
        return None


def main_quantity(config: Mapping[str, Any]) -> str:
    """Return the name of the main quantity of a mission or a scenario."""
    if readings := section_of(config, "readings"):
        return str(next(iter(readings)))
    topic = str(section_of(config, "reading").get("topic", ""))
    name = topic.rstrip("/").rpartition("/")[2].replace("_", " ")
    usual = name if name not in ("", "reading") else "value"
    return str(section_of(config, "field").get("quantity", usual))


def further_sections(config: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the configuration sections of the further quantities, by name."""
    readings, simulated = section_of(config, "readings"), section_of(config, "quantities")
    found = {**dict(list(readings.items())[1:]), **simulated}
    return {name: each for name, each in found.items() if isinstance(each, Mapping)}


def load_run(run_dir: Path, *, follow: bool = False) -> RunData:
    """Read a run directory.

    With `follow`, do not read events, records and summary; the live page reads them later.

    Raises:
        RunError: `run_dir` is not a run directory, or its configuration has no map or belief.
        ActiveSensingError: the map cannot be found or read.
    """
    run = RunDirectory.open(run_dir)
    config = run.config
    for section in ("map", "belief"):
        if not isinstance(config.get(section), Mapping):
            msg = f"{run_dir / 'config.yaml'}: expected a section {section!r}, found none"
            raise RunError(msg)
    source = str(run_dir / "config.yaml")
    events = () if follow else tuple(run.events())
    start = run.start
    where = stored_map(config["map"], start, source=source)
    topology, first = _maps(where, run_dir, None if follow else events)
    check_places(start, first or topology, run_dir)
    belief = from_mapping(BeliefConfig, config["belief"], path="belief", source=source)
    truth, why_not = truth_of(run, topology)
    records = () if follow else tuple(run.records())  # reading fills `run.cut_short`
    notes = [f"{name}: the last line was cut short and is left out" for name in run.cut_short]
    if why_not:
        notes.append(why_not)
    drift: DriftConfig | None = None
    objective = str(config.get("seek") or "")
    if isinstance(config.get("policy"), Mapping):
        try:
            policy = build_policy(config["policy"])
            drift = drift_of(policy)
            objective = objective or objective_of(policy)
        except ConfigError as error:
            notes.append(f"how readings age for the policy is not known and left out: {error}")
    return RunData(
        path=run_dir,
        config=config,
        topology=topology,
        belief=belief,
        truth=truth,
        events=events,
        records=records,
        summary={} if follow else run.summary(),
        notes=tuple(notes),
        drift=drift,
        objective=objective,
        sensor=_sensor(config, truth),
        first=first,
    )


def _maps(
    config: MapConfig, run_dir: Path, events: Sequence[Mapping[str, Any]] | None
) -> tuple[Topology, Topology | None]:
    """Return the last map of a run, and the first map if the map comes from a topic."""
    if not isinstance(config, OccupancyConfig) or not config.topic:
        return build_topology(config, base_dir=run_dir), None
    first, last = kept_places(config, run_dir, 1), None
    if events is not None:
        numbers = [int(e["number"]) for e in events if e.get("event") == MapChanged.KIND]
        last = max(numbers, default=1)
    return kept_places(config, run_dir, last).topology, first.topology


def truth_of(run: RunDirectory, topology: Topology) -> tuple[GroundTruth | None, str]:
    """Return (true field, ""), or (None, reason) if the field is not known."""
    config = run.config
    if not isinstance(config.get("field"), Mapping):
        return None, ""
    try:
        field = from_mapping(FieldConfig, config["field"], path="field")
        if field.kind == "sumo":
            from gp_active_sensing.sim.traffic import recorded_truth

            return recorded_truth(run.truth(), topology.n), ""
        return build_truth(field, topology, int(config.get("seed") or 0)), ""
    except ActiveSensingError as error:
        return None, f"the truth is not shown: {error}"


def _sensor(config: Mapping[str, Any], truth: GroundTruth | None) -> SimulatedSensor | None:
    if truth is None or not isinstance(config.get("sensor"), Mapping):
        return None
    try:
        sensor = from_mapping(SensorConfig, config["sensor"], path="sensor")
    except ConfigError:
        return None
    return SimulatedSensor(truth, sensor, int(config.get("seed") or 0))
