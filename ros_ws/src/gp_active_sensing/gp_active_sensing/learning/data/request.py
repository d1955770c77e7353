"""Resolve what a user asked to learn from: map, belief configuration and readings."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gp_active_sensing.belief import BeliefConfig
from gp_active_sensing.config import from_mapping
from gp_active_sensing.errors import ConfigError
from gp_active_sensing.learning.data.readings import (
    SNAP,
    PriorReadings,
    read_csv,
    read_run,
    read_scenario,
)
from gp_active_sensing.records.run_directory import RunDirectory
from gp_active_sensing.sim.scenario import load_scenario
from gp_active_sensing.topology import MapConfig, Topology, build_topology
from gp_active_sensing.util.yaml_files import apply_overrides

__all__ = ["DataRequest", "found_map", "load_readings"]


ON_ROADS, ON_FEATURES = "graph_matern", "matern32"
"""Kernel that is learned where none is given."""


@dataclass(frozen=True, eq=False)
class DataRequest:
    """Everything that learning needs.

    Args:
        config: kernel, mean and transform.
        topology: the map.
        readings: of some of its places.
    """

    config: BeliefConfig
    topology: Topology
    readings: PriorReadings


def load_readings(
    data: str,
    *,
    scenario: str | None = None,
    map_file: str | None = None,
    overrides: Sequence[str] = (),
    place: str = "",
    value: str = "",
    scale: float = 1.0,
    snap: float | None = None,
    usual_snap: float = SNAP,
    held_out: bool = False,
) -> DataRequest:
    """Find what is asked for.

    Args:
        data: a CSV file, a run directory, or a scenario.
        scenario: for a CSV file: whose map and belief.
        map_file: for a CSV file: a road map instead.
        overrides: ``a.b=value``, of the scenario, or of the sections `map` and `belief`.
        place: column with the names of places, see `read_csv`.
        value: column with the values.
        scale: factor on the values.
        snap: farthest that a position may be from its place [m]; None = not said: `usual_snap`.
        usual_snap: where it is not said.
        held_out: nothing is learned from the readings, see `PriorReadings`.

    Raises:
        ActiveSensingError: something that cannot be found or used.
    """
    path = Path(data)
    table = path.suffix.lower() in (".csv", ".tsv", ".txt") or (scenario or map_file) is not None
    if path.is_dir() or not table:
        if scenario is not None or map_file is not None:
            msg = f"{data} has a map of its own; --scenario and --map are for a CSV file"
            raise ConfigError(msg)
        _refuse_of_table(data, place, value, scale, snap)
        if path.is_dir():
            return _of_run(path, overrides, held_out=held_out)
        return _of_scenario(data, overrides)
    config, topology = found_map(data, scenario=scenario, map_file=map_file, overrides=overrides)
    return _job(
        config,
        topology,
        read_csv(
            path,
            topology,
            place=place,
            value=value,
            scale=scale,
            snap=snap,
            usual_snap=usual_snap,
            held_out=held_out,
        ),
    )


def _job(config: BeliefConfig, topology: Topology, readings: PriorReadings) -> DataRequest:
    """Return the job of learning one kernel: the one that is given, or one for the kind of map."""
    if config.kernel is None:
        along = topology.roads and set(topology.feature_names) <= {"x", "y"}
        config = dataclasses.replace(
            config,
            kernel=ON_ROADS if along else ON_FEATURES,
            # What a mission began with that had a belief over kernels.
            model=None,
            kernels=BeliefConfig.kernels,
            scales=BeliefConfig.scales,
            model_mark=None,
        )
    return DataRequest(config, topology, readings)


def found_map(
    data: str,
    *,
    scenario: str | None = None,
    map_file: str | None = None,
    overrides: Sequence[str] = (),
) -> tuple[BeliefConfig, Topology]:
    """Return the belief's configuration and the map that a CSV file's places are of.

    Raises:
        ConfigError: both, or none of `scenario` and `map_file`, or something that cannot be used.
    """
    if (scenario is None) == (map_file is None):
        msg = f"{data}: say whose map its places are of, with --scenario or with --map, not both"
        raise ConfigError(msg)
    if scenario is not None:
        whole = load_scenario(scenario, overrides=overrides)
        return whole.belief, build_topology(whole.map)
    return _sections({"map": {"kind": "roads", "file": map_file}, "belief": {}}, overrides)


def _refuse_of_table(data: str, place: str, value: str, scale: float, snap: float | None) -> None:
    """Refuse what is said about a table where there is none: it would not be used."""
    if scale != 1.0:
        msg = (
            f"--scale is for a table or a bag: the readings of {data} have their unit; leave it out"
        )
        raise ConfigError(msg)
    said = {"place": bool(place), "value": bool(value), "snap": snap is not None}
    for option in (option for option, given in said.items() if given):
        msg = f"--{option} is for a table, and {data} is a scenario or a run: leave it out"
        raise ConfigError(msg)


def _of_scenario(name: str, overrides: Sequence[str]) -> DataRequest:
    whole = load_scenario(name, overrides=overrides)
    topology = build_topology(whole.map)
    return _job(whole.belief, topology, read_scenario(whole, topology))


def _of_run(path: Path, overrides: Sequence[str], *, held_out: bool) -> DataRequest:
    config, topology = _sections(RunDirectory.open(path).config, overrides, path)
    return _job(config, topology, read_run(path, topology, held_out=held_out))


def _sections(
    mapping: Mapping[str, Any], overrides: Sequence[str], base: Path | None = None
) -> tuple[BeliefConfig, Topology]:
    whole = apply_overrides({k: mapping.get(k) for k in ("map", "belief")}, overrides)
    unknown = set(whole) - {"map", "belief"}
    if unknown:
        msg = f"{min(unknown)}: unknown section; without a scenario there are map and belief"
        raise ConfigError(msg)
    config = from_mapping(BeliefConfig, whole["belief"], path="belief")
    return config, build_topology(from_mapping(MapConfig, whole["map"], path="map"), base_dir=base)
