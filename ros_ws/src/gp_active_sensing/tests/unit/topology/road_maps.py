"""Small road maps for tests."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

HEADER = {"schema": 1, "name": "small", "crs": "local", "frame": "map", "units": "metre"}


def segment(
    identity: Any, start: Any, end: Any, line: Sequence[Sequence[float]], **properties: Any
) -> dict[str, Any]:
    return {
        "type": "Feature",
        "properties": {"id": identity, "from": start, "to": end, **properties},
        "geometry": {"type": "LineString", "coordinates": [list(p) for p in line]},
    }


def street() -> list[dict[str, Any]]:
    """Return a -> b -> c both ways, with a one-way branch b -> d -> c."""
    return [
        segment("ab", "a", "b", [(0, 0), (100, 0)], oneway=False, speed_limit_mps=10.0, lanes=2),
        segment("bc", "b", "c", [(100, 0), (200, 0)], oneway=False, speed_limit_mps=20.0, lanes=1),
        segment("bd", "b", "d", [(100, 0), (100, 50)], speed_limit_mps=5.0, lanes=1),
        segment("dc", "d", "c", [(100, 50), (200, 50), (200, 0)], speed_limit_mps=5.0, lanes=1),
    ]


def write(path: Path, features: Sequence[Any], header: Mapping[str, Any] | None = HEADER) -> Path:
    data: dict[str, Any] = {"type": "FeatureCollection", "features": list(features)}
    if header is not None:
        data["gp_active_sensing"] = dict(header)
    path.write_text(json.dumps(data), encoding="utf-8")
    return path
