"""Remaining route of a mission, for a ground station."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gp_active_sensing.engine.config import START
from gp_active_sensing.errors import RunError
from gp_active_sensing.export.missions import Point
from gp_active_sensing.mission.course import corners, places_ahead, places_along
from gp_active_sensing.records.event_lines import parse_events
from gp_active_sensing.records.events import (
    DecisionTaken,
    MissionEnded,
    ProbePosition,
    ReadingUsed,
    ReturnBegun,
)
from gp_active_sensing.report.source import RunData, load_run, section_of
from gp_active_sensing.topology.lookup import place_index
from gp_active_sensing.topology.projection import geographic_of, local_system
from gp_active_sensing.types import BoolArray


class _ProbeAtEnd(NamedTuple):
    decision: DecisionTaken | ReturnBegun
    first: int | None
    where: ProbePosition | None


def route_left(run_dir: Path, altitude: float = 0.0) -> dict[str, tuple[Point, list[Point]]]:
    """Return the position and the remaining waypoints of each probe, by probe name.

    The waypoints lead to the unread places of the last decision, then to the end place. The height
    of a waypoint above home is `altitude` plus the height of its place on the map [m].

    Raises:
        RunError: the mission is over or has no decision, or the map has no geographic position.
        MissingDependencyError: pyproj is missing.
    """
    data = load_run(run_dir)
    if data.topology.datum is None:
        msg = (
            f"{run_dir}: map {data.topology.name!r} has no position on Earth; use a map in degrees"
        )
        raise RunError(msg)
    probes, observed = _probes_of(data)
    found = {}
    for name, probe in probes.items():
        start, places = _places_left(data, probe, observed)
        positions = [start, *data.topology.goals[places, :2].tolist()]
        degrees = geographic_of(positions, local_system(data.topology.datum), where=str(run_dir))
        up = data.topology.heights
        heights = [altitude + (0.0 if up is None else float(up[place])) for place in places]
        points = [
            (latitude, longitude, height)
            for (longitude, latitude), height in zip(degrees.tolist(), [0.0, *heights], strict=True)
        ]
        found[name] = points[0], points[1:]
    return found


def _probes_of(data: RunData) -> tuple[dict[str, _ProbeAtEnd], BoolArray]:
    observed = np.zeros(data.topology.n, dtype=np.bool_)
    probes: dict[str, _ProbeAtEnd] = {}
    for event in parse_events(data.events):
        if isinstance(event, MissionEnded):
            msg = f"{data.path}: the mission is over ({event.reason}); no route is left"
            raise RunError(msg)
        if isinstance(event, ReadingUsed) and event.reading.location is not None:
            if not event.reading.quantity:  # the main quantity has no name
                observed[event.reading.location] = True
        if isinstance(event, DecisionTaken | ReturnBegun):
            before = probes.get(event.probe)
            first = event.at if before is None else before.first
            probes[event.probe] = _ProbeAtEnd(event, first, event.where)
        where = getattr(event, "where", None)
        if event.probe in probes and isinstance(where, ProbePosition):
            probes[event.probe] = probes[event.probe]._replace(where=where)
    if not probes:
        msg = f"{data.path}: no decision was taken yet; no route is left"
        raise RunError(msg)
    return probes, observed


def _places_left(
    data: RunData, probe: _ProbeAtEnd, observed: BoolArray
) -> tuple[tuple[float, float], list[int]]:
    """Return the position of a probe [m], and the next places where it turns or reads."""
    topology, plan = data.topology, probe.decision.plan
    goals = [goal for goal in plan.waypoints if not observed[goal]]
    end = _end_of(data, probe)
    goals += [end] if end is not None and goals[-1:] != [end] else []
    pose = None if probe.where is None else probe.where.pose
    here = topology.positions[plan.path[0]] if pose is None else np.array(pose[1:])
    start = float(here[0]), float(here[1])
    if not goals:
        return start, []
    way: Sequence[int] = plan.path
    if goals[0] != way[-1]:
        at = int(np.argmin(np.hypot(*(topology.positions - here).T)))
        on = topology.ways_from(at).route(goals[0])
        way = (goals[0],) if on is None or not on.path else on.path
    first = corners(topology, start, places_along(topology, start, way)) or (goals[0],)
    onward = replace(plan, waypoints=tuple(goals))
    return start, list(places_ahead(topology, first, onward, observed, count=len(goals)))


def _end_of(data: RunData, probe: _ProbeAtEnd) -> int | None:
    if isinstance(probe.decision, ReturnBegun):
        return probe.decision.path[-1]
    end = section_of(data.config, "probe").get("end")
    if end is None:
        return None
    if end == START and START not in data.topology.names:
        return probe.first
    return place_index(data.topology, end, "probe.end")
