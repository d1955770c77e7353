"""What a report shows, gathered from a run directory and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gp_active_sensing.belief import Belief, BeliefConfig, build_belief
from gp_active_sensing.config import from_mapping
from gp_active_sensing.errors import ActiveSensingError, RunError
from gp_active_sensing.events import reading_of
from gp_active_sensing.loop import SensingLoop
from gp_active_sensing.planning import build_policy
from gp_active_sensing.records import RunDirectory
from gp_active_sensing.sim.scenario import FieldConfig
from gp_active_sensing.sim.truth import build_truth
from gp_active_sensing.topology import MapConfig, Topology, build_topology
from gp_active_sensing.types import FloatArray

__all__ = ["RunData", "load_run"]


@dataclass(frozen=True)
class RunData:
    """A run as a report sees it.

    Args:
        path: the run directory.
        config: its configuration.
        topology: the map.
        belief: after the last reading.
        mean, std: (n,) estimate and uncertainty (standard deviation) of the noise-free field.
        truth: (n,) noise-free field, None when it is not known.
        readings: (n,) mean of the readings of each place, NaN without any.
        records: one a stage.
        summary: {} for a run that did not end.
        versions: of the software it was run with.
        notes: what a reader has to know (no truth, a line cut short).
    """

    path: Path
    config: Mapping[str, Any]
    topology: Topology
    belief: Belief
    mean: FloatArray
    std: FloatArray
    truth: FloatArray | None
    readings: FloatArray
    records: tuple[Mapping[str, Any], ...]
    summary: Mapping[str, Any]
    versions: Mapping[str, str]
    notes: tuple[str, ...]

    @property
    def unit(self) -> str:
        """Unit of the field, "" when not said."""
        return str(self._field("unit", ""))

    @property
    def quantity(self) -> str:
        """What the field is."""
        return str(self._field("quantity", "value"))

    @property
    def visited(self) -> list[int]:
        """Places decided on that gave a reading, in order."""
        return [int(r["location"]) for r in self.records if r.get("value") is not None]

    @property
    def length_scales(self) -> list[tuple[float, ...]]:
        """(L,) length-scales of the candidates, in the order of the weights."""
        return [tuple(h.length_scales) for h in self.belief.hyperparameters]

    def _field(self, key: str, default: Any) -> Any:
        section = self.config.get("field")
        return section.get(key, default) if isinstance(section, Mapping) else default


def load_run(run_dir: Path) -> RunData:
    """Gather everything about a run.

    Raises:
        RunError: not a run directory, or one whose configuration has no map or belief.
        ActiveSensingError: a map that cannot be found or read any more.
    """
    run = RunDirectory.open(run_dir)
    config = run.config
    for section in ("map", "belief"):
        if not isinstance(config.get(section), Mapping):
            msg = f"{run_dir / 'config.yaml'}: expected a section {section!r}, found none"
            raise RunError(msg)
    source = str(run_dir / "config.yaml")
    topology = build_topology(
        from_mapping(MapConfig, config["map"], path="map", source=source), base_dir=run_dir
    )
    belief_config = from_mapping(BeliefConfig, config["belief"], path="belief", source=source)
    events = run.events()
    loop = SensingLoop(
        topology, build_belief(belief_config, topology.features), build_policy({"name": "random"})
    )
    told = [reading_of(event) for event in events if event.get("event") == "reading"]
    loop.tell(told)
    total, count = np.zeros(topology.n), np.zeros(topology.n)
    for reading in told:
        if reading.location is not None and 0 <= reading.location < topology.n:
            total[reading.location] += reading.value
            count[reading.location] += 1
    records = tuple(run.records())
    notes = [f"{name}: the last line was cut short and is left out" for name in run.cut_short]
    truth, why_not = _truth(config, topology)
    if why_not:
        notes.append(why_not)
    mean, variance = loop.belief.predict()
    first = next((e for e in events if e.get("event") == "start"), {})
    return RunData(
        path=run_dir,
        config=config,
        topology=topology,
        belief=loop.belief,
        mean=mean,
        std=np.sqrt(variance),
        truth=truth,
        readings=np.divide(total, count, out=np.full(topology.n, np.nan), where=count > 0),
        records=records,
        summary=run.summary(),
        versions=dict(first.get("versions") or {}),
        notes=tuple(notes),
    )


def _truth(config: Mapping[str, Any], topology: Topology) -> tuple[FloatArray | None, str]:
    """Return the truth, or why there is none."""
    if not isinstance(config.get("field"), Mapping):
        return None, ""
    try:
        field = from_mapping(FieldConfig, config["field"], path="field")
        return build_truth(field, topology, int(config.get("seed") or 0)), ""
    except ActiveSensingError as error:
        return None, f"the truth is not shown: {error}"
