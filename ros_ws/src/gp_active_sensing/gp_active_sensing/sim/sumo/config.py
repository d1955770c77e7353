"""Configuration of live traffic in a scenario, simulated by SUMO."""

from __future__ import annotations

from dataclasses import dataclass

from gp_active_sensing.config import param
from gp_active_sensing.errors import ConfigError

__all__ = ["TrafficConfig"]


@dataclass(frozen=True)
class TrafficConfig:
    """The traffic of a field of kind sumo; the map's segments are SUMO's edges of the same id."""

    net: str | None = param(
        None, help="SUMO's network, .net.xml(.gz): one that ships with the maps, or a path"
    )
    routes: tuple[str, ...] = param(
        (), help="routes or trips of the other cars, .xml(.gz); [] = the probe is alone"
    )
    additional: tuple[str, ...] = param(
        (), help="SUMO's additional files: vehicle types, traffic lights"
    )
    config: str | None = param(None, help="a .sumocfg file instead of net, routes and additional")
    begin: float | None = param(
        None,
        help="SUMO's clock when the mission begins; until then traffic fills the streets; null = "
        "at once",
        unit="s",
        low=0.0,
        high=1e9,
    )
    step_length: float | None = param(
        None,
        help="a step of the simulation; null = what SUMO or its config says, 1 s",
        unit="s",
        low=0.001,
        high=10.0,
    )
    seed: int | None = param(
        None, help="SUMO's own seed; null = that of the scenario", low=0, high=2**31 - 1
    )
    rerouting: float | None = param(
        None,
        help="share of the other cars that look for a faster way every 300 s; null = as SUMO",
        low=0.0,
        high=1.0,
    )
    teleport_after: float | None = param(
        None,
        help="a car that has stood so long is moved on along its way; null = as SUMO, 300 s",
        unit="s",
        above=0.0,
        high=1e9,
    )
    window: float = param(
        300.0,
        help="the truth is the mean speed of the cars on an edge within so long before",
        unit="s",
        above=0.0,
        high=1e6,
    )
    planning_time: float = param(
        0.0,
        help="how long traffic goes on, and the probe stands at the roadside, at each decision",
        unit="s",
        low=0.0,
        high=1e6,
    )
    patience: float = param(
        1800.0,
        help="longest drive to a waypoint; then the probe is put there, without a reading",
        unit="s",
        above=0.0,
        high=1e9,
    )
    options: tuple[str, ...] = param(
        (), help='more options of the command sumo, such as ["--scale", "1.3"]'
    )

    def __post_init__(self) -> None:
        problems = []
        if self.config is not None:
            problems += [
                f"{key}: give it in {self.config!r}, or leave config out"
                for key in ("net", "routes", "additional")
                if getattr(self, key)
            ]
        if problems:
            raise ConfigError(problems)
