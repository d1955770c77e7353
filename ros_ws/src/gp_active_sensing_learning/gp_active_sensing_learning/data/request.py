"""Find the map, the belief configuration and the readings for a user's command."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gp_active_sensing.belief import BeliefConfig
from gp_active_sensing.config import from_mapping, to_mapping
from gp_active_sensing.errors import ConfigError
from gp_active_sensing.records.run_directory import RunDirectory
from gp_active_sensing.records.run_map import check_places, run_topology, stored_map
from gp_active_sensing.replay.bag import Bag
from gp_active_sensing.report.source import further_sections, main_quantity
from gp_active_sensing.sim.scenario import load_scenario
from gp_active_sensing.topology import MapConfig, Topology, build_topology
from gp_active_sensing.util.yaml_files import apply_overrides
from gp_active_sensing_learning.data.readings import (
    SNAP,
    PriorReadings,
    read_csv,
    read_run,
    read_scenario,
)

ON_ROADS, ON_FEATURES = "graph_matern32", "matern32"
"""Default kernel for road maps, and default kernel for other maps."""


@dataclass(frozen=True)
class RowRequest:
    """Options for selecting and reading data.

    Args:
        data: CSV file, run directory, scenario or bag.
        inputs: columns of a table; () = the features of a map.
        value: column with the values of a table, or name of the quantity of a run.
        place: column with the names of places.
        scale: factor on the values.
        snap: largest distance of a position from a place [m]; None = the default `usual_snap`.
        scenario, map_file: scenario or file that defines the map.
        overrides: overrides of the form ``a.b=value``.
        reading_topic, reading_field, pose_topic: topics and message field of a bag.
        transform: transform of the values; None = as configured in the scenario or run.
        held_out: True for test rows, which are not used for learning.
    """

    data: str
    inputs: tuple[str, ...] = ()
    value: str = ""
    place: str = ""
    scale: float = 1.0
    snap: float | None = None
    usual_snap: float = SNAP
    scenario: str | None = None
    map_file: str | None = None
    overrides: tuple[str, ...] = ()
    reading_topic: str = ""
    reading_field: str = ""
    pose_topic: str = ""
    transform: str | None = None
    held_out: bool = False

    @property
    def of_map(self) -> bool:
        """True if the options name a map."""
        return self.scenario is not None or self.map_file is not None

    @property
    def of_bag(self) -> dict[str, str]:
        """Options that the user has given and that apply only to bags, by name."""
        names = ("reading_topic", "reading_field", "pose_topic")
        return {name: text for name in names if (text := getattr(self, name))}


@dataclass(frozen=True, eq=False)
class DataRequest:
    """Data and configuration for learning."""

    config: BeliefConfig
    topology: Topology
    readings: PriorReadings


def load_readings(asked: RowRequest) -> DataRequest:
    """Return the map, the configuration and the readings of a request.

    Args:
        asked: request for a CSV file, a run directory, or a scenario. Without a scenario, overrides
            may set keys of the sections `map` and `belief`.

    Raises:
        ActiveSensingError: the map, the configuration or the data cannot be found or used.
    """
    data, path = asked.data, Path(asked.data)
    table = path.suffix.lower() in (".csv", ".tsv", ".txt") or asked.of_map
    if path.is_dir() or not table:
        if asked.of_map:
            msg = f"{data} has a map of its own; --scenario and --map are for a CSV file"
            raise ConfigError(msg)
        if asked.scale != 1.0:
            msg = f"--scale is for a table or a bag: the readings of {data} have their unit"
            raise ConfigError(msg)
        why = f"a table, and {data} is a scenario or a run: leave it out"
        refuse(asked, ("place", "snap", *(() if path.is_dir() else ("value",))), why)
        if path.is_dir():
            run = RunDirectory.open(path)
            section = run.config.get("map")
            kept, quantity = dict(run.config), asked.value
            sections = further_sections(run.config)
            if quantity == main_quantity(run.config):
                quantity = ""
            elif quantity in sections:
                kept["belief"] = dict(sections[quantity].get("belief") or {})
            elif quantity:
                known = ", ".join(filter(None, (main_quantity(run.config), *sections)))
                msg = f"--value: {data} has no quantity {quantity!r}, it has: {known or 'one'}"
                raise ConfigError(msg)
            if isinstance(section, Mapping):
                kept["map"] = to_mapping(stored_map(section, run.start))
            config, topology = _sections(kept, asked.overrides, path)
            if not asked.overrides and not kept["map"].get("topic"):  # a growing map
                check_places(run.start, topology, path)
            readings = read_run(path, topology, quantity=quantity, held_out=asked.held_out)
            return _job(config, topology, readings)
        scenario = load_scenario(data, overrides=asked.overrides)
        topology = build_topology(scenario.map)
        return _job(scenario.belief, topology, read_scenario(scenario, topology))
    config, topology = found_map(asked)
    readings = read_csv(
        path,
        topology,
        place=asked.place,
        value=asked.value,
        scale=asked.scale,
        snap=asked.snap,
        usual_snap=asked.usual_snap,
        held_out=asked.held_out,
    )
    return _job(config, topology, readings)


def is_bag(data: str) -> bool:
    """Return whether `data` is the path of a bag or the name of a shipped bag."""
    path = Bag(data).path
    if path.is_dir():
        files = (file.suffix for file in path.iterdir())
        return (path / "metadata.yaml").is_file() or any(s in (".mcap", ".db3") for s in files)
    return path.suffix.lower() in (".mcap", ".db3")


def _job(config: BeliefConfig, topology: Topology, readings: PriorReadings) -> DataRequest:
    """Return the data for learning. Set a default kernel if the configuration has no kernel."""
    if config.kernel is None:
        along = topology.roads and set(topology.feature_names) <= {"x", "y"}
        config = dataclasses.replace(
            config,
            kernel=ON_ROADS if along else ON_FEATURES,
            # The run may have used a kernel model.
            model=None,
            model_mark=None,
        )
    return DataRequest(config, topology, readings)


def found_map(asked: RowRequest) -> tuple[BeliefConfig, Topology]:
    """Return the belief's configuration and the map that a request names.

    Raises:
        ConfigError: neither or both of `scenario` and `map_file` are given, or the map is invalid.
    """
    if (asked.scenario is None) == (asked.map_file is None):
        msg = (
            f"{asked.data}: say whose map its places are of, with --scenario or with --map, not "
            "both"
        )
        raise ConfigError(msg)
    if asked.scenario is not None:
        whole = load_scenario(asked.scenario, overrides=asked.overrides)
        return whole.belief, build_topology(whole.map)
    roads = {"map": {"file": asked.map_file}, "belief": {}}
    return _sections(roads, asked.overrides)


def refuse(asked: RowRequest, names: Sequence[str], what: str) -> None:
    """Reject the options in `names` that `asked` sets. The error message ends with `what`."""
    for name in names:
        if getattr(asked, name) not in (None, ""):
            msg = f"--{name} is for {what}"
            raise ConfigError(msg)


def _sections(
    mapping: Mapping[str, Any], overrides: Sequence[str], base: Path | None = None
) -> tuple[BeliefConfig, Topology]:
    whole = apply_overrides({k: mapping.get(k) for k in ("map", "belief")}, overrides)
    unknown = set(whole) - {"map", "belief"}
    if unknown:
        msg = f"{min(unknown)}: unknown section; without a scenario there are map and belief"
        raise ConfigError(msg)
    config = from_mapping(BeliefConfig, whole["belief"], path="belief")
    return config, run_topology(from_mapping(MapConfig, whole["map"], path="map"), base)
