#!/usr/bin/env python3
"""Make lake.kml and lake.plan: a lake with an island, as Google Earth and QGroundControl save it.

``python make_lake.py`` writes the shipped files again. It needs no library. The lake is no real
one: it lies where two round degrees meet.
"""

from __future__ import annotations

import argparse
import json
import logging
import math
from pathlib import Path

logger = logging.getLogger("make_lake")

LONGITUDE, LATITUDE = 8.0, 47.0
"""Of the middle [degree]."""
RADII = 220.0, 140.0
"""Of the lake, along east and north [m]."""
ISLAND = (60.0, 20.0), 30.0
"""Middle and radius [m]."""
REEDS = (-150.0, -40.0), 25.0
"""Middle and radius of what the boat shall stay out of [m]."""
HOME = -120.0, 60.0
"""Of the boat [m]."""
BAYS = ((2, 0.10, 0.4), (3, 0.08, 1.9), (5, 0.05, 0.3), (9, 0.02, 2.2))
"""The shore is a sum of waves: how many there are, how high, where they begin."""
CORNERS = 48
_DEGREE = 6378137.0 * math.pi / 180.0

Point = tuple[float, float]


def main(arguments: list[str] | None = None) -> int:
    """Write both files."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    shore = [degrees(point) for point in shore_of()]
    island = [degrees(point) for point in circle(*ISLAND, corners=16)]
    (options.out / "lake.kml").write_text(kml(shore, island), encoding="utf-8")
    text = json.dumps(plan(shore, island), indent=1)
    (options.out / "lake.plan").write_text(text + "\n", encoding="utf-8")
    logger.info("lake: %d corners of the shore, %d of the island", len(shore), len(island))
    return 0


def shore_of() -> list[Point]:
    """Return the corners of the shore [m]."""
    points = []
    for k in range(CORNERS):
        angle = 2.0 * math.pi * k / CORNERS
        wide = 1.0 + sum(high * math.sin(count * angle + at) for count, high, at in BAYS)
        points.append((RADII[0] * wide * math.cos(angle), RADII[1] * wide * math.sin(angle)))
    return points


def circle(middle: Point, radius: float, corners: int) -> list[Point]:
    """Return the corners of a circle [m]."""
    angles = [2.0 * math.pi * k / corners for k in range(corners)]
    return [(middle[0] + radius * math.cos(a), middle[1] + radius * math.sin(a)) for a in angles]


def degrees(point: Point) -> Point:
    """Return longitude and latitude of a point in metres."""
    x, y = point
    east = x / (_DEGREE * math.cos(math.radians(LATITUDE)))
    return round(LONGITUDE + east, 7), round(LATITUDE + y / _DEGREE, 7)


def kml(shore: list[Point], island: list[Point]) -> str:
    """Return the lake as a placemark with a hole."""
    rings = [" ".join(f"{x},{y},0" for x, y in [*ring, ring[0]]) for ring in (shore, island)]
    shell, hole = (f"<LinearRing><coordinates>{ring}</coordinates></LinearRing>" for ring in rings)
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<kml xmlns="http://www.opengis.net/kml/2.2"><Document><name>lake</name>\n'
        "<Placemark><name>Lake</name><Polygon>\n"
        f"<outerBoundaryIs>{shell}</outerBoundaryIs>\n<innerBoundaryIs>{hole}</innerBoundaryIs>\n"
        "</Polygon></Placemark>\n</Document></kml>\n"
    )


def plan(shore: list[Point], island: list[Point]) -> dict[str, object]:
    """Return the plan: a fence along the shore, the island and reeds shut out, where home is."""
    middle, radius = REEDS
    fence = {
        "circles": [
            {
                "circle": {"center": degrees(middle)[::-1], "radius": radius},
                "inclusion": False,
                "version": 1,
            }
        ],
        "polygons": [
            {"inclusion": inside, "polygon": [corner[::-1] for corner in ring], "version": 1}
            for inside, ring in ((True, shore), (False, island))
        ],
        "version": 2,
    }
    return {
        "fileType": "Plan",
        "geoFence": fence,
        "groundStation": "QGroundControl",
        "mission": {
            "cruiseSpeed": 2,
            "firmwareType": 3,
            "globalPlanAltitudeMode": 1,
            "hoverSpeed": 2,
            "items": [],
            "plannedHomePosition": [*degrees(HOME)[::-1], 0],
            "vehicleType": 10,
            "version": 2,
        },
        "rallyPoints": {"points": [], "version": 2},
        "version": 1,
    }


if __name__ == "__main__":
    raise SystemExit(main())
