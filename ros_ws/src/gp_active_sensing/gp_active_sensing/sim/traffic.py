"""Settings and true speeds of live traffic, and the registry of its plug-in.

The package ``gp_active_sensing_bench`` drives a car through a running SUMO.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from gp_active_sensing.config import param
from gp_active_sensing.errors import MissingDependencyError, RunError
from gp_active_sensing.records.ground_truth import GroundTruth
from gp_active_sensing.registry import Registry
from gp_active_sensing.types import FloatArray
from gp_active_sensing.util.lazy import install_command

_SAME_TIME = 1e-6
live_fields: Registry[Any] = Registry("live field", group="gp_active_sensing.live_fields")
"""Constructors of live traffic by `field.kind`; arguments: settings, field, topology, seed."""


@dataclass(frozen=True)
class TrafficConfig:
    """Settings of live SUMO traffic; the names of map segments must be SUMO's edge ids."""

    REMOVED: ClassVar[Mapping[str, str]] = MappingProxyType(
        {
            "step_length": 'was removed; give options: ["--step-length", "0.5"]',
            "seed": "was removed; SUMO's seed is that of the scenario",
            "teleport_after": 'was removed; give options: ["--time-to-teleport", "300"]',
            "additional": 'was removed; give options: ["--additional-files", "/a/file.add.xml"]',
            "config": "was removed; give net, routes and options",
            "rerouting": 'was removed; give options: ["--device.rerouting.probability", "0.5"]',
        }
    )
    WERE: ClassVar[Mapping[str, Any]] = MappingProxyType(
        {"additional": [], "config": None, "rerouting": None}
    )

    net: str | None = param(
        None, help="SUMO's network, .net.xml or .net.xml.gz: the name of a shipped file, or a path"
    )
    routes: tuple[str, ...] = param(
        (), help="routes or trips of the other cars, .xml or .xml.gz. [] = the probe is alone"
    )
    begin: float | None = param(
        None,
        help="SUMO's time when the mission begins. Traffic fills the streets before that time. "
        "null = the start of SUMO's simulation",
        unit="s",
        low=0.0,
        high=1e9,
    )
    window: float = param(
        300.0,
        help="averaging time. The true value of an edge is the mean speed of its cars within this "
        "time",
        unit="s",
        above=0.0,
        high=1e6,
    )
    planning_time: float = param(
        0.0,
        help="time that traffic continues at each decision, while the probe stands at the roadside",
        unit="s",
        low=0.0,
        high=1e6,
    )
    patience: float = param(
        1800.0,
        help="longest drive to a waypoint. After this time the probe is moved to the waypoint, "
        "without a reading",
        unit="s",
        above=0.0,
        high=1e9,
    )
    options: tuple[str, ...] = param(
        (), help='further options of the command sumo, such as ["--scale", "1.3"]'
    )


class LiveTruth(GroundTruth):
    """Mean speed of each road, recorded at the start of a mission and after each drive.

    Between two records, the speeds of the earlier record apply.
    """

    changes = True

    def __init__(self) -> None:
        super().__init__(())
        self._times: list[float] = []
        self._fields: list[FloatArray] = []

    def begin(self, values: FloatArray) -> None:
        """Delete all records; record the (n,) values at the start of the mission."""
        self._times.clear()
        self._fields.clear()
        self.add(0.0, values)

    def add(self, seconds: float, values: FloatArray) -> None:
        """Add the (n,) values at a mission time [s]; the times must not decrease."""
        field = np.array(values, dtype=np.float64)
        field.setflags(write=False)
        self._times.append(seconds)
        self._fields.append(field)

    def at(self, seconds: float) -> FloatArray:
        """Return the (n,) values that were recorded last before a mission time [s]; read-only."""
        if not self._times:
            msg = "the speeds of live traffic are not known: it has not run, or was not recorded"
            raise RunError(msg)
        k = max(0, bisect_right(self._times, seconds + _SAME_TIME) - 1)
        return self._fields[k]


def recorded_truth(items: Sequence[Mapping[str, Any]], n: int) -> LiveTruth:
    """Return the truth of live traffic from records with ``seconds`` and (n,) ``values``.

    Raises:
        RunError: there are no records, or a record is malformed.
    """
    found = LiveTruth()
    for item in items:
        try:
            seconds, values = float(item["seconds"]), np.array(item["values"], dtype=np.float64)
        except (KeyError, TypeError, ValueError) as error:
            msg = f"truth.jsonl: expected seconds and values, got {str(item)[:80]}"
            raise RunError(msg) from error
        if values.shape != (n,) or not np.isfinite(values).all():
            msg = f"truth.jsonl: expected {n} finite values, got an array {values.shape}"
            raise RunError(msg)
        found.add(seconds, values)
    found.at(0.0)
    return found


def find_traffic() -> Callable[..., Any]:
    """Return the constructor of live SUMO traffic.

    Raises:
        MissingDependencyError: no installed package has a constructor.
    """
    if "sumo" not in live_fields:
        msg = (
            "field.kind: sumo is run by the package gp_active_sensing_bench, which is not "
            f"installed: {install_command(package='gp_active_sensing_bench')}, and "
            f"{install_command('sumo')}"
        )
        raise MissingDependencyError(msg)
    return live_fields.factory("sumo")
