"""The map of a run, as it was when the run began: what was worked out, and what its places were.

A run keeps its map as it was configured, and in its first event what was worked out of it besides:
``map``, the spacing and the origin that nobody stated, and ``places``, by which its places are told
from others. So a later version, or a file that somebody has changed, cannot give a run other places
without a word. Runs of earlier versions have neither, and are read as they were written.
"""

from __future__ import annotations

import dataclasses
import math
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gp_active_sensing.config import from_mapping, to_mapping
from gp_active_sensing.errors import ActiveSensingError, RunError
from gp_active_sensing.topology.base import Topology
from gp_active_sensing.topology.config import MapConfig
from gp_active_sensing.topology.grids import file_kind, without_effect
from gp_active_sensing.topology.loaders import find_map
from gp_active_sensing.topology.map_kinds import kinds_of_file

__all__ = [
    "NO_LONGER",
    "as_begun_with",
    "check_places",
    "comparable",
    "effective",
    "mark_of_places",
    "other_places",
    "readable",
    "stored_map",
    "worked_out",
]

_PLANE = ["x", "y"]
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
    """Return the keys of a map that nobody stated, and what they came to; {} for none.

    Args:
        given: as it was configured.
        settled: as `build_settled` returned it.
    """
    before, after = to_mapping(given), to_mapping(settled)
    return {key: after[key] for key in _WORKED_OUT if after[key] != before[key]}


def as_begun_with(config: MapConfig, start: Mapping[str, Any]) -> MapConfig:
    """Return a map with what was worked out when its run began.

    Args:
        config: as it is configured; what it states stays.
        start: the first event of the run.

    Raises:
        ConfigError: the event says what is no spacing, or no origin.
    """
    if start and "places" not in start and config.origin == (0.0, 0.0):
        # Of an earlier version, for which that was as good as nothing.
        config = dataclasses.replace(config, origin=None)
    told, stated = start.get("map"), to_mapping(config)
    if not isinstance(told, Mapping):
        return config
    more = {key: told[key] for key in _WORKED_OUT if key in told and not stated[key]}
    return from_mapping(MapConfig, {**stated, **more}, path="map") if more else config


def stored_map(
    section: Mapping[str, Any],
    start: Mapping[str, Any],
    *,
    base_dir: Path | None = None,
    source: str = "",
) -> MapConfig:
    """Return the map that a run was begun with, by what it has kept.

    Keys that had no effect then, and are refused in a new configuration, are left out.

    Args:
        section: ``map`` of its configuration.
        start: its first event; {} = not known.
        base_dir: folder that files of the map are looked for in first.
        source: where the section stands, for messages.

    Raises:
        ConfigError: it is no configuration of a map.
    """
    found = readable(section, start, base_dir)
    return as_begun_with(from_mapping(MapConfig, found, path="map", source=source), start)


def readable(
    section: Mapping[str, Any], start: Mapping[str, Any], base_dir: Path | None = None
) -> dict[str, Any]:
    """Return a section ``map`` of a run as this version reads it; see `stored_map`."""
    found = effective(section, base_dir)
    if "places" not in start and _is_zero(found.get("origin")):
        del found["origin"]  # the default of earlier versions, with which it was worked out
    return found


def comparable(section: Mapping[str, Any]) -> dict[str, Any]:
    """Return a section ``map`` as it compares with that of another version, or of another start.

    Keys without an effect are left out, and defaults of earlier versions are those of now.
    """
    found = effective(section)
    kind, file = found.get("kind"), str(found.get("file") or "")
    grid = kind == "grid" or bool(found.get("topic"))
    if _is_zero(found.get("origin")):
        found["origin"] = None
    if kind is not None and kind not in ("line", "grid"):
        found.pop("spacing", None)
    sized = kind == "line" or (grid and not file and found.get("columns") and found.get("rows"))
    if sized and not found.get("spacing"):
        found["spacing"] = 1.0
    if kind == "roads" and list(found.get("features") or ()) == _PLANE:
        found["features"] = None
    elif kind in ("line", "grid"):
        found.pop("features", None)
    return found


def effective(section: Mapping[str, Any], base_dir: Path | None = None) -> dict[str, Any]:
    """Return a section ``map`` without the keys of a grid that have no effect.

    Args:
        section: plain data.
        base_dir: folder that a file whose name does not say what it is, is looked for in first.
    """
    kind, name, topic = section.get("kind"), section.get("file"), section.get("topic")
    file = name if isinstance(name, str) else ""
    if kind is None and file:
        kinds = kinds_of_file(file)
        kind = kinds[0] if len(kinds) == 1 else None
    if kind != "grid" and not topic:
        return dict(section)
    if topic:
        return without_effect(section, "topic")
    if file and not kinds_of_file(file):  # its name does not say what it is
        try:
            file = find_map(file, base_dir).name
        except ActiveSensingError:
            return dict(section)
    return without_effect(section, file_kind(file))


def _is_zero(origin: Any) -> bool:
    return isinstance(origin, list | tuple) and len(origin) == 2 and not any(origin)


# -- which places they were ------------------------------------------------------------------------


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
    """Return how the places of a map differ from those that were marked; "" = they are the same.

    Args:
        told: what `mark_of_places` returned then; None = nothing was kept.
        found: what it returns now.
    """
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
    """See that a map has the places that a run began with.

    Args:
        start: the first event of the run, or what else has its ``places``.
        topology: the map that it began with, made again.
        where: the run, for the message.

    Raises:
        RunError: it has others.
    """
    if why := other_places(start.get("places"), mark_of_places(topology)):
        versions = start.get("versions")
        version = versions.get("gp_active_sensing") if isinstance(versions, Mapping) else None
        by = f" (the run was begun by version {version})" if version else ""
        msg = f"{where}: map {topology.name!r}: {NO_LONGER.format(why)}{by}"
        raise RunError(msg)
