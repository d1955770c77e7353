from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from gp_active_sensing.records.run_map import GridMap
from gp_active_sensing.topology.geometry import OccupancyGrid
from tests.unit.mission.missions import Drive

RESOLUTION = 0.5
LIVE: dict[str, Any] = {"kind": "grid", "topic": "map", "spacing": 2.0, "patience": 3.0}


def house(
    known: tuple[float, float, float, float],
    *,
    taken: tuple[tuple[float, float, float, float], ...] = (),
    frame: str = "map",
) -> GridMap:
    """Return a map that is free in a rectangle (x0, y0, x1, y1) [m] and occupied in others.

    As of a SLAM it covers just what is known, with a margin of unknown cells.
    """
    x0, y0, x1, y1 = known
    columns, rows = (round((b - a) / RESOLUTION) + 4 for a, b in ((x0, x1), (y0, y1)))
    values = np.full((rows, columns), -1, dtype=np.int8)
    values[2:-2, 2:-2] = 0
    origin = x0 - 2 * RESOLUTION, y0 - 2 * RESOLUTION
    for a, b, c, d in taken:
        first, last = (round((v - origin[0]) / RESOLUTION) for v in (a, c))
        bottom, top = (round((v - origin[1]) / RESOLUTION) for v in (b, d))
        values[max(bottom, 0) : top, max(first, 0) : last] = 100
    return GridMap(OccupancyGrid(values, RESOLUTION, origin), frame)


NOTHING_FREE = GridMap(OccupancyGrid(np.full((20, 20), -1, dtype=np.int8), RESOLUTION), "map")
ROOM = house((-1.0, -1.0, 7.0, 7.0))
LARGER = house((-1.0, -1.0, 15.0, 7.0))
LARGEST = house((-9.0, -1.0, 15.0, 11.0))


def drive_on(run_dir: Path | None, first: GridMap | None = ROOM, **config: Any) -> Drive:
    drive = Drive(run_dir, **{"map": LIVE, "budget": {"readings": 30}, **config})
    drive.first = first
    return drive


def take(drive: Drive, found: GridMap) -> bool:
    mission = drive.built.mission
    return mission.map.adopt(mission, found)
