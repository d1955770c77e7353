"""The map of a run, as it was when the run began: what was worked out, and what its places were.

A run keeps its map as it was configured, and in its first event what was worked out of it besides:
``map``, the spacing and the origin that nobody stated, and ``places``, by which its places are told
from others. So a later version, or a file that somebody has changed, cannot give a run other places
without an error.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gp_active_sensing.config import from_mapping, to_mapping
from gp_active_sensing.errors import RunError
from gp_active_sensing.topology.base import Topology
from gp_active_sensing.topology.config import MapConfig

__all__ = [
    "NO_LONGER",
    "as_begun_with",
    "check_places",
    "mark_of_places",
    "other_places",
    "stored_map",
    "worked_out",
]

_WORKED_OUT = ("spacing", "origin")
NO_LONGER = (
    "it does not give the places that the run began with: {}. Its file or its configuration has "
    "changed since, or this version makes places of it in another way: put it back as it was, use "
    "the version that the run was begun with, or begin a new run in another directory"
)
"""Said where the places of a run are others than they were."""
_OFF = 0.05
"""How far positions may be off that another machine works out [m]; never more than a thousandth of
the map."""


def worked_out(given: MapConfig, settled: MapConfig) -> dict[str, Any]:
    """Return the keys of a map that nobody stated and what they came to; {} for none."""
    before, after = to_mapping(given), to_mapping(settled)
    return {key: after[key] for key in _WORKED_OUT if after[key] != before[key]}


def as_begun_with(config: MapConfig, start: Mapping[str, Any]) -> MapConfig:
    """Return a map with what was worked out when its run began; what it states stays.

    Raises:
        ConfigError: the first event of the run says what is no spacing, or no origin.
    """
    told, stated = start.get("map"), to_mapping(config)
    if not isinstance(told, Mapping):
        return config
    more = {key: told[key] for key in _WORKED_OUT if key in told and not stated[key]}
    return from_mapping(MapConfig, {**stated, **more}, path="map") if more else config


def stored_map(
    section: Mapping[str, Any], start: Mapping[str, Any], *, source: str = ""
) -> MapConfig:
    """Return the map of a run by its section ``map`` and its first event ({} = not known).

    Raises:
        ConfigError: it is no configuration of a map; `source` says where it stands.
    """
    return as_begun_with(from_mapping(MapConfig, section, path="map", source=source), start)


def mark_of_places(topology: Topology) -> dict[str, Any]:
    """Return what tells the places of a map from others, as plain data.

    ``count``: so many; ``names``: a checksum of their names, in their order; ``box``: the least and
    the largest coordinates [m]; ``spread``: a sum of all positions, each of which counts +1 or -1
    by its name, over the square root of their number [m].
    """
    names = [name.encode() for name in topology.names]
    signs = np.array([1.0 - 2.0 * (zlib.crc32(name) & 1) for name in names])
    points = topology.points
    spread = signs @ points / math.sqrt(topology.n)
    return {
        "count": topology.n,
        "names": f"{zlib.crc32(b'|'.join(names)):08x}",
        "box": [points.min(axis=0).tolist(), points.max(axis=0).tolist()],
        "spread": spread.tolist(),
    }


def other_places(told: Any, found: Mapping[str, Any]) -> str:
    """Return how places by `mark_of_places` differ from those told; "" = they do not."""
    if told is None:
        return ""
    try:
        then, now = (np.array(m["box"], dtype=np.float64) for m in (told, found))
        sums = [np.array(m["spread"], dtype=np.float64) for m in (told, found)]
        same = int(told["count"]) == found["count"] and then.shape == now.shape
        if same:
            extent = float(np.ptp(now, axis=0).max())
            most = min(_OFF, 1e-3 * extent) if extent > 0.0 else _OFF
            off = max(float(np.abs(then - now).max()), float(np.abs(np.subtract(*sums)).max()))
            if off <= most and told["names"] == found["names"]:
                return ""
        return (
            f"expected {told['count']} places from {_at(then[0])} to {_at(then[1])} m, came "
            f"{found['count']} from {_at(now[0])} to {_at(now[1])} m"
            + (f"; {_what(told, found)} are others" if same else "")
        )
    except (KeyError, TypeError, ValueError, IndexError) as error:
        return f"what it says of its places cannot be read ({error!r})"


def _what(told: Mapping[str, Any], found: Mapping[str, Any]) -> str:
    return "their positions" if told["names"] == found["names"] else "their names"


def _at(point: Any) -> str:
    return f"({', '.join(f'{number:g}' for number in point)})"


def check_places(start: Mapping[str, Any], topology: Topology, where: Path | str) -> None:
    """See that a map has the places that a run began with, by its first event.

    Raises:
        RunError: it has others.
    """
    if why := other_places(start.get("places"), mark_of_places(topology)):
        versions = start.get("versions")
        version = versions.get("gp_active_sensing") if isinstance(versions, Mapping) else None
        by = f" (the run was begun by version {version})" if version else ""
        msg = f"{where}: map {topology.name!r}: {NO_LONGER.format(why)}{by}"
        raise RunError(msg)
