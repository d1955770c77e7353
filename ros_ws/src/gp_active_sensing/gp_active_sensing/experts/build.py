"""Build the simulated expert of a scenario from its section ``expert``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gp_active_sensing.errors import ConfigError
from gp_active_sensing.experts.base import Field
from gp_active_sensing.experts.config import AnswersConfig, ExpertConfig
from gp_active_sensing.topology import place_index
from gp_active_sensing.topology.base import Topology

if TYPE_CHECKING:
    from gp_active_sensing.experts.simulated import SimulatedExpert

__all__ = ["build_expert", "station_places"]


def station_places(config: AnswersConfig, topology: Topology) -> tuple[int, ...] | None:
    """Return the places of the stations, sorted; None where there are none.

    Raises:
        ConfigError: a station that is no place of the map, or one that is named twice.
    """
    problems: list[str] = []
    places: list[int] = []
    for number, text in enumerate(config.stations):
        try:
            places.append(_place(topology, text, f"expert.stations[{number}]"))
        except ConfigError as error:
            problems += error.problems
    twice = sorted({topology.names[p] for p in places if places.count(p) > 1})
    if twice:
        problems.append(f"expert.stations: {', '.join(map(repr, twice))} is there more than once")
    if problems:
        raise ConfigError(problems)
    return tuple(sorted(places)) or None


def build_expert(
    config: ExpertConfig, topology: Topology, field: Field, seed: int
) -> SimulatedExpert | None:
    """Return the simulated expert of a scenario, None where there is none.

    Args:
        config: the section.
        topology: the map.
        field: what is true, which the expert measures with noise.
        seed: key of its draws.

    Raises:
        ConfigError: stations or a start that are no places of the map.
    """
    if config.kind == "none":
        return None
    from gp_active_sensing.experts.second_probe import RevisitExpert
    from gp_active_sensing.experts.simulated import Faults, ModelExpert, StationsExpert

    faults = Faults(config.dropout, config.nan, config.wrong)
    noise_std, delay = config.noise_std, config.delay
    if config.kind == "stations":
        places = station_places(config, topology)
        assert places is not None  # the configuration requires one
        return StationsExpert(
            field, topology.n, places, noise_std=noise_std, delay=delay, seed=seed, faults=faults
        )
    if config.kind == "probe":
        start = config.start
        return RevisitExpert(
            field,
            topology,
            start=None if start is None else _place(topology, start, "expert.start"),
            speed=config.own_speed,
            noise_std=noise_std,
            delay=delay,
            seed=seed,
            faults=faults,
        )
    return ModelExpert(
        field, topology.n, noise_std=noise_std, delay=delay, seed=seed, faults=faults
    )


def _place(topology: Topology, text: str, key: str) -> int:
    """Return a place by its name; a text of digits is an index, unless it is a name."""
    is_index = text.isascii() and text.isdigit() and text not in topology.names
    return place_index(topology, int(text) if is_index else text, key)
