"""Small extracts of OpenStreetMap, as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

NODES = {k: (13.4 + 0.001 * (k % 10), 52.5 + 0.001 * (k // 10)) for k in range(1, 60)}
"""Nodes on a grid: 1 … 9 from west to east, 10 more is a step north."""

RESIDENTIAL = {"highway": "residential"}
Way = tuple[int, Sequence[int], Mapping[str, str]]
Relation = tuple[Mapping[str, str], Sequence[tuple[str, str, int]]]


def osm(ways: Sequence[Way], relations: Sequence[Relation] = (), missing: int = 0) -> str:
    """Return an extract; `missing` is a node that its ways use and it lacks."""
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', '<osm version="0.6" generator="a test">']
    used = sorted({node for _, nodes, _ in ways for node in nodes} - {missing})
    for node in used:
        lon, lat = NODES[node]
        lines.append(f'<node id="{node}" version="1" lat="{lat:.7f}" lon="{lon:.7f}"/>')
    for identity, nodes, tags in ways:
        refs = "".join(f'<nd ref="{node}"/>' for node in nodes)
        lines.append(f'<way id="{identity}" version="1">{refs}{_tags(tags)}</way>')
    for k, (tags, members) in enumerate(relations, start=1):
        parts = "".join(
            f'<member type="{kind}" ref="{ref}" role="{role}"/>' for role, kind, ref in members
        )
        every = _tags({"type": "restriction", **tags})
        lines.append(f'<relation id="{k}" version="1">{parts}{every}</relation>')
    return "\n".join([*lines, "</osm>"]) + "\n"


def write_osm(folder: Path, text: str) -> Path:
    path = folder / "quarter.osm"
    path.write_text(text, encoding="utf-8")
    return path


def _tags(tags: Mapping[str, str]) -> str:
    return "".join(f'<tag k="{key}" v="{value}"/>' for key, value in tags.items())
