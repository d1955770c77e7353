"""Configuration of live traffic in a scenario, simulated by SUMO."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

from gp_active_sensing.config import param
from gp_active_sensing.errors import ConfigError

__all__ = ["TrafficConfig"]


@dataclass(frozen=True)
class TrafficConfig:
    """The traffic of a field of kind sumo; the map's segments are SUMO's edges of the same id."""

    REMOVED: ClassVar[Mapping[str, str]] = MappingProxyType(
        {
            "step_length": 'was removed; give options: ["--step-length", "0.5"]',
            "seed": "was removed; SUMO's seed is that of the scenario",
            "teleport_after": 'was removed; give options: ["--time-to-teleport", "300"]',
        }
    )

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
    rerouting: float | None = param(
        None,
        help="share of the other cars that look for a faster way every 300 s; null = as SUMO",
        low=0.0,
        high=1.0,
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
