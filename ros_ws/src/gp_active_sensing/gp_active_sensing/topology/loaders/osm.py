"""Road maps from OpenStreetMap (``.osm``, ``.osm.pbf``), with osmium.

A segment is one direction of a street between two junctions. Junctions are the ends of streets and
the nodes where streets meet. The pages Key:highway, Key:oneway, Key:maxspeed, Key:lanes and
Key:access of the OpenStreetMap wiki define the tags.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from gp_active_sensing.topology.loaders import fault, number_of
from gp_active_sensing.topology.loaders.drafts import KMH, MPH, Draft, Drafts
from gp_active_sensing.topology.projection import LONLAT
from gp_active_sensing.topology.segments import Point, RoadMap, successors_of
from gp_active_sensing.util.lazy import library

_WITH_LINKS = ("motorway", "trunk", "primary", "secondary", "tertiary")
DRIVABLE = frozenset(
    {
        *_WITH_LINKS,
        *(f"{kind}_link" for kind in _WITH_LINKS),
        *("unclassified", "residential", "living_street", "road"),
    }
)
"""Values of the tag `highway` for streets; service ways, tracks and paths are left out."""

_CLOSED = {"no", "private", "agricultural", "forestry", "delivery", "emergency"}
_ACCESS = ("motorcar", "motor_vehicle", "vehicle", "access")
"""Keys of access rights, from specific to general."""
_ONE_WAY = {
    **dict.fromkeys(("yes", "true", "1"), (True, False)),
    **dict.fromkeys(("-1", "reverse"), (False, True)),
    **dict.fromkeys(("no", "false", "0", "alternating"), (True, True)),
    "reversible": (False, False),
}
"""Flags for driving forward and backward, for each value of `oneway`."""
_SPEED = re.compile(r"(\d+(?:[.,]\d+)?)\s*(km/h|kmh|kph|mph|knots)?$")
_UNITS = {"km/h": KMH, "kmh": KMH, "kph": KMH, "mph": MPH, "knots": 1852.0 / 3600.0}


def drivable(tags: Mapping[str, str]) -> bool:
    """Return whether public cars may drive along a way."""
    if tags.get("highway") not in DRIVABLE or tags.get("area") == "yes":
        return False
    word = next((tags[key] for key in _ACCESS if key in tags), "yes")
    return word not in _CLOSED


def directions(tags: Mapping[str, str]) -> tuple[bool, bool]:
    """Return flags for driving forward and backward; both are False on a reversible road."""
    implied = tags.get("junction") in ("roundabout", "circular") or tags["highway"] == "motorway"
    return _ONE_WAY.get(tags.get("oneway", ""), (True, not implied))


def speed_of(text: str) -> float | None:
    """Return a speed limit [m/s]; None for a text without a number ("none", "RO:urban")."""
    if text.strip() == "walk":
        return 7.0 * KMH
    found = _SPEED.match(text.strip())
    if found is None:
        return None
    return float(found[1].replace(",", ".")) * _UNITS[found[2] or "km/h"] or None


def limit_of(tags: Mapping[str, str], *, backward: bool) -> float | None:
    """Return the speed limit in a direction [m/s], None if unknown."""
    own = tags.get("maxspeed:backward" if backward else "maxspeed:forward")
    return speed_of(own if own is not None else tags.get("maxspeed", ""))


def lanes_of(tags: Mapping[str, str], *, backward: bool, both: bool) -> float | None:
    """Return the number of lanes in a direction, None if unknown.

    The tag `lanes` counts the lanes of both directions. On a street with `both` directions, a
    direction without its own tag gets half of the lanes, but at least one.
    """
    own = _count(tags.get("lanes:backward" if backward else "lanes:forward", ""))
    if own is not None:
        return own
    total = _count(tags.get("lanes", ""))
    if total is None or not both:
        return total
    return max(1.0, total / 2.0)


def _count(text: str) -> float | None:
    value = number_of(text)
    return value if value is not None and 0.0 < value < 100.0 else None


class _Way(NamedTuple):
    id: int
    nodes: tuple[int, ...]
    tags: dict[str, str]


class _Restriction(NamedTuple):
    """Forbidden turn from one way to another at a node, or the only allowed turn."""

    first: int
    via: int
    second: int
    only: bool


_KEPT = re.compile(
    r"highway|junction|oneway|maxspeed.*|lanes.*|name|ref|area|access|vehicle|motor_vehicle|motorcar"
)


def load(path: Path) -> RoadMap:
    """Read an extract of OpenStreetMap."""
    osmium = library("osmium", "OpenStreetMap files are read with osmium")
    local = path.absolute()  # osmium fetches a name that begins with ``http:``
    try:
        ways = _ways(osmium, local)
        wanted = osmium.filter.IdFilter({node for way in ways for node in way.nodes})
        found = osmium.FileProcessor(str(local), osmium.osm.NODE).with_filter(wanted)
        nodes = {n.id: (n.location.lon, n.location.lat) for n in found if n.location.valid()}
        restrictions = list(_restrictions(osmium, local, {way.id for way in ways}))
    except Exception as error:  # errors of osmium have no common parent
        raise fault(
            path, f"is no OpenStreetMap file, or a damaged or truncated one: {error}"
        ) from error
    drafts = Drafts(path, join_zero_length=True)
    uses: Counter[int] = Counter()
    for way in ways:
        uses.update((*way.nodes, way.nodes[0], way.nodes[-1]))
    shared = {node for node, count in uses.items() if count > 1}
    for way in ways:
        _add(drafts, way, nodes, shared)
    road_map = drafts.finish(
        LONLAT,
        nothing="expected ways with highway=residential, primary or the like that cars may use",
    )
    return _with_restrictions(road_map, restrictions)


def _ways(osmium: Any, path: Path) -> list[_Way]:
    found: list[_Way] = []
    reader = osmium.FileProcessor(str(path), osmium.osm.WAY).with_filter(
        osmium.filter.KeyFilter("highway")
    )
    for way in reader:
        tags = {tag.k: tag.v for tag in way.tags if _KEPT.fullmatch(tag.k)}
        if drivable(tags) and len(way.nodes) >= 2:
            found.append(_Way(way.id, tuple(node.ref for node in way.nodes), tags))
    return found


def _restrictions(osmium: Any, path: Path, ways: set[int]) -> Iterator[_Restriction]:
    reader = osmium.FileProcessor(str(path), osmium.osm.RELATION).with_filter(
        osmium.filter.TagFilter(("type", "restriction"))
    )
    for relation in reader:
        tags = {tag.k: tag.v for tag in relation.tags}
        kind = tags.get("restriction:motorcar") or tags.get("restriction") or ""
        if not kind.startswith(("no_", "only_")) or "motorcar" in tags.get("except", ""):
            continue
        members = {(member.role, member.type): member.ref for member in relation.members}
        first, via, second = (
            members.get(key, 0) for key in (("from", "w"), ("via", "n"), ("to", "w"))
        )
        if first in ways and second in ways and via:
            yield _Restriction(first, via, second, only=kind.startswith("only_"))


def _add(drafts: Drafts, way: _Way, nodes: Mapping[int, Point], junctions: set[int]) -> None:
    forward, backward = directions(way.tags)
    if not forward and not backward:
        drafts.ignore("streets whose direction changes with the hour")
        return
    for part, stretch in enumerate(_stretches(drafts, way, nodes, junctions)):
        line = tuple(nodes[node] for node in stretch)
        ends = str(stretch[0]), str(stretch[-1])
        for reverse in (False, True):
            if not (backward if reverse else forward):
                continue
            drafts.add(
                Draft(
                    f"{'-' if reverse else ''}{way.id}.{part}",
                    *(ends[::-1] if reverse else ends),
                    line[::-1] if reverse else line,
                    lanes=lanes_of(way.tags, backward=reverse, both=forward and backward),
                    speed_limit=limit_of(way.tags, backward=reverse),
                    name=way.tags.get("name") or way.tags.get("ref", ""),
                    road_class=way.tags["highway"],
                    where=f"way {way.id}",
                )
            )


def _stretches(
    drafts: Drafts, way: _Way, nodes: Mapping[int, Point], junctions: set[int]
) -> Iterator[list[int]]:
    """Yield the nodes of each stretch between two junctions; a missing node ends a stretch."""
    stretch: list[int] = []
    for node in way.nodes:
        if node not in nodes:
            drafts.ignore("nodes of streets that leave the extract")
            if len(stretch) > 1:
                yield stretch
            stretch = []
            continue
        if stretch and stretch[-1] == node:
            continue
        stretch.append(node)
        if node in junctions and len(stretch) > 1:
            yield stretch
            stretch = [node]
    if len(stretch) > 1:
        yield stretch


def _with_restrictions(road_map: RoadMap, listed: Sequence[_Restriction]) -> RoadMap:
    """Replace the successors of segments according to turn restrictions.

    Without a restriction, a segment keeps the default successors, with U-turns at dead ends. A
    segment that can only turn back keeps its U-turns.
    """
    if not listed:
        return road_map
    segments = road_map.segments
    by_end: dict[tuple[str, str], list[int]] = {}
    for i, segment in enumerate(segments):
        by_end.setdefault((_way(segment.id), segment.end), []).append(i)
    every = successors_of(segments, "always")
    allowed: dict[int, list[int]] = {}
    applied = 0
    for first, via, second, only in listed:
        arriving = by_end.get((str(first), str(via)), [])
        applied += bool(arriving)
        for i in arriving:
            out = allowed.get(i, every[i])
            allowed[i] = [b for b in out if (_way(segments[b].id) == str(second)) == only]
    usual = successors_of(segments, "dead_ends")
    changed = {
        i: [b for b in out if b in usual[i]] or [b for b in out if b not in usual[i]]
        for i, out in allowed.items()
    }
    new = tuple(
        replace(segment, successors=tuple(segments[b].id for b in changed[i]))
        if i in changed
        else segment
        for i, segment in enumerate(segments)
    )
    note = f"{applied} turn restriction(s) applied"
    return replace(road_map, segments=new, notes=(*road_map.notes, note))


def _way(identity: str) -> str:
    return identity.removeprefix("-").rpartition(".")[0]
