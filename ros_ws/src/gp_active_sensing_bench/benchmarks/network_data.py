"""Road networks with measured or simulated speeds, from the folder in GPAS_DATA."""

from __future__ import annotations

import csv
import math
import os
from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from gp_active_sensing.topology.segments import RoadMap, Segment

KMH = 3.6
METRES = 1852.0 * 60.0
"""Length of one degree of latitude [m]."""
SHORTEST = 1.0
"""Smallest length of a segment [m]."""


@dataclass(frozen=True)
class Network:
    """Road map with values at some of its segments.

    Args:
        road_map: map of n segments.
        places: (s,) segments with values.
        values: (w, s) values at w times.
        unit: unit of the values.
    """

    road_map: RoadMap
    places: np.ndarray
    values: np.ndarray
    unit: str


def data_folder() -> Path | None:
    """Return the folder that GPAS_DATA names; None = it is not set, or there is no such folder."""
    folder = os.environ.get("GPAS_DATA")
    return Path(folder) if folder and Path(folder).is_dir() else None


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def points_of(wkt: str) -> np.ndarray:
    """Return the points (m, 2) of a WKT linestring."""
    inside = wkt[wkt.index("(") + 1 : wkt.rindex(")")]
    return np.array([[float(v) for v in pair.split()] for pair in inside.split(",")])


def sumo(folder: Path, name: str) -> Network:
    """Return the edges of a SUMO network, with mean speeds over the whole simulation [km/h]."""
    edges = rows_of(folder / "sumo" / f"{name}.edges.csv")
    known = {row["id"] for row in edges}
    segments = tuple(
        Segment(
            row["id"],
            row["from"],
            row["to"],
            tuple((float(x), float(y)) for x, y in points_of(row["wkt"])),
            max(float(row["length_m"]), SHORTEST),
            float(row["lanes"]),
            float(row["speed_limit_mps"]),
            tuple(b for b in row["successors"].split() if b in known),
            road_class=row.get("type", ""),
        )
        for row in edges
    )
    speeds = {r["id"]: r["v_all_mps"] for r in rows_of(folder / "sumo" / f"{name}.speeds.csv")}
    read = [(i, speeds[s.id]) for i, s in enumerate(segments) if speeds.get(s.id)]
    values = KMH * np.array([[float(v) for _, v in read]])
    return Network(RoadMap(name, "map", segments), np.array([i for i, _ in read]), values, "km/h")


def san_jose(folder: Path) -> Network:
    """Return the San Jose freeways with speeds of loop detectors on 13 Mondays at 17:30 [mph].

    An edge with several detectors is divided, so that each detector has its own segment. Segments
    have a length and a direction, but no speed limit or class.
    """
    data = folder / "pems_sanjose"
    with (data / "speeds_mph_mon1730_weeks01_13.csv").open(encoding="utf-8") as lines:
        (ids, *weeks) = [line[1:] for line in csv.reader(lines)]
    sensors = {row["sensor"]: row for row in rows_of(data / "sensors.csv")}
    on_edge: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for sensor in ids:
        row = sensors[sensor]
        on_edge[row["edge"]].append((float(row["dist_on_edge_m"]), sensor))
    lon0, lat0 = np.mean([[float(r["lon"]), float(r["lat"])] for r in sensors.values()], axis=0)
    scale = METRES * np.array([math.cos(math.radians(lat0)), 1.0])
    segments: list[Segment] = []
    place: dict[str, int] = {}
    for row in rows_of(data / "edges.csv"):
        line = (points_of(row["wkt_lonlat"]) - [lon0, lat0]) * scale
        length, here = float(row["length_m"]), sorted(on_edge[row["edge"]])
        middles = [0.5 * (a[0] + b[0]) / length for a, b in pairwise(here)]
        cuts = [0.0, *middles, 1.0]
        for k in range(len(cuts) - 1):
            first, last = cuts[k], max(cuts[k + 1], cuts[k] + 1e-6)
            if here:
                place[here[k][1]] = len(segments)
            segments.append(
                Segment(
                    f"{row['edge']}.{k}",
                    row["from"] if k == 0 else f"{row['edge']}/{k}",
                    row["to"] if k == len(cuts) - 2 else f"{row['edge']}/{k + 1}",
                    piece(line, first, last),
                    max(length * (last - first), SHORTEST),
                )
            )
    values = np.array([[float(v) for v in week] for week in weeks])
    road_map = RoadMap("San Jose", "map", tuple(segments))
    return Network(road_map, np.array([place[s] for s in ids]), values, "mph")


def piece(line: np.ndarray, first: float, last: float) -> tuple[tuple[float, float], ...]:
    """Return the part of a line between the fractions `first` and `last` of its length."""
    along = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(line, axis=0).T))])
    along /= along[-1]
    at = np.unique([first, *along[(along > first) & (along < last)], last])
    x, y = (np.interp(at, along, line[:, k]) for k in (0, 1))
    return tuple(zip(x.tolist(), y.tolist(), strict=True))
